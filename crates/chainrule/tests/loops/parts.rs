//! Requests for parts: a value or a gradient alone has no more operations than both in one request, and one request for
//! both has no more than two requests.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{Function, Module, Rewrite};

const PROGRAMS: &str = include_str!("../../../../benchmarks/src/roofline/problems.ft");

/// Function, differentiated arguments, and sizes.
type Case = (&'static str, &'static [&'static str], &'static [(&'static str, i64)]);

const CASES: &[Case] = &[
    ("linear", &["b"], &[("n", 500), ("d", 12)]),
    ("logistic", &["b"], &[("n", 500), ("d", 12)]),
    ("poisson", &["b"], &[("n", 500), ("d", 12)]),
    ("network", &["w1", "b1", "w2", "b2"], &[("n", 40), ("d", 30), ("h", 64), ("c", 10)]),
    ("network", &["w1"], &[("n", 40), ("d", 30), ("h", 64), ("c", 10)]),
    ("heat_ring", &["u"], &[("n", 100), ("steps", 50)]),
    ("heat_clamped", &["u"], &[("n", 100), ("steps", 50)]),
    ("heat_guarded", &["u"], &[("n", 100), ("steps", 50)]),
    ("heat_torus", &["u"], &[("n", 20), ("m", 30), ("steps", 50)]),
    ("gaussian_process", &["logls", "logs"], &[("n", 60)]),
    ("gaussian_process", &["logls"], &[("n", 60)]),
    ("convolution", &["w"], &[("a", 5), ("b", 5), ("n", 40), ("m", 40)]),
    ("convolution", &["x"], &[("a", 5), ("b", 5), ("n", 40), ("m", 40)]),
    ("product", &["a", "b"], &[("n", 30), ("k", 40), ("m", 20)]),
    ("batch", &["a", "b"], &[("s", 20), ("n", 8), ("k", 8), ("m", 8)]),
    ("softmax", &["x"], &[("n", 30), ("m", 20)]),
    ("pairs", &["x"], &[("n", 40)]),
    ("recurrence", &["x"], &[("n", 30), ("m", 20)]),
    ("columns", &["x"], &[("n", 30), ("m", 20)]),
    ("gathered", &["x"], &[("n", 30), ("m", 200)]),
    ("chain", &["x"], &[("n", 200)]),
    ("contraction", &["a", "b", "c"], &[("n", 20), ("m", 30), ("k", 10)]),
];

/// Returns the weight of the operations of a function.
fn weight(function: &Function, sizes: &[(&str, i64)]) -> f64 {
    function.counts_at(sizes, Rewrite::All).unwrap().weight as f64
}

#[test]
fn a_part_has_no_more_operations_than_all_parts() {
    let module = Module::from_text("problems.ft", PROGRAMS).unwrap();
    let mut wrong = Vec::new();
    for (name, by, sizes) in CASES {
        let value = module.function(name).unwrap();
        let gradient = value.gradient().by(by);
        let both = weight(&gradient.clone().with_value().function().unwrap(), sizes);
        let [value, gradient] = [&value, &gradient.function().unwrap()].map(|part| weight(part, sizes));
        if value.max(gradient) > 1.05 * both || both > value + gradient {
            wrong.push(format!("{name} by {by:?}: value {value}, gradient {gradient}, both {both}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
