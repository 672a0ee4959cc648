//! The passes of kernels, in the order in which they run.
//!
//! [`PASSES`] is the only list. [`streamline`](crate::streamline()) and [`vectorise`](crate::vectorise()) run the
//! passes of one stage, [`run`] those of several. Every pass takes a valid kernel and leaves one, so that any of them
//! can be left out; builds with debug assertions verify the kernel after each.

use crate::exponentials::share_exponentials;
use crate::forward::forward;
use crate::kernel::{Kernel, Stmt};
use crate::{contract, lanes, loops, parts, verify};
use chainrule_base::timing;
use chainrule_ops::Semantics;
use std::ops::ControlFlow;

/// A pass.
pub struct Pass {
    /// Name, unique.
    pub name: &'static str,
    /// Description, one line.
    pub does: &'static str,
    /// Stage that it belongs to.
    pub stage: Stage,
    /// Effect on the order of additions and on rounding.
    pub rounding: Rounding,
    /// Code; algebraic semantics allow sums in another order.
    run: fn(&mut Kernel, Semantics),
}

/// Group of passes that a caller requests together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Loop canonicalisation.
    Loops,
    /// Parallel loops, for threads.
    Threads,
    /// Vectorisation.
    Lanes,
    /// Store-to-load forwarding and invariant hoisting.
    Hoisting,
    /// Contraction into fused multiply-adds.
    Fusion,
}

/// Effect of a pass on results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// Results keep their bits.
    Exact,
    /// Under strict semantics, results keep their bits; otherwise sums may be reordered, and last digits change.
    Reorders,
    /// Last digits may change; the pass does not run under strict semantics.
    Inexact,
    /// Last digits may change. Requesting the stage permits it.
    Fuses,
}

/// All passes, in order.
pub static PASSES: &[Pass] = &[
    Pass {
        name: "fold",
        does: "integers, comparisons and checks known at compile time are folded; loops of one iteration are unrolled",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::fold(kernel),
    },
    Pass {
        name: "congruent",
        does: "loop-carried values that are always equal become one",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::merge_congruent(kernel),
    },
    Pass {
        name: "delinearise",
        does: "loops over rows and columns by one index, with its quotient and remainder, become nests",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::delinearise(kernel),
    },
    Pass {
        name: "split",
        does: "index set splitting: loops are cut where a comparison, a remainder or a minimum of their index changes",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::split_index_sets(kernel),
    },
    Pass {
        name: "collapse",
        does: "nests that go through memory in one row become one loop",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::join(kernel),
    },
    Pass {
        name: "sink-comparisons",
        does: "comparisons move next to the branches that use them",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::move_comparisons(kernel),
    },
    Pass {
        name: "skew",
        does: "time skewing: several steps of a stencil on large arrays go through memory once",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::skew(kernel),
    },
    Pass {
        name: "promote-sums",
        does: "elements to which inner loops add, at indices of outer ones, become sums in registers",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::promote_sums(kernel),
    },
    Pass {
        name: "reuse-functions",
        does: "elementary functions of elements that a loop has computed are kept for later loops",
        stage: Stage::Loops,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::reuse_functions(kernel),
    },
    Pass {
        name: "parallelise",
        does: "outermost loops are cut into chunks for threads",
        stage: Stage::Threads,
        rounding: Rounding::Reorders,
        run: |kernel, semantics| {
            parts::parallelise(kernel, semantics);
        },
    },
    Pass {
        name: "slide",
        does: "sliding windows: loops over rows of large arrays, one after the other, go through memory together",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::slide(kernel),
    },
    Pass {
        name: "compare-loaded",
        does: "truth values that loops load from memory are compared with 0, and integers with constants, as doubles in lanes",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: |kernel, _| lanes::compare_loaded(kernel),
    },
    Pass {
        name: "test-factors",
        does: "products of matrices that are 0 where a factor is 0 become plain ones where the others are finite",
        stage: Stage::Lanes,
        rounding: Rounding::Inexact,
        run: |kernel, _| lanes::test_factors(kernel),
    },
    Pass {
        name: "separate-products",
        does: "nests that compute several sums of products of matrices get a nest for each",
        stage: Stage::Lanes,
        rounding: Rounding::Inexact,
        run: |kernel, _| lanes::separate_products(kernel),
    },
    Pass {
        name: "convert-additions",
        does: "branches on data that add to elements add -0 instead where that lets their loops run in lanes",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: lanes::convert_additions,
    },
    Pass {
        name: "fission",
        does: "nests that multiply by a matrix leave the loop whose iterations they begin",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: |kernel, _| lanes::fission(kernel),
    },
    Pass {
        name: "distribute",
        does: "loops that add to several arrays with different indices are distributed",
        stage: Stage::Lanes,
        rounding: Rounding::Inexact,
        run: |kernel, _| lanes::distribute(kernel),
    },
    Pass {
        name: "triangles",
        does: "products of matrices of which a triangle is wanted become those of rectangles of several rows",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: |kernel, _| lanes::triangles(kernel),
    },
    Pass {
        name: "transpose",
        does: "operands of products of matrices that lanes would read along columns are copied in rows",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: lanes::transpose,
    },
    Pass {
        name: "sweep",
        does: "sums over the rows of large matrices go through them row by row",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: |kernel, _| lanes::sweep(kernel),
    },
    Pass {
        name: "version-rows",
        does: "nests over rows of unknown length are written twice, for short rows and for long ones",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: lanes::version,
    },
    Pass {
        name: "search-columns",
        does: "searches for the step that decides a maximum, one in each column, leave their loop and run in lanes",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: lanes::search_columns,
    },
    Pass {
        name: "search-rows",
        does: "searches for the step that decides a maximum carry it as a double where that lets loops run in lanes",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: lanes::search_rows,
    },
    Pass {
        name: "count-in-lanes",
        does: "counts and collected truth values are carried as doubles where that lets loops run in lanes",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: lanes::count_in_lanes,
    },
    Pass {
        name: "distribute-recurrences",
        does: "what iterations of a recurrence compute without the values it carries leaves it, block by block",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: lanes::distribute_recurrences,
    },
    Pass {
        name: "distribute-rows",
        does: "what rows compute between the loops along them runs in lanes, for eight rows at once",
        stage: Stage::Lanes,
        rounding: Rounding::Reorders,
        run: lanes::distribute_rows,
    },
    Pass {
        name: "pack",
        does: "rows that a vectorised nest accesses repeatedly are packed",
        stage: Stage::Lanes,
        rounding: Rounding::Reorders,
        run: lanes::pack,
    },
    Pass {
        name: "vectorise",
        does: "loops run in lanes, with if-conversion, conflict splitting, unroll-and-jam and register tiling",
        stage: Stage::Lanes,
        rounding: Rounding::Reorders,
        run: lanes::cut,
    },
    Pass {
        name: "unroll-rows",
        does: "loops along rows in lane loops do four iterations at once",
        stage: Stage::Lanes,
        rounding: Rounding::Exact,
        run: |kernel, _| lanes::unroll(kernel),
    },
    Pass {
        name: "promote",
        does: "array elements that a loop reads and writes at constant indices stay in registers",
        stage: Stage::Hoisting,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::promote(kernel),
    },
    Pass {
        name: "forward-stores",
        does: "loads get values that were stored before, and overwritten stores are removed",
        stage: Stage::Hoisting,
        rounding: Rounding::Exact,
        run: |kernel, _| forward(kernel),
    },
    Pass {
        name: "alternate",
        does: "the next state of a loop becomes the current one without being copied: buffers alternate",
        stage: Stage::Hoisting,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::alternate(kernel),
    },
    Pass {
        name: "hoist-integers",
        does: "invariant integers and trip counts move out of loops",
        stage: Stage::Hoisting,
        rounding: Rounding::Exact,
        run: |kernel, _| loops::hoist_integers(kernel),
    },
    Pass {
        name: "share-exponentials",
        does: "a hyperbolic tangent beside its slope is computed from the exponential of the slope",
        stage: Stage::Fusion,
        rounding: Rounding::Inexact,
        run: |kernel, _| share_exponentials(kernel),
    },
    Pass {
        name: "contract",
        does: "products and sums become fused multiply-adds",
        stage: Stage::Fusion,
        rounding: Rounding::Fuses,
        run: |kernel, _| {
            contract(kernel);
        },
    },
];

