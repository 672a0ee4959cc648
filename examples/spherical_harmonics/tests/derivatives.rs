//! The Jacobian of the harmonics against forward mode and differences in extended precision.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

use chainrule::{Function, Module, Vector, check, vars};
use chainrule_example_spherical_harmonics::spherical_harmonics;

fn function(order: usize) -> Function {
    let v = vars("v", 3);
    let y = Vector::new(spherical_harmonics(order, &v[0], &v[1], &v[2])).named("Y");
    Function::new("harmonics", &v, &y).unwrap()
}

#[test]
fn jacobians_agree_with_their_references_for_every_strategy() {
    let f = function(8);
    for strategy in ["auto", "forward", "reverse", "markowitz"] {
        let settings = check::Settings { points: 3, range: (-0.6, 0.6), seed: 3 };
        let agreement = check::compare(&f, &f.jacobian().strategy(strategy), &settings).unwrap();
        assert_eq!(agreement.elements, 3 * 81);
        assert!(agreement.from_forward <= 1e-13 && agreement.from_differences <= 1e-30, "{strategy}: {agreement}");
    }
}

#[test]
fn harmonics_of_one_degree_add_up_to_a_constant() {
    // Unsoeld's theorem: the squares of degree l sum to (2l + 1) / (4 pi) on the unit sphere.
    let f = function(6).compile().unwrap();
    let y = &f.eval(&[&[0.48, -0.6, 0.64]]).unwrap()[0];
    for l in 0..=6 {
        let sum: f64 = y[l * l..(l + 1) * (l + 1)].iter().map(|v| v * v).sum();
        let expected = (2 * l + 1) as f64 / (4.0 * std::f64::consts::PI);
        assert!((sum - expected).abs() < 1e-14, "degree {l}: {sum} is not {expected}");
    }
}

/// Returns the program in F~ up to an order, unrolled; its results are n rows of n.
fn written(order: usize) -> Function {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/harmonics.ft");
    let f = Module::load(path).and_then(|module| module.function("harmonics")).unwrap();
    f.unrolled(&[("n", order as i64 + 1)]).unwrap()
}

#[test]
fn the_program_in_text_computes_the_same_with_as_few_operations() {
    let (text, rust) = (written(10), function(10));
    let counts = |f: &Function| f.counts().unwrap().arithmetic();
    let jacobian = |f: &Function| f.jacobian().by(&["v"]).function().unwrap();
    assert_eq!(counts(&text), counts(&rust));
    // Its recurrence constants round differently; both have 406 operations.
    assert!(counts(&jacobian(&text)) <= counts(&jacobian(&rust)) + 2, "{}", counts(&jacobian(&text)));
    let eval = |f: &Function| f.compile().unwrap().eval(&[&[0.48, -0.6, 0.64]]).unwrap().concat();
    let (found, expected) = (eval(&text), eval(&rust));
    for (l, m) in (0..=10usize).flat_map(|l| (-(l as isize)..=l as isize).map(move |m| (l, m))) {
        let at = if m < 0 { (m.unsigned_abs() - 1, l) } else { (l, m.unsigned_abs()) };
        let (x, y) = (found[at.0 * 11 + at.1], expected[l * l + l.wrapping_add_signed(m)]);
        assert!((x - y).abs() <= 1e-13 * (1.0 + y.abs()), "({l}, {m}) is {x}, not {y}");
    }
}
