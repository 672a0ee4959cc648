//! Predicted time of a finished kernel: for people, and to decide at run time whether threads pay.
//!
//! In: a kernel after all passes, its sizes if they are known, and the weights of a machine class. Out: the time of one
//! evaluation. The compiler chooses no code by it: choices compare forms of the same work by the sum of its weights
//! ([`time`](super::time)).
//!
//! **Resources.** Arithmetic, divisions, loads, stores, the issue of instructions, and the transfer of cache lines
//! overlap. An iteration of a loop, or a block of lanes, takes as long as what it demands of the resource that is busy
//! longest, and a little more for each other one ([`OVERLAP`]).
//!
//! **Recurrences.** An iteration takes at least the latency of the longest chain of instructions from a carried value
//! to its next one; code outside of loops that of its longest chain.
//!
//! **Cache lines.** Of an array larger than a cache, the part for which the cache has no room comes from the next one.
//! Each element that is accessed along the innermost loop costs its part of a line.

use super::Spans;
use super::cost::{self, BEGIN, LaneTime, Trips};
use super::time::{ENTRY, Stored};
use crate::addresses::split_constant;
use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, LANES, Order, Reg};
use crate::weights::Weights;
use chainrule_base::{Arena, Id, Poly};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Exponent of the norm of the demands: 1 for resources that wait for each other, infinite for independent ones.
const OVERLAP: f64 = 3.0;

/// Latency of a product, of a fused one, or of a load from the first cache, in cycles.
const LATENCY: f64 = 4.0;

/// Latency of a comparison, a selection, or an instruction on integers, in cycles.
const SHORT_LATENCY: f64 = 1.0;

/// Number of instructions that are issued in a cycle.
const ISSUED: f64 = 5.0;

/// Time of a division of integers, in cycles.
const DIVISION: f64 = 10.0;

/// Number of elements of a cache line.
const LINE: f64 = 8.0;

/// Maximum number of elements of an array whose stores are still on their way to the cache when they are loaded.
const ON_THE_WAY: f64 = 64.0;

/// Returns the predicted time of one evaluation, in nanoseconds, at `sizes`, in the order of [`Kernel::sizes`], or at
/// assumed sizes, on a machine with these weights. Of a branch on known sizes, the side that is taken counts; of other
/// branches, the slower one. Linear in the kernel.
#[must_use]
pub fn predicted_time(kernel: &Kernel, sizes: Option<&[i64]>, weights: &'static Weights) -> f64 {
    let events = events(&kernel.body);
    let spans = Spans::of(&events);
    let mut walk = Walk::new(kernel, Trips::at_or_assumed(kernel, &events, sizes), weights);
    let mut at = 0;
    while let Some(event) = events.get(at) {
        walk.event(event, || spans.end(at).map_or(&[][..], |end| &events[at..end]));
        at += 1;
    }
    walk.open.pop().map_or(0.0, |mut all| {
        // Nothing overlaps with the chains of the one evaluation.
        all.recurrence = all.since.values().copied().fold(0.0, f64::max);
        all.time(weights)
    }) * weights.unit_ns
}

/// Demand of the resources.
#[derive(Clone, Copy, Default, Debug)]
struct Demand {
    arithmetic: f64,
    /// Quotients and square roots.
    divisions: f64,
    loads: f64,
    stores: f64,
    issue: f64,
    lines: f64,
}

impl Demand {
    /// Returns the time until all are met.
    fn time(self, weights: &Weights) -> f64 {
        let all = [
            self.arithmetic,
            self.divisions,
            self.loads,
            self.stores,
            weights.pipeline.cycle * self.issue / ISSUED,
            self.lines,
        ];
        all.iter().map(|demand| demand.powf(OVERLAP)).sum::<f64>().powf(OVERLAP.recip())
    }
}

/// An open loop or branch.
#[derive(Default)]
struct Open {
    /// Index of a counted loop.
    index: Option<Reg>,
    trips: f64,
    /// Demand of one iteration, without the loops inside.
    demand: Demand,
    /// Time of the loops and branches inside, in one iteration.
    inside: f64,
    /// Time of the first side of a branch, at the second.
    then: Option<f64>,
    /// Whether the first side is taken, if known.
    holds: Option<bool>,
    /// Registers that follow from carried values, with the latency since the begin of the iteration.
    since: BTreeMap<Reg, f64>,
    /// Time of the recurrences of one iteration.
    recurrence: f64,
    /// Cache lines that an iteration has accessed: by buffer, addresses without their constants and these in lines.
    lines: BTreeSet<(BufferId, Poly<Reg>, i32)>,
    /// Whether it is a loop of whole blocks or a lane loop.
    is_lanes: bool,
}

