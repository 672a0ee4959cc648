//! Loops distributed: what iterations add to several arrays, to each by other indices, is done in a nest for each.
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
//! Gradients of products look like that: iterations of the loop over `i` add to the same elements of one array, those of the loop
//! over `j` to the same of the other, so neither can run in lanes as it is. Apart from each other each is a product of
//! matrices, whose sums stay in registers, in lanes and in tiles.
//!
//! **In stretches** of some iterations, so that what is kept between is little, however many there are.
//!
//! **What is kept** is what is computed outside of the loops that only add; what is computed in them, and what is read from memory
//! that stays, is computed and read again. Memory that each iteration has for itself gets a place for each of a stretch.
//!
//! **Windows**: where several iterations add to one element, because its place is a sum of two indices, a nest goes over elements,
//! and one of the two becomes a sum. It looks beyond what is kept at both ends, where zeros are.
//!
//! ```text
//! for i in 0..n                          for p in 0..n + k - 1
//!   for l in 0..k                          sum = a[p]
//!     a[i + l] = a[i + l] + g * c[l]       for l in 0..k: sum = sum + kept[p - l] * c[l]
//!                                          a[p] = sum
//! ```
//!
//! **Its order in memory** is that of the loops, or the stretch's index last, where that is the one along which all else of the nest is next
//! to each other or the same.
//!
//! Elements are added to in another order, as with sums: only who allows that gets it.

mod find;
mod write;

use super::Spans;
use crate::events::{Event, events};
use crate::kernel::{Kernel, Order, Reg, Stmt};
use crate::lanes::rewrite::{Cutter, Loop};
use crate::prune::prune;
use crate::rebuild::each_statement;
use std::collections::BTreeSet;

/// Distributes loops of `kernel` where that pays. `O(n d)` for loops that nest `d` deep.
pub(super) fn distribute(kernel: &mut Kernel) {
    let flat = events(&kernel.body);
    let index = |begin: usize| if let Event::For { index, .. } = &flat[begin] { Some(*index) } else { None };
    let loops: BTreeSet<Reg> = Spans::of(&flat).loops().filter_map(|(begin, _)| index(begin)).collect();
    // Of what only one loop accesses the numbers stay right: what leaves it for a nest reads copies.
    let all = find::accesses(&flat);
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
        // What was computed for additions only.
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}
