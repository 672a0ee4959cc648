//! Dependence analysis: loops with independent iterations.
//!
//! A carried register must be a reduction (sum, product, minimum or maximum): it goes through operators of one kind
//! only, with another operand each time, and has no other use. Or it is a number or the place of a search
//! (`winner`). A buffer that the loop writes must satisfy one of these
//! conditions:
//!
//! - all accesses in the kernel are in the loop, the first is a write, and, for lanes, no address depends on the loop's
//!   index: the buffer is private to an iteration. (Lowering makes no buffer that carries a value between iterations
//!   without a write before the loop.)
//! - all accesses of the loop load an element, add to it and store it, independently of the loop's index, and the loop
//!   is outermost: the buffer is an accumulator;
//! - the same with addresses that depend on the iteration, for lanes in no branch: iterations update common elements
//!   (conflict splitting, or an array for each chunk);
//! - all addresses are linear in the loop's index with one slope, and the rest of each address is proved to be between
//!   0 and the slope;
//! - all addresses are linear in the loop's index with one slope, and the rest is a multiple of a number that the slope
//!   times the index does not reach (columns of few elements);
//! - all addresses are linear in the loop's index with one constant slope, in each iteration, and the rests of two
//!   addresses are equal, or differ by more than the slope times the index (rows of one array).

use super::body::Lanes;
use super::winner::{Selection, selections};
use super::{Plan, Spans};
use crate::events::Event;
use crate::kernel::{BufferId, Carried, Class, Instr, Kernel, LANES, Order, Place, Reg};
use crate::liveness::Liveness;
use crate::ranges::Ranges;
use chainrule_base::{Id, Poly};
use chainrule_ops::{Op, Semantics};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Minimum trip count of a lane loop.
const FEW: i64 = 3;

/// Associative operator of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    Sum,
    Product,
    Least,
    Greatest,
    /// Step that decides the minimum or maximum with this number among the reductions; -1 if there is none.
    Place(usize),
}

impl Group {
    /// Returns the reduction of an operator; `first` states whether the accumulator is its first argument.
    fn of(op: Op, first: bool) -> Option<Self> {
        Some(match op {
            Op::Add => Self::Sum,
            Op::Sub if first => Self::Sum,
            Op::Mul => Self::Product,
            Op::Min => Self::Least,
            Op::Max => Self::Greatest,
            _ => return None,
        })
    }

    pub(crate) fn is_place(self) -> bool {
        matches!(self, Self::Place(_))
    }

    /// Returns the operator that puts partial results together.
    pub(crate) fn op(self) -> Op {
        match self {
            Self::Sum => Op::Add,
            Self::Product => Op::Mul,
            Self::Least | Self::Place(_) => Op::Min,
            Self::Greatest => Op::Max,
        }
    }

    /// Returns the neutral element; for sums -0.0, which also preserves negative zeros.
    pub(crate) fn neutral(self) -> f64 {
        match self {
            Self::Sum => -0.0,
            Self::Product => 1.0,
            Self::Least => f64::INFINITY,
            Self::Greatest => f64::NEG_INFINITY,
            Self::Place(_) => -1.0,
        }
    }
}

/// An access to a buffer, with its address relative to the loops around it.
struct Access<'k> {
    at: usize,
    buffer: BufferId,
    writes: bool,
    address: &'k Poly<Reg>,
    /// Opening event of the loop that directly contains it, without a branch or other loop between.
    inside: Option<usize>,
    /// Loops around it by their opening events, innermost first, with the address relative to each.
    around: Vec<(usize, Option<View>)>,
}

/// An address relative to a loop: `slope * index + common + own`.
struct View {
    slope: Poly<Reg>,
    /// Part that is the same in all iterations, without the constant.
    common: Poly<Reg>,
    /// The rest if it is a constant, for a single element.
    constant: Option<i64>,
    /// Begin of the row of iteration 0 ([`Relative`]).
    row: Option<Poly<Reg>>,
    /// A divisor of the rest, for a single element, if the slope times the index is proved to be between 0 and it.
    beyond: Option<i64>,
}

impl View {
    /// Returns the address of a single element without the slope times the index, if that is the same in all
    /// iterations.
    fn base(&self) -> Option<Poly<Reg>> {
        self.constant.map(|c| self.common.add(&Poly::constant(c)))
    }
}

