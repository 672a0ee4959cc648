//! Splitting of long code into functions, and the values that live across splits.
//!
//! In: events, their weights, the maximum weight of a function. Out: [`Pieces`]: properly nested ranges of events that
//! become functions, and a slot of the workspace for each value that one function computes and another uses.
//!
//! **Splitting.** Blocks are visited inner before outer. A block that weighs too much is split between its statements,
//! greedily from its beginning, so that each piece has at most the permitted weight; a piece then weighs 1, its call. A
//! statement never weighs much more than a function may, because its blocks are split first. Linear in the number of
//! events.
//!
//! **Slots.** A value lives from its definition to its last use, and to the end of each loop that uses but does not
//! define it. Values with disjoint live intervals share a slot.

use crate::facts::{Facts, Origin, for_each_use};
use chainrule_base::Arena;
use chainrule_kernel::{Event, Kernel, Reg};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Split of a kernel into functions.
pub struct Pieces {
    /// First event, and one past the last; ascending by the first.
    pub ranges: Vec<(usize, usize)>,
    /// Function that defines each register: 0 for the kernel's own, `k + 1` for piece `k`.
    pub home: Arena<Reg, usize>,
    /// Whether the defining function uses the register.
    pub used_at_home: Arena<Reg, bool>,
    /// Slot of a value that another function uses, in the workspace of its class.
    pub slot: Arena<Reg, Option<usize>>,
    /// Numbers of slots for doubles and for integers.
    pub n_slots: [usize; 2],
}

/// A statement of a block: first event, one past the last, weight.
type Item = (usize, usize, usize);

/// An open block, and the weight of the preceding blocks of its statement.
#[derive(Default)]
struct Open {
    start: usize,
    before: usize,
    items: Vec<Item>,
}

