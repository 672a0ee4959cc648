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
//! | `choose` | if-conversion of short branches |
//! | `before` | placement of comparisons before their branches |
//! | `hoist` | invariant hoisting of integers |

mod before;
mod choose;
mod fold;
mod hoist;
mod join;
mod same;
mod split;

use crate::kernel::{Kernel, Stmt};
use crate::passes::{Stage, run_stage};

pub use hoist::hoist;

/// Maximum number of rounds of index set splitting.
const ROUNDS: usize = 12;

/// Maximum number of periods between a dividend and its remainder for the remainder to become a difference.
const MAX_WRAPS: i64 = 2;

/// Canonicalises the loops of `kernel`. `O(n d)` for loops nested `d` deep; splitting grows code by at most a constant
/// factor.
pub fn streamline(kernel: &mut Kernel) {
    run_stage(kernel, Stage::Loops, false);
}

/// Folds integers, comparisons and checks, and unrolls loops of one iteration.
pub(crate) fn fold(kernel: &mut Kernel) {
    if has_control(kernel) {
        fold::fold(kernel);
    }
}

/// Replaces loop-carried values by congruent ones.
pub(crate) fn merge_congruent(kernel: &mut Kernel) {
    if let Some(aliases) = has_control(kernel).then(|| same::same(kernel)).flatten() {
        fold::fold_aliases(kernel, aliases);
    }
}

/// Cuts loops where comparisons of their indices change, and folds what then is known, until nothing changes.
pub(crate) fn split_index_sets(kernel: &mut Kernel) {
    if !has_control(kernel) {
        return;
    }
    let mut room = split::room(kernel);
    for _ in 0..ROUNDS {
        if !split::split(kernel, &mut room) {
            break;
        }
        fold::fold(kernel);
    }
}

/// Collapses nests of loops that go through memory in one row.
pub(crate) fn collapse(kernel: &mut Kernel) {
    if has_control(kernel) {
        join::join(kernel);
    }
}

/// Moves comparisons next to their branches.
pub(crate) fn sink_comparisons(kernel: &mut Kernel) {
    if has_control(kernel) {
        before::move_comparisons(kernel);
    }
}

fn has_control(kernel: &Kernel) -> bool {
    kernel.body.iter().any(|s| !matches!(s, Stmt::Straight(_) | Stmt::Copy { .. }))
}
