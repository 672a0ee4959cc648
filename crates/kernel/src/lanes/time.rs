//! Estimate of the time of a finished kernel, to choose between kernels of one function.
//!
//! In: a kernel after all passes. Out: the time of one evaluation, in units of one cheap instruction, by the cost model
//! for vectorisation (`cost`). Sizes that are known only at run time have an assumed value, so that the estimates of
//! kernels of fixed size are the ones to compare.

use super::Spans;
use super::cost::{self, BEGIN, Trips, instr_time, time_of};
use crate::addresses::split_constant;
use crate::events::{Event, events};
use crate::kernel::{BufferId, Instr, Kernel, LANES, Order, Reg};
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// Cost of each execution of a loop or a branch: its last jump is often mispredicted.
pub(super) const ENTRY: f64 = 5.0;

/// Cost of each iteration in addition to its body: the index is increased and compared.
const STEP: f64 = 1.0;

/// Cost of a load in lanes of elements that several stores in lanes wrote: it waits until these are in the cache.
const ACROSS: f64 = 30.0;

/// Number of elements that are copied or zeroed in the time of one instruction.
const AT_ONCE: f64 = 4.0;

/// Returns the estimated time of one evaluation. Of a branch, the slower side counts. Linear in the kernel.
#[must_use]
pub fn time(kernel: &Kernel) -> f64 {
    let events = events(&kernel.body);
    let mut assumed = Trips::new(kernel, &events);
    let spans = Spans::of(&events);
    let zeros: u32 = kernel.zeros.iter().map(|zeros| zeros.which.count_ones()).sum();
    let mut open = vec![Open { one: f64::from(zeros) / AT_ONCE, ..Open::of(1.0, 0.0) }];
    let mut stored = Stored::default();
    let mut at = 0;
    while let Some(event) = events.get(at) {
        assumed.event(event);
        let mut add = |time: f64| {
            if let Some(inside) = open.last_mut() {
                inside.one += time;
            }
        };
        at += 1;
        match event {
            Event::Instr(instr) => add(instr_time(instr, None)),
            Event::Copy { len, .. } => add(ENTRY + assumed.of(len) / AT_ONCE),
            Event::For { index, count, order: Order::Lanes, .. } => {
                let end = spans.end(at - 1).unwrap_or(at);
                let body = &events[at..end];
                // A whole block has no jumps, and no masks.
                let begin = if count.as_constant() == Some(LANES) { 0.0 } else { BEGIN };
                let rounds = (assumed.of(count) / LANES as f64).ceil();
                let block = time_of(&kernel.regs, body, Some(*index), &assumed) + stored.block(body, *index, |_| true);
                add(begin + rounds * block);
                at = end + 1;
            }
            Event::For { count, .. } => open.push(Open::of(assumed.of(count), STEP)),
            Event::While { .. } => open.push(Open::of(cost::TRIPS, STEP)),
            Event::If { condition } => open.push(Open { holds: assumed.holds(*condition), ..Open::of(1.0, 0.0) }),
            Event::Else { .. } => {
                if let Some(inside) = open.last_mut() {
                    inside.then = Some(std::mem::take(&mut inside.one));
                }
            }
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                if let (Some(inside), Some(around)) = (open.pop(), open.last_mut()) {
                    around.one += ENTRY + inside.time();
                }
            }
            Event::Test { .. } => {}
        }
    }
    open.first().map_or(0.0, |all| all.one)
}

/// An open loop or branch.
struct Open {
    trips: f64,
    /// Time of one iteration, or of the side at hand.
    one: f64,
    /// Time of the first side, at the second.
    then: Option<f64>,
    /// Whether the first side is taken, if known.
    holds: Option<bool>,
}

impl Open {
    fn of(trips: f64, one: f64) -> Self {
        Self { trips, one, then: None, holds: None }
    }

