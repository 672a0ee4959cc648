//! Programs whose meaning grows exponentially in their text, doubling with each line: they take time and memory in
//! proportion to their text, or report a limitation. At these sizes doubling would not terminate.

#![allow(clippy::unwrap_used, reason = "tests")]

use chainrule::{Compiled, Error, Module, Value};

const SIZES: [usize; 4] = [12, 24, 48, 96];

fn compiled(text: &str) -> Result<Compiled, Error> {
    Module::from_text("f.ft", text)?.function("f")?.compile()
}

/// Returns the outcome of the program at each size: its result at 1.5, or the title of a limitation.
fn outcomes(program: impl Fn(usize) -> String) -> Vec<Result<f64, String>> {
    let one = |size: &usize| {
        let result = compiled(&program(*size)).and_then(|f| f.call(&[Value::Real(1.5)]));
        match result {
            Ok(values) => match values[..] {
                [Value::Real(x)] => Ok(x),
                _ => panic!("{values:?}"),
            },
            Err(Error::Program { diagnostics, .. }) => {
                let first = diagnostics.iter().next().unwrap();
                assert_eq!(format!("{:?}", first.kind), "Limitation", "{}", first.title);
                assert!(first.span().is_some(), "{}: no place", first.title);
                Err(first.title.clone())
            }
            Err(other) => panic!("{other}"),
        }
    };
    SIZES.iter().map(one).collect()
}

fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(line).collect()
}

#[test]
fn names_of_types_that_double() {
    let program = |n: usize| {
        let chain = lines(n, |i| format!("type A{} = (A{i}, A{i})\n", i + 1));
        format!("type A0 = Double\n{chain}let f = fun (x : Double) -> x\n")
    };
    let limit = || Err("a type is too large to be checked".to_owned());
    assert_eq!(outcomes(program), [Ok(1.5), limit(), limit(), limit()]);
}

#[test]
fn tuples_that_double() {
    let local = |n: usize| {
        let chain = lines(n, |i| format!("  let a{} = (a{i}, a{i}) in\n", i + 1));
        format!("let f = fun (x : Double) ->\n  let a0 = x in\n{chain}  x\n")
    };
    let limit = || Err("the tuples of the program have too many components".to_owned());
    assert_eq!(outcomes(local), [Ok(1.5), limit(), limit(), limit()]);
    let global = |n: usize| {
        let chain = lines(n, |i| format!("let a{} = (a{i}, a{i})\n", i + 1));
        format!("let a0 = 1.0\n{chain}let f = fun (x : Double) -> x\n")
    };
    let limit = || Err("a type is too large to be checked".to_owned());
    assert_eq!(outcomes(global), [Ok(1.5), limit(), limit(), limit()]);
}

/// Functions of functions: each calls the one before twice, and no call computes a number.
#[test]
fn functions_that_double_the_calls_of_another() {
    let tower = |n: usize| {
        let again = "fun (f : Double => Double) ->";
        let chain = lines(n, |i| format!("let t{} = {again} t{i} (t{i} f)\n", i + 1));
        format!("let t0 = {again} fun (x : Double) -> f x\n{chain}let f = fun (x : Double) -> t{n} (fun y -> y) x\n")
    };
    let is_limit = |found: &Result<f64, String>| {
        found.as_ref().is_err_and(|title| title.starts_with("the program became too large while `t"))
    };
    let found = outcomes(tower);
    // Each of the calls is inside of the one before.
    assert_eq!(found[0], Err("calls of `f` nest too deep".to_owned()));
    assert!(found[1..].iter().all(is_limit), "{found:?}");
    let curried = |n: usize| {
        let chain = lines(n, |i| format!("let k{} = fun (a : Double) -> k{i} (k{i} a 1.0)\n", i + 1));
        let first = "let k0 = fun (a : Double) -> fun (b : Double) -> a\n";
        format!("{first}{chain}let f = fun (x : Double) -> k{n} x 2.0\n")
    };
    let found = outcomes(curried);
    assert!(found[0] == Ok(1.5) && found[1..].iter().all(Result::is_err), "{found:?}");
}

