//! Loops before differentiation: steps that write separate elements become builds, invariants are hoisted.
//!
//! In: a function. Out: the same values with builds and sums in place of loops whose steps write, or add to,
//! elements of an array separately (rules `fold-of-writes` and `fold-of-terms`); and with loop invariants outside of
//! their loops, if that costs far less.
//!
//! Reverse mode of a loop with a state carries the cotangent of the state from step to step, and adds to it in each. A
//! build has a cotangent for each element.
//!
//! Reverse mode runs every loop backwards with a cotangent for each iteration. A loop inside of it that computes the
//! same in each iteration costs as often as the outer loop runs: the cotangents differ, so nothing is invariant any
//! more. If the invariant is computed once, its cotangents are added first, and its loop runs backwards once. Then the
//! derivative has the degree of the optimised function in the sizes. The same holds for a factor that a sum has in
//! common, and for values that depend on the index of an inner loop only.

use crate::cost;
use crate::engine::{Goal, Options, hoist_once, separated};
use chainrule_ir::Function;
use std::borrow::Cow;

/// Maximum fraction of the cost that remains if hoisting pays: a stored invariant takes memory in the derivative, and a
/// loop over few iterations is cheap enough.
const REMAINS: f64 = 0.5;

/// Maximum number of passes: unused parts of a loop's state may hide that the loop is invariant, also in outer loops.
const MAX_PASSES: usize = 4;

/// Rules in addition to the steps of the engine: they move loops out of loops, too.
const RULES: &[&str] = &["sum-of-factor"];

/// Returns `function` without states that steps write to separately; and with invariants moved out of loops, equal
/// values computed once, and unused parts of loop-carried values removed, if the cost falls to half or less. Doubles
/// are treated as real numbers. Bodies of derivatives in the
/// function stay unchanged. Linear in the function for each level of nesting.
#[must_use]
pub fn hoisted(function: &Function) -> Cow<'_, Function> {
    let found = separated(function, &Options::default(), Goal::Derivative);
    let function = found.map_or(Cow::Borrowed(function), |(found, _)| Cow::Owned(found));
    let mut now = function.clone();
    for _ in 0..MAX_PASSES {
        match hoist_once(&now, RULES) {
            Some(next) => now = Cow::Owned(next),
            None => break,
        }
    }
    if cost::function(&now) <= REMAINS * cost::function(&function) { now } else { function }
}
