//! Derivatives of loops that write to elements of arrays: each step is undone in the reverse sweep.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{CompileOptions, Function, Module, Rewrite, Unroll, Value};

const PROGRAMS: &str = include_str!("overwritten/programs.ft");

fn function(name: &str) -> Function {
    Module::from_text("programs.ft", PROGRAMS).unwrap().function(name).unwrap()
}

fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.3 + 0.17 * ((7 * i) % n.max(1)) as f64).collect()
}

fn matrix(n: usize) -> Value<f64> {
    let element = |i: usize, j: usize| if i == j { n as f64 + 1.0 } else { 0.1 * ((i + j) % 5) as f64 };
    (0..n).map(|i| (0..n).map(|j| element(i, j)).collect::<Vec<f64>>()).collect::<Vec<_>>().into()
}

fn call(f: &Function, options: &CompileOptions, args: &[Value<f64>]) -> Vec<f64> {
    let found = f.compile_with(options).unwrap().call(args).unwrap();
    found.iter().flat_map(Value::reals).copied().collect()
}

fn close(found: &[f64], expected: &[f64], name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-10 * (1.0 + expected.abs()), "{name}: {found} is not {expected}");
    }
}

/// Compares with straight-line code, of which no step is undone, and with code that no pass has changed.
#[test]
fn gradients_and_hessians_are_those_of_straight_line_code() {
    for n in [1, 2, 5, 9] {
        let x = || Value::from(numbers(n));
        let rows = [
            ("recurrence", vec![x(), x()]),
            ("rows", vec![matrix(n)]),
            ("branch", vec![x(), Value::Real(0.8)]),
            ("tuples", vec![x(), x()]),
            ("scanned", vec![x()]),
            ("cholesky", vec![matrix(n)]),
            ("inTurn", vec![x()]),
            ("inBranch", vec![x(), Value::Real(0.7)]),
            ("inBranch", vec![x(), Value::Real(-0.7)]),
            ("seidel", vec![matrix(n.max(2))]),
            ("triangular", vec![matrix(n), matrix(n)]),
            ("columns", vec![matrix(n), x()]),
            ("columnsAndRows", vec![matrix(n), matrix(n)]),
            ("planes", vec![matrix(n), x()]),
            ("twoColumns", vec![matrix(n), x()]),
            ("sweep", vec![matrix(n), matrix(n)]),
            ("sweepOfRows", vec![matrix(n.max(2)), matrix(n.max(2))]),
            ("filter", vec![matrix(n.max(2)), matrix(n.max(2))]),
            ("lu", vec![matrix(n)]),
            ("symmetric", vec![matrix(n), matrix(n)]),
            ("gramSchmidt", vec![matrix(n)]),
            ("checked", vec![matrix(n.max(2)), matrix(n.max(2)), Value::from(numbers(n.max(2)))]),
        ];
        for (name, args) in rows {
            let size =
                if matches!(name, "seidel" | "filter" | "sweepOfRows" | "checked") { n.max(2) } else { n } as i64;
            let f = function(name);
            let sizes = [("n", size), ("m", size)];
            let known = f.at_sizes(if name == "checked" { &sizes } else { &sizes[..1] }).unwrap();
            for (open, known) in [(f.gradient(), known.gradient()), (f.hessian(), known.hessian())] {
                let kept = open.unroll(Unroll::Never).function().unwrap();
                let straight = known.unroll(Unroll::Always).function().unwrap();
                let expected = call(&straight, &CompileOptions::default(), &args);
                close(&call(&kept, &CompileOptions::default(), &args), &expected, name);
                let plain = CompileOptions { rewrite: Rewrite::Off, sequential: true, ..CompileOptions::default() };
                close(&call(&kept, &plain, &args), &expected, name);
                if n > 5 {
                    break;
                }
            }
        }
    }
}

