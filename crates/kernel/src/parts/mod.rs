//! Loops that run in parts, on threads.
//!
//! In: a kernel. Out: the same kernel with some of its outermost loops, those in a few branches included, cut into
//! [`PARTS`](crate::kernel::PARTS) parts, stretches of iterations one after the other, that a loop marked [`Order::Parts`] runs. It
//! is an ordinary kernel: what runs the parts one after the other computes the same bits as what runs them on any number of
//! threads, so every backend agrees.
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
//! **What may run at once** is what [`lanes::independence`](crate::lanes) finds: iterations that do not look at each other, or
//! only add. Control and addresses may differ as they like.
//!
//! **Sums** have one partial result a part: a fixed number, whatever the number of threads. What each iteration writes before
//! it reads, and nobody else looks at, is left as it is: whoever runs parts at once gives each thread its own
//! ([`split()`] tells which buffers those are). An array to which iterations add gets a private one, which is put away after
//! the part. They change the order of additions: only who allows that gets them.
//!
//! A part begins at a multiple of eight iterations, so that its loops in lanes have no rests but the last one's.
//!
//! | module | owns |
//! | --- | --- |
//! | `cut` | loops cut into parts |
//! | [`split`](mod@split) | a kernel as a list of kernels, those that run in parts on their own |

mod cut;
pub mod split;

pub use split::{Piece, Pieces, split};

use crate::events::events;
use crate::kernel::{Kernel, MAX_BRANCHES, Order, Stmt};
use crate::lanes::{Spans, cost, independence};
use std::collections::{BTreeMap, BTreeSet};

/// So many loops of a kernel run in parts at most: those whose iterations take longest.
pub const MAX_LOOPS: usize = 32;

/// A loop of a known number of iterations that takes less, in instructions, is not worth a second thread.
const LEAST_WORK: f64 = 4096.0;

/// Whether anything of `body`, a kernel's, runs in parts. Linear in its outermost statements and those of branches in it.
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

/// Cuts loops of `kernel` into parts; how many. `reorder`: whether sums may be added in another order. `O(n d)` for loops that
/// nest `d` deep. Before [`vectorise`](crate::vectorise()), which then cuts the loops of the parts for lanes.
pub fn parallelise(kernel: &mut Kernel, reorder: bool) -> usize {
    let plans = {
        let events = events(&kernel.body);
        let spans = Spans::of(&events);
        let legal = independence::legal(kernel, &events, &spans, reorder, Order::Parts, &BTreeSet::new());
        let mut found: Vec<_> = legal
            .into_iter()
            .filter_map(|(begin, plan)| {
                let crate::Event::For { index, count, .. } = &events[begin] else { return None };
                let time = cost::plain_time(&kernel.regs, &events[begin + 1..spans.end(begin)?]);
                let is_worth = count.as_constant().is_none_or(|n| n as f64 * time >= LEAST_WORK);
                is_worth.then_some((time, *index, plan))
            })
            .collect();
        // Stable: of those that take as long the first ones.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(MAX_LOOPS);
        found.into_iter().map(|(_, index, plan)| (index, plan)).collect::<BTreeMap<_, _>>()
    };
    cut::cut(kernel, plans)
}
