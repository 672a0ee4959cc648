//! Diagonals of Hessians against the Hessians, on random programs and on some with a shape of their own. The seeds are
//! fixed, and failures shrink.

use arbitrary::Unstructured;
use chainrule_autodiff::{Mode, Part, Request, check, derive, expand};
use chainrule_base::Sources;
use chainrule_cases::covers;
use chainrule_ir::cost::count;
use chainrule_ir::generate::{self, Options, gathers};
use chainrule_ir::{Function, Program, Type, Value, describe, evaluate, print, verify};
use chainrule_ops::{F64, Precise};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::{Cell, RefCell};

type Case = (Function, Vec<Value<f64>>);

fn asked(function: &Function, part: Part, mode: Mode) -> Result<Function, String> {
    let request = Request { parts: vec![part], by: Vec::new(), mode, checkpoints: None };
    let derived = derive(function, &request).map_err(|e| e.to_string())?;
    verify(&derived).map_err(|e| format!("{e:?}\n{}", print(&derived)))?;
    Ok(derived)
}

/// Returns the paths to the doubles of `value`, each with the number of its leading steps that are fields of records
/// outside of arrays: these are duplicated in a Hessian before the others are.
fn ways<S>(value: &Value<S>) -> Vec<(Vec<usize>, usize)> {
    fn go<S>(value: &Value<S>, way: &mut Vec<usize>, fields: Option<usize>, found: &mut Vec<(Vec<usize>, usize)>) {
        let (items, inside) = match value {
            Value::Real(_) => return found.push((way.clone(), fields.unwrap_or(way.len()))),
            Value::Int(_) | Value::Bool(_) => return,
            Value::Tuple(items) => (items, fields),
            Value::Array(items) => (items, fields.or(Some(way.len()))),
        };
        for (k, item) in items.iter().enumerate() {
            way.push(k);
            go(item, way, inside, found);
            way.pop();
        }
    }
    let mut found = Vec::new();
    go(value, &mut Vec::new(), None, &mut found);
    found
}

fn at<S: Clone>(value: &Value<S>, way: &[usize]) -> Option<Value<S>> {
    match (value, way) {
        (value, []) => Some(value.clone()),
        (Value::Array(items) | Value::Tuple(items), [k, rest @ ..]) => at(items.get(*k)?, rest),
        _ => None,
    }
}

/// Returns the diagonal of a Hessian, in the order of `diagonal`.
fn on_diagonal<S: Clone>(hessian: &Value<S>, diagonal: &Value<S>) -> Option<Value<S>> {
    let one = |(way, n): &(Vec<usize>, usize)| {
        let (fields, inner) = way.split_at(*n);
        at(hessian, &[fields, fields, inner, inner].concat())
    };
    ways(diagonal).iter().map(one).collect::<Option<Vec<_>>>().map(Value::Array)
}

/// Runs the test; at least `useful` random programs must have a nontrivial diagonal.
fn run(
    seed: u64,
    cases: u32,
    useful: u32,
    mode: Mode,
    make: impl Fn(&mut Unstructured<'_>) -> arbitrary::Result<Case>,
) {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    };
    let (precise, told) = (RefCell::new(Precise::new()), Cell::new(0));
    let test = |(function, args): &Case| -> Result<bool, String> {
        if *function.result_type() != Type::Double || !function.params.iter().any(|p| function.ty(*p).has_double()) {
            return Ok(false);
        }
        let Ok(hessian) = asked(function, Part::Hessian, Mode::Forward) else { return Ok(false) };
        let diagonal = asked(function, Part::HessianDiagonal, mode)?;
        let precise = &mut *precise.borrow_mut();
        let args: Vec<_> = args.iter().map(|arg| arg.map(&mut |x| precise.from_f64(*x))).collect();
        let (Ok(hessian), Ok(found)) = (evaluate(&hessian, precise, &args), evaluate(&diagonal, precise, &args)) else {
            return Ok(false);
        };
        let expected = on_diagonal(&hessian, &found).ok_or("the Hessian has another shape")?;
        check::agree(precise, &expected, &found)?;
        Ok(expected.reals().into_iter().any(|x| precise.as_f64(x) != 0.0))
    };
    let bytes = proptest::collection::vec(any::<u8>(), 50..700);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let Ok(case) = make(&mut Unstructured::new(&bytes)) else { return Ok(()) };
        match test(&case) {
            Ok(useful) => {
                told.set(told.get() + u32::from(useful));
                Ok(())
            }
            Err(what) => Err(TestCaseError::fail(format!("{what}\n{}\n{:?}", print(&case.0), case.1))),
        }
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    covers!(told.get() >= useful, "only {} of {cases} programs told anything", told.get());
}

