//! Cost model for vectorisation: an estimate of the time for each choice of loops in a nest.
//!
//! Weights of work are measured ([`WEIGHTS`]). The unit is the time of one cheap instruction. A loop with an unknown
//! trip count runs [`TRIPS`] times. An iteration of a lane loop stands for eight, so that a lane loop costs an eighth
//! of its body, except for elements that are not adjacent, which are loaded one by one or in rows. Each execution has a
//! fixed cost for its start and for the reduction of sums.

use super::unroll::{self, is_adjacent};
use super::{Plan, Spans};
use crate::addresses::{slope, split_constant};
use crate::events::Event;
use crate::kernel::{BufferId, Class, Instr, Kernel, LANES, Order, Place, Reg};
use crate::ranges::Ranges;
use crate::weights::{WEIGHTS, Weights};
use chainrule_base::{Arena, Poly};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Assumed trip count of a loop whose count is unknown.
pub(crate) const TRIPS: f64 = 16.0;

/// Assumed trip count of a loop along a window: to an extent that the count of another loop subtracts from an extent.
const WINDOW: f64 = 5.0;

/// Cost of each execution of a lane loop.
pub(super) const BEGIN: f64 = 6.0;

/// Cost of each execution for each carried register and each accumulator buffer.
const CARRIED: f64 = 12.0;

/// Cost of each block for each buffer with conflict splitting: loop starts and slots.
const APART: f64 = 16.0;

/// Cost of an element that is neither adjacent to the previous lane's nor the same. The cache that holds it is unknown.
pub(super) const STRIDED: f64 = (WEIGHTS.strided + WEIGHTS.strided_far) / 2.0;

/// Cost of a store to an element at a varying index: the lanes add one by one, each with its value and its index from
/// memory.
const SCATTERED: f64 = 4.0 * LANES as f64;

/// Cost of integers that are computed from varying ones, one for each lane: with loads, stores and a test.
const OF_EACH_LANE: f64 = 3.0 * LANES as f64;

/// Number of adjacent elements that are loaded with a strided one, itself included.
const ROW: i32 = 4;

/// Cost of such an element in a loop along the rows, which is unrolled, so that rows are loaded and transposed.
const TURNED: f64 = 4.5;

/// Cost of a call of an external function.
const EXTERNAL: f64 = 20.0;

/// Blocks that unroll-and-jam combines; more if they add to memory, which is then read and written once for all.
pub(super) const JAM: i64 = 4;
const JAM_INTO_MEMORY: i64 = 8;

/// Minimum number of groups of blocks for which groups are enlarged.
const FEWEST: i64 = 2;

/// Maximum number of instructions that unroll-and-jam duplicates.
const MAX_JAMMED: usize = 256;

/// Unroll-and-jam pays if it saves at least 1/6 of the loop's time.
const JAMMED_ALONE: f64 = 6.0;

/// Maximum cost of a sum's term for which fewer iterations than a block run in sequence.
const FEW_ALONE: f64 = 5.0;

/// Assumed trip count of a loop between borders.
const BETWEEN: f64 = 64.0;

/// Numbers of iterations that are few: those along one border, and along a wide one.
const FEW: [i64; 2] = [1, 4];

/// Latency of an addition that depends on the previous one.
const WAIT: f64 = 2.0;

/// Cost of a range of events without lanes, with the best choice of lane loops, and that choice.
#[derive(Default)]
struct Estimate {
    plain: f64,
    best: f64,
    chosen: Vec<usize>,
}

/// Assumed trip counts: of a loop to an extent, in a branch that compares the extent with a constant, a quarter of that
/// where the extent is less, and four times as many where it is not; of a loop along a window [`WINDOW`]; otherwise
/// [`TRIPS`], or the number that the trip count is proved not to exceed; next to such loops [`BETWEEN`]. At known
/// sizes, trip counts are computed; an index counts as the middle of its range, and that of chunks as 0.
#[derive(Clone, Default)]
pub(crate) struct Trips {
    /// Known integers: sizes, and what follows from them.
    known: BTreeMap<Reg, f64>,
    /// Whether the sizes are known.
    is_at_sizes: bool,
    windows: BTreeSet<Reg>,
    /// Trip counts that never exceed a small number, as those of loops along a border.
    at_most: BTreeMap<Poly<Reg>, i64>,
    constants: BTreeMap<Reg, i64>,
    /// Comparisons of integers with constants: `a < limit`, by result.
    limits: BTreeMap<Reg, (Reg, i64)>,
    /// By open branch: the extent and the trip count.
    open: Vec<Option<(Reg, f64)>>,
}

