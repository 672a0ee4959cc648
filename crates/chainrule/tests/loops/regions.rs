//! Scalar regions: small arrays in loops become straight-line code.
#![allow(clippy::unwrap_used)]

use chainrule::{Accumulated, CompileOptions, Function, Module, Rewrite, Value};

const BUNDLE: &str = include_str!("../../../../examples/adbench/programs/ba.ft");

#[test]
fn the_rows_of_an_observation_are_one_straight_line() {
    let module = Module::from_text("ba.ft", BUNDLE).unwrap();
    let listing = module.function("baJacobian").unwrap().compile().unwrap().listing();
    println!("{listing}");
    let loops = listing.lines().filter(|line| line.trim_start().starts_with("for ")).count();
    assert!(loops <= 8, "{loops} loops:\n{listing}");
}

#[test]
fn long_dots_stay_loops() {
    let loops = |k: usize| {
        let text = format!(
            "let f = fun (a : [n][{k}]Double) (b : [m][{k}]Double) ->
               build n (fun i -> build m (fun j -> exp (sum {k} (fun l -> a[i][l] * b[j][l]))))"
        );
        let listing = Module::from_text("f.ft", &text).unwrap().function("f").unwrap().compile().unwrap().listing();
        listing.lines().filter(|line| line.trim_start().starts_with("for ") && line.contains(" then ")).count()
    };
    // Sums are carried: those of 4 terms are straight-line code.
    assert_eq!(loops(4), 0);
    assert!(loops(40) > 0);
}

/// Returns the maximum nesting depth of loops inside of a vectorised loop, by the listing's indentation.
fn deepest_at_once(listing: &str) -> usize {
    let depth = |line: &str| (line.len() - line.trim_start().len()) / 2;
    let lines: Vec<&str> = listing.lines().collect();
    let mut deepest = 0;
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.ends_with("at once")) {
        let inside = lines[at + 1..].iter().take_while(|inner| depth(inner) > depth(line));
        let loops = inside.filter(|inner| inner.trim_start().starts_with("for "));
        deepest = loops.map(|inner| depth(inner) - depth(line)).max().unwrap_or(0).max(deepest);
    }
    deepest
}

const MIXTURE: &str = include_str!("../../../../examples/gmm/gmm.ft");

#[test]
fn eight_points_of_a_mixture_run_at_once_in_value_and_gradient() {
    let gmm = Module::from_text("gmm.ft", MIXTURE).unwrap().function("gmm").unwrap();
    let value = gmm.compile().unwrap().listing();
    // Gaussians, rows, columns.
    assert_eq!(deepest_at_once(&value), 3, "{value}");
    let gradient = gmm.gradient().by(&["alphas", "means", "icf"]).function().unwrap().compile().unwrap().listing();
    assert_eq!(deepest_at_once(&gradient), 3, "{gradient}");
}

/// Returns the results of `text`'s last function at `args`, and the report of derivatives accumulated in it. They must
/// be equal without the optimiser, by forward and reverse mode.
fn run(text: &str, args: &[Value<f64>]) -> (Vec<f64>, Vec<Accumulated>) {
    let module = Module::from_text("f.ft", text).unwrap();
    let f = module.function("f").unwrap();
    let reals = |f: &Function, options: &CompileOptions| -> Vec<f64> {
        let found = f.compile_with(options).unwrap().call(args).unwrap();
        found.iter().flat_map(Value::reals).copied().collect()
    };
    let found = reals(&f, &CompileOptions::default());
    let plain = CompileOptions { rewrite: Rewrite::Off, sequential: true, ..CompileOptions::default() };
    let expected = reals(&f, &plain);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{found} is not {expected}");
    }
    (found, f.optimisation().unwrap().unwrap().regions)
}

/// Returns three points of so many numbers.
fn points(width: usize) -> Value<f64> {
    let point = |i: usize| (0..width).map(|k| 0.25 + 0.5 * i as f64 - 0.125 * k as f64).collect::<Vec<f64>>();
    (0..3).map(point).collect::<Vec<_>>().into()
}

const WAIST: &str = "
let waist = fun (v : [8]Double) ->
  let first = sin (vectorDot v v)
  let middle = build 8 (fun k -> exp (first * real (k + 1)))
  let second = log (vectorSum middle)
  build 8 (fun k -> second * cos (second + real k))
let f = fun (x : [n][8]Double) -> build n (fun i -> jacobian waist x[i])";

#[test]
fn a_body_with_narrow_waists_is_neither_forward_nor_reverse() {
    let (_, regions) = run(WAIST, &[points(8)]);
    let [region] = regions.as_slice() else { panic!("{regions:?}") };
    // The outer product alone is 64.
    assert!(region.after.mul < 130, "{region}");
    assert!(region.after.arithmetic() * 3 < region.before.arithmetic() * 2, "{region}");
    assert!(region.rejected.is_empty());
    let module = Module::from_text("f.ft", WAIST).unwrap();
    let account = module.function("f").unwrap().optimisation().unwrap().unwrap().to_string();
    assert!(account.contains("derivatives in a loop, accumulated by "), "{account}");
}

