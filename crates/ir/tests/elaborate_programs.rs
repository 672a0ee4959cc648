//! Meaning, types and sizes of programs, and scaling of elaboration.

mod frontend;
use chainrule_base::Sources;
use chainrule_ir::{Expr, Program, Value, evaluate, verify};
use chainrule_ops::F64;
use frontend::*;
use std::fmt::Write;

#[test]
fn numbers_take_the_type_that_their_surroundings_ask_for() {
    let text = "let f = fun v -> ifold (fun s i -> s + v[i]) 0 (length v)";
    assert_eq!(f(text, &[vector(&[1.0, 2.5])]), real(3.5));
    assert_eq!(f("let f = fun (v : []Int) -> vectorSum v", &[Value::Array(vec![int(2), int(3)])]), int(5));
    assert_eq!(f("let f = fun (n : Int) -> sum n (fun i -> i)", &[int(4)]), real(6.0));
    assert_eq!(f("let f = fun (n : Int) -> n / 2", &[int(3)]), real(1.5));
    assert_eq!(f("let f = fun (n : Int) -> (div n 2, mod n 2)", &[int(-3)]), pair(int(-2), int(1)));
    // Integers, too, where the quotient is compared: more digits than a double has.
    let large = (1 << 60) + 5;
    assert_eq!(f("let f = fun (n : Int) (m : Int) -> mod n 4 == m", &[int(large), int(1)]), Value::Bool(true));
    let text = "let f = fun (n : Int) (m : Int) -> let q = div n 4 in q == m";
    assert_eq!(f(text, &[int(large), int((large / 4) + 1)]), Value::Bool(false));
    assert_eq!(f("let f = fun (n : Int) (x : Double) -> n * x + 1", &[int(3), real(0.5)]), real(2.5));
    assert_eq!(f("let f = fun (n : Int) -> n ** 2", &[int(3)]), real(9.0));
    assert_eq!(
        f("let f = fun n v -> ifold (fun s i -> s * i + v[i]) 0 n", &[int(3), vector(&[1.0, 2.0, 3.0])]),
        real(9.0)
    );
    assert_eq!(
        f("let k = 2\nlet f = fun (n : Int) x -> (n * k, x * k * 1.0)", &[int(3), real(0.5)]),
        pair(int(6), real(1.0))
    );
    assert_eq!(f("let f = let k = 3 in (k + length [1.0], k * 0.5)", &[]), pair(int(4), real(1.5)));
    assert_eq!(f("let f = fun (i : Int) -> max i 3", &[int(5)]), int(5));
    assert_eq!(f("let f = fun (i : Int) -> i * 2 + 1", &[int(5)]), int(11));
    assert_eq!(
        f("let mul = fun x y -> x * y\nlet f = fun (i : Int) -> (mul i 2, mul 0.5 i)", &[int(5)]),
        pair(int(10), real(2.5))
    );
    assert_eq!(f("let step = fun s i -> s + i\nlet f = fun n -> ifold step 0 n", &[int(4)]), int(6));
    assert_eq!(f("let f = fun (i : Int) x -> if x > 0 then i * x else 2", &[int(5), real(0.5)]), real(2.5));
    assert_eq!(f("let f = if true then 1 else 2", &[]), real(1.0));
    assert_eq!(f("let f = [1, 2.5, -3]", &[]), vector(&[1.0, 2.5, -3.0]));
    assert_eq!(f("let f = pi", &[]), real(std::f64::consts::PI));
}

#[test]
fn functions_are_values_of_the_compiler() {
    assert_eq!(
        f("let twice = fun g x -> g (g x)\nlet f = fun x -> twice (twice (fun y -> y * 2)) x", &[real(1.0)]),
        real(16.0)
    );
    assert_eq!(
        f("let f = fun x -> let g = fun a b c -> a + b * c in let h = g x 2 in h 3 + h 4", &[real(1.0)]),
        real(16.0)
    );
    // A local function at two types.
    let text = "let f = fun (n : Int) x -> let id = fun y -> y in (id n, id x)";
    assert_eq!(f(text, &[int(1), real(0.5)]), pair(int(1), real(0.5)));
    let text = "let f = fun (p : { a : Double, b : (Double, Double) }) -> p.a + p.b.0 * p.b.1";
    assert_eq!(f(text, &[Value::Tuple(vec![real(1.0), pair(real(2.0), real(3.0))])]), real(7.0));
    assert_eq!(f("let (a, (b, c)) = (1.0, (2.0, 3.0))\nlet f = a + b * c", &[]), real(7.0));
    assert_eq!(
        f("let vectorSum = fun v -> 42.0\nlet f = fun v -> vectorSum v + vectorDot v v", &[vector(&[1.0])]),
        real(43.0)
    );
    assert_eq!(f("let f = while (fun x -> x < 100.0) (fun x -> x * 2) 1 50", &[]), real(128.0));
    let gather = "let f = fun (v : []Double) (ix : []Int) -> build (length ix) (fun i -> v[ix[i]])";
    let ix = Value::Array(vec![int(2), int(0)]);
    assert_eq!(f(gather, &[vector(&[1.0, 2.0, 3.0]), ix]), vector(&[3.0, 1.0]));
}

