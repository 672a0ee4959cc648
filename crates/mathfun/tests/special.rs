//! Special values: zeros and their signs, infinities, NaN, overflow and underflow, as in C99, Annex F.

use chainrule_mathfun::{
    acosh, asinh, atan, atan2, atanh, cbrt, cos, cosh, erf, exp, expm1, hypot, log, log1p, pow, sin, sin_cos, sinh,
    tan, tanh,
};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// 3 pi/4, rounded.
const FRAC_3PI_4: f64 = 2.356194490192345;

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

fn check(name: &str, function: fn(f64) -> f64, table: &[(f64, f64)]) {
    for &(x, y) in table {
        assert!(same(function(x), y), "{name}({x:e}) is {:e}, not {y:e}", function(x));
    }
}

fn check2(name: &str, function: fn(f64, f64) -> f64, table: &[(f64, f64, f64)]) {
    for &(a, b, y) in table {
        assert!(same(function(a, b), y), "{name}({a:e}, {b:e}) is {:e}, not {y:e}", function(a, b));
    }
}

#[test]
fn one_argument() {
    let tiny = f64::from_bits(1);
    check("sin", sin, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (tiny, tiny), (-tiny, -tiny)]);
    check("cos", cos, &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (tiny, 1.0)]);
    check("exp", exp, &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e300, INF), (-1e300, 0.0)]);
    check("exp", exp, &[(709.782712893384, 1.7976931348622732e308), (709.7827128933841, INF), (-745.13, tiny)]);
    check("exp", exp, &[(-745.1332191019413, 0.0), (-746.5, 0.0)]);
    check(
        "expm1",
        expm1,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (tiny, tiny), (-tiny, -tiny)],
    );
    check(
        "expm1",
        expm1,
        &[(709.782712893384, 1.7976931348622732e308), (709.7827128933841, INF), (-50.0, -1.0), (1e300, INF)],
    );
    check(
        "log",
        log,
        &[(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (-tiny, NAN), (-1.0, NAN)],
    );
    check("log1p", log1p, &[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (tiny, tiny)]);
    check("log1p", log1p, &[(-tiny, -tiny), (-1.0000000000000002, NAN), (-2.0, NAN)]);
    check(
        "tanh",
        tanh,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (tiny, tiny), (1e300, 1.0), (-30.0, -1.0)],
    );
    let max = f64::MAX;
    check(
        "sinh",
        sinh,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (tiny, tiny), (-tiny, -tiny)],
    );
    check(
        "sinh",
        sinh,
        &[(max, INF), (-max, -INF), (710.4758600739439, 1.7976931348621744e308), (710.475860073944, INF)],
    );
    check("cosh", cosh, &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (tiny, 1.0), (-max, INF)]);
    check("cosh", cosh, &[(710.4758600739439, 1.7976931348621744e308), (710.475860073944, INF)]);
    check("erf", erf, &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (max, 1.0), (-7.0, -1.0)]);
    check("asinh", asinh, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (tiny, tiny)]);
    check("asinh", asinh, &[(-tiny, -tiny), (max, 710.475860073944), (-max, -710.475860073944)]);
    check("acosh", acosh, &[(1.0, 0.0), (INF, INF), (-INF, NAN), (NAN, NAN), (max, 710.475860073944), (-max, NAN)]);
    check("acosh", acosh, &[(1f64.next_down(), NAN), (0.0, NAN), (-1.0, NAN), (-2.0, NAN), (tiny, NAN)]);
    check("atanh", atanh, &[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (NAN, NAN), (tiny, tiny)]);
    check("atanh", atanh, &[(1f64.next_up(), NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN), (-tiny, -tiny)]);
    check("cbrt", cbrt, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1.0, 1.0), (-8.0, -2.0)]);
    check("cbrt", cbrt, &[(8.0 * tiny, 3.4063678720065206e-108), (-tiny, -1.7031839360032603e-108)]);
    check("cbrt", cbrt, &[(max, 5.643803094122362e102), (f64::MIN_POSITIVE, 2.812644285236262e-103)]);
    check("tan", tan, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (tiny, tiny), (-tiny, -tiny)]);
    check("tan", tan, &[(FRAC_PI_2, 1.633123935319537e16), (-FRAC_PI_2, -1.633123935319537e16)]);
    check("atan", atan, &[(0.0, 0.0), (-0.0, -0.0), (INF, FRAC_PI_2), (-INF, -FRAC_PI_2), (NAN, NAN), (tiny, tiny)]);
    check("atan", atan, &[(1.0, FRAC_PI_4), (-1.0, -FRAC_PI_4), (f64::MAX, FRAC_PI_2), (-tiny, -tiny)]);
    assert!(sin_cos(INF).0.is_nan() && sin_cos(NAN).1.is_nan());
}

#[test]
fn results_stay_in_their_range() {
    for i in 0..100_000 {
        let x = f64::from(i) * 1.001e-3 - 50.0;
        assert!(
            sin(x).abs() <= 1.0
                && cos(x).abs() <= 1.0
                && tanh(x).abs() <= 1.0
                && erf(x).abs() <= 1.0
                && expm1(x) >= -1.0,
            "{x}"
        );
    }
}

