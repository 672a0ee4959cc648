//! Loop canonicalisation: branches on the index are split off, known comparisons and checks are removed, and invariant
//! code is hoisted.
//!
//! In: a kernel as lowering makes it. Out: a kernel that computes the same bits with fewer branches and checks in its
//! loops. It comes before [`lanes`](crate::lanes), which needs bodies without branches.
//!
//! ```text
//! for i in 0..n                     store y[0] = x[0]          (where 0 < n)
//!   if i == 0                       for i in 0..n - 1
//!     a = load x[0]                   b = load x[i + 1]
//!   else                              c = load y[i]
//!     check i - 1 < n                 store z[i + 1] = b * c
//!     b = x[i] * y[i - 1]
//!   store z[i] = a | b
//! ```
//!
//! | module | owns |
//! | --- | --- |
//! | `split` | index set splitting |
//! | `fold` | constant folding of integers, comparisons, checks, loops of one iteration |
//! | `same` | congruent loop-carried values |
//! | `join` | loop collapsing |
//! | `delinearise` | nests of loops over rows and columns as one |
//! | `choose` | if-conversion of short branches |
//! | `before` | placement of comparisons before their branches |
//! | `skew` | time skewing of stencils |
//! | `slide` | sliding windows of loops over rows |
//! | `hoist` | invariant hoisting of integers |
//! | `promote` | promotion of array elements to registers |
//! | `reuse` | elementary functions of elements, kept for later loops |
//! | `alternate` | alternation of the buffers of a state |

mod alternate;
mod before;
mod choose;
mod delinearise;
mod fold;
mod hoist;
mod join;
mod promote;
mod reuse;
mod same;
mod skew;
mod slide;
mod split;

use crate::kernel::Kernel;
use crate::passes::{Stage, run_stage};
use chainrule_ops::Semantics;

pub(crate) use alternate::alternate;
pub(crate) use before::move_comparisons;
pub(crate) use delinearise::delinearise;
pub(crate) use fold::fold;
pub(crate) use hoist::hoist_integers;
pub(crate) use join::join;
pub(crate) use promote::{promote, promote_sums};
pub(crate) use reuse::reuse_functions;
pub(crate) use skew::skew;
pub(crate) use slide::slide;

/// Maximum number of rounds of index set splitting.
const ROUNDS: usize = 12;

/// Maximum number of periods between a dividend and its remainder for the remainder to become a difference.
const MAX_WRAPS: i64 = 2;

/// Canonicalises the loops of `kernel`. `O(n d)` for loops nested `d` deep; splitting grows code by at most a constant
/// factor.
pub fn streamline(kernel: &mut Kernel) {
    run_stage(kernel, Stage::Loops, Semantics::Strict);
}

/// Moves integers out of the counted loops in which they are invariant, and computes each once. Linear in the size of
/// `kernel` times the depth of loops and branches.
pub fn hoist(kernel: &mut Kernel) {
    run_stage(kernel, Stage::Hoisting, Semantics::Strict);
}

/// Replaces loop-carried values by congruent ones.
pub(crate) fn merge_congruent(kernel: &mut Kernel) {
    if let Some(aliases) = same::same(kernel) {
        fold::fold_aliases(kernel, aliases);
    }
}

/// Cuts loops where comparisons of their indices change, and folds what then is known, until nothing changes.
pub(crate) fn split_index_sets(kernel: &mut Kernel) {
    let mut room = split::room(kernel);
    let mut is_cut = false;
    for _ in 0..ROUNDS {
        if !split::split(kernel, &mut room) {
            break;
        }
        fold::fold(kernel);
        is_cut = true;
    }
    if is_cut {
        // Code of decided branches is part of the block around it now: elements that keep their value are not written.
        fold::fold(kernel);
    }
}
