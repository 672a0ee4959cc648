//! Sparse derivatives against dense ones, on random programs and on some with a shape of their own. The seeds are
//! fixed, and failures shrink.

use arbitrary::Unstructured;
use chainrule_autodiff::sparse;
use chainrule_autodiff::sparse::check::{Seen, compare};
use chainrule_autodiff::sparse::interaction::interaction;
use chainrule_autodiff::{Mode, Part, expand};
use chainrule_base::Sources;
use chainrule_cases::covers;
use chainrule_ir::generate::gathers;
use chainrule_ir::{Function, Program, Value, print};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::RefCell;

type Case = (Function, Vec<Value<f64>>);

/// Compares on `cases` random programs; returns the total statistics.
fn run(
    seed: u64,
    cases: u32,
    part: Part,
    mode: Mode,
    make: impl Fn(&mut Unstructured<'_>) -> arbitrary::Result<Case>,
) -> Seen {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    };
    let seen = RefCell::new(Seen::default());
    let bytes = proptest::collection::vec(any::<u8>(), 50..500);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let Ok((function, args)) = make(&mut Unstructured::new(&bytes)) else { return Ok(()) };
        if let Err(wrong) = chainrule_ir::verify(&function) {
            return Err(TestCaseError::fail(format!("{wrong:?}\n{}", chainrule_ir::print(&function))));
        }
        match compare(&function, &args, part, &[], mode, 1e-11) {
            Ok(None) => Ok(()),
            Ok(Some(more)) => {
                let mut seen = seen.borrow_mut();
                seen.places += more.places;
                seen.entries += more.entries;
                seen.repeated += more.repeated;
                Ok(())
            }
            Err(what) => Err(TestCaseError::fail(format!("{what}\n{}\n{args:?}", chainrule_ir::print(&function)))),
        }
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    seen.into_inner()
}

#[test]
fn jacobians_of_random_programs_are_the_dense_ones() {
    for (seed, mode) in [(1, Mode::Auto), (2, Mode::Forward), (3, Mode::Reverse)] {
        let seen = run(seed, 300, Part::Jacobian, mode, gathers::rows);
        covers!(seen.entries > 1000 && seen.entries * 2 < seen.places && seen.repeated > 100, "{seen:?}");
    }
}

#[test]
fn hessians_of_random_sums_are_the_dense_ones() {
    for (seed, mode) in [(11, Mode::Auto), (12, Mode::Forward)] {
        let seen = run(seed, 80, Part::Hessian, mode, gathers::scalar);
        covers!(seen.entries > 1000 && seen.entries * 2 < seen.places && seen.repeated > 100, "{seen:?}");
    }
}

/// Returns a function whose array is computed from the previous one at several indices, `levels` times. `{a}` stands
/// for the previous array.
fn chain(levels: usize, param: &str, level: &str, result: &str) -> Function {
    let mut text = format!("let f = fun (x : {param}) ->\n");
    let mut previous = "x".to_owned();
    for k in 1..=levels {
        text.push_str(&format!("  let a{k} = {}\n", level.replace("{a}", &previous)));
        previous = format!("a{k}");
    }
    text.push_str(&format!("  {}\n", result.replace("{a}", &previous)));
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text.as_str());
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Reads of the previous array in a level, and the results of the Jacobian and the Hessian.
const CHAINS: [(&str, &str, &str, &str); 7] = [
    // Borders by clamping: no two of the indices of deep levels are equal by form.
    (
        "[n]Double",
        "build n (fun i -> sin {a}[i] * {a}[max 0 (i - 1)] + {a}[min (n - 1) (i + 1)])",
        "{a}",
        "sum n (fun i -> {a}[i])",
    ),
    // Borders by branches.
    (
        "[n]Double",
        "build n (fun i -> 0.4 * (if 0 < i then {a}[i - 1] else 0) - {a}[i] ** 2 + 0.4 * (if i < n - 1 then {a}[i + 1] else 0))",
        "{a}",
        "sum n (fun i -> {a}[i])",
    ),
    // Two dimensions.
    (
        "[n][n]Double",
        "build n (fun i -> build n (fun j -> sin {a}[i][j] * {a}[max 0 (i - 1)][j] - {a}[i][min (n - 1) (j + 1)]))",
        "{a}",
        "sum n (fun i -> sum n (fun j -> {a}[i][j]))",
    ),
    // Tuples, each part of which reads both.
    (
        "[n](Double, Double)",
        "build n (fun i -> ({a}[i].0 * cos {a}[max 0 (i - 1)].1, {a}[i].1 - {a}[min (n - 1) (i + 1)].0 ** 2))",
        "{a}",
        "sum n (fun i -> {a}[i].0 * {a}[i].1)",
    ),
    // Sums inside: trip counts multiply, the size of the code does not.
    ("[n]Double", "build n (fun i -> {a}[i] + 0.1 * sin (sum n (fun j -> {a}[j])))", "{a}", "sum n (fun i -> {a}[i])"),
    (
        "[n]Double",
        "build n (fun i -> 0.5 * sin (sum 3 (fun j -> {a}[min (n - 1) (i + j)])))",
        "{a}",
        "sum n (fun i -> {a}[i] ** 2)",
    ),
    // One read: nothing is duplicated, for any length of the chain.
    ("[n]Double", "build n (fun i -> sin {a}[i])", "{a}", "sum n (fun i -> {a}[i] ** 2)"),
];