#[test]
fn an_observation_takes_a_fifth_less() {
    let module = Module::from_text("ba.ft", BUNDLE).unwrap();
    let by_hand = module.function("baJacobian").unwrap();
    let sparse = module.function("ba").unwrap().sparse_jacobian(&["camera", "x", "w"]).unwrap().values_program();
    let sizes = [("n", 1), ("m", 1), ("p", 1000)];
    for f in [by_hand, sparse] {
        let counts = f.counts_at(&sizes, Rewrite::All).unwrap();
        // Expanded, unrolled and numbered: 328 and 22.
        assert!(counts.arithmetic() <= 260 * 1000 && counts.logic <= 30 * 1000, "{counts}");
    }
}

#[test]
fn derivatives_at_one_point_are_told_apart() {
    // By z at y: 2 y y. By z at a: 2 y a.
    let nested = "let f = fun (x : [n]Double) -> build n (fun i ->
      gradient (fun (y : Double) -> y * gradient (fun (z : Double) -> y * z * z) y) x[i])";
    let captured = "let f = fun (x : [n]Double) -> build n (fun i ->
      let a = x[i]
      gradient (fun (y : Double) -> y * gradient (fun (z : Double) -> y * z * z) a) a)";
    let args: [Value<f64>; 1] = [vec![0.5, -1.0, 2.0].into()];
    assert_eq!(run(nested, &args).0, [1.5, 6.0, 24.0]);
    assert_eq!(run(captured, &args).0, [1.0, 4.0, 16.0]);
}

#[test]
fn derivatives_may_depend_on_derivatives() {
    let program = |result: &str| {
        format!(
            "let g = fun (v : [3]Double) -> exp (v[0] * v[1]) * sin v[2] + v[0] ** 2\n\
             let f = fun (x : [n][3]Double) (w : [n]Double) -> build n (fun i -> {result})"
        )
    };
    let w: Value<f64> = vec![0.5, -1.0, 2.0].into();
    for result in [
        // Along the gradient at the same point, and at the point to which it leads.
        "jvp g x[i] (gradient g x[i])",
        "gradient g (vectorAdd x[i] (vectorSMul (gradient g x[i]) w[i]))",
        "vjp (fun (v : [3]Double) -> gradient g v) x[i] (gradient g x[i])",
        "hessian g x[i]",
        "matrixVectorMul (hessian g x[i]) (gradient g x[i])",
        "if w[i] > 0 then gradient g x[i] else vectorSMul (gradient g x[i]) w[i]",
    ] {
        run(&program(result), &[points(3), w.clone()]);
    }
}

#[test]
fn what_cannot_be_unrolled_is_derived_as_before() {
    for body in [
        // An index selected by data, an end that depends on data.
        "gradient (fun (v : [3]Double) -> v[if v[0] > 0 then 1 else 2] * v[0]) x[i]",
        "gradient (fun (v : [3]Double) -> while (fun s -> s > 1) (fun s -> s * 0.5) (v[0] * v[1]) 50) x[i]",
    ] {
        let text = format!("let f = fun (x : [n][3]Double) -> build n (fun i -> {body})");
        assert!(run(&text, &[points(3)]).1.is_empty());
    }
}

#[test]
fn what_a_branch_guards_stays_guarded() {
    let text = "let f = fun (x : [n]Double) (at : [n]Int) -> build n (fun i ->
      gradient (fun (y : Double) -> y * y * (if x[i] > 0 then x[at[i]] else 1)) x[i])";
    let at = Value::Array([2, 99, 0].map(Value::Int).to_vec());
    assert_eq!(run(text, &[vec![0.5, -1.0, 2.0].into(), at]).0, [2.0, -2.0, 2.0]);
}

const NETWORK: &str = include_str!("../../../../examples/adbench/programs/lstm.ft");

#[test]
fn all_loops_over_the_cells_of_a_network_run_at_once() {
    // Its gradient adds to a row of weights and to one of biases, both of one array.
    let lstm = Module::from_text("lstm.ft", NETWORK).unwrap().function("lstm").unwrap();
    let gradient = lstm.gradient().by(&["main", "extra"]).function().unwrap().compile().unwrap().listing();
    let width = gradient.lines().find_map(|line| line.strip_prefix("size b ")?.split(' ').next()).unwrap();
    let one_by_one = format!(" in 0..{width}");
    assert!(gradient.contains(" at once"), "{gradient}");
    assert!(!gradient.lines().any(|line| line.ends_with(&one_by_one)), "{gradient}");
}
