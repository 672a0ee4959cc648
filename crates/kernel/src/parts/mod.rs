//! Parallel loops, for threads.
//!
//! In: a kernel. Out: the kernel with some of its outermost loops, possibly in a few branches, cut into
//! [`PARTS`](crate::kernel::PARTS) chunks of consecutive iterations, in a loop marked [`Order::Parts`]. The result is
//! an ordinary kernel: sequential execution and any number of threads compute the same bits, so that every backend
//! agrees.
//!
//! ```text
//! for i in 0..n, s = a then s + f(i)      share = 8 * (n + 127) / 128
//!   f                                     for p in 0..16 in parts
//!                                           start = p * share
//!                                           left = max(n - start - share, 0)
//!                                           for j in 0..n - start - left, t = -0.0 then t + f(start + j)
//!                                           partial[p] = t
//!                                         s = a + sum of partial
//! ```
//!
//! **Independence** is that of [`lanes::independence`](crate::lanes): iterations are independent or only add. Control
//! flow and addresses may differ.
//!
//! **Sums** have one partial result a chunk: a fixed number, whatever the number of threads. Buffers private to an
//! iteration stay unchanged; a backend with threads gives each thread a copy ([`split()`] lists them). An array to
//! which iterations add, at the same elements or at others each, gets a private copy, which is saved after the chunk.
//! The order of additions changes, so the caller must allow it. Where an iteration may add to few of many elements, the
//! loop is also written as it was, for fewer iterations in a chunk than there are elements.
//!
//! A chunk begins at a multiple of eight iterations, so that only the last chunk has a remainder in lanes.
//!
//! | module | owns |
//! | --- | --- |
//! | `cut` | emission of parallel loops |
//! | [`split`](mod@split) | a kernel as a list of kernels, parallel loops on their own |

mod cut;
pub mod split;

pub use split::{Piece, Pieces, split};

use crate::events::events;
use crate::kernel::{Kernel, MAX_BRANCHES, Order, Stmt};
use crate::lanes::{Spans, cost, independence};
use chainrule_ops::Semantics;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of parallel loops of a kernel: those with the costliest iterations.
pub const MAX_LOOPS: usize = 32;

/// Minimum cost of a loop with a known trip count that is worth a second thread, in instructions.
const LEAST_WORK: f64 = 4096.0;

/// Returns whether a kernel's `body` has parallel loops. Linear in its outermost statements and those of branches
/// there.
#[must_use]
pub fn in_parts(body: &[Stmt]) -> bool {
    in_branches(body, MAX_BRANCHES)
}

fn in_branches(body: &[Stmt], n_branches: usize) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::For { order, .. } => *order == Order::Parts,
        Stmt::If { then, otherwise, .. } if n_branches > 0 => {
            [then, otherwise].iter().any(|arm| in_branches(arm, n_branches - 1))
        }
        _ => false,
    })
}

/// Makes loops of `kernel` parallel and returns their number. Algebraic semantics allow sums in another order. `O(n d)`
/// for loops nested `d` deep. Runs before [`vectorise`](crate::vectorise()), which cuts the loops of the chunks for
/// lanes.
pub fn parallelise(kernel: &mut Kernel, semantics: Semantics) -> usize {
    let plans = {
        let events = events(&kernel.body);
        let spans = Spans::of(&events);
        let legal = independence::legal(kernel, &events, &spans, semantics, Order::Parts, &BTreeSet::new());
        let mut found: Vec<_> = legal
            .into_iter()
            .filter_map(|(begin, plan)| {
                let crate::Event::For { index, count, .. } = &events[begin] else { return None };
                let time = cost::plain_time(&kernel.regs, &events[begin + 1..spans.end(begin)?]);
                let is_worth = count.as_constant().is_none_or(|n| n as f64 * time >= LEAST_WORK);
                is_worth.then_some((time, *index, plan))
            })
            .collect();
        // A stable sort keeps the first of equally costly loops.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(MAX_LOOPS);
        found.into_iter().map(|(_, index, plan)| (index, plan)).collect::<BTreeMap<_, _>>()
    };
    cut::cut(kernel, plans)
}