#[test]
fn diagonals_of_random_sums_are_those_of_the_hessians() {
    for (seed, mode) in [(21, Mode::Auto), (22, Mode::Forward)] {
        run(seed, 40, 15, mode, gathers::scalar);
    }
}

#[test]
fn diagonals_of_random_programs_are_those_of_the_hessians() {
    let options = Options { depth: 2, fuel: 25, derivatives: false, transposed: false, ..Options::smooth() };
    for (seed, mode) in [(23, Mode::Auto), (24, Mode::Reverse)] {
        run(seed, 400, 15, mode, |u| generate::case(u, options).map(|case| (case.function, case.args)));
    }
}

fn function(text: &str) -> Function {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn value(function: &Function, args: &[Value<f64>]) -> Value<f64> {
    evaluate(function, &mut F64, args).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_diagonal_is_shaped_as_the_arguments() {
    let f = function(
        "let f = fun (p : { k : Int, a : [n]Double, q : [n]{ j : Int, w : [2]Double } }) (y : Double) ->
           y ** 3 * sum n (fun i -> p.a[i] ** 2 * p.q[i].w[0] ** 3 + p.q[i].w[1] ** 2 * real p.q[i].j)",
    );
    let diagonal = asked(&f, Part::HessianDiagonal, Mode::Auto).unwrap();
    assert_eq!(describe(diagonal.result_type()), "{ p : { a : [v2]Double, q : [v2]{ w : [2]Double } }, y : Double }");
    let q = |j: i64, w: [f64; 2]| Value::Tuple(vec![Value::Int(j), w.to_vec().into()]);
    let p = [Value::Int(0), vec![2.0, 3.0].into(), Value::Array(vec![q(5, [1.0, 2.0]), q(7, [2.0, 1.0])])];
    let found = value(&diagonal, &[Value::Tuple(p.to_vec()), 2.0.into()]);
    // y^3 = 8: 16 w0^3; 48 a^2 w0, 16 j; 6 y (4 * 1 + 4 * 5 + 9 * 8 + 1 * 7)
    let by_hand = [16.0, 128.0, 192.0, 80.0, 864.0, 112.0, 12.0 * 103.0];
    assert_eq!(found.reals(), by_hand.iter().collect::<Vec<_>>());
}

#[test]
fn where_inputs_do_not_meet_one_pass_does_for_all() {
    // Number of additional calls of elementary functions for 40 inputs compared to 20.
    let growth = |text: &str, row: &dyn Fn(f64) -> Value<f64>| {
        let diagonal = asked(&function(text), Part::HessianDiagonal, Mode::Auto).unwrap();
        let hessian = asked(&function(text), Part::Hessian, Mode::Auto).unwrap();
        let args = |n: i32| [Value::Array((0..n).map(|i| row(f64::from(i) / 8.0 + 0.5)).collect())];
        let (found, whole) = (value(&diagonal, &args(5)), value(&hessian, &args(5)));
        let expected = on_diagonal(&whole, &found).expect("a Hessian");
        for (a, b) in expected.reals().into_iter().zip(found.reals()) {
            assert!((a - b).abs() <= 1e-13 * a.abs().max(1.0), "{text}: {a} and {b}");
        }
        let calls = |n| count(&diagonal, &args(n)).expect("it runs").call as f64;
        calls(40) / calls(20)
    };
    let number = |x: f64| x.into();
    let row = |x: f64| vec![x / 4.0, 0.5 - x / 8.0, 1.0].into();
    assert!(growth("let f = fun (x : [n]Double) -> sum n (fun i -> sin x[i])", &number) < 2.1);
    let blocks = "let f = fun (x : [n][3]Double) -> sum n (fun i -> exp (vectorNorm2 x[i]))";
    assert!(growth(blocks, &row) < 2.1);
    // Neighbours, and a function of all of them, take one pass each.
    assert!(growth("let f = fun (x : [n]Double) -> sum (n - 1) (fun i -> sin (x[i] * x[i + 1]))", &number) > 3.5);
    assert!(growth("let f = fun (x : [n]Double) -> log (sum n (fun i -> exp x[i]))", &number) > 3.5);
}

#[test]
fn diagonals_in_programs() {
    let f = function(
        "let f = fun (p : { a : Double, w : [n]Double }) ->
           hessianDiagonal (fun q -> exp q.a * vectorSum q.w ** 3) p",
    );
    let f = expand(&f).unwrap_or_else(|e| panic!("{e}"));
    let found = value(&f, &[Value::Tuple(vec![0.0.into(), vec![1.0, 2.0].into()])]);
    assert_eq!(found.reals(), [&27.0, &18.0, &18.0]);
    let of_a_number = function("let f = fun (x : Double) -> hessianDiagonal (fun y -> y ** 3) x");
    let of_a_number = expand(&of_a_number).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(value(&of_a_number, &[2.0.into()]), 12.0.into());
}