impl Open {
    fn of(trips: f64) -> Self {
        Self { trips, ..Self::default() }
    }

    /// Returns the time of one iteration, or of the side at hand.
    fn one(&self, weights: &Weights) -> f64 {
        self.demand.time(weights).max(self.recurrence) + self.inside
    }

    fn time(&self, weights: &Weights) -> f64 {
        match (self.then, self.holds) {
            (None, _) => self.trips * self.one(weights),
            (Some(then), Some(true)) => then,
            (Some(_), Some(false)) => self.one(weights),
            (Some(then), None) => then.max(self.one(weights)),
        }
    }
}

/// Walk over the events of a kernel.
struct Walk<'k> {
    kernel: &'k Kernel,
    weights: &'static Weights,
    assumed: Trips,
    /// Time of a cache line of each buffer, and whether stores to it may be on their way when it is loaded.
    buffers: Vec<(f64, bool)>,
    open: Vec<Open>,
    stored: Stored,
    /// Lanes of the loop at hand, and its depth.
    lanes: Option<(LaneTime, usize)>,
}

impl<'k> Walk<'k> {
    fn new(kernel: &'k Kernel, assumed: Trips, weights: &'static Weights) -> Self {
        let zeros: u32 = kernel.zeros.iter().map(|zeros| zeros.which.count_ones()).sum();
        let all = Open { inside: f64::from(zeros) / LINE, ..Open::of(1.0) };
        let buffers = kernel.buffers.iter().map(|(_, buffer)| {
            let elements = assumed.of(&buffer.len);
            (line_time(8.0 * elements, weights), elements <= ON_THE_WAY)
        });
        let buffers = buffers.collect();
        Self { kernel, weights, assumed, buffers, open: vec![all], stored: Stored::default(), lanes: None }
    }