/// Maximum number of different bases of a buffer in a loop that are compared.
const MAX_BASES: usize = 64;

/// Returns whether different iterations access different elements.
fn are_apart(views: &[&View]) -> bool {
    let first = views[0];
    let one_element = first.constant.is_some() && first.slope.as_constant().is_some_and(|s| s != 0);
    let in_rows = first.row.is_some() && views.iter().all(|v| v.slope == first.slope && v.row == first.row);
    in_rows
        || views.iter().all(|v| v.slope == first.slope && v.common == first.common)
            && ((first.beyond.is_some() && views.iter().all(|v| v.beyond == first.beyond))
                || (one_element && views.iter().all(|v| v.constant == first.constant)))
}

/// Returns whether different iterations access different elements, for addresses with several bases, at the end of an
/// iteration of the loop over `index`. All accesses are done in all iterations.
///
/// Each two bases are proved to differ by more than the slope times the index, in every iteration. The indices of two
/// iterations differ by no more than the larger of them, so no access of one reaches an element of the other. Checks in
/// an iteration count: one that fails ends the run.
fn are_far_apart(ranges: &Ranges, views: &[&View], index: Reg) -> bool {
    let Some(slope) = views[0].slope.as_constant().and_then(i64::checked_abs).filter(|s| *s != 0) else { return false };
    let reach = Poly::var(index).scale(slope).add(&Poly::constant(1));
    let mut distinct: Vec<Poly<Reg>> = Vec::new();
    for view in views {
        let Some(base) = view.base().filter(|_| view.slope == views[0].slope) else { return false };
        if distinct.contains(&base) {
            continue;
        }
        let is_far = |other: &Poly<Reg>| {
            let by = base.sub(other);
            ranges.is_at_least_zero(&by.sub(&reach)) || ranges.is_at_least_zero(&by.neg().sub(&reach))
        };
        if distinct.len() == MAX_BASES || !distinct.iter().all(is_far) {
            return false;
        }
        distinct.push(base);
    }
    true
}

/// Returns the loops that can run in lanes, once branches on `choosable` conditions are if-converted, or in parallel
/// (`order`), by their opening events.
pub(crate) fn legal(
    kernel: &Kernel,
    events: &[Event<'_>],
    spans: &Spans,
    semantics: Semantics,
    order: Order,
    choosable: &BTreeSet<Reg>,
) -> BTreeMap<usize, Plan> {
    let lives = Liveness::new(kernel.regs.len(), events);
    let written: BTreeSet<BufferId> = events
        .iter()
        .filter_map(|event| match event {
            Event::Instr(Instr::Store { buffer, .. }) => Some(*buffer),
            Event::Copy { to, .. } => Some(to.0),
            _ => None,
        })
        .collect();
    let Accesses { all: accesses, far_apart } = accesses(kernel, events, &lives, &written);
    let mut of_buffer: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    for (i, access) in accesses.iter().enumerate() {
        of_buffer.entry(access.buffer).or_default().push(i);
    }
    let search = Search { kernel, spans, semantics, order, accesses, of_buffer, far_apart };
    let mut lanes = Lanes::new(kernel.regs.len());
    let mut found = BTreeMap::new();
    for (begin, end) in spans.loops() {
        let Event::For { index, count, carried, order: Order::InOrder } = &events[begin] else { continue };
        let body = &events[begin + 1..end];
        // A chunk has whole blocks of lanes, and a single chunk is useless. Partial results of few iterations are
        // costly.
        let (least, may_run) = match order {
            Order::Parts => (LANES + 1, spans.top.contains(&begin)),
            _ => {
                let least = if carried.is_empty() { FEW } else { LANES };
                let fits = lanes.fits(kernel, *index, body, choosable) || {
                    let added = search.scattered(body, begin);
                    !added.is_empty() && lanes.fits_but(kernel, *index, body, choosable, added)
                };
                (least, fits)
            }
        };
        if count.as_constant().is_some_and(|n| n < least) || body.is_empty() || !may_run {
            continue;
        }
        let sums = reductions(kernel, *index, carried, body);
        let Some(sums) = sums.filter(|sums| semantics == Semantics::Algebraic || sums.is_empty()) else { continue };
        let plan = Plan { sums, ..Plan::default() };
        let plan = search.with_buffers(plan, &Counted { begin, end, index: *index, body }, &lanes);
        // Without a whole block, all iterations that add to accumulators run in sequence.
        let has_block = count.as_constant().is_none_or(|n| n >= LANES);
        // Steps in another order, or in pieces, find another one of equal numbers.
        let is_ordered = |plan: &Plan| plan.accumulators.is_empty() && plan.scattered.is_empty();
        let has_place = |plan: &Plan| plan.sums.iter().any(|group| group.is_place());
        let plan = plan.filter(|plan| !has_place(plan) || (order == Order::Lanes && is_ordered(plan)));
        if let Some(plan) = plan.filter(|plan| has_block || plan.accumulators.is_empty()) {
            found.insert(begin, plan);
        }
    }
    found
}

/// A counted loop.
struct Counted<'e, 'k> {
    begin: usize,
    end: usize,
    index: Reg,
    body: &'e [Event<'k>],
}

