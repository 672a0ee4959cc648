//! Which loops have iterations that do not look at each other.
//!
//! A register that is carried has to be a sum, a product, a least or a greatest: it goes through operators of one kind only,
//! with something else each time, and nothing else reads it. Of a buffer that the loop writes
//!
//! - either all accesses in the kernel are in the loop, the first is a write, and, for lanes, none goes by the loop's index:
//!   each iteration has it for itself. (Lowering makes no buffer that carries a value from one iteration to the next
//!   without having been written before the loop.)
//! - or all accesses of the loop to it read an element, add to it, and write it back, none by the loop's index, and the loop is
//!   in no other: the iterations add to it;
//! - or they do so by the loop's index, in no branch: iterations add to elements that others add to as well (`apart`);
//! - or all go by the loop's index with one slope, and what is left of each address is shown to be between 0 and the slope;
//! - or all go by the loop's index with one slope, and what is left is a multiple of a number that the slope times the index does
//!   not reach (columns of few elements);
//! - or all go by the loop's index with one slope that is a number, in each iteration, and what is left of two addresses is the
//!   same, or further apart than the slope times the index (rows of one array).

use super::body::Lanes;
use super::{Plan, Spans};
use crate::events::Event;
use crate::kernel::{BufferId, Carried, Class, Instr, Kernel, LANES, Order, Place, Reg};
use crate::liveness::Liveness;
use crate::ranges::Ranges;
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Fewer iterations are not worth a vector.
const FEW: i64 = 3;

/// How values are put together in any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    Sum,
    Product,
    Least,
    Greatest,
}

impl Group {
    /// By the operator, and whether the value so far is its first argument.
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

    pub(crate) fn op(self) -> Op {
        match self {
            Self::Sum => Op::Add,
            Self::Product => Op::Mul,
            Self::Least => Op::Min,
            Self::Greatest => Op::Max,
        }
    }

    /// What changes nothing; of sums the zero that leaves even a negative zero as it is.
    pub(crate) fn neutral(self) -> f64 {
        match self {
            Self::Sum => -0.0,
            Self::Product => 1.0,
            Self::Least => f64::INFINITY,
            Self::Greatest => f64::NEG_INFINITY,
        }
    }
}

/// An access to a buffer, as seen from the loops around it.
struct Access<'k> {
    at: usize,
    buffer: BufferId,
    writes: bool,
    address: &'k Poly<Reg>,
    /// The loop that it is in, with no branch or other loop between, by its opening event.
    inside: Option<usize>,
    /// The loops around it by their opening events, innermost first, with the address as they see it.
    around: Vec<(usize, Option<View>)>,
}

/// An address as a loop sees it: `slope * index + common + own`.
struct View {
    slope: Poly<Reg>,
    /// The same in all iterations, without the constant.
    common: Poly<Reg>,
    /// The rest where it is a constant, of one element.
    constant: Option<i64>,
    /// Whether the rest, over all elements of a copy, is between 0 and the slope.
    is_inside: bool,
    /// What the rest is a multiple of, of one element, if the slope times the index is shown to be between 0 and that.
    beyond: Option<i64>,
    /// Of accesses before it in each iteration what is left without the slope, where it is shown to differ from that of this
    /// one by more than the slope times the index.
    far_from: Vec<Poly<Reg>>,
}

impl View {
    /// What is left of the address of one element without the slope times the index, where that is the same in all iterations.
    fn base(&self) -> Option<Poly<Reg>> {
        self.constant.map(|c| self.common.add(&Poly::constant(c)))
    }
}

/// An access is compared with so many before it.
const MAX_COMPARED: usize = 64;

/// Whether no iteration accesses what another one does.
fn are_apart(views: &[&View]) -> bool {
    let first = views[0];
    let one_element = first.constant.is_some() && first.slope.as_constant().is_some_and(|s| s != 0);
    views.iter().all(|v| v.slope == first.slope && v.common == first.common)
        && (views.iter().all(|v| v.is_inside)
            || (first.beyond.is_some() && views.iter().all(|v| v.beyond == first.beyond))
            || (one_element && views.iter().all(|v| v.constant == first.constant)))
}

