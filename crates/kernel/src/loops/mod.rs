//! Loops made plain: branches that go by the index are taken out of them, what is known before running is not asked, and
//! what is the same in all iterations is done once.
//!
//! In: a kernel as lowering makes it. Out: one that computes the same bits with fewer branches and checks in its loops. It
//! comes before [`lanes`](crate::lanes), which want bodies without branches.
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
//! | `split` | loops cut where a comparison with the index changes (index set splitting) |
//! | `fold` | what is known before running: constants, comparisons, checks, loops of one iteration |
//! | `same` | numbers that loops carry twice |
//! | `join` | nested loops that are one |
//! | `choose` | branches with little in them: both sides, and a choice |
//! | `before` | comparisons right before the branches that go by them |
//! | `hoist` | integers that are the same in all iterations |

mod before;
mod choose;
mod fold;
mod hoist;
mod join;
mod same;
mod split;

use crate::kernel::{Kernel, Stmt};

pub use hoist::hoist;

/// Loops are cut so often at most, one in the other.
const ROUNDS: usize = 6;

/// Makes the loops of `kernel` plain. `O(n d)` for loops that nest `d` deep; what is cut grows by a constant factor at most.
pub fn streamline(kernel: &mut Kernel) {
    if !has_control(kernel) {
        return;
    }
    fold::fold(kernel);
    if let Some(aliases) = same::same(kernel) {
        fold::fold_aliases(kernel, aliases);
    }
    let mut room = split::room(kernel);
    for _ in 0..ROUNDS {
        if !split::split(kernel, &mut room) {
            break;
        }
        fold::fold(kernel);
    }
    join::join(kernel);
    before::move_comparisons(kernel);
}

fn has_control(kernel: &Kernel) -> bool {
    kernel.body.iter().any(|s| !matches!(s, Stmt::Straight(_) | Stmt::Copy { .. }))
}