/// Returns the number of statements of both programs, with the derivatives expanded.
fn size(sparsity: &sparse::Sparsity) -> usize {
    let values = expand(&sparsity.values).unwrap_or_else(|e| panic!("{e}"));
    print(&values).lines().count() + print(&sparsity.pattern).lines().count()
}

fn argument(param: &str, n: usize) -> Value<f64> {
    let at = |i: usize| Value::Real(0.3 + 0.1 * (i as f64));
    let row = |start: usize| Value::Array((0..n).map(|i| at(start + i)).collect());
    match param {
        "[n][n]Double" => Value::Array((0..n).map(row).collect()),
        "[n](Double, Double)" => Value::Array((0..n).map(|i| Value::Tuple(vec![at(i), at(i + 1)])).collect()),
        _ => row(0),
    }
}

#[test]
fn chained_arrays_take_code_linear_in_their_number() {
    for (param, level, array, scalar) in CHAINS {
        for (part, result) in [(Part::Jacobian, array), (Part::Hessian, scalar)] {
            let size = |levels: usize| {
                let function = chain(levels, param, level, result);
                let sparsity = match part {
                    Part::Hessian => sparse::hessian(&function, &[], Mode::Auto),
                    _ => sparse::jacobian(&function, &[], Mode::Auto),
                };
                size(&sparsity.unwrap_or_else(|e| panic!("{e}")))
            };
            let (ten, twenty, forty) = (size(10), size(20), size(40));
            // Twice the levels take little more than twice the code.
            assert!(twenty <= 2 * ten + 100 && forty <= 2 * twenty + 100, "{level}: {part:?} {ten} {twenty} {forty}");
            // Short chains are expanded, within a bound.
            let short: Vec<usize> = (1..10).map(size).collect();
            assert!(short.iter().all(|size| *size <= 40_000), "{level}: {part:?} {short:?}");
        }
    }
}

#[test]
fn derivatives_of_chained_arrays_are_the_dense_ones() {
    for (param, level, array, scalar) in CHAINS {
        for levels in [1, 2, 3, 4, 5, 8, 20] {
            for (part, result) in [(Part::Jacobian, array), (Part::Hessian, scalar)] {
                let function = chain(levels, param, level, result);
                for n in [1, 3] {
                    let seen = compare(&function, &[argument(param, n)], part, &[], Mode::Auto, 1e-10);
                    assert!(matches!(seen, Ok(Some(_))), "{level}, {levels} levels, {part:?}: {seen:?}");
                }
            }
        }
    }
}

#[test]
fn followed_interactions_contain_every_second_derivative() {
    for (param, level, _, scalar) in CHAINS {
        for (levels, n) in [(1, 4), (3, 3), (6, 2)] {
            let (function, args) = (chain(levels, param, level, scalar), [argument(param, n)]);
            let followed = interaction(&function, &[], &args).unwrap_or_else(|e| panic!("{e}"));
            let sparsity = sparse::hessian(&function, &[], Mode::Auto).unwrap_or_else(|e| panic!("{e}"));
            let (dense, _) = sparse::check::entries(&sparsity, &args).unwrap_or_else(|e| panic!("{e}"));
            for (place, x) in dense {
                assert!(x.abs() < 1e-12 || followed.at.binary_search(&place).is_ok(), "{level}: {place:?} {x}");
            }
        }
    }
}

#[test]
fn what_is_linear_flat_or_of_no_effect_brings_nothing_together() {
    let at = |text: &str, n: usize| {
        let mut sources = Sources::new();
        let root = sources.add("main.ft", text);
        let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
        let function = program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}"));
        interaction(&function, &[], &[argument("[n]Double", n)]).unwrap_or_else(|e| panic!("{e}")).at
    };
    let none: [(usize, usize); 0] = [];
    assert_eq!(at("let f = fun (x : [n]Double) -> 2 * x[0] - x[1] / 4 + 1", 3), none);
    assert_eq!(at("let f = fun (x : [n]Double) -> x[0] * x[2]", 3), [(0, 2), (2, 0)]);
    assert_eq!(at("let f = fun (x : [n]Double) -> x[0] / x[2]", 3), [(0, 2), (2, 0), (2, 2)]);
    assert_eq!(at("let f = fun (x : [n]Double) -> max x[0] x[1] + floor x[2] * x[0] + abs x[1]", 3), none);
    // Products of elements that are not read do not count.
    let read = "let f = fun (x : [n]Double) -> let a = build n (fun i -> x[i] * x[max 0 (i - 1)]) in a[2]";
    assert_eq!(at(read, 4), [(1, 2), (2, 1)]);
}
