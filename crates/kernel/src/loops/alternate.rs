//! Alternation of buffers: the next state of a loop becomes the current one without being copied.
//!
//! ```text
//! for t in 0..n                       for p in 0..n - n / 2
//!   store y[i] = .. load x[j]           store y[i] = .. load x[j]
//!   move len to x from y                if 2 p + 1 < n
//!                                         store x[i] = .. load y[j]
//!                                       else
//!                                         move len to x from y
//! ```
//!
//! A loop whose iterations read one buffer, write another and move that to the first does two iterations at once, the
//! second with both buffers exchanged. Nothing else may write to the first buffer, and the loop may not use the memory
//! of either for something else. What is moved was written in the same iteration ([`Stmt::Copy`]), so that it does not
//! matter what the other buffer held before.

use crate::events::{Event, walk};
use crate::kernel::{Buffer, BufferId, Carried, Choice, Class, Kernel, Order, Place, Reg, Stmt};
use crate::lanes::rewrite::{Copier, Copies, Cutter, Loop};
use crate::prune::prune;
use crate::rebuild::{each_loop, each_statement};
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of events that are duplicated. Longer code takes longer to compile than moving its state would.
const MAX_EVENTS: usize = 2048;

/// Maximum nesting of what is duplicated.
const MAX_DEPTH: usize = 64;

/// Pairs of buffers: the current state, the next one.
pub(super) type Pairs = Vec<(BufferId, BufferId)>;

/// Lets the buffers of loops alternate. `O(n d)` for loops nested `d` deep; the code grows by at most
/// [`MAX_EVENTS`] for each loop.
pub(crate) fn alternate(kernel: &mut Kernel) {
    let mut found = BTreeMap::new();
    each_loop(&kernel.body, |stmt| {
        let Stmt::For { index, order: Order::InOrder, body, .. } = stmt else { return false };
        let pairs = pairs(kernel, body);
        // Loops inside stay as they are, so that the code is not duplicated again.
        let is_found = !pairs.is_empty() && is_small(body);
        found.extend(is_found.then_some((*index, pairs)));
        is_found
    });
    if found.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut cutter = Cutter::new(kernel);
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } => match found.remove(&index) {
            Some(pairs) => cutter.alternating(Loop { index, count, carried, body }, &pairs, done),
            None => done.push(Stmt::For { index, count, carried, order: Order::InOrder, body }),
        },
        stmt => done.push(stmt),
    });
    prune(&mut body, kernel.regs.len(), &kernel.buffers);
    kernel.body = body;
}

/// Returns the buffers that the moves at the end of `body` connect, if they can alternate.
pub(super) fn pairs(kernel: &Kernel, body: &[Stmt]) -> Pairs {
    let moves = body.iter().rev().map_while(|stmt| match stmt {
        Stmt::Copy { to, from, len, is_move: true } => Some((to, from, len)),
        _ => None,
    });
    let is_whole =
        |(buffer, at): &(BufferId, Poly<Reg>), len: &Poly<Reg>| at.is_zero() && kernel.buffers[*buffer].len == *len;
    let mut pairs = Pairs::new();
    let mut members = BTreeSet::new();
    for (to, from, len) in moves {
        if !is_whole(to, len) || !is_whole(from, len) || !members.insert(to.0) || !members.insert(from.0) {
            return Pairs::new();
        }
        pairs.push((to.0, from.0));
    }
    if pairs.is_empty() {
        return pairs;
    }
    let of = |id: BufferId| match &kernel.buffers[id].place {
        Place::Workspace(at) => Some((kernel.buffers[id].class, at)),
        _ => None,
    };
    let memory: Vec<_> = members.iter().filter_map(|id| of(*id)).collect();
    let mut is_alone = true;
    for event in walk(&body[..body.len() - pairs.len()]) {
        event.for_each_access(|buffer, writes| {
            is_alone &= if members.contains(&buffer) {
                !writes || pairs.iter().all(|(current, _)| *current != buffer)
            } else {
                of(buffer).is_none_or(|place| !memory.contains(&place))
            };
        });
    }
    if is_alone { pairs } else { Pairs::new() }
}