    fn regs(&self) -> &'k Arena<Reg, Class> {
        &self.kernel.regs
    }

    /// Follows an event; `body` returns its events up to the end of the loop that it opens.
    fn event<'e>(&mut self, event: &Event<'e>, body: impl Fn() -> &'e [Event<'e>])
    where
        'k: 'e,
    {
        let weights = self.weights;
        self.assumed.event(event);
        match event {
            Event::Instr(instr) => self.instr(instr),
            Event::Copy { to, from, len, .. } => {
                let lines = self.assumed.of(len) / LINE;
                let each = weights.pipeline.store.lanes + self.line(to.0) + self.line(from.0);
                self.inside(weights.pipeline.cycle * ENTRY + lines * each);
            }
            Event::For { index, count, order: Order::Lanes, .. } => {
                // A whole block has no jumps, and no masks.
                let is_whole = count.as_constant() == Some(LANES);
                let rounds = (self.assumed.of(count) / LANES as f64).ceil();
                let across = self.stored.block(body(), *index, |b| self.buffers[b.index()].1);
                self.inside(across + if is_whole { 0.0 } else { weights.pipeline.cycle * BEGIN });
                // What a strided element costs from further caches is that of its lines.
                self.lanes = Some((LaneTime::new(*index, weights, weights.strided), self.open.len()));
                self.open.push(Open { index: Some(*index), is_lanes: true, ..Open::of(rounds) });
            }
            Event::For { index, count, carried, .. } => {
                let since = carried.iter().map(|c| (c.var, 0.0)).collect();
                let trips = self.assumed.of(count);
                self.open.push(Open { index: Some(*index), since, ..Open::of(trips) });
            }
            Event::While { carried, .. } => {
                let since = carried.iter().map(|c| (c.var, 0.0)).collect();
                self.open.push(Open { since, ..Open::of(cost::TRIPS) });
            }
            Event::If { condition } => {
                // Chains lead through branches.
                let since = self.open.last().map(|around| around.since.clone()).unwrap_or_default();
                let index = self.open.last().and_then(|around| around.index);
                let holds = self.assumed.holds(*condition);
                self.open.push(Open { holds, since, index, ..Open::of(1.0) });
            }
            Event::Else { .. } => {
                if let Some(side) = self.open.last_mut() {
                    side.then = Some(side.one(weights));
                    side.demand = Demand::default();
                    side.inside = 0.0;
                }
            }
            Event::EndFor { carried, .. } | Event::EndWhile { carried } => {
                let Some(mut ended) = self.open.pop() else { return };
                if self.lanes.as_ref().is_some_and(|(_, depth)| *depth >= self.open.len()) {
                    self.lanes = None;
                }
                let chains = carried.iter().filter_map(|c| ended.since.get(&c.next));
                ended.recurrence = chains.fold(0.0, |most: f64, chain| most.max(*chain));
                // The index is increased, compared, and the jump is taken.
                let is_block = ended.is_lanes;
                ended.demand.issue += if is_block { 0.0 } else { 2.0 };
                let entry = if is_block { 0.0 } else { weights.pipeline.cycle * ENTRY };
                self.inside(entry + ended.time(weights));
            }
            Event::EndIf { choices } => {
                let Some(ended) = self.open.pop() else { return };
                let chain = |r: &Reg| ended.since.get(r).copied();
                let Some(around) = self.open.last_mut() else { return };
                for c in *choices {
                    let longest = [chain(&c.then), chain(&c.otherwise)].into_iter().flatten().reduce(f64::max);
                    around.since.extend(longest.map(|chain| (c.var, chain + weights.pipeline.cycle * SHORT_LATENCY)));
                }
                around.demand.issue += 2.0;
                around.inside += ended.time(weights);
            }
            Event::Test { .. } => {}
        }
    }

    /// Adds the time of something inside the loop at hand.
    fn inside(&mut self, time: f64) {
        if let Some(around) = self.open.last_mut() {
            around.inside += time;
        }
    }

    /// Returns the time of a line of a buffer.
    fn line(&self, buffer: BufferId) -> f64 {
        self.buffers[buffer.index()].0
    }

    fn instr(&mut self, instr: &Instr) {
        let weights = self.weights;
        let regs = self.regs();
        let is_in_lanes = self.lanes.is_some();
        let time = self.lanes.as_mut().map(|(lanes, _)| lanes.time(regs, instr, None));
        let is_outside = self.open.len() == 1;
        let Some(index) = self.open.last().map(|around| around.index) else { return };
        let Some(around) = self.open.last_mut() else { return };
        let demand = &mut around.demand;
        demand.issue += 1.0;
        match instr {
            Instr::Const { .. } => demand.issue -= 1.0,
            Instr::Int { .. } => demand.issue -= 0.5,
            Instr::IntOp { op: Op::Div | Op::Quot | Op::Mod, .. } => {
                demand.arithmetic += weights.pipeline.cycle * DIVISION;
            }
            Instr::IntOp { .. } => {}
            Instr::CheckIndex { .. } => demand.issue += time.map_or(1.0, |time| ISSUED * time),
            Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. } => {
                let is_load = matches!(instr, Instr::Load { .. });
                // Elements one by one, or adjacent ones.
                let slope = index.map(|index| at.split_linear(index).map(|(slope, _)| slope));
                let (each, lines) = match (&self.lanes, time) {
                    (Some((lanes, _)), Some(time)) => match lanes.slope(at) {
                        Some(0) => (weights.pipeline.broadcast, along(slope.as_ref())),
                        Some(1) => {
                            (if is_load { weights.pipeline.load.lanes } else { weights.pipeline.store.lanes }, 1.0)
                        }
                        _ if is_load => (time, LINE * along(slope.as_ref())),
                        _ => (LANES as f64 * weights.pipeline.store.plain, LINE * along(slope.as_ref())),
                    },
                    _ => (
                        if is_load { weights.pipeline.load.plain } else { weights.pipeline.store.plain },
                        along(slope.as_ref()),
                    ),
                };
                if is_load {
                    demand.loads += each;
                } else {
                    demand.stores += each;
                }
                let (part, offset) = split_constant(at);
                if around.lines.insert((*buffer, part, offset.div_euclid(LANES as i32))) {
                    demand.lines += lines * self.buffers[buffer.index()].0;
                }
            }
            Instr::Op { op, .. } => {
                let of = match op {
                    Op::Div | Op::Sqrt => &mut demand.divisions,
                    _ => &mut demand.arithmetic,
                };
                let weight = weights.operators.of(*op).unwrap_or(weights.cheap);
                *of += if is_in_lanes { weight.lanes } else { weight.plain * weights.plain_unit };
            }
            Instr::ToReal { .. } | Instr::ToInt { .. } | Instr::MulAdd { .. } => {
                demand.arithmetic += if is_in_lanes { 1.0 } else { weights.plain_unit };
            }
            Instr::External { .. } => demand.arithmetic += cost::instr_time(instr, None),
        }
        let mut longest = is_outside.then_some(0.0);
        instr.for_each_use(|r| {
            let since = around.since.get(&r).copied();
            longest = longest.into_iter().chain(since).reduce(f64::max);
        });
        if let (Some(dst), Some(since)) = (instr.dst(), longest) {
            around.since.insert(dst, since + latency(instr, weights));
        }
    }
}