/// The same where addresses have several bases: of each two it is shown that they differ by more than the slope times the
/// index, in an iteration as in any other. Of two iterations the indices differ by no more than the larger of them, so no
/// access of one comes to where one of the other is. All accesses are done in all iterations.
fn are_far_apart(views: &[&View]) -> bool {
    let first = views[0];
    if first.slope.as_constant().is_none_or(|s| s == 0) || views.iter().any(|v| v.slope != first.slope) {
        return false;
    }
    let Some(bases) = views.iter().map(|v| v.base()).collect::<Option<Vec<_>>>() else { return false };
    let is_shown = |a: &Poly<Reg>, b: &Poly<Reg>| {
        let from = |one: &Poly<Reg>, other: &Poly<Reg>| {
            bases.iter().zip(views).any(|(base, view)| base == one && view.far_from.contains(other))
        };
        a == b || from(a, b) || from(b, a)
    };
    let mut distinct: Vec<&Poly<Reg>> = Vec::new();
    for base in &bases {
        if !distinct.contains(&base) {
            if !distinct.iter().all(|other| is_shown(base, other)) {
                return false;
            }
            distinct.push(base);
        }
    }
    true
}

/// The loops that can run in lanes, once branches by what is `choosable` are choices, or in parts (`order`), by their opening
/// events.
pub(crate) fn legal(
    kernel: &Kernel,
    events: &[Event<'_>],
    spans: &Spans,
    reorder: bool,
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
    let accesses = accesses(kernel, events, spans, &lives, &written);
    let mut of_buffer: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    for (i, access) in accesses.iter().enumerate() {
        of_buffer.entry(access.buffer).or_default().push(i);
    }
    let mut lanes = Lanes::new(kernel.regs.len());
    let mut found = BTreeMap::new();
    for (begin, end) in spans.loops() {
        let Event::For { index, count, carried, order: Order::InOrder } = &events[begin] else { continue };
        let body = &events[begin + 1..end];
        // A part has whole blocks of lanes, and one part alone is none. Partial results of a few iterations are dear.
        let (least, may_run) = match order {
            Order::Parts => (LANES + 1, spans.top.contains(&begin)),
            _ => {
                let least = if carried.is_empty() { FEW } else { LANES };
                let fits = lanes.fits(kernel, *index, body, choosable) || {
                    let added = if reorder { scattered(kernel, body, begin, &accesses) } else { BTreeSet::new() };
                    !added.is_empty() && lanes.fits_but(kernel, *index, body, choosable, added)
                };
                (least, fits)
            }
        };
        if count.as_constant().is_some_and(|n| n < least) || body.is_empty() || !may_run {
            continue;
        }
        let sums: Option<Vec<Group>> = carried.iter().map(|c| sum(kernel, c, body)).collect();
        let Some(sums) = sums.filter(|sums| reorder || sums.is_empty()) else { continue };
        let first = accesses.partition_point(|a| a.at <= begin);
        let last = accesses.partition_point(|a| a.at < end);
        let touched: BTreeSet<BufferId> = accesses[first..last].iter().map(|a| a.buffer).collect();
        let mut plan = Plan { sums, ..Plan::default() };
        let mine = |buffer: &BufferId| -> Vec<&Access<'_>> {
            let all = &of_buffer[buffer];
            let mine = &all[all.partition_point(|i| *i < first)..all.partition_point(|i| *i < last)];
            mine.iter().map(|i| &accesses[*i]).collect()
        };
        // The lengths of what iterations may add to, which gets eight places, too.
        let added: Vec<&Poly<Reg>> = (touched.iter())
            .filter(|buffer| mine(buffer).len() < of_buffer[buffer].len())
            .filter(|buffer| mine(buffer).iter().any(|a| a.writes && !a.address.vars().contains(index)))
            .map(|buffer| &kernel.buffers[*buffer].len)
            .collect();
        let fits = touched.iter().all(|buffer| {
            let all = &of_buffer[buffer];
            let mine = mine(buffer);
            if mine.iter().all(|a| !a.writes) {
                return true;
            }
            let is_work = matches!(kernel.buffers[*buffer].place, Place::Workspace(_));
            // What is computed of the index, or fetched by it, goes by it.
            let differs = |r: &Reg| *r == *index || (order == Order::Lanes && lanes.of(*r).is_some());
            let by_index = |a: &&Access<'_>| a.address.vars().iter().any(differs);
            // What is written by the index alone is looked at below.
            if is_work && mine.len() == all.len() && (order == Order::Parts || !mine.iter().any(by_index)) {
                plan.private.push(*buffer);
                // Eight times as much memory, as far as that is little.
                let is_little = |m: &[Reg]| m.len() <= 1 || added.iter().any(|len| is_part_of(m, len));
                let is_small = kernel.buffers[*buffer].len.terms().all(|(monomial, _)| is_little(monomial));
                return mine[0].writes && (order == Order::Parts || is_small);
            }
            if !mine.iter().any(by_index) && spans.outermost.contains(&begin) {
                plan.accumulators.push(*buffer);
                return reorder && adds_only(kernel, body, begin + 1, *buffer, &mine);
            }
            let views = mine.iter().map(|a| a.around.iter().find(|(l, _)| *l == begin).and_then(|(_, v)| v.as_ref()));
            let in_each = mine.iter().all(|a| a.inside == Some(begin));
            let views = views.collect::<Option<Vec<&View>>>();
            if views.is_some_and(|views| are_apart(&views) || (in_each && are_far_apart(&views))) {
                return true;
            }
            plan.scattered.insert(*buffer);
            order == Order::Lanes && reorder && adds_apart(kernel, body, begin + 1, *buffer, &mine)
        });
        if fits {
            found.insert(begin, plan);
        }
    }
    found
}

