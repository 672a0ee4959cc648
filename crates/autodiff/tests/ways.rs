//! Jacobians by rows and by columns: the selected mode, its condition, and equality of both.

use chainrule_autodiff::{Mode, Part, Request, by_rows_where, derive, expand};
use chainrule_base::Sources;
use chainrule_ir::cost::count;
use chainrule_ir::{Expr, Function, Program, Value, alpha_equal, describe, evaluate, print, verify};
use chainrule_ops::F64;

fn function(text: &str) -> Function {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn request(parts: &[Part], mode: Mode) -> Request {
    Request { parts: parts.to_vec(), by: Vec::new(), mode, checkpoints: None }
}

fn asked(function: &Function, parts: &[Part], mode: Mode) -> Function {
    let derived = derive(function, &request(parts, mode)).unwrap_or_else(|e| panic!("{e}"));
    verify(&derived).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&derived)));
    derived
}

fn value(function: &Function, args: &[Value<f64>]) -> Value<f64> {
    evaluate(function, &mut F64, args).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns whether the body is a single `if`.
fn is_open(function: &Function) -> bool {
    matches!(function.body.stmts.last(), Some(stmt) if matches!(stmt.expr, Expr::If { .. }))
}

/// m outputs by n inputs, with a matrix of constants in between.
const OPEN: &str = "let f = fun (x : [n]Double) (s : [m]Int) ->
  build m (fun o -> sum n (fun i -> sin (x[i] * real s[o])))";

fn at(n: usize, m: usize) -> Vec<Value<f64>> {
    let x: Vec<f64> = (0..n).map(|i| 0.25 + i as f64 / 8.0).collect();
    let s: Vec<Value<f64>> = (0..m).map(|o| Value::Int(o as i64 + 1)).collect();
    vec![x.into(), Value::Array(s)]
}

#[test]
fn sizes_choose_the_way_when_they_are_known() {
    let f = function(OPEN);
    assert_eq!(by_rows_where(&f, &request(&[Part::Jacobian], Mode::Auto)).as_deref(), Some("2*m < n"));
    for mode in [Mode::Forward, Mode::Reverse] {
        assert_eq!(by_rows_where(&f, &request(&[Part::Jacobian], mode)), None);
    }
    for parts in [&[Part::Jacobian][..], &[Part::Value, Part::Jacobian, Part::Vjp]] {
        let all = [Mode::Auto, Mode::Forward, Mode::Reverse].map(|mode| asked(&f, parts, mode));
        assert_eq!(all.each_ref().map(is_open), [true, false, false]);
        // Both sides of the threshold, the threshold itself, and extents of zero and one.
        for (n, m) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (2, 1), (3, 1), (6, 3), (7, 3), (5, 3), (40, 4)]
        {
            let mut args = at(n, m);
            if parts.contains(&Part::Vjp) {
                args.push((0..m).map(|o| 1.5 - o as f64).collect::<Vec<f64>>().into());
            }
            let [chosen, columns, rows] = all.each_ref().map(|derived| value(derived, &args));
            assert_eq!(chosen, if 2 * m < n { rows.clone() } else { columns.clone() }, "{n} inputs, {m} outputs");
            assert_eq!(rows.reals().len(), columns.reals().len());
            for (a, b) in rows.reals().into_iter().zip(columns.reals()) {
                assert!((a - b).abs() <= 1e-14 * a.abs().max(1.0), "{n} inputs, {m} outputs: {a} and {b}");
            }
            // The other way is not computed.
            let [chosen, columns, rows] = all.each_ref().map(|f| count(f, &args).expect("it runs").weight);
            assert_eq!(chosen, if 2 * m < n { rows } else { columns });
        }
    }
}

