//! Passes over scalar graphs can be watched and left out.
#![allow(clippy::unwrap_used)]

use chainrule::{CompileOptions, Function, Module, PassLevel, Rewrite, Unroll, Value, passes};
use chainrule_graph::Semantics;

const LINEARISE: &str = "linearise";
const ACCUMULATE: &str = "accumulate";

const PROGRAM: &str = "let f = fun (x : [3]Double) ->
  let a = sin (x[0] * x[1])
  a * x[2] + a * exp x[2] + sum 3 (fun i -> x[i] * x[1])";

fn function() -> Function {
    Module::from_text("f.ft", PROGRAM).unwrap().function("f").unwrap().unroll(Unroll::Always)
}

/// Pass, listing and results after each pass over graphs, and the results of the last pass of all. Linearised graphs
/// and accumulation programs have no results.
type Rows = (Vec<(String, String, Vec<f64>)>, Vec<f64>);

fn rows(function: &Function, rewrite: Rewrite) -> Rows {
    let point = [Value::Array([0.5, -1.25, 2.0].map(Value::Real).to_vec())];
    let (mut rows, mut last) = (Vec::new(), Vec::new());
    let options = CompileOptions { rewrite, ..CompileOptions::default() };
    let watch = &mut |snapshot: &chainrule::Snapshot<'_>| {
        if !snapshot.has_results() {
            assert!(matches!(snapshot.level(), PassLevel::Linear | PassLevel::Accumulation));
            assert!(snapshot.call(&point).is_err());
            rows.push((snapshot.pass.to_owned(), snapshot.listing(), Vec::new()));
            return;
        }
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
    for (derivation, n_accumulations) in [(function().gradient(), 1), (by_paths.with_value(), 2)] {
        let derived = derivation.function().unwrap();
        let rows = rows(&derived, Rewrite::All);
        let expected =
            [&[LINEARISE, ACCUMULATE].repeat(n_accumulations)[..], &["replay", "value-numbering", "factoring"]]
                .concat();
        assert_eq!(names(&rows), expected);
        assert_same_results(&rows);
        let length = |pass: &str| rows.0.iter().find(|row| row.0 == pass).unwrap().1.lines().count();
        assert!(length("factoring") < length("replay") || n_accumulations == 1);
        assert_eq!(derived.compile().unwrap().listing(), derivation.compile().unwrap().listing());
    }
}

#[test]
fn a_pass_that_is_left_out_has_no_row_and_no_effect() {
    let hessian = function().hessian().strategy("oracle").function().unwrap();
    let all = rows(&hessian, Rewrite::All);
    let unfactored = rows(&hessian, Rewrite::Without("factoring"));
    let steps = [LINEARISE, ACCUMULATE, LINEARISE, ACCUMULATE, "replay"];
    assert_eq!(names(&unfactored), [&steps[..], &["value-numbering"]].concat());
    assert_eq!(unfactored.0[5].1, all.0[5].1);
    let unnumbered = rows(&hessian, Rewrite::Without("value-numbering"));
    assert_eq!(names(&unnumbered), [&steps[..], &["factoring"]].concat());
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
    let expected = [LINEARISE, ACCUMULATE, LINEARISE, ACCUMULATE, "replay"];
    assert_eq!(names(&rows(&f.hessian().function().unwrap(), Rewrite::All)), expected);
}

#[test]
fn steps_of_accumulation_have_listings() {
    let text = "let f = fun (x : [3]Double) -> sin (x[0] * x[1])";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap().unroll(Unroll::Always);
    let rows = rows(&f.gradient().strategy("reverse").function().unwrap(), Rewrite::All);
    let listing = |pass: &str| &rows.0.iter().find(|row| row.0 == pass).unwrap().1;
    let edges =
        "columns v0 v1 v2\ne0: v0 -> v3 = x[1]\ne1: v1 -> v3 = x[0]\ne2: v3 -> v4 = cos(x[0] * x[1])\nrows v4\n";
    assert_eq!(listing(LINEARISE), edges);
    assert_eq!(listing(ACCUMULATE), "t0 = e1*e2\nt1 = e0*e2\nd(0, 0) = t1\nd(0, 1) = t0\n");
}
