//! Every request of a caller is fulfilled or refused.

#![allow(clippy::unwrap_used)]

use chainrule::check::{MAX_POINTS, Settings, compare};
use chainrule::{
    BatchOptions, CompileOptions, Error, Function, Module, Rewrite, Slice, SliceMut, Strided, StridedMut, Value, vars,
};

#[test]
fn only_known_names_are_left_out_of_the_optimiser() {
    let f = Module::from_text("f.ft", "let f = fun (x : [n]Double) -> sum n (fun i -> x[i] * x[i])").unwrap();
    let f = f.function("f").unwrap();
    let with = |name| CompileOptions { rewrite: Rewrite::Without(name), ..CompileOptions::default() };
    let known = chainrule_rewrite::engine::names();
    for name in known.iter().map(|(name, _)| *name).chain(["regions"]) {
        let compiled = f.compile_with(&with(name)).unwrap();
        assert_eq!(compiled.call(&[vec![1.0, 2.0].into()]).unwrap(), [Value::Real(5.0)], "{name}");
    }
    for (name, help) in [("region", "did you mean `regions`?"), ("", "take one of "), ("no such pass", "take one of ")]
    {
        for error in [f.compile_with(&with(name)).unwrap_err(), f.counts_at(&[], Rewrite::Without(name)).unwrap_err()] {
            let text = error.to_string();
            assert!(matches!(error, Error::Request { .. }) && text.contains(help), "{text}");
            assert!(text.contains(&format!("no pass, rule or step `{name}`")), "{text}");
        }
    }
}

#[test]
fn any_number_of_threads_can_be_requested() {
    let x = vars("x", 2);
    let f = Function::new("f", &x, &x.dot(&x)).unwrap();
    for threads in [0, 1, 3, 1 << 20, usize::MAX / 2, usize::MAX] {
        let compiled = f.compile_with(&CompileOptions { threads: Some(threads), ..CompileOptions::default() }).unwrap();
        assert_eq!(compiled.eval(&[&[1.0, 2.0]]).unwrap(), [[5.0]]);
        let x = Strided { data: Slice::Real(&[1.0, 2.0, 3.0, 4.0]), point: 2, element: 1 };
        let mut y = [0.0; 2];
        let result = StridedMut { data: SliceMut::Real(&mut y), point: 1, element: 1 };
        let mut workspace = compiled.workspace(&[&[2]]).unwrap();
        let options = BatchOptions { threads, ..BatchOptions::default() };
        compiled.eval_batch_with(2, &[x], &mut [result], &mut workspace, &options).unwrap();
        assert_eq!(y, [5.0, 25.0]);
    }
}

#[test]
fn comparisons_have_a_limit_of_points() {
    let x = vars("x", 1);
    let f = Function::new("f", &x, &x[0].sin()).unwrap();
    for points in [MAX_POINTS + 1, usize::MAX] {
        let settings = Settings { points, range: (0.0, 1.0), seed: 0 };
        assert!(matches!(compare(&f, &f.gradient(), &settings), Err(Error::Request { .. })));
    }
}

#[test]
fn the_deepest_programs_fit_small_stacks() {
    let nested = |open: &str, close: &str, times: usize| {
        format!("let f = fun (x : Double) -> {}x{}", open.repeat(times), close.repeat(times))
    };
    let programs = [
        nested("(", ")", 250),
        nested("sin (", ")", 125),
        nested("if x > 0 then (", ") else 1", 80),
        nested("x + (let a = x in a * (", "))", 60),
        nested("sum 1 (fun i -> ", ")", 100),
    ];
    let work = move || {
        for text in &programs {
            let module = match Module::from_text("f.ft", text) {
                Ok(module) => module,
                // Beyond the parser's nesting limit: a message.
                Err(error) => {
                    assert!(error.to_string().contains("nest"), "{error}");
                    continue;
                }
            };
            assert!(chainrule::format_source("f.ft", text).is_ok());
            let f = module.function("f").unwrap();
            assert!(f.compile().unwrap().call(&[Value::Real(1.0)]).is_ok());
            assert!(f.gradient().compile().unwrap().call(&[Value::Real(1.0)]).is_ok());
            assert!(f.emit_c().is_ok() && f.unrolled(&[]).is_ok());
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn functions_are_distinguished_by_their_types() {
    let text = "
        let number = 1.0
        let pair = (1.0, 2.0)
        let square = fun (x : Double) -> x * x
        let apply = fun (f : Double => Double) (x : Double) -> f x
        let curried = fun (x : Double) (v : [n]Double) -> x + v[0]";
    let module = Module::from_text("f.ft", text).unwrap();
    let found: Vec<(String, bool, bool)> =
        module.definitions().into_iter().map(|d| (d.name, d.is_function, d.is_first_order)).collect();
    let expected = [
        ("number", false, true),
        ("pair", false, true),
        ("square", true, true),
        ("apply", true, false),
        ("curried", true, true),
    ];
    assert_eq!(found, expected.map(|(name, function, first)| (name.to_owned(), function, first)));
}

#[test]
fn an_integer_that_is_too_large_is_explained() {
    let text = "let f = fun (n : Int) (x : Double) -> if n * n * n * n > 5 then x else 2 * x";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    let args = [Value::Int(1 << 40), Value::Real(1.0)];
    let message = f.compile().unwrap().call(&args).unwrap_err().to_string();
    assert!(message.contains("does not fit into 64 bits") && message.contains("`f`"), "{message}");
    let text = "let f = fun (n : Card) (x : Double) -> sum (n * n * n) (fun i -> x)";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    let message = f.unrolled(&[("n", 1 << 40)]).unwrap_err().to_string();
    assert!(message.contains("too large") && message.contains("f.ft:1:") && message.contains("Help"), "{message}");
}
