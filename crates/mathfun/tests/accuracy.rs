//! Every function against true values in 115 digits.

mod support;

use chainrule_mathfun as mathfun;
use support::arguments;
use support::truth::{Truth, ulps};

/// Asserts that `function` is within `most` ulp, and says how far it is.
fn check(name: &str, function: fn(f64) -> f64, most: f64) {
    let mut truth = Truth::new();
    let (mut worst, mut at) = (0.0, 0.0);
    let arguments = arguments::of(name, 12_000);
    for &x in &arguments {
        let error = ulps(function(x), &truth.value(name, &[x]));
        if error > worst {
            (worst, at) = (error, x);
        }
    }
    println!("{name}: {worst:.4} ulp at {at:e}, of {} arguments", arguments.len());
    assert!(worst <= most, "{name}({at:e}) = {:e} is {worst} ulp off", function(at));
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
fn exponential() {
    check("exp", mathfun::exp, 1.0);
}

#[test]
fn exponential_less_one() {
    check("expm1", mathfun::expm1, 1.5);
}

#[test]
fn logarithm() {
    check("log", mathfun::log, 1.0);
}

#[test]
fn logarithm_of_one_more() {
    check("log1p", mathfun::log1p, 1.5);
}