impl Pieces {
    /// Splits `events` into functions of about `limit` operations. `space` returns which of the two workspaces contains
    /// a register's slot, see [`space`](crate::language::space).
    pub fn new(
        kernel: &Kernel,
        events: &[Event<'_>],
        facts: &Facts,
        limit: usize,
        space: impl Fn(Reg) -> usize,
    ) -> Self {
        let n = kernel.regs.len();
        let mut this = Self {
            ranges: cut(events, facts, limit.max(1)),
            home: Arena::filled(n, 0),
            used_at_home: Arena::filled(n, false),
            slot: Arena::filled(n, None),
            n_slots: [0; 2],
        };
        this.place(kernel, events, facts, space);
        this
    }

    /// Finds the values that live across splits, and assigns slots to them.
    fn place(&mut self, kernel: &Kernel, events: &[Event<'_>], facts: &Facts, space: impl Fn(Reg) -> usize) {
        let n = kernel.regs.len();
        let loop_end = loop_ends(events);
        // For each register: its definition and loop depth, its last use, whether another function uses it.
        let mut defined: Arena<Reg, (usize, usize)> = Arena::filled(n, (0, 0));
        let mut last: Arena<Reg, usize> = Arena::filled(n, 0);
        let mut crosses: Arena<Reg, bool> = Arena::filled(n, false);
        let mut loops: Vec<usize> = Vec::new();
        let mut functions: Vec<(usize, usize)> = vec![(0, usize::MAX)];
        let mut next_piece = 0;
        let mut order: Vec<Reg> = Vec::new();
        for (at, event) in events.iter().enumerate() {
            functions.retain(|(_, end)| *end > at || *end == usize::MAX);
            if let Some((_, end)) = self.ranges.get(next_piece).filter(|range| range.0 == at) {
                next_piece += 1;
                functions.push((next_piece, *end));
            }
            let here = functions.last().map_or(0, |f| f.0);
            if !facts.is_written(event) {
                continue;
            }
            for_each_use(
                event,
                |r| facts.needed[r],
                |r| {
                    last[r] = last[r].max(loops.get(defined[r].1).map_or(at, |outermost| loop_end[*outermost]));
                    if self.home[r] == here {
                        self.used_at_home[r] = true;
                    } else {
                        crosses[r] = true;
                    }
                },
            );
            let mut define = |r: Reg, depth: usize| {
                defined[r] = (at, depth);
                self.home[r] = here;
                order.push(r);
            };
            let depth = loops.len();
            match event {
                Event::Instr(instr) => instr.dst().into_iter().for_each(|r| define(r, depth)),
                Event::For { index, carried, .. } => {
                    carried.iter().for_each(|c| define(c.var, depth));
                    define(*index, depth + 1);
                    loops.push(at);
                }
                Event::While { carried, .. } => {
                    carried.iter().for_each(|c| define(c.var, depth));
                    loops.push(at);
                }
                Event::EndFor { .. } | Event::EndWhile { .. } => {
                    loops.pop();
                }
                Event::EndIf { choices } => choices.iter().for_each(|c| define(c.var, depth)),
                _ => {}
            }
        }
        let mut free: [BinaryHeap<Reverse<usize>>; 2] = Default::default();
        let mut live: BinaryHeap<Reverse<(usize, Reg)>> = BinaryHeap::new();
        for r in order.into_iter().filter(|r| crosses[*r]) {
            if !matches!(facts.origin[r], Origin::Computed) {
                continue;
            }
            while let Some(Reverse((_, dead))) = live.peek().copied().filter(|Reverse((end, _))| *end < defined[r].0) {
                live.pop();
                free[space(dead)].extend(self.slot[dead].map(Reverse));
            }
            let class = space(r);
            let slot = free[class].pop().map_or(self.n_slots[class], |Reverse(slot)| slot);
            self.n_slots[class] = self.n_slots[class].max(slot + 1);
            self.slot[r] = Some(slot);
            live.push(Reverse((last[r], r)));
        }
    }
}

/// Returns the closing event of each opening event of a loop.
fn loop_ends(events: &[Event<'_>]) -> Vec<usize> {
    let mut ends = vec![0; events.len()];
    let mut open = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::For { .. } | Event::While { .. } => open.push(at),
            Event::EndFor { .. } | Event::EndWhile { .. } => {
                if let Some(start) = open.pop() {
                    ends[start] = at;
                }
            }
            _ => {}
        }
    }
    ends
}

fn cut(events: &[Event<'_>], facts: &Facts, limit: usize) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut stack = vec![Open::default()];
    for (at, event) in events.iter().enumerate() {
        let weight = usize::from(facts.is_written(event));
        match event {
            Event::Instr(_) | Event::Copy { .. } => {
                if let Some(open) = stack.last_mut() {
                    open.items.push((at, at + 1, weight));
                }
            }
            Event::For { .. } | Event::While { .. } | Event::If { .. } => {
                stack.push(Open { start: at, before: 1, items: Vec::new() });
            }
            Event::Test { .. } | Event::Else { .. } => {
                if let Some(open) = stack.last_mut() {
                    open.before += 1 + cut_block(&std::mem::take(&mut open.items), limit, &mut ranges);
                }
            }
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                if let (Some(open), Some(around)) = (stack.pop(), stack.last_mut()) {
                    let weight = open.before + cut_block(&open.items, limit, &mut ranges);
                    around.items.push((open.start, at + 1, weight));
                }
            }
        }
    }
    for open in stack {
        cut_block(&open.items, limit, &mut ranges);
    }
    ranges.sort_unstable();
    ranges
}

/// Splits a block; returns its weight afterwards.
fn cut_block(items: &[Item], limit: usize, ranges: &mut Vec<(usize, usize)>) -> usize {
    /// Maximum weight that is not worth a call.
    const SMALL: usize = 16;
    let total: usize = items.iter().map(|item| item.2).sum();
    if total <= limit {
        return total;
    }
    let mut weight_after = 0;
    let mut piece: Option<Item> = None;
    let mut close = |piece: Option<Item>| {
        if let Some((start, end, weight)) = piece {
            if weight > SMALL.min(limit / 4) {
                ranges.push((start, end));
                weight_after += 1;
            } else {
                weight_after += weight;
            }
        }
    };
    for item in items {
        piece = Some(match piece {
            Some((start, _, weight)) if weight + item.2 <= limit => (start, item.1, weight + item.2),
            before => {
                close(before);
                *item
            }
        });
    }
    close(piece);
    weight_after
}