/// Returns the extents of windows, by the trip count of a loop over their places: what it subtracts from an extent.
pub(super) fn windows_of(count: &Poly<Reg>, is_extent: impl Fn(&Reg) -> bool) -> Vec<Reg> {
    let by = |c: i64| count.terms().filter(move |(factors, by)| factors.len() == 1 && *by == c).map(|(f, _)| f[0]);
    if by(1).any(|r| is_extent(&r)) { by(-1).filter(is_extent).collect() } else { Vec::new() }
}

impl Trips {
    /// Returns the state before the kernel's events, at known sizes.
    fn at(kernel: &Kernel, sizes: &[i64]) -> Self {
        let known = kernel.sizes.iter().zip(sizes).map(|(size, value)| (size.reg, *value as f64));
        Self { known: known.collect(), is_at_sizes: true, ..Self::default() }
    }

    /// Returns the state before `events` of `kernel`, at these sizes, or at the assumed ones.
    pub(super) fn at_or_assumed(kernel: &Kernel, events: &[Event<'_>], sizes: Option<&[i64]>) -> Self {
        if let Some(sizes) = sizes {
            return Self::at(kernel, sizes);
        }
        let trips = Self::new(kernel, events);
        let assumed: Vec<i64> = kernel.sizes.iter().map(|size| trips.of(&Poly::var(size.reg)) as i64).collect();
        Self::at(kernel, &assumed)
    }

    /// Returns whether a condition holds, if known.
    pub(super) fn holds(&self, condition: Reg) -> Option<bool> {
        self.known.get(&condition).map(|value| *value != 0.0)
    }

    /// Returns the value of a polynomial of known integers.
    fn value(&self, poly: &Poly<Reg>) -> Option<f64> {
        if !self.is_at_sizes {
            return None;
        }
        poly.terms().try_fold(0.0, |sum, (factors, by)| {
            let product = factors.iter().try_fold(by as f64, |product, r| Some(product * self.known.get(r)?))?;
            Some(sum + product)
        })
    }

    /// Returns the state before `events` of `kernel`.
    pub(super) fn new(kernel: &Kernel, events: &[Event<'_>]) -> Self {
        let mut windows = BTreeSet::new();
        let mut defined = BTreeSet::new();
        for event in events {
            if let Event::For { count, .. } = event {
                windows.extend(windows_of(count, |r| !defined.contains(r)));
            }
            event.for_each_def(|r| defined.extend([r]));
        }
        Self { windows, at_most: few(kernel, events), ..Self::default() }
    }

    pub(super) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Instr(Instr::Int { dst, value }) => {
                self.constants.extend(value.as_constant().map(|c| (*dst, c)));
                self.known.extend(self.value(value).map(|value| (*dst, value)));
            }
            Event::Instr(Instr::IntOp { dst, op, args, .. }) if self.is_at_sizes => {
                let args: Option<Vec<i64>> =
                    args[..op.arity()].iter().map(|r| Some(self.known.get(r)?.round() as i64)).collect();
                let value = args.and_then(|args| (op.row().int?)(&args));
                self.known.extend(value.map(|value| (*dst, value as f64)));
            }
            Event::Instr(Instr::Op { dst, op: Op::And, args: [a, b, _] }) if self.is_at_sizes => {
                let both = self.holds(*a).zip(self.holds(*b)).map(|(a, b)| f64::from(u8::from(a && b)));
                self.known.extend(both.map(|both| (*dst, both)));
            }
            // The first chunk has iterations if any has.
            Event::For { index, order: Order::Parts, .. } if self.is_at_sizes => {
                self.known.insert(*index, 0.0);
            }
            Event::For { index, count, .. } => {
                self.known.extend(self.value(count).map(|n| (*index, ((n - 1.0) / 2.0).max(0.0))));
            }
            Event::Instr(Instr::IntOp { dst, op: Op::Lt, args: [a, b, _], .. }) => {
                let limit = self.constants.get(b).filter(|limit| **limit > 1);
                self.limits.extend(limit.map(|limit| (*dst, (*a, *limit))));
            }
            Event::If { condition } => {
                self.open.push(self.limits.get(condition).map(|(extent, limit)| (*extent, *limit as f64 / 4.0)));
            }
            Event::Else { .. } => {
                if let Some(Some((_, trips))) = self.open.last_mut() {
                    *trips *= 16.0;
                }
            }
            Event::EndIf { .. } => drop(self.open.pop()),
            _ => {}
        }
    }