/// Checks places that are read from data, some of them outside of the array, where a step changes nothing.
#[test]
fn gradients_of_writes_at_data_are_those_of_differences() {
    for (name, at) in [
        ("atData", vec![0, 4, 0]),
        ("atData", vec![-1, 5, 0, 1000, 0]),
        ("atData", vec![]),
        ("atDataTwice", vec![4; 5]),
        ("atDataTwice", vec![3, 0, 3]),
    ] {
        let at: Value<f64> = Value::Array(at.into_iter().map(Value::Int).collect());
        let f = function(name);
        let value = |x: &[f64]| call(&f, &CompileOptions::default(), &[x.to_vec().into(), at.clone()])[0];
        let gradient = f.gradient().by(&["x"]).function().unwrap();
        let x = numbers(5);
        let found = call(&gradient, &CompileOptions::default(), &[x.clone().into(), at.clone()]);
        for (k, found) in found.iter().enumerate() {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[k] += by;
                value(&x)
            };
            let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((found - expected).abs() <= 1e-6 * (1.0 + expected.abs()), "{name}, {k}: {found}, {expected}");
        }
    }
}

/// Checks that what is kept of a step is a row or a column, not the matrix, and that a recurrence is made in place.
#[test]
fn memory_is_that_of_what_is_overwritten() {
    for (name, states) in
        [("cholesky", "r0*r0*r0"), ("rows", "r0*r0*r0"), ("columns", "r0*r0*r0"), ("planes", "r0*r0*r0*r0")]
    {
        let gradient = function(name).gradient().unroll(Unroll::Never).function().unwrap().compile().unwrap();
        assert!(!gradient.listing().contains(states), "{}", gradient.listing());
    }
    // Neither copies, zeros nor sums of matrices in the steps.
    let gradient = function("sweepOfRows").gradient().unroll(Unroll::Never).function().unwrap().compile().unwrap();
    let listing = gradient.listing();
    let is_whole = |line: &&str| {
        line.starts_with(' ') && (line.contains("for ") && line.contains("..r0*r0") || line.contains("copy r0*r0"))
    };
    let whole: Vec<&str> = listing.lines().filter(is_whole).collect();
    assert!(whole.is_empty(), "{whole:?}\n{listing}");
    let value = function("recurrence").compile().unwrap().listing();
    assert!(value.matches("copy").count() <= 1, "{value}");
}

/// Checks that gradients add to elements of the cotangents of arrays: operations grow with the sizes as those of the
/// function do, where an array that is made in each step would cost a factor of its length.
#[test]
fn gradients_take_a_constant_times_the_operations() {
    for (name, most) in [
        ("recurrence", 8.0),
        ("cholesky", 12.0),
        ("seidel", 8.0),
        ("triangular", 8.0),
        ("columns", 8.0),
        ("filter", 8.0),
        ("lu", 8.0),
        ("symmetric", 8.0),
        ("gramSchmidt", 12.0),
    ] {
        let f = function(name);
        let gradient = f.gradient().unroll(Unroll::Never).function().unwrap();
        let operations = |f: &Function, n: i64| f.counts_at(&[("n", n)], Rewrite::All).unwrap().weight as f64;
        for n in [20, 160] {
            let (value, derived) = (operations(&f, n), operations(&gradient, n));
            assert!(derived <= most * value, "{name}: {derived} operations for {value} at {n}");
        }
    }
}

/// Checks that no step of a sweep over columns copies or makes a matrix, although its indices are not known to be in
/// range.
#[test]
fn steps_at_checked_indices_change_columns_in_place() {
    let gradient = function("checked").gradient().unroll(Unroll::Never).function().unwrap().compile().unwrap();
    let listing = gradient.listing();
    let whole: Vec<&str> = listing.lines().filter(|line| line.contains("copy r0*r0")).collect();
    let in_steps: Vec<&&str> = whole.iter().filter(|line| line.starts_with(' ')).collect();
    assert!(!whole.is_empty() && in_steps.is_empty(), "{in_steps:?}\n{listing}");
}