impl Pass {
    /// Returns the pass of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PASSES.iter().find(|pass| pass.name == name)
    }

    /// Runs the pass alone. Only fusion changes straight-line code.
    pub fn apply(&self, kernel: &mut Kernel, semantics: Semantics) {
        let has_control = kernel.body.iter().any(|stmt| !matches!(stmt, Stmt::Straight(_) | Stmt::Copy { .. }));
        if has_control || self.stage == Stage::Fusion {
            (self.run)(kernel, semantics);
        }
    }
}

/// Callback that sees the kernel after each pass, and may end the pipeline.
pub type Watch<'a> = &'a mut dyn FnMut(&Pass, &Kernel) -> ControlFlow<()>;

/// Selection of passes.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Stages to run.
    pub stages: &'a [Stage],
    /// Allowed rewrites: under algebraic semantics, sums may be reordered.
    pub semantics: Semantics,
    /// Names of passes to leave out.
    pub disabled: &'a [String],
}

/// Runs the passes that `plan` selects, in the order of [`PASSES`], until `watch` ends the pipeline.
///
/// # Panics
/// With debug assertions, if a pass breaks an invariant of a valid kernel.
pub fn run(kernel: &mut Kernel, plan: &Plan<'_>, watch: Watch<'_>) {
    let was_valid = cfg!(debug_assertions) && verify(kernel).is_ok();
    for pass in PASSES {
        let is_allowed = plan.semantics == Semantics::Algebraic || pass.rounding != Rounding::Inexact;
        let is_disabled = plan.disabled.iter().any(|name| name == pass.name);
        if !plan.stages.contains(&pass.stage) || !is_allowed || is_disabled {
            continue;
        }
        timing::time(pass.name, || pass.apply(kernel, plan.semantics));
        if was_valid {
            debug_assert_eq!(verify(kernel), Ok(()), "{} broke the kernel:\n{kernel}", pass.name);
        }
        if watch(pass, kernel).is_break() {
            return;
        }
    }
}

/// Runs the passes of one stage.
pub(crate) fn run_stage(kernel: &mut Kernel, stage: Stage, semantics: Semantics) {
    let plan = Plan { stages: &[stage], semantics, disabled: &[] };
    run(kernel, &plan, &mut |_, _| ControlFlow::Continue(()));
}
