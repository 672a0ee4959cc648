//! Selection of loops to tile: those for which many loads or updates are shared by several iterations.

use super::{Nested, Tile, Tiles};
use crate::events::Event;
use crate::kernel::{Class, Instr, Kernel, Order, Reg};
use crate::lanes::cost::{TRIPS, instr_time};
use crate::lanes::panel::Panels;
use crate::lanes::{Plan, Spans};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of iterations in a tile.
const MOST: i64 = 4;

/// Maximum number of concurrent sums. They stay in registers, of which processors with AVX-512 have twice as many.
const MAX_SUMS: i64 = 16;

/// Maximum number of instructions of a tile.
const MAX_TILED: i64 = 512;

/// Tiling pays if at most this fraction of the time remains.
const WORTH: f64 = 0.75;

/// Returns the loops of `kernel` to tile if loops are cut as `chosen`; `legal` holds the loops with independent
/// iterations. Linear in `events` for each loop that contains others.
pub(in crate::lanes) fn choose(
    kernel: &Kernel,
    events: &[Event<'_>],
    spans: &Spans,
    legal: &BTreeMap<usize, Plan>,
    chosen: &BTreeMap<Reg, Plan>,
) -> Tiles {
    let mut found: Vec<(f64, Nested, Tile)> = Vec::new();
    let mut open: Vec<Nested> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::For { index, .. } => {
                let Some(end) = spans.end(at) else { continue };
                open.push(Nested { begin: at, end, index: *index });
                if let Some(plan) = legal.get(&at).filter(|_| !chosen.contains_key(index)) {
                    let candidate = Candidate { kernel, events, spans, the: open[open.len() - 1], plan };
                    found.extend(candidate.tile(&open, chosen));
                }
            }
            Event::EndFor { .. } => {
                open.pop();
            }
            _ => {}
        }
    }
    // The best of nested loops.
    found.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let mut taken: Vec<Nested> = Vec::new();
    let mut tiles = Tiles::new();
    for (_, the, tile) in found {
        if taken.iter().all(|other| the.end < other.begin || other.end < the.begin) {
            taken.push(the);
            tiles.insert(the.index, tile);
        }
    }
    tiles
}

/// A loop that may be tiled.
struct Candidate<'c, 'k> {
    kernel: &'k Kernel,
    events: &'c [Event<'k>],
    spans: &'c Spans,
    the: Nested,
    plan: &'c Plan,
}

/// An innermost loop.
struct Inner<'p> {
    the: Nested,
    /// The lane loop: an enclosing loop, or itself.
    cut: Nested,
    plan: &'p Plan,
    /// Number of executions for one iteration of the candidate.
    times: f64,
}

impl Candidate<'_, '_> {
    /// Returns its tiling and the remaining fraction of the time, if tiling is legal and pays. `open` holds the loops
    /// around it and itself.
    fn tile(&self, open: &[Nested], chosen: &BTreeMap<Reg, Plan>) -> Option<(f64, Nested, Tile)> {
        let Plan { private, accumulators, .. } = self.plan;
        if !private.is_empty() || !accumulators.is_empty() || !self.ends_with_sums() {
            return None;
        }
        let inner = self.inner(open, chosen)?;
        let sums = inner.iter().map(|inner| self.n_sums(&inner.the) * inner.plan.blocks).max()?;
        let of = (MAX_SUMS / sums).min(MOST);
        let Event::For { count, .. } = &self.events[self.the.begin] else { return None };
        let blocks = inner.iter().map(|inner| inner.plan.blocks).max()?;
        let n_instrs = (self.the.end - self.the.begin) as i64 * of * blocks;
        if of < 2 || count.as_constant().is_some_and(|n| n < of) || n_instrs > MAX_TILED {
            return None;
        }
        let by_tile = self.varying(self.the.begin, self.the.end, self.the.index);
        if !self.adds_evenly(&by_tile) {
            return None;
        }
        let (before, after) = inner.iter().fold((0.0, 0.0), |(before, after), inner| {
            let (one, other) = self.times(inner, of, &by_tile);
            (before + one, after + other)
        });
        if after > WORTH * before {
            return None;
        }
        let panels = match &inner[..] {
            [one] if self.plan.scattered.is_empty() => {
                Panels::of(self.kernel, self.events, &self.the, (&one.cut, one.plan), &one.the)
            }
            _ => None,
        };
        let added = self.plan.scattered.clone();
        Some((after / before, self.the, Tile { of, added, panels }))
    }

    fn body(&self) -> &[Event<'_>] {
        &self.events[self.the.begin + 1..self.the.end]
    }

    /// Returns whether its carried values are used only after all inner loops.
    fn ends_with_sums(&self) -> bool {
        let Event::For { carried, .. } = &self.events[self.the.begin] else { return false };
        let last = self.body().iter().rposition(|event| matches!(event, Event::EndFor { .. })).unwrap_or(0);
        let mut reads = false;
        for event in &self.body()[..=last] {
            event.for_each_use(|r| reads |= carried.iter().any(|c| c.var == r));
        }
        !reads
    }