/// Returns whether a body is short and flat enough to be duplicated.
pub(super) fn is_small(body: &[Stmt]) -> bool {
    let (mut depth, mut count) = (0, 0);
    walk(body).all(|event| {
        match event {
            Event::For { .. } | Event::While { .. } | Event::If { .. } => depth += 1,
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => depth -= 1,
            _ => {}
        }
        count += 1;
        depth <= MAX_DEPTH && count <= MAX_EVENTS
    })
}

impl Cutter<'_> {
    /// Emits a loop whose `pairs` of buffers alternate to `out`.
    fn alternating(&mut self, mut the: Loop, pairs: &Pairs, out: &mut Vec<Stmt>) {
        let moves = the.body.split_off(the.body.len() - pairs.len());
        let mut before = Vec::new();
        let (halves, _) = self.blocks(&the.count, 2, &mut before);
        let (number, even, odd) = (self.int(), self.int(), self.int());
        let by = Poly::var(number).scale(2);
        let as_they_are = BTreeMap::new();
        let mut first = self.copier(&the, by.clone(), even, &as_they_are);
        let mut body = vec![int(even, by.clone())];
        body.extend(first.block(&the.body));
        let now: Vec<Reg> = the.carried.iter().map(|c| first.of(c.next)).collect();

        let mut exchanged = self.renamed(&the.body);
        exchanged.extend(pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]));
        let by = by.add(&Poly::constant(1));
        let mut second = self.copier(&the, by.clone(), odd, &exchanged);
        second.map.extend(the.carried.iter().map(|c| c.var).zip(now.iter().copied()));
        let mut then = vec![int(odd, by.clone())];
        then.extend(second.block(&the.body));
        let next: Vec<Reg> = the.carried.iter().map(|c| second.of(c.next)).collect();

        let is_even = the.count.as_constant().is_some_and(|n| n % 2 == 0);
        let (count, next) = if is_even {
            body.append(&mut then);
            (halves, next)
        } else {
            let mut test = Vec::new();
            let (done, all) = (self.int_of(&mut test, by), self.int_of(&mut test, the.count.clone()));
            let condition = self.int_op(&mut test, Op::Lt, done, all);
            body.push(Stmt::Straight(test));
            let choices: Vec<Choice> = (next.into_iter().zip(&now))
                .map(|(then, otherwise)| Choice { var: self.kernel.regs.copy(then), then, otherwise: *otherwise })
                .collect();
            let next = choices.iter().map(|c| c.var).collect();
            body.push(Stmt::If { condition, then, otherwise: moves, choices });
            (the.count.sub(&halves), next)
        };
        let carried = the.carried.iter().zip(next).map(|(c, next)| Carried { next, ..*c }).collect();
        out.push(Stmt::Straight(before));
        out.push(Stmt::For { index: number, count, carried, order: Order::InOrder, body });
    }

    /// Returns new buffers for those of `body` that have their memory in turn, so that each has it once in a copy, too.
    fn renamed(&mut self, body: &[Stmt]) -> BTreeMap<BufferId, BufferId> {
        let mut by_place: BTreeMap<(bool, &Poly<Reg>), BTreeSet<BufferId>> = BTreeMap::new();
        let buffers = &self.kernel.buffers;
        for event in walk(body) {
            event.for_each_access(|id, _| {
                if let Buffer { class, place: Place::Workspace(at), .. } = &buffers[id] {
                    by_place.entry((*class == Class::Int, at)).or_default().insert(id);
                }
            });
        }
        let shared: Vec<BufferId> = by_place.into_values().filter(|ids| ids.len() > 1).flatten().collect();
        let buffers = &mut self.kernel.buffers;
        shared.into_iter().map(|id| (id, buffers.push(buffers[id].clone()))).collect()
    }

    /// Returns a copier of iteration `by`, whose number is in register `at`.
    fn copier<'a>(
        &'a mut self,
        the: &Loop,
        by: Poly<Reg>,
        at: Reg,
        buffers: &'a BTreeMap<BufferId, BufferId>,
    ) -> Copier<'a> {
        let map = BTreeMap::from([(the.index, at)]);
        Copier { regs: &mut self.kernel.regs, map, index: the.index, by, fresh: true, lane: None, buffers }
    }
}

/// Returns the computation of an integer.
fn int(dst: Reg, value: Poly<Reg>) -> Stmt {
    Stmt::Straight(vec![crate::kernel::Instr::Int { dst, value }])
}
