//! The pass that makes builds and sums of loops whose steps write separate elements of an array, or add to elements
//! (decision 0083).

use super::{Options, Run, Todo, name, pass, with_rules};
use crate::{cost, live, rules, walk};
use chainrule_ir::{Function, alpha_equal};

/// Puts builds and sums in place of folds ([`separated`]).
pub(super) fn separate(function: &Function, run: &mut Run) {
    if let Some((found, times)) = separated(function, &run.options, Goal::Value) {
        run.tally.applied.iter_mut().zip(times).for_each(|(all, more)| *all += more);
        run.live = None;
        run.result = Some(found);
    }
}

/// Rules that make builds and sums of folds.
const SEPARATING: &[&str] = &["fold-of-writes", "fold-of-terms"];

/// Rules that bring the results of [`SEPARATING`] into their form: they move elements of arrays to their uses, and
/// decide conditions on integers. Derivatives of the result are those of the function.
const WITH_SEPARATING: &[&str] = &[
    "split-fold",
    "flat-fold",
    "component",
    "same-tuple",
    "fuse",
    "fuse-rows",
    "fuse-component",
    "get-array",
    "get-one-hot",
    "prove-index",
    "compare-integers",
    "known-extreme",
    "connectives",
    "select",
    "if-same",
    "if-twice",
    "if-not",
    "if-truth",
    "same-array",
    "zero-parts",
];

/// Rules for a result that is differentiated: elements of products leave branches once they are in no other one.
const AFTER_SEPARATING: &[&str] = &["if-product"];

/// Purpose of a program without folds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    Value,
    /// Reverse mode stores the states of a fold, and carries the cotangent of the array from step to step.
    Derivative,
}

impl Goal {
    /// Returns the maximum cost of builds in place of folds, relative to the function: they take some comparisons of
    /// integers more; for derivatives, they may compute each element of a symmetric matrix twice.
    fn most(self) -> f64 {
        match self {
            Self::Value => 1.1,
            Self::Derivative => 2.2,
        }
    }
}

/// Maximum number of passes: loops become builds from the inside.
const MAX_SEPARATED: usize = 8;

/// Returns a run with the rules `names` and no others.
fn run_with(names: &[&str], given: &Options) -> Run {
    let disabled = given.disabled.iter().cloned().chain(["hoist".to_owned()]).collect();
    let options = Options { semantics: given.semantics, disabled, ..Options::default() };
    Run { late: true, ..with_rules(names, options) }
}

/// Returns `function` with builds and sums in place of folds whose steps write separate elements, or add to elements,
/// with the number of applications of each rule; `None` if there are none, if that costs more, or if a fold remains
/// around one of them: there, a step changes a part of the array in place, and would copy all of it.
pub(crate) fn separated(function: &Function, given: &Options, goal: Goal) -> Option<(Function, Vec<u64>)> {
    let [outer, inner] = walk::array_folds(function);
    if outer == 0 {
        return None;
    }
    let mut run = run_with(&[SEPARATING, WITH_SEPARATING].concat(), given);
    let is_one = |at: usize| at == rules::SEPARATE || SEPARATING.contains(&name(at));
    let times = |run: &Run| -> Vec<u64> {
        run.tally.applied.iter().enumerate().map(|(at, times)| if is_one(at) { *times } else { 0 }).collect()
    };
    let mut found: Option<Function> = None;
    for n_passes in 1..=MAX_SEPARATED {
        let now = found.as_ref().unwrap_or(function);
        pass(now, &mut run, Todo { split: true, fuse: true, separate: true, ..Todo::default() });
        let Some(next) = run.result.take().filter(|next| !alpha_equal(now, next)) else { break };
        found = Some(next);
        run.in_vain.clear();
        // If not even the innermost folds have become others once elements stand at their uses, no fold does.
        if n_passes > 1 && times(&run).iter().all(|times| *times == 0) {
            break;
        }
    }
    let times = times(&run);
    let mut found = found.filter(|_| times.iter().any(|times| *times > 0))?;
    if goal == Goal::Derivative {
        let mut run = run_with(AFTER_SEPARATING, given);
        pass(&found, &mut run, Todo { split: true, separate: true, ..Todo::default() });
        found = run.result.unwrap_or(found);
    }
    found = live::swept(found);
    let [outer, left] = walk::array_folds(&found);
    if outer > 0 && left < inner {
        return None;
    }
    // What the other rules save is not due to builds.
    let mut run = run_with(WITH_SEPARATING, given);
    pass(function, &mut run, Todo { split: true, fuse: true, ..Todo::default() });
    let before = run.result.map_or_else(|| cost::tiled(function), |fused| cost::tiled(&live::swept(fused)));
    (cost::tiled(&found) <= goal.most() * before).then_some((found, times))
}