    /// Returns the innermost loops, if the candidate contains only loops and instructions, and each innermost loop has
    /// a lane loop.
    fn inner<'p>(&self, open: &[Nested], chosen: &'p BTreeMap<Reg, Plan>) -> Option<Vec<Inner<'p>>> {
        let mut inner = Vec::new();
        let mut around: Vec<Nested> = open.to_vec();
        let mut is_innermost = false;
        let mut times = 1.0;
        let trips = |begin: usize| match &self.events[begin] {
            Event::For { count, .. } => count.as_constant().map_or(TRIPS, |n| n.max(1) as f64),
            _ => 1.0,
        };
        for (at, event) in (self.the.begin + 1..).zip(self.body()) {
            match event {
                Event::For { index, order: Order::InOrder, carried, .. } => {
                    if !carried.iter().all(|c| self.kernel.regs[c.var] == Class::Real) {
                        return None;
                    }
                    around.push(Nested { begin: at, end: self.spans.end(at)?, index: *index });
                    times *= trips(at);
                    is_innermost = true;
                }
                Event::EndFor { .. } => {
                    let the = around.pop()?;
                    if is_innermost {
                        let mut all = around.iter().chain([&the]);
                        let cut = *all.find(|the| chosen.contains_key(&the.index))?;
                        let plan = &chosen[&cut.index];
                        if !plan.scattered.is_empty() {
                            return None;
                        }
                        inner.push(Inner { the, cut, plan, times });
                    }
                    times /= trips(the.begin);
                    is_innermost = false;
                }
                Event::Instr(_) => {}
                _ => return None,
            }
        }
        (!inner.is_empty()).then_some(inner)
    }

    /// Returns the number of concurrent sums in an innermost loop.
    fn n_sums(&self, inner: &Nested) -> i64 {
        match &self.events[inner.begin] {
            Event::For { carried, .. } => carried.len().max(1) as i64,
            _ => 1,
        }
    }

    /// Returns whether all iterations add to the same elements; `by_tile` holds the registers that differ between
    /// iterations.
    fn adds_evenly(&self, by_tile: &BTreeSet<Reg>) -> bool {
        self.body().iter().all(|event| match event {
            Event::Instr(Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. }) => {
                !self.plan.scattered.contains(buffer) || !at.vars().iter().any(|r| by_tile.contains(r))
            }
            _ => true,
        })
    }

    /// Returns the cost of `inner` for `of` iterations, in sequence and tiled.
    fn times(&self, inner: &Inner<'_>, of: i64, by_tile: &BTreeSet<Reg>) -> (f64, f64) {
        let Inner { the, cut, plan, times } = inner;
        let by_cut = self.varying(cut.begin, the.end, cut.index);
        let (blocks, of) = (plan.blocks as f64, of as f64);
        let (mut before, mut after) = (0.0, 0.0);
        let body = self.events[the.begin + 1..the.end].iter();
        let instrs = body.filter_map(|event| if let Event::Instr(instr) = event { Some(*instr) } else { None });
        // Fused with a product, or as costly as one.
        let is_added = |product: Reg| {
            instrs.clone().any(
                |instr| matches!(instr, Instr::Op { op: Op::Add | Op::Sub, args, .. } if args[..2].contains(&product)),
            )
        };
        for instr in instrs.clone() {
            let (in_blocks, in_tile) = match instr {
                Instr::Load { buffer, .. } | Instr::Store { buffer, .. } if self.plan.scattered.contains(buffer) => {
                    (true, false)
                }
                Instr::Load { buffer, at, .. } => {
                    let goes_by = |varying: &BTreeSet<Reg>| at.vars().iter().any(|r| varying.contains(r));
                    (goes_by(&by_cut) || plan.private.contains(buffer), goes_by(by_tile))
                }
                Instr::Const { .. } | Instr::Int { .. } => continue,
                Instr::Op { dst, op: Op::Mul, .. } if is_added(*dst) => continue,
                _ => (true, true),
            };
            let time = times * instr_time(instr, None) * if in_blocks { blocks } else { 1.0 };
            before += time * of;
            after += time * if in_tile { of } else { 1.0 };
        }
        (before, after)
    }

    /// Returns the registers defined between two events that depend on `index`. Trip counts do not depend on it, so
    /// carried values of loops do not make addresses differ.
    fn varying(&self, from: usize, to: usize, index: Reg) -> BTreeSet<Reg> {
        let mut varying = BTreeSet::from([index]);
        for event in &self.events[from..to] {
            let Event::Instr(instr) = event else { continue };
            let mut differs = false;
            instr.for_each_use(|r| differs |= varying.contains(&r));
            varying.extend(instr.dst().filter(|_| differs));
        }
        varying
    }
}
