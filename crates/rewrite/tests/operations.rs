//! Derivatives of loops with a costly prefix: values computed once for many elements stay computed once.

mod support;

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_ir::{Value, print, verify};
use chainrule_rewrite::engine::measure;
use chainrule_rewrite::{Options, check, explain};
use support::function;

const LOGISTIC: &str = "let f = fun (w : [d]Double) (x : [n][d]Double) (y : [n]Double) ->
    sum n (fun i -> log (1 + exp (- y[i] * vectorDot w x[i])))";
const PERCEPTRON: &str = "let f = fun (w : [h][d]Double) (v : [h]Double) (x : [n][d]Double) (y : [n]Double) ->
    sum n (fun i -> (y[i] - vectorDot v (vectorMap (matrixVectorMul w x[i]) tanh)) ** 2)";
const STEPS_OF_EIGHT: &str = "let f = fun (p : [8]Double) (y0 : [n]Double) (s : Card) ->
    vectorSum (ifold (fun (y : [n]Double) k ->
        build n (fun i -> sin (y[i] * p[0]) + p[mod i 8] * 0.1 * exp (- y[n - 1 - i]))) y0 s)";
const STEPS: &str = "let f = fun (p : [m]Double) (y0 : [n]Double) (s : Card) ->
    vectorSum (ifold (fun (y : [n]Double) k ->
        build n (fun i -> sin (y[i] * p[0]) + p[mod i m] * 0.1 * exp (- y[n - 1 - i]))) y0 s)";
const TRANSPOSED: &str = "let f = fun (x : [8]Double) (n : Card) ->
    let r = build 8 (fun i ->
        let y = ifold (fun (y : [8]Double) k -> build 8 (fun j -> sin (y[j] + x[i] * y[7 - j]))) x n in
        build 8 (fun j -> y[j] * x[j])) in
    build 8 (fun j -> build 8 (fun i -> r[i][j]))";

/// Returns the value of a polynomial if all sizes are `size`.
fn at(polynomial: &str, size: f64) -> f64 {
    let factor = |word: &str| word.parse().unwrap_or(size);
    polynomial.split(" + ").map(|term| term.split('*').map(factor).product::<f64>()).sum()
}

/// Checks that no pass increases the operations of derivatives by `by` beyond `most` times those derived.
fn stay(text: &str, by: &str, part: Part, mode: Mode, most: f64) {
    let request = Request { parts: vec![part], by: vec![by.into()], mode, checkpoints: None };
    let derived = derive(&function(text), &request).unwrap_or_else(|e| panic!("{e}"));
    let before = measure(&derived).operations;
    let (optimised, report) = explain(&derived, &Options::default());
    verify(&optimised).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&optimised)));
    assert!(report.after < report.before, "{part:?} of {text}\nstays as it is: {}", report.stop);
    let passes =
        report.passes.iter().filter_map(|pass| Some((pass.name, pass.measures.as_ref()?.1.operations.clone())));
    let last = ("at the end", measure(&optimised).operations);
    for (pass, operations) in passes.chain([last]) {
        for size in [10.0, 100.0] {
            let ratio = at(&operations, size) / at(&before, size);
            assert!(ratio <= most, "{part:?} of {text}\n{pass}: {ratio} times, {operations} for {before}");
        }
    }
}

#[test]
fn hessians_of_sums_over_data_do_not_sum_for_each_element() {
    stay(LOGISTIC, "w", Part::Hessian, Mode::Auto, 1.0);
    stay(PERCEPTRON, "v", Part::Hessian, Mode::Auto, 1.0);
    stay(PERCEPTRON, "w", Part::Hessian, Mode::Auto, 1.0);
}

#[test]
fn derivatives_of_steps_do_not_step_for_each_element() {
    for text in [STEPS_OF_EIGHT, STEPS] {
        stay(text, "p", Part::Hessian, Mode::Auto, 1.4);
    }
    stay(TRANSPOSED, "x", Part::Jacobian, Mode::Forward, 1.4);
}

#[test]
fn rows_with_a_costly_start_are_not_started_for_each_element() {
    let f = function(TRANSPOSED);
    let (optimised, report) = explain(&f, &Options::default());
    assert!(report.after <= report.before);
    let (before, after) = (measure(&f).operations, measure(&optimised).operations);
    assert!(at(&after, 100.0) <= at(&before, 100.0), "{after} for {before}");
}

#[test]
fn a_recurrence_that_no_outer_step_changes_is_computed_once() {
    // Of two independent numbers of a state, one is equal for each row.
    let f = function(
        "let f = fun (x : [n]Double) (y : [m][n]Double) ->
            build m (fun j ->
                let (a, b) = ifold (fun (a, b) i -> (a * 0.5 + sin x[i], b * y[j][i] + 1.0)) (1.0, 1.0) n
                a * b)",
    );
    let (optimised, report) = explain(&f, &Options::default());
    verify(&optimised).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&optimised)));
    assert_eq!(measure(&f).operations, "5*n*m + m");
    assert_eq!(measure(&optimised).operations, "3*n + 2*n*m + m", "{}\n{report}", print(&optimised));
}

