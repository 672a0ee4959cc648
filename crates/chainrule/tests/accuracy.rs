//! Values, first and second partial derivatives of all operators in compiled code, against extended precision: in
//! straight-line code and in loops, native and interpreted. `chainrule-bench accuracy` takes more points.

// A failing test stops.
#![allow(clippy::unwrap_used)]

#[path = "accuracy/measure.rs"]
mod measure;
#[path = "../../ops/tests/support/sweep.rs"]
mod sweep;

use chainrule::{Function, Module, Value, vars};
use chainrule_ops::{Op, Precise};
use measure::{computed, subjects, ways};

/// Points of an operator.
const POINTS: usize = 60;

#[test]
fn compiled_operators_are_accurate_over_all_exponents() {
    let mut precise = Precise::new();
    let (mut n_checked, mut faults) = (0, Vec::new());
    for subject in subjects() {
        let points = subject.points(POINTS);
        for of in subject.results() {
            let exact: Vec<_> = points.iter().map(|point| sweep::exact(&mut precise, subject.op, of, point)).collect();
            if exact.iter().all(Option::is_none) {
                continue;
            }
            for way in ways() {
                let found =
                    computed(subject, of, way, &points).unwrap_or_else(|e| panic!("{subject:?} {of:?} {way:?}: {e}"));
                for ((point, exact), found) in points.iter().zip(&exact).zip(found) {
                    let Some(exact) = exact.as_ref().filter(|_| !sweep::is_beyond(subject.op, of, point)) else {
                        continue;
                    };
                    let near = precise.as_f64(exact);
                    let error = sweep::ulps(&precise, found, exact) / sweep::conditioning(subject.op, of, point, near);
                    let bar = sweep::bar(subject.op, of);
                    if error.is_nan() || error > bar {
                        let way = way.name;
                        faults.push(format!(
                            "{way}: {of:?} of {subject:?} at {point:?}: {found:e} is not {near:e}: {error} ulp"
                        ));
                    }
                    n_checked += 1;
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(n_checked > 20_000, "{n_checked}");
}

/// The norm of (3, 4) times a scale, its gradient and its Hessian.
#[test]
fn norms_of_all_sizes() {
    let module = Module::from_text("norm.ft", "let f = fun (v : [n]Double) -> vectorNorm v").unwrap();
    let kept = module.function("f").unwrap();
    let v = vars("v", 2);
    let built = Function::new("f", &v, &v.norm()).unwrap();
    let straight = kept.unrolled(&[("n", 2)]).unwrap();
    for f in [kept, built, straight] {
        for scale in [1e-160, 1e-104, 1e-3, 1.0, 1e108, 1e150] {
            let at = [Value::Array(vec![Value::Real(3.0 * scale), Value::Real(4.0 * scale)])];
            let results =
                |f: Function| f.compile().unwrap().call(&at).unwrap()[0].reals().into_iter().copied().collect();
            let near = |found: Vec<f64>, expected: &[f64]| {
                for (found, expected) in found.iter().zip(expected) {
                    assert!(
                        (found - expected).abs() <= 2e-15 * expected.abs(),
                        "{found:e} is not {expected:e} at {scale:e}"
                    );
                }
            };
            near(results(f.clone()), &[5.0 * scale]);
            near(results(f.gradient().function().unwrap()), &[0.6, 0.8]);
            let [xx, xy, yy] = [0.128 / scale, -0.096 / scale, 0.072 / scale];
            near(results(f.hessian().function().unwrap()), &[xx, xy, xy, yy]);
        }
    }
}

/// A tangent beside its slope is computed from the exponential of the slope.
#[test]
fn tangents_beside_their_slopes_are_accurate() {
    let mut precise = Precise::new();
    let module =
        Module::from_text("tangent.ft", "let f = fun (x : [n]Double) -> sum n (fun i -> tanh (x[i]))").unwrap();
    let both = module.function("f").unwrap().gradient().with_value().compile().unwrap();
    let mut worst = [0.0f64; 2];
    for k in 0..4000 {
        // From 1e-6 to 300, of both signs, and many around the ends of the polynomial.
        let size = if k % 2 == 0 { 1e-6 * 3e8f64.powf(f64::from(k) / 4000.0) } else { 0.2 + f64::from(k) / 16_000.0 };
        let x = if k % 3 == 0 { -size } else { size };
        let results = both.call(&[Value::Array(vec![Value::Real(x)])]).unwrap();
        let found: Vec<f64> = results.iter().flat_map(|result| result.reals().into_iter().copied()).collect();
        for ((op, found), worst) in [Op::Tanh, Op::SechSquare].into_iter().zip(found).zip(&mut worst) {
            let x = precise.from_f64(x);
            let exact = (op.row().precise)(&mut precise, &[x]);
            *worst = worst.max(sweep::ulps(&precise, found, &exact));
        }
    }
    // That of the slope is its own, with or without the tangent.
    assert!(worst[0] <= 2.0 && worst[1] <= 3.0, "{worst:?}");
}