    /// Returns the number that a trip count which is not a constant is proved not to exceed, if that is small.
    pub(super) fn at_most(&self, count: &Poly<Reg>) -> Option<i64> {
        self.at_most.get(count).copied()
    }

    pub(super) fn of(&self, count: &Poly<Reg>) -> f64 {
        let assumed =
            |r: Reg| self.open.iter().rev().flatten().find(|(extent, _)| *extent == r).map(|(_, trips)| *trips);
        match count.as_constant() {
            Some(n) => n.max(0) as f64,
            None => self.value(count).map_or_else(
                || {
                    let of = |r| assumed(r).unwrap_or(if self.windows.contains(&r) { WINDOW } else { TRIPS });
                    let most = self.at_most.get(count).map(|most| *most as f64);
                    // Loops between borders are long: otherwise nobody would treat these apart.
                    let is_between = !self.at_most.is_empty() && is_less(count);
                    let other = if is_between { BETWEEN } else { TRIPS };
                    most.unwrap_or_else(|| count.as_var().map_or(other, of))
                },
                |n| n.max(0.0),
            ),
        }
    }
}

/// Returns whether a trip count is an integer less a small number.
fn is_less(count: &Poly<Reg>) -> bool {
    let (whole, c) = count.split_constant();
    whole.as_var().is_some() && (-2 * FEW[1]..0).contains(&c)
}

/// Returns the trip counts that are proved not to exceed a number in [`FEW`], in every loop that has them: code for
/// small sizes alone says nothing about other code. A proof takes a bounded number of steps.
fn few(kernel: &Kernel, events: &[Event<'_>]) -> BTreeMap<Poly<Reg>, i64> {
    let mut found: BTreeMap<&Poly<Reg>, Option<i64>> = BTreeMap::new();
    let is_open =
        |count: &Poly<Reg>| count.as_constant().is_none() && !count.as_var().is_some_and(|r| kernel.is_extent(r));
    if !events.iter().any(|event| matches!(event, Event::For { count, .. } if is_open(count))) {
        return BTreeMap::new();
    }
    let mut ranges = Ranges::new(kernel);
    for event in events {
        if let Event::For { count, .. } = event
            && is_open(count)
        {
            let most = found.entry(count).or_insert(Some(0));
            *most = most.and_then(|most| {
                let is_proved = |n: &i64| ranges.is_at_least_zero(&Poly::constant(*n).sub(count));
                FEW.into_iter().filter(|n| *n >= most).find(is_proved)
            });
        }
        ranges.event(event);
    }
    found.into_iter().filter_map(|(count, most)| Some((count.clone(), most?))).collect()
}

/// Estimated times of one execution of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Trip count.
    pub trips: f64,
    /// Without lanes.
    pub plain: f64,
    /// With the best lane loops inside of it.
    pub inside: f64,
    /// In lanes, if that is legal.
    pub lanes: Option<f64>,
}

/// Returns the loops to cut, and the times of all loops, by their opening events. `assumed` is the state before
/// `events`.
pub(super) fn estimate(
    classes: &Arena<Reg, Class>,
    events: &[Event<'_>],
    spans: &Spans,
    legal: &BTreeMap<usize, Plan>,
    mut assumed: Trips,
) -> (Vec<usize>, BTreeMap<usize, Times>) {
    let mut open: Vec<(usize, Estimate)> = vec![(0, Estimate::default())];
    let mut times = BTreeMap::new();
    for (at, event) in events.iter().enumerate() {
        assumed.event(event);
        let Some((_, inside)) = open.last_mut() else { break };
        match event {
            Event::Instr(instr) => {
                let time = instr_time(instr, None);
                inside.plain += time;
                inside.best += time;
            }
            Event::For { .. } | Event::While { .. } | Event::If { .. } => open.push((at, Estimate::default())),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                let Some((begin, body)) = open.pop() else { break };
                let Some((_, around)) = open.last_mut() else { break };
                let trips = match &events[begin] {
                    Event::For { count, .. } => assumed.of(count),
                    Event::While { .. } => TRIPS,
                    _ => 1.0,
                };
                let at_once = legal.get(&begin).and_then(|plan| {
                    let Event::For { index, .. } = &events[begin] else { return None };
                    let end = spans.end.get(&begin)?;
                    let lanes = time_of(classes, &events[begin + 1..*end], Some(*index), &assumed);
                    let extra = BEGIN + CARRIED * (plan.sums.len() + plan.accumulators.len()) as f64;
                    let rounds = (trips / LANES as f64).ceil();
                    Some(rounds * (lanes + APART * plan.scattered.len() as f64) + extra)
                });
                let (plain, inside) = (trips * body.plain, trips * body.best);
                if matches!(events[begin], Event::For { .. }) {
                    times.insert(begin, Times { trips, plain, inside, lanes: at_once });
                }
                around.plain += plain;
                match at_once {
                    Some(time) if time < inside => {
                        around.best += time;
                        around.chosen.push(begin);
                    }
                    _ => {
                        around.best += inside;
                        around.chosen.extend(body.chosen);
                    }
                }
            }
            _ => {}
        }
    }
    (open.into_iter().flat_map(|(_, estimate)| estimate.chosen).collect(), times)
}