#[test]
fn angles() {
    check2(
        "atan2",
        atan2,
        &[
            (0.0, 0.0, 0.0),
            (-0.0, 0.0, -0.0),
            (0.0, -0.0, PI),
            (-0.0, -0.0, -PI),
            (0.0, 1.0, 0.0),
            (-0.0, 1.0, -0.0),
            (0.0, -1.0, PI),
            (-0.0, -1.0, -PI),
            (1.0, 0.0, FRAC_PI_2),
            (1.0, -0.0, FRAC_PI_2),
            (-1.0, 0.0, -FRAC_PI_2),
            (-1.0, -0.0, -FRAC_PI_2),
            (1.0, INF, 0.0),
            (-1.0, INF, -0.0),
            (1.0, -INF, PI),
            (-1.0, -INF, -PI),
            (INF, 1.0, FRAC_PI_2),
            (INF, -1.0, FRAC_PI_2),
            (-INF, 1.0, -FRAC_PI_2),
            (INF, INF, FRAC_PI_4),
            (INF, -INF, FRAC_3PI_4),
            (-INF, INF, -FRAC_PI_4),
            (-INF, -INF, -FRAC_3PI_4),
            (0.0, INF, 0.0),
            (-0.0, -INF, -PI),
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (NAN, INF, NAN),
            (5e-324, -1.0, PI),
            (5e-324, 1e300, 0.0),
            (-5e-324, 1e300, -0.0),
            (5e-324, 5e-324, FRAC_PI_4),
            (f64::MAX, f64::MAX, FRAC_PI_4),
            (1e-310, 2.0, 5e-311),
            (3.0, -3.0, FRAC_3PI_4),
        ],
    );
}

#[test]
fn lengths_of_vectors() {
    let (tiny, max) = (f64::from_bits(1), f64::MAX);
    let table = [
        (0.0, 0.0, 0.0),
        (-0.0, -0.0, 0.0),
        (3.0, -4.0, 5.0),
        (-0.0, -1.5, 1.5),
        (INF, 1.0, INF),
        (INF, NAN, INF),
        (-INF, NAN, INF),
        (INF, -INF, INF),
        (NAN, 1.0, NAN),
        (NAN, 0.0, NAN),
        (NAN, NAN, NAN),
        (tiny, 0.0, tiny),
        (3.0 * tiny, 4.0 * tiny, 5.0 * tiny),
        (tiny, 1e-200, 1e-200),
        (3e-200, 4e-200, 5e-200),
        (max, 0.0, max),
        (max, 1e270, max),
        (max, max, INF),
        (1.6e308, 1.2e308, INF),
        (3.0 * 2f64.powi(1020), 4.0 * 2f64.powi(1020), 5.0 * 2f64.powi(1020)),
    ];
    check2("hypot", hypot, &table);
    check2("hypot", |a, b| hypot(b, a), &table);
}

#[test]
fn powers() {
    let tiny = f64::from_bits(1);
    let mut table = vec![
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (0.0, 2.0, 0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 2.5, 0.0),
        (-0.0, 1.5, 0.0),
        (-0.0, -1.5, INF),
        (-INF, 1.5, INF),
        (-INF, -1.5, 0.0),
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (0.0, -2.0, INF),
        (-0.0, -2.0, INF),
        (-0.0, -2.5, INF),
        (0.0, INF, 0.0),
        (-0.0, INF, 0.0),
        (0.0, -INF, INF),
        (-0.0, -INF, INF),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (0.5, -INF, INF),
        (-0.5, -INF, INF),
        (2.0, -INF, 0.0),
        (-2.0, -INF, 0.0),
        (0.5, INF, 0.0),
        (-0.5, INF, 0.0),
        (2.0, INF, INF),
        (-2.0, INF, INF),
        (-INF, -3.0, -0.0),
        (-INF, -2.0, 0.0),
        (-INF, -2.5, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 2.0, INF),
        (-INF, 2.5, INF),
        (INF, -0.5, 0.0),
        (INF, 0.5, INF),
        (-2.0, 0.5, NAN),
        (-2.0, 1e-300, NAN),
        (-2.0, 3.0, -8.0),
        (-2.0, 4.0, 16.0),
        (-2.0, -1.0, -0.5),
        (-2.0, 2.5, NAN),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
        (3.0, 2.0, 9.0),
        (10.0, 22.0, 1e22),
        (2.0, 1023.0, 8.98846567431158e307),
        (2.0, 1024.0, INF),
        (-2.0, 1025.0, -INF),
        (2.0, -1074.0, tiny),
        (-2.0, -1073.0, -1e-323),
        (2.0, -1076.0, 0.0),
        (-2.0, -1077.0, -0.0),
        (tiny, 1.0, tiny),
        (tiny, -1.0, INF),
        (tiny, 0.5, 2.2227587494850775e-162),
        (-1.0, 9007199254740991.0, -1.0),
        (-1.0, 9007199254740992.0, 1.0),
        (-1.0, 4503599627370497.0, -1.0),
        (-1.0, 4503599627370495.5, NAN),
        (-1.0, 2251799813685249.0, -1.0),
        (-1.0, 2251799813685248.5, NAN),
        (-1.0, 1e300, 1.0),
        (f64::MAX, 1.0, f64::MAX),
        (f64::MAX, -1.0, 5.562684646268003e-309),
        (0.9999999999999999, 1e300, 0.0),
        (1.0000000000000002, 1e300, INF),
        (1.0000000000000002, f64::MAX, INF),
        (4.0, 0.5, 2.0),
        (0.25, -0.5, 2.0),
    ];
    for y in [0.0, -0.0] {
        table.extend([0.0, -0.0, 1.0, -3.5, INF, -INF, NAN, tiny].map(|x| (x, y, 1.0)));
    }
    table.extend([0.5, -2.0, INF, -INF, NAN, f64::MAX, tiny].map(|y| (1.0, y, 1.0)));
    check2("pow", pow, &table);
    // Integer powers that fit into a double are exact.
    for base in -30i64..=30 {
        let mut power = 1i64;
        for exponent in 0..20 {
            if power.unsigned_abs() < 1 << 53 {
                assert!(same(pow(base as f64, f64::from(exponent)), power as f64), "{base} ** {exponent}");
            }
            power = power.saturating_mul(base);
        }
    }
}