/// The buffers to which the iterations of the loop that opens at `begin` add wherever they like, and do nothing else with.
fn scattered(kernel: &Kernel, body: &[Event<'_>], begin: usize, accesses: &[Access<'_>]) -> BTreeSet<BufferId> {
    let first = accesses.partition_point(|a| a.at <= begin);
    let last = accesses.partition_point(|a| a.at <= begin + body.len());
    let mut of_buffer: BTreeMap<BufferId, Vec<&Access<'_>>> = BTreeMap::new();
    for access in &accesses[first..last] {
        of_buffer.entry(access.buffer).or_default().push(access);
    }
    of_buffer.retain(|buffer, mine| adds_apart(kernel, body, begin + 1, *buffer, mine));
    of_buffer.into_keys().collect()
}

/// Whether all that the loop does with the buffer is to add to elements, in loops that carry numbers only and in no branch: then
/// an iteration can be taken apart ([`super::apart`]). `first` is the number of the first event of `body`.
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

/// Whether the factors of `monomial` are factors of a term of `len`, and as often.
fn is_part_of(monomial: &[Reg], len: &Poly<Reg>) -> bool {
    let often = |all: &[Reg], r: Reg| all.iter().filter(|other| **other == r).count();
    len.terms().any(|(term, _)| monomial.iter().all(|r| often(monomial, *r) <= often(term, *r)))
}

/// All accesses to real buffers that the kernel writes, copies as two.
fn accesses<'k>(
    kernel: &Kernel,
    events: &[Event<'k>],
    spans: &Spans,
    lives: &Liveness,
    written: &BTreeSet<BufferId>,
) -> Vec<Access<'k>> {
    let mut ranges = Ranges::new(kernel);
    let mut open: Vec<(usize, Reg)> = Vec::new();
    // Loops and branches, a loop that is looked at by its opening event.
    let mut nest: Vec<Option<usize>> = Vec::new();
    let mut found: Vec<Access<'_>> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        ranges.event(event);
        match event {
            Event::For { .. } if spans.end.contains_key(&at) => nest.push(Some(at)),
            Event::For { .. } | Event::While { .. } | Event::If { .. } => nest.push(None),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                nest.pop();
            }
            _ => {}
        }
        let inside = nest.last().copied().flatten();
        let mut access = |buffer: BufferId, address: &'k Poly<Reg>, len: Option<&Poly<Reg>>, writes: bool| {
            if !written.contains(&buffer) {
                return;
            }
            let around = open
                .iter()
                .rev()
                .take(super::MAX_HEIGHT)
                .map(|(begin, index)| (*begin, view(&ranges, lives, address, len, *begin, *index)));
            let mut around: Vec<_> = around.collect();
            if let (Some((begin, Some(view))), Some((_, index))) = (around.first_mut(), open.last())
                && inside == Some(*begin)
            {
                let before = found.iter().rev().take(MAX_COMPARED).take_while(|access| access.at > *begin);
                let before = before.filter(|access| access.buffer == buffer && access.inside == inside);
                let bases = before.filter_map(|access| access.around.first()?.1.as_ref()?.base());
                view.far_from = far(&ranges, view, *index, bases);
            }
            found.push(Access { at, buffer, writes, address, inside, around });
        };
        match event {
            Event::For { index, .. } if spans.end.contains_key(&at) => open.push((at, *index)),
            Event::EndFor { .. } => {
                open.pop();
            }
            Event::Instr(Instr::Load { buffer, at, .. }) => access(*buffer, at, None, false),
            Event::Instr(Instr::Store { buffer, at, .. }) => access(*buffer, at, None, true),
            Event::Copy { to, from, len } => {
                access(from.0, &from.1, Some(len), false);
                access(to.0, &to.1, Some(len), true);
            }
            _ => {}
        }
    }
    found
}