/// Search for loops with independent iterations.
struct Search<'e> {
    kernel: &'e Kernel,
    spans: &'e Spans,
    semantics: Semantics,
    order: Order,
    accesses: Vec<Access<'e>>,
    /// Accesses to each buffer, by number.
    of_buffer: BTreeMap<BufferId, Vec<usize>>,
    /// Loops and buffers of [`Accesses::far_apart`].
    far_apart: BTreeSet<(usize, BufferId)>,
}

impl<'e> Search<'e> {
    /// Returns the accesses to `buffer` with numbers in `range`.
    fn inside(&self, buffer: BufferId, range: &Range<usize>) -> Vec<&Access<'e>> {
        let all = &self.of_buffer[&buffer];
        let mine = &all[all.partition_point(|i| *i < range.start)..all.partition_point(|i| *i < range.end)];
        mine.iter().map(|i| &self.accesses[*i]).collect()
    }

    /// Returns the plan of a loop with its buffers, if each of them satisfies one of the conditions.
    fn with_buffers(&self, mut plan: Plan, counted: &Counted<'_, '_>, lanes: &Lanes) -> Option<Plan> {
        let first = self.accesses.partition_point(|a| a.at <= counted.begin);
        let last = self.accesses.partition_point(|a| a.at < counted.end);
        let touched: BTreeSet<BufferId> = self.accesses[first..last].iter().map(|a| a.buffer).collect();
        let mine = |buffer: BufferId| self.inside(buffer, &(first..last));
        // Lengths of accumulators, which get eight copies too.
        let added: Vec<&Poly<Reg>> = (touched.iter())
            .filter(|buffer| mine(**buffer).len() < self.of_buffer[*buffer].len())
            .filter(|buffer| mine(**buffer).iter().any(|a| a.writes && !a.address.vars().contains(&counted.index)))
            .map(|buffer| &self.kernel.buffers[*buffer].len)
            .collect();
        let computed = if self.order == Order::Parts { self.computed(counted) } else { BTreeSet::new() };
        let fit = touched.iter().all(|buffer| {
            let mine = mine(*buffer);
            // Integers computed or fetched from the index depend on it.
            let differs = |r: &Reg| {
                *r == counted.index
                    || match self.order {
                        Order::Parts => computed.contains(r),
                        _ => lanes.of(*r).is_some(),
                    }
            };
            let is_by_index = || mine.iter().any(|a| a.address.vars().iter().any(differs));
            mine.iter().all(|a| !a.writes) || self.fits(&mut plan, counted, (*buffer, &mine), is_by_index(), &added)
        });
        fit.then_some(plan)
    }

    /// Returns whether a buffer that is written, with accesses `mine` in a loop, satisfies one of the conditions, and
    /// records which; `is_by_index` states whether an address depends on the index. `added` are the lengths of
    /// accumulators.
    fn fits(
        &self,
        plan: &mut Plan,
        counted: &Counted<'_, '_>,
        (buffer, mine): (BufferId, &[&Access<'e>]),
        is_by_index: bool,
        added: &[&Poly<Reg>],
    ) -> bool {
        let Self { kernel, order, .. } = *self;
        let is_work = matches!(kernel.buffers[buffer].place, Place::Workspace(_));
        // Buffers written by the index are handled below.
        if is_work && mine.len() == self.of_buffer[&buffer].len() && (order == Order::Parts || !is_by_index) {
            plan.private.push(buffer);
            // Eight copies, if that is little memory.
            let is_little = |m: &[Reg]| m.len() <= 1 || added.iter().any(|len| is_part_of(m, len));
            let is_small = kernel.buffers[buffer].len.terms().all(|(monomial, _)| is_little(monomial));
            return mine[0].writes && (order == Order::Parts || is_small);
        }
        let &Counted { begin, body, .. } = counted;
        if !is_by_index && self.spans.outermost.contains(&begin) {
            plan.accumulators.push(buffer);
            return self.semantics == Semantics::Algebraic && adds_only(kernel, body, begin + 1, buffer, mine);
        }
        let views = mine.iter().map(|a| a.around.iter().find(|(l, _)| *l == begin).and_then(|(_, v)| v.as_ref()));
        let views = views.collect::<Option<Vec<&View>>>();
        if views.is_some_and(|views| are_apart(&views)) || self.far_apart.contains(&(begin, buffer)) {
            return true;
        }
        if self.semantics == Semantics::Strict {
            return false;
        }
        if order == Order::Parts {
            plan.accumulators.push(buffer);
            plan.adds_rarely |= self.height(counted) < self.n_extents(buffer);
            return adds_only(kernel, body, begin + 1, buffer, mine);
        }
        plan.scattered.insert(buffer);
        adds_apart(kernel, body, begin + 1, buffer, mine)
    }

    /// Returns the integers that an iteration computes, without the indices of its loops.
    fn computed(&self, counted: &Counted<'_, '_>) -> BTreeSet<Reg> {
        let mut computed = BTreeSet::new();
        for event in counted.body {
            event.for_each_def(|r| {
                let is_index = matches!(event, Event::For { index, .. } if *index == r);
                computed.extend((self.kernel.regs[r] == Class::Int && !is_index).then_some(r));
            });
        }
        computed
    }

    /// Returns the nesting of loops with unknown trip counts in an iteration.
    fn height(&self, counted: &Counted<'_, '_>) -> usize {
        let (mut height, mut open) = (0, Vec::new());
        for event in counted.body {
            match event {
                Event::For { count, .. } => open.push(count.as_constant().is_none()),
                Event::EndFor { .. } => drop(open.pop()),
                _ => continue,
            }
            height = height.max(open.iter().filter(|is_unknown| **is_unknown).count());
        }
        height
    }

    /// Returns the number of unknown extents of a buffer.
    fn n_extents(&self, buffer: BufferId) -> usize {
        self.kernel.buffers[buffer].len.terms().map(|(extents, _)| extents.len()).max().unwrap_or(0)
    }

    /// Returns the buffers that the loop opening at `begin` only updates by additions, at any elements; none under
    /// strict semantics.
    fn scattered(&self, body: &[Event<'_>], begin: usize) -> BTreeSet<BufferId> {
        if self.semantics == Semantics::Strict {
            return BTreeSet::new();
        }
        let first = self.accesses.partition_point(|a| a.at <= begin);
        let last = self.accesses.partition_point(|a| a.at <= begin + body.len());
        let mut of_buffer: BTreeMap<BufferId, Vec<&Access<'_>>> = BTreeMap::new();
        for access in &self.accesses[first..last] {
            of_buffer.entry(access.buffer).or_default().push(access);
        }
        of_buffer.retain(|buffer, mine| adds_apart(self.kernel, body, begin + 1, *buffer, mine));
        of_buffer.into_keys().collect()
    }
}

/// Returns whether the loop only adds to elements of the buffer, in loops that carry numbers only and in no branch, so
/// that an iteration can be split ([`super::apart`]). `first` is the number of the first event of `body`.
fn adds_apart(kernel: &Kernel, body: &[Event<'_>], first: usize, buffer: BufferId, accesses: &[&Access<'_>]) -> bool {
    let is_real = |c: &Carried| kernel.regs[c.var] == Class::Real;
    let numbers = body.iter().all(|event| !matches!(event, Event::For { carried, .. } if !carried.iter().all(is_real)));
    let mut branches = 0;
    let outside = body.iter().enumerate().all(|(at, event)| {
        match event {
            Event::If { .. } => branches += 1,
            Event::EndIf { .. } => branches -= 1,
            _ => {}
        }
        branches == 0 || accesses.binary_search_by_key(&(first + at), |access| access.at).is_err()
    });
    numbers && outside && adds_only(kernel, body, first, buffer, accesses)
}

/// Returns whether `monomial` divides a term of `len`.
fn is_part_of(monomial: &[Reg], len: &Poly<Reg>) -> bool {
    let often = |all: &[Reg], r: Reg| all.iter().filter(|other| **other == r).count();
    len.terms().any(|(term, _)| monomial.iter().all(|r| often(monomial, *r) <= often(term, *r)))
}

/// Accesses to the buffers that a kernel writes.
struct Accesses<'k> {
    /// In order; a copy is two of them.
    all: Vec<Access<'k>>,
    /// Loops, by their opening events, with a buffer of which each iteration accesses other elements at several bases.
    far_apart: BTreeSet<(usize, BufferId)>,
}

/// An open loop.
struct Open {
    begin: usize,
    index: Reg,
    /// Number of accesses before it.
    before: usize,
}

/// Returns the accesses to `written`.
fn accesses<'k>(kernel: &Kernel, events: &[Event<'k>], lives: &Liveness, written: &BTreeSet<BufferId>) -> Accesses<'k> {
    let mut ranges = Ranges::new(kernel);
    // Open loops and branches.
    let mut nest: Vec<Option<Open>> = Vec::new();
    let mut all: Vec<Access<'_>> = Vec::new();
    let mut far_apart = BTreeSet::new();
    for (at, event) in events.iter().enumerate() {
        if let (Event::EndFor { .. }, Some(Some(ended))) = (event, nest.last()) {
            let buffers = with_far_bases(&ranges, &all[ended.before..], ended);
            far_apart.extend(buffers.map(|buffer| (ended.begin, buffer)));
        }
        ranges.event(event);
        let mut access = |buffer: BufferId, address: &'k Poly<Reg>, len: Option<&Poly<Reg>>, writes: bool| {
            if written.contains(&buffer) {
                let open = nest.iter().rev().flatten().take(super::MAX_HEIGHT);
                let around = open.map(|of| (of.begin, view(&ranges, lives, address, len, of)));
                let inside = nest.last().and_then(|open| Some(open.as_ref()?.begin));
                all.push(Access { at, buffer, writes, address, inside, around: around.collect() });
            }
        };
        match event {
            Event::For { index, .. } => {
                nest.push(Some(Open { begin: at, index: *index, before: all.len() }));
            }
            Event::While { .. } | Event::If { .. } => nest.push(None),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                nest.pop();
            }
            Event::Instr(Instr::Load { buffer, at, .. }) => access(*buffer, at, None, false),
            Event::Instr(Instr::Store { buffer, at, .. }) => access(*buffer, at, None, true),
            Event::Copy { to, from, len, .. } => {
                access(from.0, &from.1, Some(len), false);
                access(to.0, &to.1, Some(len), true);
            }
            _ => {}
        }
    }
    Accesses { all, far_apart }
}