/// Returns the number of lines that one iteration accesses, if the address has this slope along the innermost loop; an
/// address that follows from data is another line.
fn along(slope: Option<&Option<Poly<Reg>>>) -> f64 {
    match slope {
        None => 0.0,
        Some(None) => 1.0,
        Some(Some(slope)) => slope.as_constant().map_or(1.0, |by| (by.unsigned_abs() as f64 / LINE).min(1.0)),
    }
}

/// Returns the mean time of a cache line of an array of so many bytes: a smaller cache has the part for which it has
/// room.
fn line_time(bytes: f64, weights: &Weights) -> f64 {
    let mut before = 0.0;
    let more = weights.levels.iter().map(|(room, line)| {
        let more = line - before;
        before = *line;
        more * (1.0 - room / bytes).max(0.0)
    });
    more.sum()
}

/// Returns the latency of an instruction.
fn latency(instr: &Instr, weights: &Weights) -> f64 {
    let cycles = match instr {
        Instr::Op { op, .. } => match weights.operators.of(*op) {
            Some(weight) => 2.0 * weight.plain * weights.plain_unit / weights.pipeline.cycle + LATENCY,
            None if matches!(op, Op::Add | Op::Sub) => weights.pipeline.sum_latency / weights.pipeline.cycle,
            None if *op == Op::Mul => LATENCY,
            None => SHORT_LATENCY,
        },
        Instr::MulAdd { .. } | Instr::Load { .. } | Instr::ToReal { .. } | Instr::ToInt { .. } => LATENCY,
        _ => SHORT_LATENCY,
    };
    cycles * weights.pipeline.cycle
}

#[cfg(test)]
mod tests {
    use super::predicted_time;
    use crate::parse;
    use crate::weights::WEIGHTS;

    /// Returns the predicted time of a loop over `n` elements.
    fn time_at(n: i64, head: &str, body: &str) -> f64 {
        let text = format!(
            "kernel f\nsize n r0 = extent 0 of x\ninput x: real[r0] in b0\noutput y: real[r0] in b1\n{head}{body}"
        );
        predicted_time(&parse(&text).unwrap(), Some(&[n]), WEIGHTS)
    }

    #[test]
    fn loads_and_arithmetic_overlap() {
        let load = "  r2 = load b0[r1]\n";
        let sums = "  r3 = add r2, r2\n  r4 = add r2, r3\n  r5 = add r2, r4\n  r6 = add r2, r5\n";
        let time = |code: &str| time_at(1000, "for r1 in 0..r0\n", code);
        let [alone, with_loads] = [time(&format!("{load}{sums}")), time(&format!("{load}{sums}  r7 = load b1[r1]\n"))];
        assert!(with_loads < 1.2 * alone, "{with_loads} and {alone}");
    }

    #[test]
    fn recurrences_take_their_latency() {
        let sum = "  r3 = load b0[r1]\n  r4 = add r5, r3\nstore b1[0] = r5\n";
        let in_sequence = time_at(1000, "r2 = 0.0\nfor r1 in 0..r0, r5 = r2 then r4\n", sum);
        let product = "  r3 = load b0[r1]\n  r4 = add r3, r3\n  store b1[r1] = r4\n";
        let independent = time_at(1000, "for r1 in 0..r0\n", product);
        assert!(in_sequence > 2.0 * independent, "{in_sequence} and {independent}");
    }

    #[test]
    fn code_outside_of_loops_takes_the_latency_of_its_chain() {
        let load = "r1 = load b0[0]\nr2 = add r1, r1\n";
        let chain = time_at(1, load, "r3 = add r2, r2\nr4 = add r3, r3\nstore b1[0] = r4\n");
        let wide = time_at(1, load, "r3 = add r1, r1\nr4 = add r1, r1\nstore b1[0] = r4\n");
        assert!(chain > 1.5 * wide, "{chain} and {wide}");
    }

    #[test]
    fn arrays_beyond_a_cache_take_longer() {
        let copy = "    r3 = load b0[8*r1 + r2]\n    store b1[8*r1 + r2] = r3\n";
        let each = |n: i64| time_at(n, "for r1 in 0..r0\n  for r2 in 0..8 at once\n", copy) / n as f64;
        let times = [1 << 10, 1 << 15, 1 << 20, 1 << 25].map(each);
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    }
}
