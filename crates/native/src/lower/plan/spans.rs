//! Live intervals: the registers in use in a range of events.
//!
//! In: intervals of events, each with the registers in use. Out: for any interval, the registers in use somewhere in
//! it. Both take `O(log n)` for `n` events, for any number of registers and intervals: a binary tree over the events,
//! each node of which knows the registers in use in all and in some of its events.

use std::iter::successors;

/// Segment tree: its root is node 1, the children of node `i` are `2 i` and `2 i + 1`, the last nodes are the events.
pub(in crate::lower) struct Spans {
    nodes: Vec<Node>,
    n_leaves: usize,
}

/// Registers as bits. Registers in use throughout a node are not recorded in its descendants.
#[derive(Clone, Copy, Default)]
struct Node {
    throughout: u32,
    somewhere: u32,
}

impl Spans {
    /// Returns a tree of unused registers for events up to `last`.
    pub(in crate::lower) fn new(last: usize) -> Self {
        let n_leaves = (last + 1).next_power_of_two();
        Self { nodes: vec![Node::default(); 2 * n_leaves], n_leaves }
    }

    /// Marks `registers` as used in an interval, both ends inclusive.
    pub(in crate::lower) fn take(&mut self, from: u32, to: u32, registers: u32) {
        let (first, last) = self.leaves(from, to);
        for_each_inside(first, last, |i| {
            self.nodes[i].throughout |= registers;
            self.nodes[i].somewhere |= registers;
        });
        above(first).chain(above(last)).for_each(|i| self.nodes[i].somewhere |= registers);
    }

    /// Returns the registers in use in some event of an interval, both ends inclusive.
    pub(in crate::lower) fn taken(&self, from: u32, to: u32) -> u32 {
        let (first, last) = self.leaves(from, to);
        let mut all = 0;
        for_each_inside(first, last, |i| all |= self.nodes[i].somewhere);
        above(first).chain(above(last)).for_each(|i| all |= self.nodes[i].throughout);
        all
    }

    fn leaves(&self, from: u32, to: u32) -> (usize, usize) {
        (self.n_leaves + from as usize, self.n_leaves + to as usize)
    }
}

/// Returns the ancestors of a node.
fn above(node: usize) -> impl Iterator<Item = usize> {
    successors(Some(node / 2), |i| Some(i / 2)).take_while(|i| *i > 0)
}

/// Calls `see` for the largest nodes whose union is an interval of leaves.
fn for_each_inside(first: usize, last: usize, mut see: impl FnMut(usize)) {
    let (mut low, mut high) = (first, last + 1);
    while low < high {
        if low % 2 == 1 {
            see(low);
            low += 1;
        }
        if high % 2 == 1 {
            high -= 1;
            see(high);
        }
        (low, high) = (low / 2, high / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::Spans;

    #[test]
    fn overlapping_intervals_are_taken() {
        for n in [0_u32, 1, 2, 6, 7, 8, 33] {
            let mut spans = Spans::new(n as usize);
            let mut all: Vec<(u32, u32, u32)> = Vec::new();
            let mut state = n + 1;
            let mut draw = |bound: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 16) % bound
            };
            for k in 0..20 {
                for from in 0..=n {
                    for to in from..=n {
                        let overlap = all.iter().filter(|(first, last, _)| *first <= to && from <= *last);
                        assert_eq!(spans.taken(from, to), overlap.fold(0, |taken, (.., bits)| taken | bits));
                    }
                }
                let from = draw(n + 1);
                let to = from + draw(n - from + 1);
                spans.take(from, to, 1 << k);
                all.push((from, to, 1 << k));
            }
        }
    }
}