/// Returns the buffers that `ended`, whose last event is next, writes, and of which each iteration accesses other
/// elements at several bases. `accesses` are those of the loop.
fn with_far_bases(ranges: &Ranges, accesses: &[Access<'_>], ended: &Open) -> impl Iterator<Item = BufferId> {
    let mut of_buffer: BTreeMap<BufferId, Vec<&Access<'_>>> = BTreeMap::new();
    accesses.iter().for_each(|access| of_buffer.entry(access.buffer).or_default().push(access));
    let fits = |accesses: &[&Access<'_>]| {
        let views = accesses.iter().map(|access| match access.around.first() {
            Some((_, Some(view))) if access.inside == Some(ended.begin) => Some(view),
            _ => None,
        });
        accesses.iter().any(|access| access.writes)
            && views.collect::<Option<Vec<_>>>().is_some_and(|views| are_far_apart(ranges, &views, ended.index))
    };
    of_buffer.retain(|_, accesses| fits(accesses));
    of_buffer.into_keys()
}

/// An address as `slope * index + common + own`, relative to a loop.
pub(crate) struct Relative {
    pub slope: Poly<Reg>,
    /// Part that is the same in all iterations, without the constant.
    pub common: Poly<Reg>,
    /// The rest: what an iteration defines, and the constant.
    pub own: Poly<Reg>,
    /// Begin of the row of iteration 0, if iterations are rows: the address less the slope times the index less this is
    /// between 0 and the slope, for all elements of a copy.
    pub row: Option<Poly<Reg>>,
}

/// Returns an address relative to the loop over `index`, with `len` for that many elements. `is_own` tells whether a
/// register is defined in an iteration.
pub(crate) fn relative(
    ranges: &Ranges,
    address: &Poly<Reg>,
    len: Option<&Poly<Reg>>,
    index: Reg,
    is_own: impl Fn(&Reg) -> bool,
) -> Option<Relative> {
    let (slope, rest) = address.split_linear(index)?;
    if slope.vars().iter().any(&is_own) {
        return None;
    }
    let (mut common, mut own) = (Poly::zero(), Poly::zero());
    for (monomial, c) in rest.terms() {
        let term = monomial.iter().fold(Poly::constant(c), |p, r| p.mul(&Poly::var(*r)));
        let part = if monomial.is_empty() || monomial.iter().any(&is_own) { &mut own } else { &mut common };
        *part = part.add(&term);
    }
    let is_inside = |own: &Poly<Reg>| match len {
        None => ranges.is_inside(own, &slope),
        Some(len) => own.is_zero() && (*len == slope || ranges.is_inside(len, &slope.add(&Poly::constant(1)))),
    };
    // The last element of a row may be written as the one before the next row.
    let rows = match (slope.as_constant(), own.split_constant().1) {
        (Some(slope), c) if slope > 0 => vec![c.div_euclid(slope)],
        _ => vec![0, -1],
    };
    let row = rows.into_iter().find_map(|k| {
        let begin = slope.scale(k);
        is_inside(&own.sub(&begin)).then(|| common.add(&begin))
    });
    Some(Relative { slope, common, own, row })
}

/// Returns the address relative to a loop; with `len`, for that many elements.
fn view(
    ranges: &Ranges,
    lives: &Liveness,
    address: &Poly<Reg>,
    len: Option<&Poly<Reg>>,
    &Open { begin, index, .. }: &Open,
) -> Option<View> {
    // Events count from 0 here, from 1 there.
    let is_own = |r: &Reg| lives.def[r.index()] as usize > begin + 1;
    let Relative { slope, common, own, row } = relative(ranges, address, len, index, is_own)?;
    let beyond = own.terms().map(|(_, c)| c).reduce(gcd).filter(|beyond| {
        let along = slope.mul(&Poly::var(index));
        len.is_none()
            && slope.as_constant().is_some_and(|s| s > 0)
            && ranges.is_inside(&along, &Poly::constant(*beyond))
    });
    Some(View { beyond, slope, common, constant: len.is_none().then(|| own.as_constant()).flatten(), row })
}

/// The greatest common divisor.
fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.saturating_abs(), b.saturating_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the reductions of the loop over `index`, if all its carried registers are reductions.
fn reductions(kernel: &Kernel, index: Reg, carried: &[Carried], body: &[Event<'_>]) -> Option<Vec<Group>> {
    let own_sum = |c: &Carried| if is_apart(c, carried) { sum(kernel, c, body) } else { None };
    let mut all: Vec<Option<Group>> = carried.iter().map(own_sum).collect();
    if all.iter().any(Option::is_none) && carried.iter().all(|c| kernel.regs[c.var] == Class::Real) {
        for Selection { number, place, extreme } in selections(kernel, index, carried, body) {
            all[number] = Some(extreme);
            all[place] = Some(Group::Place(number));
        }
    }
    all.into_iter().collect()
}

/// Returns the reduction of a carried register, if it is one.
fn sum(kernel: &Kernel, carried: &Carried, body: &[Event<'_>]) -> Option<Group> {
    if kernel.regs[carried.var] != Class::Real || carried.next == carried.var {
        return None;
    }
    let (mut value, mut group) = (carried.var, None);
    let mut after = 0;
    // Each step is further down in the body.
    while value != carried.next {
        let (at, next) = only_use(body, after, value)?;
        let step = match next {
            Use::Operator { op, first, dst } => {
                let step = Group::of(op, first)?;
                value = dst;
                Some(step)
            }
            // An inner loop carries it.
            Use::Inside(inner) => {
                let end = at + closing(&body[at..])?;
                let step = if inner.next == inner.var { None } else { Some(sum(kernel, &inner, &body[at + 1..end])?) };
                value = inner.var;
                // Its uses inside the loop are counted already.
                after = end;
                step
            }
        };
        if let Some(step) = step {
            if group.is_some_and(|group| group != step) {
                return None;
            }
            group = Some(step);
        }
        if after <= at {
            after = at + 1;
        }
    }
    // Its new value may have no other use than an inner loop that carries it.
    reads(&body[after..], carried.next).is_empty().then_some(group)?
}

/// Returns whether no other one of `all` carried registers has the same next value, which would then add up both.
pub(super) fn is_apart(carried: &Carried, all: &[Carried]) -> bool {
    all.iter().filter(|other| other.next == carried.next).count() == 1
}

enum Use {
    Operator { op: Op, first: bool, dst: Reg },
    Inside(Carried),
}

/// Returns the only use of `value` in the events from `from` on.
fn only_use(body: &[Event<'_>], from: usize, value: Reg) -> Option<(usize, Use)> {
    let all = reads(&body[from..], value);
    let [at] = all.as_slice() else { return None };
    let at = from + at;
    match &body[at] {
        Event::Instr(Instr::Op { dst, op, args }) if op.arity() == 2 => {
            let [a, b, _] = *args;
            (a != b).then_some((at, Use::Operator { op: *op, first: a == value, dst: *dst }))
        }
        Event::For { carried, .. } => {
            let mut inits = carried.iter().filter(|c| c.init == value);
            let inner = *inits.next()?;
            (inits.next().is_none() && is_apart(&inner, carried)).then_some((at, Use::Inside(inner)))
        }
        _ => None,
    }
}

/// Returns the numbers of the events that read `value`.
fn reads(body: &[Event<'_>], value: Reg) -> Vec<usize> {
    let reads_it = |event: &Event<'_>| match event {
        Event::Instr(instr) => {
            let mut any = false;
            instr.for_each_use(|r| any |= r == value);
            any
        }
        Event::For { carried, .. } | Event::While { carried, .. } => carried.iter().any(|c| c.init == value),
        Event::EndFor { carried, .. } | Event::EndWhile { carried } => carried.iter().any(|c| c.next == value),
        Event::Else { choices } => choices.iter().any(|c| c.then == value),
        Event::EndIf { choices } => choices.iter().any(|c| c.otherwise == value),
        Event::Copy { .. } | Event::Test { .. } | Event::If { .. } => false,
    };
    (0..body.len()).filter(|i| reads_it(&body[*i])).collect()
}

/// Returns the event that closes the first event.
fn closing(events: &[Event<'_>]) -> Option<usize> {
    let mut depth = 0usize;
    for (i, event) in events.iter().enumerate() {
        match event {
            Event::For { .. } | Event::While { .. } | Event::If { .. } => depth += 1,
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns whether the loop only adds to elements of the buffer: load, addition and store in one block. `first` is the
/// number of the first event of `body`.
fn adds_only(kernel: &Kernel, body: &[Event<'_>], first: usize, buffer: BufferId, accesses: &[&Access<'_>]) -> bool {
    if kernel.buffers[buffer].class != Class::Real || accesses.len() % 2 == 1 {
        return false;
    }
    accesses.chunks(2).all(|pair| {
        let [read, write] = pair else { return false };
        let (from, to) = (read.at - first, write.at - first);
        let one_block = body[from..=to].iter().all(|event| matches!(event, Event::Instr(_)));
        let (Event::Instr(Instr::Load { dst, .. }), Event::Instr(Instr::Store { value, .. })) =
            (&body[from], &body[to])
        else {
            return false;
        };
        if read.writes || !write.writes || read.address != write.address || !one_block {
            return false;
        }
        let mut so_far = *dst;
        while so_far != *value {
            match only_use(body, from, so_far) {
                Some((at, Use::Operator { op, first, dst })) if at < to && Group::of(op, first) == Some(Group::Sum) => {
                    so_far = dst;
                }
                _ => return false,
            }
        }
        reads(body, *value) == [to]
    })
}