#[test]
fn arguments_are_computed_once() {
    let f = function("let f = fun x -> let square = fun y -> y * y in square (sin x)", "f");
    let sines = f.body.stmts.iter().filter(|s| matches!(s.expr, Expr::Op(chainrule_ops::Op::Sin, _))).count();
    assert_eq!(sines, 1);
}

#[test]
fn sizes_are_named_after_their_arrays() {
    let text = "let f = fun (a : Matrix) (x : []Double) (y : [n]Double) (z : [n]Double) (k : Card) (w : [2*k + 1]Double) (t : [][][]Double) -> y[0]";
    let f = function(text, "f");
    let names: Vec<&str> = f.sizes.iter().map(|s| &**f.vars[*s].name.as_ref().unwrap()).collect();
    assert_eq!(names, ["n", "a_rows", "a_cols", "x_len", "t_dim1", "t_dim2", "t_dim3"]);
    let ty = chainrule_ir::value::named_type(f.ty(f.params[5]), &f.vars);
    assert_eq!(ty, "[2*k + 1]Double");
}

#[test]
fn a_size_variable_is_an_int_in_the_body() {
    let text = "let f = fun (v : [n]Double) -> build n (fun i -> v[n - 1 - i])";
    let function = function(text, "f");
    assert!(function.requires.is_empty());
    assert_eq!(f(text, &[vector(&[1.0, 2.0])]), vector(&[2.0, 1.0]));
}

#[test]
fn proved_indices_need_no_check() {
    let all_proved = [
        "let f = fun m -> build (matrixCols m) (fun j -> sum (length m) (fun i -> m[i][j]))",
        "let f = fun (v : [n]Double) -> sum (n - 1) (fun i -> v[i + 1] - v[i])",
        "let f = fun (v : [n*m]Double) (a : [n][m]Double) -> build n (fun i -> build m (fun j -> v[i*m + j] + a[i][j]))",
        "let f = fun (v : [n]Double) -> build n (fun i -> sum i (fun j -> v[j]))",
        "let f = fun (v : [n]Double) -> build n (fun i -> sum (n - i) (fun j -> v[i + j]))",
    ];
    for text in all_proved {
        let f = function(text, "f");
        assert!(f.requires.is_empty(), "{text}: {:#?}", f.requires);
        assert!(!format!("{f:?}").contains("proved: false"), "{text}");
    }
    // An out-of-range read in a loop that does not run is no error.
    let text = "let f = fun (v : [n]Double) -> sum n (fun i -> sum (n - 2*i) (fun j -> v[n - 1 - i - j]))";
    let f = function(text, "f");
    assert!(f.requires.is_empty(), "{:#?}", f.requires);
    assert_eq!(run(text, "f", &[vector(&[1.0, 10.0, 100.0])]), real(121.0));
    // Under a condition nothing is certain.
    let f = function("let f = fun (v : Vector) i -> if i < length v then v[i] else 0", "f");
    assert!(f.requires.is_empty());
    assert!(format!("{f:?}").contains("proved: false"));
}

#[test]
fn a_size_in_an_imported_constant_and_a_record() {
    let mut sources = Sources::new();
    let root = sources
        .add("main.ft", "import \"robot.ft\"\nlet f = fun (q : [joints]Double) (p : Pose) -> vectorSum q + p.t[2]");
    let loader = |path: &str, _: &str| match path {
        "robot.ft" => {
            Ok(("robot.ft".to_owned(), "let joints = 2\ntype Pose = { t : [3]Double, angle : Double }".to_owned()))
        }
        _ => Err("no".to_owned()),
    };
    let program = Program::load(&mut sources, root, loader).unwrap_or_else(|d| panic!("{d}"));
    let f = program.elaborate("f").unwrap_or_else(|d| panic!("{d}"));
    verify(&f).unwrap();
    assert!(f.sizes.is_empty() && f.requires.is_empty());
    let pose = Value::Tuple(vec![vector(&[1.0, 2.0, 3.0]), real(0.0)]);
    assert_eq!(evaluate(&f, &mut F64, &[vector(&[10.0, 20.0]), pose]).unwrap(), real(33.0));
    let it = program.elaborate_expr(&mut sources, "real (joints * 2)").unwrap_or_else(|d| panic!("{d}"));
    assert_eq!(evaluate(&it, &mut F64, &[]).unwrap(), real(4.0));
    assert!(program.elaborate_expr(&mut sources, "joints +").is_err());
}