#[test]
fn readers_at_the_own_index_join_the_loop_that_makes_the_array() {
    let loops = |text: &str| {
        let f = function(text);
        let (optimised, _) = explain(&f, &Options::default());
        verify(&optimised).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&optimised)));
        measure(&optimised).loops
    };
    let softmax = |of: &str| {
        format!(
            "let f = fun (v : [n]Double) -> let e = vectorMap v exp in let s = sum n (fun i -> {of}) in vectorSMul e (1 / s)"
        )
    };
    assert_eq!(loops(&softmax("e[i]")), 2);
    assert_eq!(loops(&softmax("if i < 3 then e[i] else v[i]")), 2);
    // All are made before one is read at another index.
    assert_eq!(loops(&softmax("e[n - 1 - i] * e[i]")), 3);
    assert_eq!(loops(&softmax("e[0] * e[i]")), 3);
    // A step of a solver: slopes, and the points that they lead to.
    let step = "let f = fun (y : [n]Double) (h : Double) ->
        let k = build n (fun i -> sin y[n - 1 - i])
        let ahead = build n (fun i -> y[i] + h * k[i])
        build n (fun i -> k[i] + sin ahead[n - 1 - i])";
    assert_eq!(loops(step), 2);
}

/// Returns the optimised gradient by `x`.
fn gradient(text: &str) -> chainrule_ir::Function {
    let request = Request { parts: vec![Part::Gradient], by: vec!["x".into()], mode: Mode::Reverse, checkpoints: None };
    let derived = derive(&function(text), &request).unwrap_or_else(|e| panic!("{e}"));
    let (optimised, _) = explain(&derived, &Options::default());
    verify(&optimised).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&optimised)));
    optimised
}

#[test]
fn a_gradient_of_neighbours_is_one_array_that_one_loop_adds_to() {
    let chain = |energy: &str| {
        format!(
            "let f = fun (x : [n]Double) (y : [n]Double) ->
                sum (n - 1) (fun i -> let d = x[i + 1] - x[i] in {energy})"
        )
    };
    for energy in ["sin d", "if d > 0 then sin d else 0", "if d > y[i] then sin d else d ** 3"] {
        let optimised = gradient(&chain(energy));
        let found = measure(&optimised);
        assert_eq!((found.loops, found.stored.as_str()), (1, "n"), "{}", print(&optimised));
    }
}

#[test]
fn a_gradient_of_pairs_costs_no_more_where_a_condition_leaves_some_out() {
    let pairs = |energy: &str| {
        let text = format!(
            "let f = fun (x : [n]Double) ->
                sum n (fun i -> sum n (fun j -> let d = x[i] - x[j] in {energy}))"
        );
        let optimised = gradient(&text);
        (measure(&optimised), print(&optimised))
    };
    let (all, _) = pairs("sin (d ** 2)");
    for energy in [
        "if i = j then 0 else sin (d ** 2)",
        "if d > 1 then sin (d ** 2) else 0",
        "if d > 1 then sin (d ** 2) else cos d",
    ] {
        let (some, text) = pairs(energy);
        // A few more operations for the decision.
        assert!(
            at(&some.operations, 100.0) <= 2.0 * at(&all.operations, 100.0),
            "{energy}\n{}\n{text}",
            some.operations
        );
        assert_eq!(some.stored, all.stored, "{text}");
    }
}

#[test]
fn a_gradient_of_rectified_products_multiplies_each_matrix_once() {
    let optimised = gradient(
        "let f = fun (x : [n][n]Double) (y : [n][n]Double) ->
            let h = build n (fun i -> build n (fun j -> max 0 (vectorDot x[j] y[i])))
            sum n (fun i -> (vectorSum h[i] - 1) ** 2)",
    );
    // The sign of a product selects a row: its numbers are neither selected one by one nor products computed twice.
    let cubes = at(&measure(&optimised).operations, 100.0) / 1e6;
    assert!(cubes < 3.1, "{cubes} cubes\n{}", print(&optimised));
}

#[test]
fn what_a_loop_makes_for_itself_is_not_written_before_what_that_needs() {
    // In reverse mode each row of the Jacobian makes a chain of arrays, whose elements it reads at its own index.
    let f = function(
        "let f = fun (x : [n]Double) (m : Card) ->
            let a = build n (fun i -> x[div i 2])
            let b = build n (fun i -> if i < 2 then 1.0 else sin a[n - 1 - i])
            let c = build n (fun i -> sin (sum m (fun j -> b[i])))
            build n (fun i -> c[i] + sin c[i])",
    );
    let request = Request { parts: vec![Part::Jacobian], by: vec!["x".into()], mode: Mode::Reverse, checkpoints: None };
    let derived = derive(&f, &request).unwrap_or_else(|e| panic!("{e}"));
    let args = [vec![0.5, -1.0, 2.0, 0.25].into(), Value::Int(3)];
    assert_eq!(check::optimised(&derived, &args, &Options::default()).map(|found| found.2), Ok(true));
}

#[test]
fn products_of_matrices_whose_shape_changes_stay() {
    let product = "let f = fun (a : [64][k]Double) (b : [k][32]Double) ->
        let t = build 64 (fun i -> build 32 (fun j -> sum k (fun l -> a[i][l] * b[l][j]))) in ";
    let uses = [
        ("build 256 (fun i -> build 8 (fun j -> t[div (8 * i + j) 32][mod (8 * i + j) 32] ** 2))", 2),
        // This is one nest.
        ("build 64 (fun i -> build 32 (fun j -> t[i][j] ** 2))", 1),
    ];
    for (part, n) in uses {
        let (optimised, _) = explain(&function(&format!("{product}{part}")), &Options::default());
        let nests =
            print(&optimised).lines().filter(|line| line.starts_with("  let ") && line.contains("= build ")).count();
        assert_eq!(nests, n, "{}", print(&optimised));
    }
}
