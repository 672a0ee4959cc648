//! Functions that branch on their sizes: each branch is optimised as if it were alone. Arrays built in branches: their
//! users move into the branches.

mod support;

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_ir::{Block, Expr, Function, Value, alpha_equal, evaluate, print, verify};
use chainrule_ops::F64;
use chainrule_rewrite::{Options, Report, engine, explain, optimise};
use support::function;

fn jacobian(text: &str, mode: Mode) -> Function {
    let request = Request { parts: vec![Part::Jacobian], by: vec!["x".into()], mode, checkpoints: None };
    derive(&function(text), &request).unwrap_or_else(|e| panic!("{e}"))
}

fn optimised(f: &Function) -> (Function, Report) {
    let (g, report) = optimise(f, &Options::default());
    verify(&g).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&g)));
    (g, report)
}

/// Returns the branches of a function that is an `if`.
fn branches(f: &Function) -> Option<[&Block; 2]> {
    match &f.body.stmts.last()?.expr {
        Expr::If { then, otherwise, .. } => Some([then, otherwise]),
        _ => None,
    }
}

#[test]
fn a_branch_becomes_what_it_becomes_alone() {
    // As one function, it would not change: the costlier columns do not become cheaper.
    let text = "let f = fun (x : [n]Double) (a : [m][n]Double) (s : Card) ->
      ifold (fun (y : [m]Double) k -> vectorMap (vectorAdd y (matrixVectorMul a x)) sin) (vectorZeros m) s";
    let open = jacobian(text, Mode::Auto);
    let (both, report) = optimised(&open);
    let [rows, columns] = [Mode::Reverse, Mode::Forward].map(|mode| optimised(&jacobian(text, mode)));
    let found = branches(&both).unwrap_or_else(|| panic!("no branches\n{}", print(&both)));
    for (block, (alone, _)) in found.into_iter().zip([&rows, &columns]) {
        let found = Function { body: block.clone(), ..both.clone() };
        assert!(alpha_equal(&found, alone), "{}\n{}", print(&found), print(alone));
    }
    assert_eq!(report.work, rows.1.work + columns.1.work);
    // The report belongs to the same run.
    let (explained, account) = explain(&open, &Options::default());
    assert_eq!((&explained, &account.applied), (&both, &report.applied));
    assert_eq!(
        account.places.iter().map(|place| place.times).sum::<u64>(),
        report.applied.iter().map(|(_, n)| n).sum()
    );
    assert!(engine::branches(&open).is_some() && engine::branches(&jacobian(text, Mode::Reverse)).is_none());
}

#[test]
fn branches_that_become_the_same_are_one() {
    let text = "let f = fun (x : [n]Double) (a : [m][n]Double) -> vectorMap (matrixVectorMul a x) sin";
    let open = jacobian(text, Mode::Auto);
    assert!(branches(&open).is_some());
    let (one, _) = optimised(&open);
    assert!(branches(&one).is_none(), "{}", print(&one));
    assert!(alpha_equal(&one, &optimised(&jacobian(text, Mode::Reverse)).0));
}

#[test]
fn conditions_of_doubles_and_numbers_stay_in_one_function() {
    for text in [
        "let f = fun (x : [n]Double) (t : Double) -> if t > 0.0 then vectorMap x sin else x",
        "let f = fun (x : [n]Double) (k : Int) -> if k > 2 then vectorSum x else vectorNorm x",
        "let f = fun (x : [n]Double) (k : Int) -> vectorAdd x (if k > 2 then vectorMap x sin else x)",
    ] {
        assert!(engine::branches(&function(text)).is_none(), "{text}");
    }
    let f = function("let f = fun (x : [n]Double) (k : Int) -> if k > n then vectorMap x sin else vectorSMul x 2.0");
    assert!(engine::branches(&f).is_some());
    let (g, _) = optimised(&f);
    for k in [1, 2, 3] {
        let args: [Value<f64>; 2] = [vec![0.5, 2.0].into(), Value::Int(k)];
        let values = [&f, &g].map(|f| evaluate(f, &mut F64, &args).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(values[0], values[1], "{k}");
    }
}

/// Returns the stored numbers of a function, and how often a loop moved into branches.
fn moved(text: &str) -> (String, u64, Function) {
    let (found, report) = optimised(&function(text));
    (engine::measure(&found).stored, report.times("branches"), found)
}

#[test]
fn an_array_made_in_branches_and_used_by_one_loop_is_not_made() {
    let array = "let a = if t > 0.0 then vectorMap x sin else x";
    let params = "fun (x : [n]Double) (t : Double) ->";
    let (stored, times, found) = moved(&format!("let f = {params}\n {array}\n sum n (fun i -> a[i] * x[n - 1 - i])"));
    assert_eq!((stored.as_str(), times), ("0", 1), "{}", print(&found));
    let sines = 3.0 * 2.0_f64.sin() + 0.5 * 0.5_f64.sin() + 2.0 * 3.0_f64.sin();
    for (t, expected) in [(1.0, sines), (-1.0, 12.25)] {
        let args: [Value<f64>; 2] = [vec![2.0, 0.5, 3.0].into(), Value::Real(t)];
        let Ok(Value::Real(value)) = evaluate(&found, &mut F64, &args) else { panic!("no number") };
        assert!((value - expected).abs() < 1e-14, "{value} for {expected}");
    }
    // Two loops that cannot be merged use it; or the result of the program; or it is too large to be duplicated.
    let twice =
        format!("let f = {params}\n {array}\n let s = vectorSum a\n sum n (fun i -> a[i] * s * sin (a[i] * s))");
    let itself = format!("let f = {params}\n {array}\n (a, vectorSum a)");
    let sines = (0..80).map(|k| format!("sin ({k}.5 * a[i])")).collect::<Vec<_>>().join(" * ");
    let long = format!("let f = {params}\n {array}\n sum n (fun i -> {sines})");
    for text in [twice, itself, long] {
        let (_, times, found) = moved(&text);
        assert_eq!(times, 0, "{text}\n{}", print(&found));
    }
}

#[test]
fn in_branches_nothing_fails_that_was_not_taken() {
    // The branch reads an element that may not exist.
    let text = "let f = fun (x : [n]Double) (k : Int) (t : Double) ->
        let a = if t > 0.0 then build n (fun i -> x[k] * x[i]) else x
        sum n (fun i -> a[i] * x[i])";
    let (_, times, found) = moved(text);
    assert_eq!(times, 1, "{}", print(&found));
    let f = function(text);
    for (t, k) in [(1.0, 1), (1.0, 9), (-1.0, 1), (-1.0, 9)] {
        let args: [Value<f64>; 3] = [vec![2.0, 0.5].into(), Value::Int(k), Value::Real(t)];
        let [before, after] = [&f, &found].map(|f| evaluate(f, &mut F64, &args));
        assert_eq!(before.is_err(), after.is_err(), "{t} {k}");
        assert_eq!(before.is_err(), t > 0.0 && k == 9);
    }
}
