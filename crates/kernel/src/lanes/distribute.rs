//! Loop distribution: updates of several arrays with different indices get a nest each.
//!
//! ```text
//! for i in 0..n                          for s in 0..(n + 31) / 32, i = 32 s + t
//!   for j in 0..m                          for t in 0..min(32, n - 32 s)
//!     g = f(i, j)                            for j in 0..m
//!     for l in 0..k                            kept[t, j] = f(i, j)
//!       a[i, l] = a[i, l] + g * c[l, j]      for t, for l
//!       c'[l, j] = c'[l, j] + g * a'[i, l]     sum = a[i, l]
//!                                              for j: sum = sum + kept[t, j] * c[l, j]
//!                                              a[i, l] = sum
//!                                            for l, for j
//!                                              sum = c'[l, j]
//!                                              for t: sum = sum + kept[t, j] * a'[i, l]
//!                                              c'[l, j] = sum
//! ```
//!
//! Gradients of products have this form: iterations of the loop over `i` add to the same elements of one array,
//! iterations of the loop over `j` to the same elements of the other, so that neither loop can run in lanes. After
//! distribution each nest is a matrix product, whose sums stay in registers, in lanes and in tiles.
//!
//! **Stretches** of a bounded number of iterations limit the memory for saved values.
//!
//! **Saved values** are those computed outside of the loops that only add. Values computed inside them, and loads from
//! memory that is not written, are recomputed. Private memory of an iteration gets a copy for each iteration of a
//! stretch.
//!
//! **Windows**: if several iterations add to one element because its index is a sum of two loop indices, the nest
//! iterates over elements, and one of the two loops becomes a sum. It reads beyond the saved values at both ends, where
//! zeros are.
//!
//! ```text
//! for i in 0..n                          for p in 0..n + k - 1
//!   for l in 0..k                          sum = a[p]
//!     a[i + l] = a[i + l] + g * c[l]       for l in 0..k: sum = sum + kept[p - l] * c[l]
//!                                          a[p] = sum
//! ```
//!
//! **Layout of saved values**: the order of the loops, or the stretch's index last if the other accesses of the nest
//! are contiguous or uniform along it.
//!
//! The order of additions changes, as with sums, so the caller must allow it.

mod find;
mod write;

use super::Spans;
use crate::events::{Event, events};
use crate::kernel::{Kernel, Order, Reg, Stmt};
use crate::lanes::rewrite::{Cutter, Loop};
use crate::mentions::Mentions;
use crate::prune::prune;
use crate::rebuild::each_statement;
use std::collections::BTreeSet;

/// Distributes loops of `kernel` where that pays. `O(n d)` for loops that nest `d` deep.
pub(crate) fn distribute(kernel: &mut Kernel) {
    let flat = events(&kernel.body);
    let index = |begin: usize| if let Event::For { index, .. } = &flat[begin] { Some(*index) } else { None };
    let loops: BTreeSet<Reg> = Spans::of(&flat).loops().filter_map(|(begin, _)| index(begin)).collect();
    // The counts stay valid for buffers that only one loop accesses: distributed nests read copies.
    let all = Mentions::of(&kernel.body);
    let mut body = std::mem::take(&mut kernel.body);
    let mut any = false;
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if loops.contains(&index) => {
            let the = Loop { index, count, carried, body };
            match find::distribution(kernel, &all, &the) {
                Some(found) => {
                    any = true;
                    write::write(&mut Cutter::new(kernel), the, &found, done);
                }
                None => done.push(the.in_order()),
            }
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
    if any {
        // Remove code that only the moved additions used.
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}
