//! NaN tests in programs: comparisons follow IEEE 754 in either semantics, on every backend, for one point and for
//! points in lanes, in values and in derivatives. `tests/programs/nan.ft` contains more, by every strategy.
#![allow(clippy::unwrap_used, clippy::neg_cmp_op_on_partial_ord, reason = "tests of comparisons with NaN")]

use chainrule::{Backend, CompileOptions, Compiled, Function, Module, Semantics};

/// Condition in `a` and `b`, and its value by IEEE 754.
type Condition = (&'static str, fn(f64, f64) -> bool);

const CONDITIONS: &[Condition] = &[
    ("a <> a", |a, _| a.is_nan()),
    ("a == a", |a, _| !a.is_nan()),
    ("a / b <> a / b", |a, b| (a / b).is_nan()),
    ("a * b == b * a", |a, b| !(a * b).is_nan()),
    ("a <= a", |a, _| !a.is_nan()),
    ("a >= a && not (a < a)", |a, _| !a.is_nan()),
    ("not (a < b)", |a, b| !(a < b)),
    ("not (a <= b)", |a, b| !(a <= b)),
    ("not (a < b) && not (a >= b)", |a, b| a.is_nan() || b.is_nan()),
    ("a < b || a == b || b < a", |a, b| !a.is_nan() && !b.is_nan()),
    ("max a b == max a b", |a, b| !(if a < b { b } else { a }).is_nan()),
    ("min a b < 3", |a, b| (if b < a { b } else { a }) < 3.0),
    ("not (-a < -b)", |a, b| !(b < a)),
    ("2 * a <> 2 * a", |a, _| a.is_nan()),
    ("isNaN a", |a, _| a.is_nan()),
    ("not (isNaN (a - b))", |a, b| !(a - b).is_nan()),
    ("isFinite a", |a, _| a.is_finite()),
    ("isFinite (a * b) && isFinite (-b)", |a, b| (a * b).is_finite() && b.is_finite()),
    ("a < inf && -inf < a", |a, _| a.is_finite()),
    ("b == nan || a == inf", |a, _| a == f64::INFINITY),
];

const NUMBERS: [f64; 8] = [f64::NAN, 0.0, -0.0, 1.0, -2.5, 4.0, f64::INFINITY, f64::NEG_INFINITY];

fn functions(condition: &str) -> Vec<(&'static str, Function)> {
    let text = format!(
        "let scalar = fun (a : Double) (b : Double) -> if {condition} then 3 * a + b else a - 2 * b\n\
         let chosen = fun (a : Double) (b : Double) -> select ({condition}) (3 * a + b) (a - 2 * b)\n\
         let looped = fun (a : Double) (b : Double) -> (build 3 (fun _ -> if {condition} then 3 * a + b else a - 2 * b))[2]"
    );
    let mut all = Vec::new();
    for semantics in [Semantics::Algebraic, Semantics::Strict] {
        let module = Module::from_text("f.ft", &text).unwrap().with_semantics(semantics);
        let function = |name| module.function(name).unwrap();
        all.extend(["scalar", "chosen", "looped"].map(|name| (name, function(name))));
        all.push(("straight", function("scalar").unrolled(&[]).unwrap()));
        all.push(("straight, chosen", function("chosen").unrolled(&[]).unwrap()));
    }
    all
}

/// Returns the results of `compiled` at all points, run one by one and in lanes.
fn results(compiled: &Compiled, points: &[[f64; 2]], n_results: usize) -> [Vec<f64>; 2] {
    let single = points.iter().flat_map(|[a, b]| compiled.eval(&[&[*a], &[*b]]).unwrap().concat()).collect();
    let [first, second] = [0, 1].map(|k| points.iter().map(|point| point[k]).collect::<Vec<f64>>());
    let mut outputs = vec![vec![0.0; points.len()]; n_results];
    let mut slices: Vec<&mut [f64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    let mut workspace = compiled.workspace(&[&[], &[]]).unwrap();
    compiled.eval_batch(points.len(), &[&first, &second], &mut slices, &mut workspace).unwrap();
    [single, (0..points.len()).flat_map(|p| outputs.iter().map(move |result| result[p])).collect()]
}

#[test]
fn no_rewriting_decides_a_comparison() {
    let points: Vec<[f64; 2]> = NUMBERS.iter().flat_map(|a| NUMBERS.map(|b| [*a, b])).collect();
    let mut wrong = Vec::new();
    for (condition, meaning) in CONDITIONS {
        let values = points.iter().map(|&[a, b]| if meaning(a, b) { 3.0 * a + b } else { a - 2.0 * b });
        let slopes = points.iter().flat_map(|&[a, b]| if meaning(a, b) { [3.0, 1.0] } else { [1.0, -2.0] });
        let expected: [Vec<f64>; 2] = [values.collect(), slopes.collect()];
        for (what, function) in functions(condition) {
            let gradient = function.gradient().function().unwrap();
            for backend in [Backend::Auto, Backend::Interpreter] {
                for (n_results, function, expected) in [(1, &function, &expected[0]), (2, &gradient, &expected[1])] {
                    let options = CompileOptions { backend, ..CompileOptions::default() };
                    let compiled = function.compile_with(&options).unwrap();
                    for found in results(&compiled, &points, n_results) {
                        assert_eq!(found.len(), expected.len());
                        let same = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan();
                        if let Some(k) = (0..found.len()).find(|k| !same(found[*k], expected[*k])) {
                            let at = points[k / n_results];
                            let (found, expected) = (found[k], expected[k]);
                            wrong.push(format!("{condition}, {what}, {backend:?} at {at:?}: {found}, not {expected}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