#[test]
fn a_long_chain_of_lets_is_linear() {
    let n = 100_000;
    let mut text = String::from("let f = fun x ->\n  let y0 = x + 1.0\n");
    for k in 1..=n {
        let _ = writeln!(text, "  let y{k} = y{} * 0.5 + y{}", k - 1, k - 1);
    }
    let _ = writeln!(text, "  y{n}");
    let start = std::time::Instant::now();
    let function = function(&text, "f");
    assert!(function.body.stmts.len() < 4 * n);
    println!("{n} lets in {:?}", start.elapsed());
}

#[test]
fn a_long_chain_of_unknown_numbers_is_linear() {
    let n = 20_000;
    let mut text = String::from("let f = fun x a ->\n  let y0 = x\n");
    for k in 1..=n {
        let _ = writeln!(text, "  let y{k} = y{} * a + y{}", k - 1, k - 1);
    }
    let _ = writeln!(text, "  y{n}");
    let start = std::time::Instant::now();
    let _ = function(&text, "f");
    println!("{n} lets of unknown numbers in {:?}", start.elapsed());
}

#[test]
fn growth_by_inlining_has_a_bound() {
    let mut text = String::from("let g0 = fun x -> sin x + 1.0\n");
    for k in 1..=40 {
        let _ = writeln!(text, "let g{k} = fun x -> g{} (g{} x)", k - 1, k - 1);
    }
    text.push_str("let f = fun x -> g40 x");
    let program = load(&text).unwrap_or_else(|(_, d)| panic!("{d}"));
    let said = program.elaborate("f").unwrap_err().to_string();
    assert!(said.contains("limitation") && said.contains("too large while `g"), "{said}");
}

#[test]
fn calls_that_nest_deep_have_a_bound() {
    let mut text = String::from("let g0 = fun x -> sin x\n");
    for k in 1..=300 {
        let _ = writeln!(text, "let g{k} = fun x -> 1.0 + g{} x", k - 1);
    }
    text.push_str("let ok = fun x -> g150 x\nlet f = fun x -> g300 x");
    let program = load(&text).unwrap_or_else(|(_, d)| panic!("{d}"));
    assert!(program.elaborate("ok").is_ok());
    let said = program.elaborate("f").unwrap_err().to_string();
    assert!(said.contains("limitation") && said.contains("nest too deep"), "{said}");
}

#[test]
fn types_that_double_have_a_bound() {
    let mut text = String::from("let p0 = fun x -> (x, x)\n");
    for k in 1..=40 {
        let _ = writeln!(text, "let p{k} = fun x -> p{} (p{} x)", k - 1, k - 1);
    }
    text.push_str("let f = fun (x : Double) -> p40 x");
    match load(&text) {
        Err((_, d)) => assert!(d.to_string().contains("limitation: a type is too large"), "{d}"),
        Ok(program) => assert!(program.elaborate("f").is_err()),
    }
    let mut text = String::from("let f = fun (x0 : Double) ->\n");
    for k in 1..=60 {
        let _ = writeln!(text, "  let x{k} = (x{}, x{})", k - 1, k - 1);
    }
    text.push_str("  (x60).0");
    match load(&text) {
        Err((_, d)) => assert!(d.to_string().contains("limitation"), "{d}"),
        Ok(program) => assert!(program.elaborate("f").unwrap_err().to_string().contains("limitation")),
    }
}

#[test]
fn expressions_may_nest_as_deep_as_the_parser_lets_them() {
    for (open, close) in
        [("(", ")"), ("sin (", ")"), ("(fun x -> ", ") x"), ("if x > 0 then ", " else x"), ("[", "][0]")]
    {
        let n = 100;
        let text = format!("let f = fun x -> {}x{}", open.repeat(n), close.repeat(n));
        if let Ok(program) = load(&text) {
            let f = program.elaborate("f").unwrap_or_else(|d| panic!("{d}\n{text}"));
            verify(&f).unwrap();
        }
    }
}