/// Loop nests of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Nests<'c, 'k> {
    pub kernel: &'k Kernel,
    pub events: &'c [Event<'k>],
    pub spans: &'c Spans,
    /// Loops with independent iterations, by their opening events.
    pub legal: &'c BTreeMap<usize, Plan>,
}

/// Returns the loops to cut, and the estimated time of an iteration of each loop, by their indices.
pub(super) fn choose(nests: &Nests<'_, '_>, assumed: &Trips) -> (BTreeMap<Reg, Plan>, BTreeMap<Reg, f64>) {
    let Nests { kernel, events, spans, legal } = *nests;
    let classes = &kernel.regs;
    let (chosen, times) = estimate(classes, events, spans, legal, assumed.clone());
    let mut plans = BTreeMap::new();
    for begin in chosen {
        let (Event::For { index, count, .. }, Some(end)) = (&events[begin], spans.end(begin)) else { continue };
        let Some(mut plan) = legal.get(&begin).cloned() else { continue };
        let body = &events[begin + 1..end];
        let most = if is_into_memory(body, &plan) { JAM_INTO_MEMORY } else { JAM };
        // Few blocks form one group.
        let blocks = match count.as_constant().map(|n| n / LANES) {
            Some(all) if all < FEWEST * most => all.min(JAM_INTO_MEMORY),
            _ => most,
        };
        if blocks > 1 && plan.scattered.is_empty() && jam_pays(kernel, body, *index, &plan) {
            plan.blocks = blocks;
        }
        plan.few_alone = !plan.sums.is_empty()
            && plan.accumulators.is_empty()
            && plan.private.is_empty()
            && count.as_constant().is_none()
            && body.iter().all(|event| matches!(event, Event::Instr(_)))
            && plain_time(classes, body) <= FEW_ALONE;
        plans.insert(*index, plan);
    }
    let of_iteration = |(begin, times): (usize, Times)| match events[begin] {
        Event::For { index, .. } => Some((index, times.lanes.unwrap_or(times.inside).min(times.inside) / times.trips)),
        _ => None,
    };
    (plans, times.into_iter().filter_map(of_iteration).collect())
}

