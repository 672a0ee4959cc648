//! Derivatives written in F~: elaborated, expanded, compared with the evaluator and with values by hand.

use chainrule_autodiff::{Mode, Part, Request, check, derive};
use chainrule_base::Sources;
use chainrule_ir::{Function, Program, Value, evaluate};
use chainrule_ops::F64;

fn function(text: &str, name: &str) -> Function {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate(name)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn reals(text: &str, args: &[Value<f64>]) -> Vec<f64> {
    let (_, value) = check::expansion(&function(text, "f"), args).unwrap_or_else(|e| panic!("{e}")).expect("a value");
    value.reals().into_iter().copied().collect()
}

#[test]
fn the_operators_of_the_paper_expand() {
    assert_eq!(reals("let f = fun (x : Double) -> diff (fun a -> a * a) x", &[3.0.into()]), [9.0, 6.0]);
    let nested = "let f = fun (x : Double) -> snd (diff (fun x -> x * snd (diff (fun y -> x + y) 2.0)) x)";
    assert_eq!(reals(nested, &[5.0.into()]), [1.0]);
    let grad = "let f = fun (v : [n]Double) -> grad (fun x -> vectorDot x x) v";
    assert_eq!(reals(grad, &[vec![1.0, 2.0].into()]), [5.0, 2.0, 5.0, 4.0]);
    let lazy = "let f = fun (x : Double) -> snd (diff (fun a -> if a > 0.0 then log a else 0.0) x)";
    assert_eq!(reals(lazy, &[(-1.0).into()]), [0.0]);
}

#[test]
fn a_request_about_a_program_of_the_language() {
    let f = function("let f = fun (m : [r][c]Double) (v : [c]Double) -> vectorNorm (matrixVectorMul m v)", "f");
    let request = Request {
        parts: vec![Part::Value, Part::Gradient],
        by: vec!["v".into()],
        mode: Mode::Forward,
        checkpoints: None,
    };
    let gradient = derive(&f, &request).unwrap_or_else(|e| panic!("{e}"));
    let args = [vec![vec![3.0, 0.0], vec![0.0, 4.0]].into(), vec![1.0, 1.0].into()];
    let value = evaluate(&gradient, &mut F64, &args).expect("a value");
    assert_eq!(value, Value::Tuple(vec![5.0.into(), vec![9.0 / 5.0, 16.0 / 5.0].into()]));
}