#[test]
fn where_types_decide_there_is_one_way() {
    let same = |text: &str, mode| {
        let f = function(text);
        let (auto, one) = (asked(&f, &[Part::Jacobian], Mode::Auto), asked(&f, &[Part::Jacobian], mode));
        assert!(alpha_equal(&auto, &one), "{text}\n{}", print(&auto));
        assert_eq!(by_rows_where(&f, &request(&[Part::Jacobian], Mode::Auto)), None, "{text}");
    };
    same("let f = fun (x : [n]Double) -> build n (fun i -> sin x[i])", Mode::Forward);
    same("let f = fun (x : [n]Double) (a : Double) -> build n (fun i -> a * x[i])", Mode::Forward);
    same("let f = fun (a : Double) (s : [m]Int) -> build m (fun i -> a * real s[i])", Mode::Forward);
    same("let f = fun (x : [n]Double) -> vectorSum x", Mode::Reverse);
    same("let f = fun (x : [n]Double) -> [vectorSum x, vectorDot x x]", Mode::Reverse);
    same("let f = fun (a : [m][n]Double) -> build m (fun i -> vectorSum a[i])", Mode::Reverse);
    same("let f = fun (x : [7]Double) -> build 3 (fun i -> x[i] * x[i + 3])", Mode::Reverse);
    same("let f = fun (x : [6]Double) -> build 3 (fun i -> x[i] * x[i + 3])", Mode::Forward);
}

#[test]
fn rows_of_records_are_shaped_as_columns_are() {
    let f = function(
        "let f = fun (p : { k : Int, a : [n]Double, q : [m]{ u : Double, j : Int } }) ->
           { y = build m (fun o -> p.q[o].u * sum n (fun i -> p.a[i] ** 2)), j = p.k, z = vectorSum p.a }",
    );
    let entry = |u: f64| Value::Tuple(vec![u.into(), Value::Int(1)]);
    let args = [Value::Tuple(vec![Value::Int(3), vec![1.0, 2.0].into(), Value::Array(vec![entry(3.0), entry(4.0)])])];
    let [columns, rows, both] = [Mode::Forward, Mode::Reverse, Mode::Auto].map(|m| asked(&f, &[Part::Jacobian], m));
    assert_eq!(describe(rows.result_type()), describe(columns.result_type()));
    assert_eq!(value(&rows, &args), value(&columns, &args));
    assert!(is_open(&both));
    assert_eq!(value(&both, &args), value(&columns, &args));
    let named: Vec<f64> = value(&rows, &args).reals().into_iter().copied().collect();
    // By a: of y both rows, of z; by q: of y, of z.
    assert_eq!(named, [6.0, 12.0, 8.0, 16.0, 1.0, 1.0, 5.0, 0.0, 0.0, 5.0, 0.0, 0.0]);
}

#[test]
fn jacobians_in_programs_choose_too() {
    let text = "let f = fun (x : [n]Double) (s : [m]Int) ->
      jacobian (fun x -> build m (fun o -> sum n (fun i -> sin (x[i] * real s[o])))) x";
    let open = expand(&function(text)).unwrap_or_else(|e| panic!("{e}"));
    let columns = asked(&function(OPEN), &[Part::Jacobian], Mode::Forward);
    let rows = asked(&function(OPEN), &[Part::Jacobian], Mode::Reverse);
    for (n, m) in [(0, 0), (0, 2), (2, 0), (1, 1), (3, 1), (2, 1), (7, 3), (6, 3)] {
        let (found, expected) = (value(&open, &at(n, m)), value(&columns, &at(n, m)));
        for (a, b) in found.reals().into_iter().zip(expected.reals()) {
            assert!((a - b).abs() <= 1e-14 * a.abs().max(1.0), "{n} inputs, {m} outputs: {a} and {b}");
        }
        assert_eq!(found.reals().len(), n * m);
    }
    // 3 outputs of 40 inputs: three passes, not forty.
    let work = |f: &Function| count(f, &at(40, 3)).expect("it runs").weight;
    assert!(work(&open) < 2 * work(&rows) && 4 * work(&open) < work(&columns));
}
