//! Passes over scalar graphs can be watched and left out.
#![allow(clippy::unwrap_used)]

use chainrule::{CompileOptions, Function, Module, PassLevel, Rewrite, Unroll, Value, passes};
use chainrule_graph::Semantics;

const PROGRAM: &str = "let f = fun (x : [3]Double) ->
  let a = sin (x[0] * x[1])
  a * x[2] + a * exp x[2] + sum 3 (fun i -> x[i] * x[1])";

fn function() -> Function {
    Module::from_text("f.ft", PROGRAM).unwrap().function("f").unwrap().unroll(Unroll::Always)
}

/// Pass, listing and results after each pass over graphs, and the results of the last pass of all.
type Rows = (Vec<(String, String, Vec<f64>)>, Vec<f64>);

fn rows(function: &Function, rewrite: Rewrite) -> Rows {
    let point = [Value::Array([0.5, -1.25, 2.0].map(Value::Real).to_vec())];
    let (mut rows, mut last) = (Vec::new(), Vec::new());
    let options = CompileOptions { rewrite, ..CompileOptions::default() };
    let watch = &mut |snapshot: &chainrule::Snapshot<'_>| {
        let values = snapshot.call(&point).unwrap();
        last = values.iter().flat_map(Value::reals).copied().collect();
        if snapshot.level() == PassLevel::Graph {
            rows.push((snapshot.pass.to_owned(), snapshot.listing(), last.clone()));
        }
    };
    function.trace(&options, watch).unwrap();
    (rows, last)
}

fn names(rows: &Rows) -> Vec<&str> {
    rows.0.iter().map(|(name, ..)| name.as_str()).collect()
}

fn assert_same_results(rows: &Rows) {
    for (name, listing, found) in &rows.0 {
        for (found, expected) in found.iter().zip(&rows.1) {
            assert!(
                (found - expected).abs() <= 1e-13 * (1.0 + expected.abs()),
                "{name}: {found}, {expected}\n{listing}"
            );
        }
    }
}

#[test]
fn unrolled_code_has_a_row_for_each_pass() {
    let rows = rows(&function(), Rewrite::All);
    assert_eq!(names(&rows), ["unroll", "value-numbering", "factoring"]);
    assert_same_results(&rows);
    let known: Vec<&str> = passes().iter().map(|pass| pass.name).collect();
    assert!(names(&rows).iter().all(|name| known.contains(name)), "{known:?}");
}

#[test]
fn derivatives_have_a_row_for_each_pass_and_the_last_is_the_code_that_is_compiled() {
    // The sum over all paths leaves much to share and to factor.
    let by_paths = function().hessian().strategy("oracle");
    for (derivation, shrinks) in [(function().gradient(), false), (by_paths.with_value(), true)] {
        let derived = derivation.function().unwrap();
        let rows = rows(&derived, Rewrite::All);
        assert_eq!(names(&rows), ["accumulate", "value-numbering", "factoring"]);
        assert_same_results(&rows);
        let lengths: Vec<usize> = rows.0.iter().map(|(_, listing, _)| listing.lines().count()).collect();
        assert!(lengths[2] < lengths[0] || !shrinks, "{lengths:?}");
        assert_eq!(derived.compile().unwrap().listing(), derivation.compile().unwrap().listing());
    }
}

#[test]
fn a_pass_that_is_left_out_has_no_row_and_no_effect() {
    let hessian = function().hessian().strategy("oracle").function().unwrap();
    let all = rows(&hessian, Rewrite::All);
    let unfactored = rows(&hessian, Rewrite::Without("factoring"));
    assert_eq!(names(&unfactored), ["accumulate", "value-numbering"]);
    assert_eq!(unfactored.0[1].1, all.0[1].1);
    assert_eq!(names(&rows(&hessian, Rewrite::Without("value-numbering"))), ["accumulate", "factoring"]);
    // The loops stay unrolled.
    assert_eq!(names(&rows(&function(), Rewrite::Without("factoring"))), ["unroll", "value-numbering"]);
    let options = CompileOptions { rewrite: Rewrite::Without("factoring"), ..CompileOptions::default() };
    let compiled = hessian.compile_with(&options).unwrap();
    assert_ne!(compiled.listing(), hessian.compile().unwrap().listing());
    assert_same_results(&unfactored);
}

#[test]
fn strict_code_is_neither_numbered_nor_factored() {
    let module = Module::from_text("f.ft", PROGRAM).unwrap().with_semantics(Semantics::Strict);
    let f = module.function("f").unwrap().unroll(Unroll::Always);
    assert_eq!(names(&rows(&f, Rewrite::All)), ["unroll"]);
    assert_eq!(names(&rows(&f.hessian().function().unwrap(), Rewrite::All)), ["accumulate"]);
}