/// Returns whether larger groups are worth their registers: nested loops add to much memory.
fn is_into_memory(body: &[Event<'_>], plan: &Plan) -> bool {
    let mut depth = 0;
    body.iter().any(|event| {
        match event {
            Event::For { .. } => depth += 1,
            Event::EndFor { .. } => depth -= 1,
            Event::Instr(Instr::Store { buffer, .. }) => return depth > 1 && plan.accumulators.contains(buffer),
            _ => {}
        }
        false
    })
}

/// Returns whether unroll-and-jam pays: uniform values are read once, accumulators are read and written once, and
/// dependent additions overlap.
fn jam_pays(kernel: &Kernel, body: &[Event<'_>], index: Reg, plan: &Plan) -> bool {
    let classes = &kernel.regs;
    let mut varying = BTreeSet::from([index]);
    let (mut saved, mut all, mut n_instrs, mut has_loops) = (0.0, 0.0, 0, false);
    let mut trips = vec![1.0];
    // Number of open loops and branches around the definition of each register.
    let mut depths: BTreeMap<Reg, usize> = BTreeMap::new();
    for event in body {
        let often = trips.last().copied().unwrap_or(1.0);
        event.for_each_def(|r| {
            depths.insert(r, trips.len() - 1 + usize::from(matches!(event, Event::For { .. })));
        });
        match event {
            Event::Instr(instr) => {
                n_instrs += 1;
                // An element of an input is loaded outside of the loops that do not change its address.
                let often = match instr {
                    Instr::Load { buffer, at, .. } if matches!(kernel.buffers[*buffer].place, Place::Input(_)) => {
                        let depth = at.vars().iter().filter_map(|r| depths.get(r)).max().copied().unwrap_or(0);
                        trips.get(depth).copied().unwrap_or(often)
                    }
                    _ => often,
                };
                let time = often * instr_time(instr, Some(index));
                all += time;
                let is_added = |b: &BufferId| plan.accumulators.contains(b);
                let differs = match instr {
                    Instr::Load { buffer, at, .. } => {
                        plan.private.contains(buffer)
                            || is_added(buffer)
                            || at.vars().into_iter().any(|r| varying.contains(&r))
                    }
                    Instr::Store { .. } => true,
                    _ => {
                        let mut any = false;
                        instr.for_each_use(|r| any |= varying.contains(&r));
                        any
                    }
                };
                if differs {
                    // Fetched integers dominate the cost.
                    if matches!(instr, Instr::Load { dst, .. } if classes[*dst] == Class::Int) {
                        return false;
                    }
                    varying.extend(instr.dst());
                }
                let is_once = match instr {
                    Instr::Load { buffer, .. } => !differs || is_added(buffer),
                    Instr::Store { buffer, .. } => is_added(buffer),
                    _ => false,
                };
                if is_once {
                    saved += time;
                }
            }
            Event::For { count, carried, .. } => {
                has_loops = true;
                varying.extend(carried.iter().map(|c| c.var));
                trips.push(often * count.as_constant().map_or(TRIPS, |n| n.max(0) as f64));
                if !carried.is_empty() {
                    saved += trips.last().copied().unwrap_or(1.0) * WAIT;
                    all += trips.last().copied().unwrap_or(1.0) * WAIT;
                }
            }
            Event::If { .. } => trips.push(often),
            Event::EndFor { .. } | Event::EndIf { .. } => {
                trips.pop();
                if let Event::EndIf { choices } = event {
                    varying.extend(choices.iter().map(|c| c.var));
                }
            }
            _ => {}
        }
    }
    has_loops && n_instrs <= MAX_JAMMED && saved * JAMMED_ALONE >= all
}

/// Returns the cost of one iteration without lanes.
pub(crate) fn plain_time(classes: &Arena<Reg, Class>, body: &[Event<'_>]) -> f64 {
    time_of(classes, body, None, &Trips::default())
}

/// Returns the cost of one iteration, or of one block of iterations over `index` in lanes.
pub(super) fn time_of(classes: &Arena<Reg, Class>, body: &[Event<'_>], index: Option<Reg>, assumed: &Trips) -> f64 {
    let mut sums = vec![(1.0, 0.0)];
    // The loop at hand, if it is unrolled along rows.
    let mut along = None;
    let mut lanes = index.map(|index| LaneTime::new(index, WEIGHTS, STRIDED));
    for (at, event) in body.iter().enumerate() {
        match event {
            Event::Instr(instr) => {
                let time = match &mut lanes {
                    Some(lanes) => lanes.time(classes, instr, along),
                    None => instr_time(instr, None),
                };
                if let Some((_, sum)) = sums.last_mut() {
                    *sum += time;
                }
            }
            Event::For { index, count, .. } => {
                along = unroll::instrs(classes, &body[at..]).map(|_| *index);
                sums.push((assumed.of(count), 0.0));
            }
            Event::While { .. } => sums.push((TRIPS, 0.0)),
            Event::If { .. } => sums.push((1.0, 0.0)),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                along = None;
                if let (Some(lanes), Event::EndIf { choices }) = (&mut lanes, event) {
                    lanes.varying.extend(choices.iter().map(|c| c.var).filter(|r| classes[*r] == Class::Int));
                }
                if let (Some((trips, inside)), Some((_, around))) = (sums.pop(), sums.last_mut()) {
                    *around += trips * inside;
                }
            }
            _ => {}
        }
    }
    sums.pop().map_or(0.0, |(_, sum)| sum)
}

/// Running cost of the code in the lanes of a loop.
pub(super) struct LaneTime {
    index: Reg,
    weights: &'static Weights,
    /// Cost of a strided element that is loaded.
    strided: f64,
    /// Step of integers between neighbouring lanes.
    steps: BTreeMap<Reg, i64>,
    /// Integers that differ arbitrarily between lanes.
    varying: BTreeSet<Reg>,
    /// First elements of strided rows, by buffer and address without its constant.
    rows: BTreeMap<(BufferId, Poly<Reg>), Vec<i32>>,
}

impl LaneTime {
    /// Returns the cost state for the lanes of the loop over `index`, with the cost of a strided element.
    pub(super) fn new(index: Reg, weights: &'static Weights, strided: f64) -> Self {
        let steps = BTreeMap::from([(index, 1)]);
        Self { index, weights, strided, steps, varying: BTreeSet::new(), rows: BTreeMap::new() }
    }

    /// Returns the difference of `poly` between neighbouring lanes, if it is constant.
    pub(super) fn slope(&self, poly: &Poly<Reg>) -> Option<i64> {
        slope(poly, |r| self.steps.get(&r).copied())?.as_constant()
    }

    /// Returns whether an integer follows from varying ones.
    fn is_varying(&self, value: &Poly<Reg>) -> bool {
        value.vars().iter().any(|r| self.varying.contains(r))
    }

    /// Returns the cost of an instruction, in the loop `along` rows if there is one.
    pub(super) fn time(&mut self, classes: &Arena<Reg, Class>, instr: &Instr, along: Option<Reg>) -> f64 {
        match instr {
            Instr::Load { dst, at, .. } if classes[*dst] == Class::Int => {
                let time = match at {
                    at if self.is_varying(at) => self.weights.indexed,
                    at if !at.vars().contains(&self.index) => return 1.0,
                    at if self.slope(at) == Some(1) => self.weights.index,
                    _ => self.weights.index + self.strided,
                };
                self.varying.insert(*dst);
                time
            }
            Instr::CheckIndex { index, .. } if self.varying.contains(index) => self.weights.check,
            Instr::Int { dst, value } if self.is_varying(value) => {
                self.varying.insert(*dst);
                OF_EACH_LANE
            }
            Instr::IntOp { dst, op, args, .. } if args[..op.arity()].iter().any(|r| self.varying.contains(r)) => {
                self.varying.insert(*dst);
                OF_EACH_LANE
            }
            Instr::ToInt { dst, .. } => {
                self.varying.insert(*dst);
                OF_EACH_LANE / 2.0
            }
            Instr::Int { dst, value } => {
                if let Some(step) = self.slope(value).filter(|step| *step != 0) {
                    self.steps.insert(*dst, step);
                }
                1.0
            }
            Instr::Load { buffer, at, .. } => {
                let is_varying = self.is_varying(at);
                let (part, offset) = split_constant(at);
                let alone = match self.slope(at) {
                    _ if is_varying && part.as_var().is_none() => self.weights.indexed + OF_EACH_LANE,
                    _ if is_varying => self.weights.indexed,
                    Some(0 | 1) => return 1.0,
                    _ => self.strided,
                };
                if !is_varying && along.is_some_and(|along| is_adjacent(at, along)) {
                    return TURNED;
                }
                let rows = self.rows.entry((*buffer, part)).or_default();
                if rows.iter().any(|first| (0..ROW).contains(&offset.saturating_sub(*first))) {
                    self.weights.beside
                } else {
                    rows.push(offset);
                    alone
                }
            }
            Instr::Store { at, .. } if self.is_varying(at) => SCATTERED,
            _ => instr_time(instr, Some(self.index)),
        }
    }
}

/// Returns the cost of a lane access with this stride, if known.
fn access_time(slope: Option<i64>) -> f64 {
    match slope {
        Some(0 | 1) => 1.0,
        _ => STRIDED,
    }
}

/// Returns the cost of one instruction; for all lanes of the loop over `index`, if given.
pub(crate) fn instr_time(instr: &Instr, index: Option<Reg>) -> f64 {
    let access = |at: &Poly<Reg>| {
        let slope = |index: Reg| at.split_linear(index).and_then(|(slope, _)| slope.as_constant());
        index.map_or(1.0, |index| access_time(slope(index)))
    };
    match instr {
        Instr::Const { .. } | Instr::Int { .. } | Instr::ToReal { .. } | Instr::MulAdd { .. } => 1.0,
        Instr::ToInt { .. } => 1.0,
        Instr::IntOp { .. } | Instr::CheckIndex { .. } => 1.0,
        Instr::Load { at, .. } | Instr::Store { at, .. } => access(at),
        Instr::Op { op, .. } => {
            WEIGHTS.operators.of(*op).map_or(1.0, |weight| if index.is_some() { weight.lanes } else { weight.plain })
        }
        Instr::External { .. } => EXTERNAL * index.map_or(1.0, |_| LANES as f64),
    }
}