/// Those of `others` that are shown to differ from the base of `view` by more than the slope times `index`.
fn far(ranges: &Ranges, view: &View, index: Reg, others: impl Iterator<Item = Poly<Reg>>) -> Vec<Poly<Reg>> {
    let (mut far, mut near): (Vec<Poly<Reg>>, Vec<Poly<Reg>>) = (Vec::new(), Vec::new());
    let (Some(base), Some(slope)) = (view.base(), view.slope.as_constant()) else { return far };
    let Some(slope) = slope.checked_abs() else { return far };
    let reach = Poly::var(index).mul(&Poly::constant(slope)).add(&Poly::constant(1));
    for other in others {
        if other == base || far.contains(&other) || near.contains(&other) {
            continue;
        }
        let by = base.sub(&other);
        if ranges.is_at_least_zero(&by.sub(&reach)) || ranges.is_at_least_zero(&by.neg().sub(&reach)) {
            far.push(other);
        } else {
            near.push(other);
        }
    }
    far
}

/// The address as the loop over `index` sees it, which begins at `begin`; with `len` for all of so many elements.
fn view(
    ranges: &Ranges,
    lives: &Liveness,
    address: &Poly<Reg>,
    len: Option<&Poly<Reg>>,
    begin: usize,
    index: Reg,
) -> Option<View> {
    // Events count from 0 here, from 1 there.
    let is_own = |r: &Reg| lives.def[r.index()] as usize > begin + 1;
    let (slope, rest) = address.split_linear(index)?;
    if slope.vars().iter().any(is_own) {
        return None;
    }
    let (mut common, mut own) = (Poly::zero(), Poly::zero());
    for (monomial, c) in rest.terms() {
        let term = monomial.iter().fold(Poly::constant(c), |p, r| p.mul(&Poly::var(*r)));
        let part = if monomial.is_empty() || monomial.iter().any(is_own) { &mut own } else { &mut common };
        *part = part.add(&term);
    }
    let is_inside = match len {
        None => ranges.is_inside(&own, &slope),
        Some(len) => own.is_zero() && (*len == slope || ranges.is_inside(len, &slope.add(&Poly::constant(1)))),
    };
    let beyond = own.terms().map(|(_, c)| c).reduce(gcd).filter(|beyond| {
        let along = slope.mul(&Poly::var(index));
        len.is_none()
            && slope.as_constant().is_some_and(|s| s > 0)
            && ranges.is_inside(&along, &Poly::constant(*beyond))
    });
    Some(View {
        beyond,
        slope,
        common,
        constant: len.is_none().then(|| own.as_constant()).flatten(),
        is_inside,
        far_from: Vec::new(),
    })
}

/// The greatest common divisor.
fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.saturating_abs(), b.saturating_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// How a carried register is put together from iteration to iteration, if it is.
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
            // A loop inside carries it on.
            Use::Inside(inner) => {
                let end = at + closing(&body[at..])?;
                let step = if inner.next == inner.var { None } else { Some(sum(kernel, &inner, &body[at + 1..end])?) };
                value = inner.var;
                // Inside of the loop its uses were counted.
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
    // Nothing else may read what it becomes; a loop inside that carries it on does.
    reads(&body[after..], carried.next).is_empty().then_some(group)?
}

enum Use {
    Operator { op: Op, first: bool, dst: Reg },
    Inside(Carried),
}

/// The one use of `value` in the events from `from` on, if it is the only one.
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
            inits.next().is_none().then_some((at, Use::Inside(inner)))
        }
        _ => None,
    }
}

/// The events that read `value`, one number for each.
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

/// The event that closes what `events` begins with.
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

/// Whether all that the loop does with the buffer is to add to elements: read one, add, write it back, in one block.
/// `first` is the number of the first event of `body`.
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
