//! How the operations of derivatives grow with the sizes of arguments.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{Function, Module, Rewrite};

fn function(text: &str) -> Function {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap()
}

/// Operations at sizes `n`.
fn operations(function: &Function, n: i64) -> u64 {
    function.counts_at(&[("n", n)], Rewrite::All).unwrap().weight
}

/// Functions whose loops read elements under conditions, or elements that do not depend on what the direction changes.
const READS: [&str; 6] = [
    "let f = fun (v : [n]Double) ->
       sum 8 (fun b -> sum n (fun j -> if mod j 8 == b then v[j] ** 2 else 0))",
    "let f = fun (v : [n]Double) ->
       sum 8 (fun b -> sum n (fun j -> if mod j 8 == b then v[j] * v[max 0 (j - 1)] else sin v[j]))",
    "let f = fun (v : [n]Double) ->
       let a = build n (fun i -> (if 0 < i then v[i - 1] else 0) - 2 * v[i] * v[i] + (if i < n - 1 then v[i + 1] else 0))
       sum n (fun i -> (if 0 < i then a[i - 1] else 0) * a[i] + (if i < n - 1 then a[i + 1] else 0))",
    "let f = fun (v : [n]Double) ->
       sum 3 (fun k -> sum n (fun j -> if mod j 3 == k then (if mod j 2 == 0 then v[j] else v[n - 1 - j] ** 3) else 0))",
    "let f = fun (v : [n](Double, Double)) ->
       sum 4 (fun b -> sum n (fun j -> if mod j 4 == b then v[j].0 * v[j].1 ** 2 else v[j].0))",
    "let f = fun (v : [n][2]Double) ->
       sum 4 (fun b -> sum n (fun j -> if mod j 4 == b then v[j][0] * v[j][1] ** 2 else v[j][1]))",
];

#[test]
fn second_derivatives_along_directions_of_reads_under_conditions_are_linear() {
    for text in READS {
        let f = function(text);
        for derived in [f.gradient().function().unwrap(), f.hvp().function().unwrap()] {
            let [small, large] = [100, 800].map(|n| operations(&derived, n));
            assert!(large <= 9 * small, "{text}: {small} operations at 100, {large} at 800");
        }
    }
}