#[test]
fn integers_that_are_squared() {
    for line in ["a{i} * a{i}", "a{i} * a{i} + 1", "(a{i} + m) * (a{i} - 1)"] {
        let program = |n: usize| {
            let chain = lines(n, |i| format!("  let a{} = {} in\n", i + 1, line.replace("{i}", &i.to_string())));
            format!("let f = fun (m : Int) (x : Double) ->\n  let a0 = m in\n{chain}  x * real (mod a{n} 2) + x\n")
        };
        for n in SIZES {
            let f = compiled(&program(n)).unwrap();
            let bytes = f.to_bytes().unwrap();
            let loaded = Compiled::from_bytes(&bytes).unwrap();
            let args = [Value::Int(0), Value::Real(1.5)];
            // A program that was saved without sources names the place of an error, and does not show it.
            let told = |found: Result<Vec<Value<f64>>, Error>| {
                found.map_err(|e| e.to_string().contains("an integer does not fit into 64 bits"))
            };
            let (made, again) = (told(f.call(&args)), told(loaded.call(&args)));
            assert_eq!(made, again, "{line} {n}");
            assert_ne!(made, Err(false), "{line} {n}");
        }
    }
}

#[test]
fn loops_inside_of_loops() {
    let nested = |form: &str, n: usize| (0..n).fold("x".to_owned(), |inner, _| form.replace("{inner}", &inner));
    for form in [
        "fst (scan (fun s i -> (s + {inner}, s)) 0.0 1)",
        "fst (scan (fun s i -> (s * 0.5, s)) ({inner}) 1)",
        "(ifold (fun p i -> (p.1, p.0 + {inner})) (0.0, 0.0) 2).0",
    ] {
        for n in [4, 8, 16, 32] {
            let module =
                Module::from_text("f.ft", &format!("let f = fun (x : Double) -> {}", nested(form, n))).unwrap();
            let f = module.function("f").unwrap();
            f.compile().unwrap();
            f.gradient().compile().unwrap();
        }
    }
}

#[test]
fn arrays_of_many_dimensions() {
    for rank in [6, 12, 24, 48] {
        let (dims, at) = ("[]".repeat(rank), "[0]".repeat(rank));
        let text = format!("let f = fun (x : {dims}Double) -> x{at} ** 2");
        let f = Module::from_text("f.ft", &text).unwrap().function("f").unwrap();
        let value = (0..rank).fold(Value::Real(1.5), |value, _| Value::Array(vec![value]));
        let slope = (0..rank).fold(Value::Real(3.0), |value, _| Value::Array(vec![value]));
        assert_eq!(f.gradient().compile().unwrap().call(&[value]).unwrap(), [slope], "{rank}");
    }
}

#[test]
fn names_that_are_long_or_many() {
    let long = "x".repeat(1_000_000);
    let error = compiled(&format!("let {long}y = 1.0\nlet f = fun (x : Double) -> {long}z")).unwrap_err();
    assert!(error.to_string().contains("unknown name"));
    // The search for a similar name is limited.
    let suggested = |n: usize| {
        let text = lines(n, |i| format!("let some{i} = sone{i} + 1.0\n"));
        let Err(Error::Program { diagnostics, .. }) = Module::from_text("f.ft", &text) else { panic!("an error") };
        diagnostics.iter().filter(|d| d.help.iter().any(|help| help.contains("did you mean"))).count()
    };
    let most = [50, 100, 200, 400].map(suggested);
    assert!(most[2] == most[3] && most[3] <= 100, "{most:?}");
    assert!(most[0] > 0, "{most:?}");
}

#[test]
fn definitions_are_elaborated_as_they_are_alone() {
    let text = lines(300, |i| format!("let f{i} = fun p -> vectorMap [p, {i}.0] (fun x -> x * {i}.5 + p)\n"));
    let module = Module::from_text("f.ft", &text).unwrap();
    for i in 0..300 {
        let name = format!("f{i}");
        let alone = Module::from_text("f.ft", &text).unwrap();
        let listing = |module: &Module| module.function(&name).unwrap().listing();
        let listed = listing(&module);
        if i % 60 == 59 {
            assert_eq!(listed, listing(&alone));
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_does_not_end() {
    let error = Module::from_text("f.ft", "import \"/dev/zero\"\nlet f = fun (x : Double) -> x").unwrap_err();
    assert!(error.to_string().contains("more than 64 MiB"), "{error}");
    let Err(Error::Io { source, .. }) = Module::load("/dev/zero") else { panic!("an error") };
    assert!(source.to_string().contains("more than 64 MiB"), "{source}");
}
