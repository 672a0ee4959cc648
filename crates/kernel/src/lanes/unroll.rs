//! Unrolling of loops along rows inside of lane loops.
//!
//! The lanes of a loop over rows read elements of different rows, one row each. A loop along the rows reads adjacent
//! elements of every lane. Four of its iterations at once read a square of four lanes by four elements, which backends
//! load in rows and transpose, instead of one element at a time.
//!
//! ```text
//! for l in 0..8 at once                 for l in 0..8 at once
//!   for k in 0..d, s = 0                  for k in 0..d - 4 (d/4), s = 0
//!     s = s + x[d l + k] * b[k]             ..
//!                                         for g in 0..d/4, t = s
//!                                           t = t + x[d l + r + 4 g] * b[r + 4 g]
//!                                           t = t + x[d l + r + 4 g + 1] * b[r + 4 g + 1]
//!                                           ..
//! ```
//!
//! Invariant: iterations keep their order, so every number keeps its bits. The remainder comes first.

use super::rewrite::{Copier, Copies, Cutter, Loop, reads};
use crate::events::{Event, events};
use crate::kernel::{Class, Instr, Kernel, LANES, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_base::{Arena, Poly};
use std::collections::{BTreeMap, BTreeSet};

/// Number of iterations that become one: the elements of a lane that one vector of four lanes holds.
const TIMES: i64 = 4;

/// Maximum number of instructions of an iteration.
const MAX_BODY: usize = 24;

/// Unrolls loops along rows in the lane loops of `kernel`. Linear in its size.
pub(crate) fn unroll(kernel: &mut Kernel) {
    let along = along_rows(kernel);
    if along.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut cutter = Cutter::new(kernel);
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if along.contains(&index) => {
            cutter.unrolled(&Loop { index, count, carried, body }, done);
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
}

/// Returns the innermost loops in lane loops of whole blocks that read adjacent elements of rows, by their indices.
fn along_rows(kernel: &Kernel) -> BTreeSet<Reg> {
    let mut found = BTreeSet::new();
    let events = events(&kernel.body);
    // Index and end of the lane loop at hand.
    let mut lane: Option<Reg> = None;
    let mut open: Vec<Reg> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::For { index, count, order, .. } => {
                if *order == Order::Lanes {
                    lane = (count.as_constant() == Some(LANES)).then_some(*index);
                } else if let Some(lane) = lane
                    && is_along_rows(kernel, &events[at..], *index, lane)
                {
                    found.insert(*index);
                }
                open.push(*index);
            }
            Event::EndFor { .. } => {
                let ended = open.pop();
                lane = lane.filter(|_| ended != lane);
            }
            _ => {}
        }
    }
    found
}

/// Returns whether the loop over `index`, which begins with the first of `events`, reads elements that are adjacent
/// along it and in different rows along `lane`.
fn is_along_rows(kernel: &Kernel, events: &[Event<'_>], index: Reg, lane: Reg) -> bool {
    instrs(&kernel.regs, events).is_some_and(|instrs| instrs.iter().any(|instr| is_apart(kernel, instr, index, lane)))
}

/// Returns the instructions of the loop that begins with the first of `events`, if it can be unrolled: it contains
/// nothing else, few of them, and carries numbers only.
pub(super) fn instrs<'k>(classes: &Arena<Reg, Class>, events: &[Event<'k>]) -> Option<Vec<&'k Instr>> {
    let Event::For { carried, count, .. } = events.first()? else { return None };
    let is_instr = |event: &Event<'k>| if let Event::Instr(instr) = event { Some(*instr) } else { None };
    let body: Vec<&Instr> = events[1..].iter().take(MAX_BODY + 1).map_while(is_instr).collect();
    let is_innermost = matches!(events.get(1 + body.len()), Some(Event::EndFor { .. }));
    let are_numbers = carried.iter().all(|c| classes[c.var] == Class::Real);
    let is_short = body.len() <= MAX_BODY && count.as_constant().is_none_or(|n| n >= TIMES);
    (is_innermost && are_numbers && is_short).then_some(body)
}

/// Returns whether an instruction loads an element that is adjacent along `index` and in different rows along `lane`.
pub(super) fn is_apart(kernel: &Kernel, instr: &Instr, index: Reg, lane: Reg) -> bool {
    let Instr::Load { dst, at, .. } = instr else { return false };
    let is_far = |slope: Poly<Reg>| slope.as_constant().is_none_or(|c| c.abs() > 1);
    kernel.regs[*dst] == Class::Real
        && is_adjacent(at, index)
        && at.split_linear(lane).is_some_and(|(slope, _)| is_far(slope))
}

/// Returns whether elements at `at` are adjacent along `index`.
pub(super) fn is_adjacent(at: &Poly<Reg>, index: Reg) -> bool {
    at.split_linear(index).is_some_and(|(slope, _)| slope.as_constant() == Some(1))
}

impl Cutter<'_> {
    /// Emits a loop unrolled to `out`.
    fn unrolled(&mut self, the: &Loop, out: &mut Vec<Stmt>) {
        let (groups, first, mut carried) = self.remainder_first(the, TIMES, out);
        let group = self.int();
        let mut code = Vec::new();
        let mut now: Vec<Reg> = carried.iter().map(|c| c.var).collect();
        for t in 0..TIMES {
            let by = first.add(&Poly::var(group).scale(TIMES)).add(&Poly::constant(t));
            let mut map: BTreeMap<Reg, Reg> = carried.iter().map(|c| c.var).zip(now.iter().copied()).collect();
            if reads(&the.body, the.index) {
                map.insert(the.index, self.int_of(&mut code, by.clone()));
            }
            let (regs, buffers) = (&mut self.kernel.regs, BTreeMap::new());
            let mut copier = Copier { regs, map, index: the.index, by, fresh: true, lane: None, buffers: &buffers };
            for stmt in copier.block(&the.body) {
                if let Stmt::Straight(instrs) = stmt {
                    code.extend(instrs);
                }
            }
            now = carried.iter().map(|c| copier.of(c.next)).collect();
        }
        for (c, next) in carried.iter_mut().zip(now) {
            c.next = next;
        }
        let body = vec![Stmt::Straight(code)];
        out.push(Stmt::For { index: group, count: groups, carried, order: Order::InOrder, body });
    }
}
