//! Values and partial derivatives of all operators, as computed in doubles by the formulas of the table, against
//! extended precision. `chainrule-bench accuracy` takes more points, `accuracy` of `chainrule` tests compiled code.

// A failing test stops.
#![allow(clippy::unwrap_used)]

#[path = "support/sweep.rs"]
mod sweep;

use chainrule_ops::{F64, Op, Precise};
use sweep::Of;

/// Points of an operator.
const POINTS: usize = 160;

#[test]
fn formulas_are_accurate_over_all_exponents() {
    let mut precise = Precise::new();
    let mut n_checked = 0;
    for op in sweep::swept() {
        let points = sweep::points(op, POINTS);
        for of in sweep::results(op) {
            for point in points.iter().filter(|point| !sweep::is_beyond(op, of, point)) {
                let Some(exact) = sweep::exact(&mut precise, op, of, point) else { continue };
                let found = sweep::result(&mut F64, op, of, point, |x| *x == 0.0);
                let near = precise.as_f64(&exact);
                let error = sweep::ulps(&precise, found, &exact) / sweep::conditioning(op, of, point, near);
                assert!(
                    error <= sweep::bar(op, of),
                    "{of:?} of {op:?} at {point:?}: {found:e} is not {near:e}: {error} ulp"
                );
                n_checked += 1;
            }
        }
    }
    assert!(n_checked > 15_000, "{n_checked}");
}

/// Checks polygamma near -1/2, -3/2, ..., where the reflection formula rounds 1 - x and even orders have zeros.
#[test]
fn polygamma_near_negative_half_integers() {
    let mut precise = Precise::new();
    for order in 0..7_u32 {
        for k in 0..200_i32 {
            let distance = (-0.97 * f64::from(k % 50) - 3.0).exp2() * if k % 2 == 0 { 1.0 } else { -1.0 };
            let point = [f64::from(order), -f64::from(k / 50) - 0.5 + distance];
            let exact = sweep::exact(&mut precise, Op::Polygamma, Of::Value, &point).unwrap();
            let near = precise.as_f64(&exact);
            let conditioning = sweep::conditioning(Op::Polygamma, Of::Value, &point, near);
            let error = sweep::ulps(&precise, Op::Polygamma.value(&point), &exact) / conditioning;
            assert!(error <= 4.0, "at {point:?}: {error} ulp");
        }
    }
}

/// Checks the first and second derivative of each of these at a point; they are almost exactly doubles.
#[test]
fn slopes_at_awkward_points() {
    let slope = |op, of, point: &[f64]| sweep::result(&mut F64, op, of, point, |x| *x == 0.0);
    let near = |found: f64, expected: f64| {
        assert!((found - expected).abs() <= 4.0 * f64::EPSILON * expected.abs(), "{found:e} is not {expected:e}");
    };
    near(slope(Op::Expm1, Of::First(0), &[-50.0]), 1.928_749_847_963_917_8e-22);
    near(slope(Op::Asinh, Of::First(0), &[1e300]), 1e-300);
    near(slope(Op::Acosh, Of::First(0), &[1e300]), 1e-300);
    near(slope(Op::Tanh, Of::First(0), &[30.0]), 3.502_604_305_078_608e-26);
    near(slope(Op::Atan2, Of::First(0), &[1e-170, 1e-170]), 5e169);
    near(slope(Op::Atan2, Of::First(1), &[1e160, 1e160]), -5e-161);
    near(slope(Op::Hypot, Of::Second(0, 0), &[0.0, 1e108]), 1e-108);
    near(slope(Op::Hypot, Of::Second(0, 1), &[3e-104, 4e-104]), -9.6e102);
    near(slope(Op::Hypot, Of::First(0), &[1.5e308, 1.5e308]), std::f64::consts::FRAC_1_SQRT_2);
    near(slope(Op::Polygamma, Of::Value, &[4.0, -20.5]), -3.079_320_597_340_276e-5);
    near(slope(Op::Pow, Of::First(0), &[1e300, 0.1]), 1.000_000_000_000_003_8e-271);
    near(
        slope(Op::Pow, Of::First(0), &[1.000_000_000_000_038_6, -1.633_199_025_803_631_2e16]),
        -1.491_794_419_777_764_8e-258,
    );
    assert_eq!(slope(Op::Pow, Of::First(0), &[0.0, 0.5]), f64::INFINITY);
    for of in [Of::First(0), Of::First(1), Of::Second(0, 0), Of::Second(0, 1), Of::Second(1, 1)] {
        assert_eq!(slope(Op::Hypot, of, &[0.0, 0.0]), 0.0, "{of:?}");
        assert!(slope(Op::Hypot, of, &[1.0, f64::NAN]).is_nan() && slope(Op::Hypot, of, &[f64::NAN, 0.0]).is_nan());
    }
}
