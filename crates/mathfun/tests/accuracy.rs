//! Accuracy of every function against true values of 115 digits.

mod support;

use chainrule_mathfun as mathfun;
use support::arguments;
use support::truth::{Truth, ulps};

/// Asserts that `function` is within `most` ulp, and prints its error.
fn check(name: &str, function: fn(f64) -> f64, most: f64) {
    let mut truth = Truth::new();
    let (mut worst, mut at) = (0.0, 0.0);
    let arguments = arguments::of(name, 6_000);
    for &x in &arguments {
        let error = ulps(function(x), &truth.value(name, &[x]));
        if error > worst {
            (worst, at) = (error, x);
        }
    }
    println!("{name}: {worst:.4} ulp at {at:e}, of {} arguments", arguments.len());
    assert!(worst <= most, "{name}({at:e}) = {:e} is {worst} ulp off", function(at));
}

/// As [`check`], for two arguments; pairs with a result fixed by C99 are in `special`.
fn check2(name: &str, function: fn(f64, f64) -> f64, most: f64) {
    let mut truth = Truth::new();
    let (mut worst, mut at, mut count) = (0.0, (0.0, 0.0), 0);
    for (a, b) in arguments::pairs_of(name, 6_000) {
        let defined = match name {
            "pow" => a != 0.0 && (a > 0.0 || b.fract() == 0.0),
            _ => a != 0.0,
        };
        if !(a.is_finite() && b.is_finite() && defined) {
            continue;
        }
        let error = ulps(function(a, b), &truth.value(name, &[a, b]));
        count += 1;
        if error > worst {
            (worst, at) = (error, (a, b));
        }
    }
    println!("{name}: {worst:.4} ulp at {:e}, {:e}, of {count} pairs", at.0, at.1);
    assert!(worst <= most, "{name}({:e}, {:e}) = {:e} is {worst} ulp off", at.0, at.1, function(at.0, at.1));
}

#[test]
fn hyperbolic_tangent() {
    check("tanh", mathfun::tanh, 0.8);
}

#[test]
fn hyperbolic_sine() {
    check("sinh", mathfun::sinh, 1.0);
}

#[test]
fn hyperbolic_cosine() {
    check("cosh", mathfun::cosh, 1.25);
}

#[test]
fn error_function() {
    check("erf", mathfun::erf, 1.0);
}

#[test]
fn inverse_hyperbolic_sine() {
    check("asinh", mathfun::asinh, 1.0);
}

#[test]
fn inverse_hyperbolic_cosine() {
    check("acosh", mathfun::acosh, 1.0);
}

#[test]
fn inverse_hyperbolic_tangent() {
    check("atanh", mathfun::atanh, 1.0);
}

#[test]
fn cube_root() {
    check("cbrt", mathfun::cbrt, 1.0);
}

#[test]
fn arc_tangent() {
    check("atan", mathfun::atan, 1.0);
}

#[test]
fn angle_of_a_point() {
    check2("atan2", mathfun::atan2, 1.0);
}

#[test]
fn length_of_a_vector() {
    check2("hypot", mathfun::hypot, 1.0);
}

#[test]
fn power() {
    check2("pow", mathfun::pow, 1.0);
}

#[test]
fn sine() {
    check("sin", mathfun::sin, 0.8);
}

#[test]
fn cosine() {
    check("cos", mathfun::cos, 0.8);
}

#[test]
fn tangent() {
    check("tan", mathfun::tan, 1.0);
}

#[test]
fn exponential() {
    check("exp", mathfun::exp, 1.0);
}

#[test]
fn exponential_less_one() {
    check("expm1", mathfun::expm1, 1.1);
}

#[test]
fn logarithm() {
    check("log", mathfun::log, 1.0);
}

#[test]
fn logarithm_of_one_more() {
    check("log1p", mathfun::log1p, 1.0);
}
