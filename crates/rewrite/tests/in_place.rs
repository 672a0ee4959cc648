//! Builds whose elements are computed at their uses, in realistic programs.

mod support;

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_ir::Value;
use chainrule_ops::Semantics;
use chainrule_rewrite::{Options, check};
use support::function;

#[test]
fn an_element_that_nothing_needs_is_not_what_is_taken_at_another_index() {
    // An element of `v` is read at the own index of a loop, where nothing needs it once values and derivatives are
    // separated; and one at another index in another loop.
    let f = function(
        "let f = fun (x : [n]Double) ->
           let v = ifold (fun (s : [n]Double) i -> vectorSMul x 0.5) x 4
           (vectorSum (ifold (fun (w : [n]Double) i -> vectorSMul w 0.5) v 1), build 2 (fun i -> v[mod i n]))",
    );
    let request = Request { parts: vec![Part::Jvp], by: vec![], mode: Mode::Forward, checkpoints: None };
    let f = derive(&f, &request).unwrap();
    let x = Value::from(vec![0.5, -1.25]);
    for semantics in [Semantics::Strict, Semantics::Algebraic] {
        let options = Options { semantics, ..Options::default() };
        check::optimised(&f, &[x.clone(), x.clone()], &options).unwrap_or_else(|e| panic!("{e}"));
    }
}