    fn time(&self) -> f64 {
        match (self.then, self.holds) {
            (None, _) => self.trips * self.one,
            (Some(then), Some(true)) => then,
            (Some(_), Some(false)) => self.one,
            (Some(then), None) => then.max(self.one),
        }
    }
}

/// Blocks of lanes that were stored: by buffer, the offsets of their first elements from whole blocks.
#[derive(Default)]
pub(super) struct Stored(BTreeMap<BufferId, BTreeSet<i64>>);

impl Stored {
    /// Records the stores of a block of lanes over `index`; returns the waiting time of its loads from buffers that
    /// satisfy `waits`.
    pub(super) fn block(&mut self, body: &[Event<'_>], index: Reg, waits: impl Fn(BufferId) -> bool) -> f64 {
        let offset = |at: &Poly<Reg>| {
            let is_adjacent = at.split_linear(index).is_some_and(|(step, _)| step.as_constant() == Some(1));
            is_adjacent.then(|| i64::from(split_constant(at).1).rem_euclid(LANES))
        };
        let mut time = 0.0;
        for event in body {
            match event {
                Event::Instr(Instr::Load { buffer, at, .. }) if waits(*buffer) => {
                    let is_across = |offsets: &BTreeSet<i64>| offset(at).is_some_and(|at| !offsets.contains(&at));
                    time += if self.0.get(buffer).is_some_and(is_across) { ACROSS } else { 0.0 };
                }
                Event::Instr(Instr::Store { buffer, at, .. }) => {
                    self.0.entry(*buffer).or_default().extend(offset(at));
                }
                _ => {}
            }
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::time;
    use crate::parse;

    fn time_of(body: &str) -> f64 {
        let text = format!("kernel f\ninput x: real[32] in b0\noutput y: real[32] in b1\n{body}");
        time(&parse(&text).unwrap())
    }

    #[test]
    fn loops_cost_their_iterations_and_lanes_an_eighth_of_them() {
        let one = time_of("r0 = load b0[0]\nr1 = sin r0\nstore b1[0] = r1\n");
        let body = "  r1 = load b0[r0]\n  r2 = sin r1\n  store b1[r0] = r2\n";
        let scalar = time_of(&format!("for r0 in 0..32\n{body}"));
        let lanes = time_of(&format!("for r0 in 0..8 at once\n{body}"));
        let few = time_of(&format!("for r0 in 0..3 at once\n{body}"));
        assert!(scalar > 32.0 * one && scalar < 34.0 * one + 40.0, "{scalar} of {one}");
        assert!(lanes < 2.0 * one && lanes < few && few < lanes + 10.0, "{lanes} and {few} of {one}");
    }

    #[test]
    fn loads_across_stored_blocks_wait() {
        let copy = |offset: i64| {
            time_of(&format!(
                "for r0 in 0..8 at once\n  r1 = load b0[r0]\n  store b1[r0] = r1\n\
                 for r2 in 0..8 at once\n  r3 = load b1[r2 + {offset}]\n  store b1[r2 + {offset}] = r3\n"
            ))
        };
        assert!(copy(3) > copy(8) + 10.0, "{} and {}", copy(3), copy(8));
    }

    #[test]
    fn the_slower_side_of_a_branch_counts() {
        let branch = |then: &str, otherwise: &str| {
            let side = |code: &str| code.replace('\n', "\n  ").trim_end().to_owned();
            let (then, otherwise) = (side(then), side(otherwise));
            time_of(&format!(
                "r0 = load b0[0]\nr1 = load b0[1]\nr2 = lt r0, r1\nif r2\n  {then}\nelse\n  {otherwise}\nr9 = r3 | r4\nstore b1[0] = r9\n"
            ))
        };
        let (slow, quick) = ("r3 = exp r0\n", "r4 = add r0, r1\n");
        let both = branch(slow, quick);
        assert_eq!(both, branch("r3 = add r0, r1\n", "r4 = exp r0\n"));
        assert!(both > branch("r3 = add r0, r1\n", quick) + 10.0);
    }
}
