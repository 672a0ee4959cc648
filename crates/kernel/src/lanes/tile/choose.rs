//! Selection of loops to tile: those for which many loads or updates are shared by several iterations.

use super::{Nested, Tile, Tiles};
use crate::events::Event;
use crate::kernel::{BufferId, Class, Instr, Order, Reg};
use crate::lanes::Plan;
use crate::lanes::cost::{Nests, TRIPS, Trips, instr_time};
use crate::lanes::panel::Panels;
use chainrule_base::Poly;
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

/// The same where iterations share rows, as those of stencils do. Most of the loads that are saved cross cache lines,
/// and take twice as long as estimated.
const WORTH_OF_ROWS: f64 = 0.92;

/// Maximum number of iterations between loads that are compared.
const FARTHEST: i64 = 16;

/// Returns the loops to tile if loops are cut as `chosen`. Linear in the kernel for each loop that contains others.
pub(in crate::lanes) fn choose(nests: &Nests<'_, '_>, assumed: &Trips, chosen: &BTreeMap<Reg, Plan>) -> Tiles {
    let Nests { events, spans, legal, .. } = *nests;
    let mut found: Vec<(f64, Nested, Tile)> = Vec::new();
    let mut open: Vec<Nested> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::For { index, .. } => {
                let Some(end) = spans.end(at) else { continue };
                open.push(Nested { begin: at, end, index: *index });
                if let Some(plan) = legal.get(&at).filter(|_| !chosen.contains_key(index)) {
                    let added = plan.scattered.iter().chain(&plan.accumulators).copied().collect();
                    let candidate = Candidate { nests, assumed, the: open[open.len() - 1], plan, added };
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
    nests: &'c Nests<'c, 'k>,
    assumed: &'c Trips,
    the: Nested,
    plan: &'c Plan,
    /// Buffers that all iterations add to.
    added: BTreeSet<BufferId>,
}

/// Cost of an innermost loop.
struct Times {
    /// In sequence.
    before: f64,
    /// Tiled.
    after: f64,
    /// Whether iterations load the same rows.
    has_rows: bool,
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

/// Loads whose addresses differ by whole iterations of a loop.
struct Row {
    buffer: BufferId,
    /// Distance between iterations.
    slope: Poly<Reg>,
    /// Address of the first load in iteration 0.
    first: Poly<Reg>,
    /// Iterations after the first load's whose elements are loaded.
    at: BTreeSet<i64>,
}

impl Row {
    /// Returns the number of different addresses in `of` iterations.
    fn loads_of(&self, of: i64) -> usize {
        self.at.iter().flat_map(|at| *at..*at + of).collect::<BTreeSet<i64>>().len()
    }
}

/// Returns `k` with `of = k by`, if there is a small one.
fn multiple(of: &Poly<Reg>, by: &Poly<Reg>) -> Option<i64> {
    let (monomial, c) = by.terms().next()?;
    let k = of.terms().find(|(other, _)| *other == monomial).map_or(0, |(_, d)| d / c);
    (k.abs() <= FARTHEST && by.scale(k) == *of).then_some(k)
}

impl Candidate<'_, '_> {
    /// Returns its tiling and the remaining fraction of the time, if tiling is legal and pays. `open` holds the loops
    /// around it and itself.
    fn tile(&self, open: &[Nested], chosen: &BTreeMap<Reg, Plan>) -> Option<(f64, Nested, Tile)> {
        if !self.plan.private.is_empty() || !self.ends_with_sums() {
            return None;
        }
        let whole = Plan::default();
        let inner = self.inner(open, chosen, &whole)?;
        let sums = inner.iter().map(|inner| self.n_sums(&inner.the) * inner.plan.blocks).max()?;
        let of = (MAX_SUMS / sums).min(MOST);
        let Event::For { count, .. } = &self.nests.events[self.the.begin] else { return None };
        let blocks = inner.iter().map(|inner| inner.plan.blocks).max()?;
        let n_instrs = (self.the.end - self.the.begin) as i64 * of * blocks;
        if of < 2
            || count.as_constant().or_else(|| self.assumed.at_most(count)).is_some_and(|n| n < of)
            || n_instrs > MAX_TILED
        {
            return None;
        }
        let by_tile = self.varying(self.the.begin, self.the.end, self.the.index);
        if !self.adds_evenly(&by_tile) {
            return None;
        }
        let (mut before, mut after, mut has_rows) = (0.0, 0.0, false);
        for inner in &inner {
            let times = self.times(inner, of, &by_tile);
            before += times.before;
            after += times.after;
            has_rows |= times.has_rows;
        }
        if after > if has_rows { WORTH_OF_ROWS } else { WORTH } * before {
            return None;
        }
        let panels = match &inner[..] {
            [one] if self.added.is_empty() => {
                Panels::of(self.nests.kernel, self.nests.events, &self.the, (&one.cut, one.plan), &one.the)
            }
            _ => None,
        };
        Some((after / before, self.the, Tile { of, added: self.added.clone(), panels }))
    }

    fn body(&self) -> &[Event<'_>] {
        &self.nests.events[self.the.begin + 1..self.the.end]
    }

    /// Returns whether a loop has few iterations, without a carried value.
    fn is_short(&self, the: &Nested) -> bool {
        match &self.nests.events[the.begin] {
            Event::For { count, carried, .. } => carried.is_empty() && self.assumed.at_most(count).is_some(),
            _ => false,
        }
    }

    /// Returns whether its carried values are used only after all inner loops, or by operations that can be moved
    /// there.
    fn ends_with_sums(&self) -> bool {
        let Event::For { carried, .. } = &self.nests.events[self.the.begin] else { return false };
        let last = self.body().iter().rposition(|event| matches!(event, Event::EndFor { .. })).unwrap_or(0);
        let mut later: BTreeSet<Reg> = carried.iter().map(|c| c.var).collect();
        let mut depth = 0;
        self.body()[..=last].iter().all(|event| {
            depth += match event {
                Event::For { .. } => 1,
                Event::EndFor { .. } => -1,
                _ => 0,
            };
            let mut reads = false;
            event.for_each_use(|r| reads |= later.contains(&r));
            match event {
                Event::Instr(Instr::Op { dst, .. }) if reads && depth == 0 => later.insert(*dst),
                _ => !reads,
            }
        })
    }

    /// Returns the innermost loops, if the candidate contains only loops and instructions, and each innermost loop has
    /// a lane loop.
    fn inner<'p>(&self, open: &[Nested], chosen: &'p BTreeMap<Reg, Plan>, whole: &'p Plan) -> Option<Vec<Inner<'p>>> {
        let mut inner = Vec::new();
        let mut around: Vec<Nested> = open.to_vec();
        let mut is_innermost = false;
        let mut times = 1.0;
        let trips = |begin: usize| match &self.nests.events[begin] {
            Event::For { count, .. } => {
                let known = count.as_constant().or_else(|| self.assumed.at_most(count));
                known.map_or(TRIPS, |n| n.max(1) as f64)
            }
            _ => 1.0,
        };
        for (at, event) in (self.the.begin + 1..).zip(self.body()) {
            match event {
                Event::For { index, order: Order::InOrder, carried, .. } => {
                    if !carried.iter().all(|c| self.nests.kernel.regs[c.var] == Class::Real) {
                        return None;
                    }
                    around.push(Nested { begin: at, end: self.nests.spans.end(at)?, index: *index });
                    times *= trips(at);
                    is_innermost = true;
                }
                Event::EndFor { .. } => {
                    let the = around.pop()?;
                    if is_innermost {
                        let mut all = around.iter().chain([&the]);
                        let (cut, plan) = match all.find(|the| chosen.contains_key(&the.index)) {
                            Some(cut) => (*cut, &chosen[&cut.index]),
                            // Along a border, without lanes.
                            None if self.is_short(&the) => (the, whole),
                            None => return None,
                        };
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
        match &self.nests.events[inner.begin] {
            Event::For { carried, .. } => carried.len().max(1) as i64,
            _ => 1,
        }
    }

    /// Returns whether all iterations add to the same elements; `by_tile` holds the registers that differ between
    /// iterations.
    fn adds_evenly(&self, by_tile: &BTreeSet<Reg>) -> bool {
        self.body().iter().all(|event| match event {
            Event::Instr(Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. }) => {
                !self.added.contains(buffer) || !at.vars().iter().any(|r| by_tile.contains(r))
            }
            _ => true,
        })
    }

    /// Returns the cost of `inner` for `of` iterations.
    fn times(&self, inner: &Inner<'_>, of: i64, by_tile: &BTreeSet<Reg>) -> Times {
        let Inner { the, cut, plan, times } = inner;
        let by_cut = self.varying(cut.begin, the.end, cut.index);
        let (blocks, of) = (plan.blocks as f64, of as f64);
        let (mut before, mut after) = (0.0, 0.0);
        let mut rows: Vec<Row> = Vec::new();
        let body = self.nests.events[the.begin + 1..the.end].iter();
        let instrs = body.filter_map(|event| if let Event::Instr(instr) = event { Some(*instr) } else { None });
        // Fused with a product, or as costly as one.
        let is_added = |product: Reg| {
            instrs.clone().any(
                |instr| matches!(instr, Instr::Op { op: Op::Add | Op::Sub, args, .. } if args[..2].contains(&product)),
            )
        };
        for instr in instrs.clone() {
            let (in_blocks, in_tile) = match instr {
                Instr::Load { buffer, .. } | Instr::Store { buffer, .. } if self.added.contains(buffer) => {
                    (true, false)
                }
                Instr::Load { buffer, at, .. } if self.add_row(&mut rows, *buffer, at, by_tile) => continue,
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
        for row in &rows {
            let is_cut = row.first.vars().iter().any(|r| by_cut.contains(r)) || plan.private.contains(&row.buffer);
            let time = times * if is_cut { blocks } else { 1.0 };
            before += time * (row.at.len() as f64) * of;
            after += time * row.loads_of(of as i64) as f64;
        }
        Times { before, after, has_rows: rows.iter().any(|row| row.at.len() > 1) }
    }

    /// Adds a load to `rows` if its address goes along rows with the tiled loop's index, and by nothing else that
    /// differs between iterations of it. Returns whether it is added.
    fn add_row(&self, rows: &mut Vec<Row>, buffer: BufferId, at: &Poly<Reg>, by_tile: &BTreeSet<Reg>) -> bool {
        if self.added.contains(&buffer) {
            return false;
        }
        let Some((slope, first)) = at.split_linear(self.the.index) else { return false };
        let differs = |p: &Poly<Reg>| p.vars().iter().any(|r| by_tile.contains(r));
        if slope.is_zero() || differs(&slope) || differs(&first) {
            return false;
        }
        let found = rows.iter_mut().find_map(|row| {
            let is_same = row.buffer == buffer && row.slope == slope;
            let k = is_same.then(|| multiple(&first.sub(&row.first), &slope)).flatten()?;
            Some((row, k))
        });
        match found {
            Some((row, k)) => {
                row.at.insert(k);
            }
            None => rows.push(Row { buffer, slope, first, at: BTreeSet::from([0]) }),
        }
        true
    }

    /// Returns the registers defined between two events that depend on `index`. Trip counts do not depend on it, so
    /// carried values of loops do not make addresses differ.
    fn varying(&self, from: usize, to: usize, index: Reg) -> BTreeSet<Reg> {
        let mut varying = BTreeSet::from([index]);
        for event in &self.nests.events[from..to] {
            let Event::Instr(instr) = event else { continue };
            let mut differs = false;
            instr.for_each_use(|r| differs |= varying.contains(&r));
            varying.extend(instr.dst().filter(|_| differs));
        }
        varying
    }
}
