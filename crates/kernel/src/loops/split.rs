//! Index set splitting: loops are cut where a comparison with the index changes. In each piece the comparison is
//! constant.
//!
//! It handles comparisons in the body, at any depth, whose sides differ by `± i + base` with an invariant base:
//!
//! | comparison | pieces |
//! | --- | --- |
//! | changes at `t` | `0..min(t, n)`, `max(t, 0)..n` |
//! | holds at `p` only | `0..min(p, n)`, `max(p, 0)..min(p + 1, n)`, `max(p + 1, 0)..n` |
//!
//! A comparison that only selects one of two constants stays in a loop that contains loops ([`selections`]).
//!
//! The bounds are computed from indices, extents, and minima, maxima and quotients of these, all of which are far from
//! overflow, or are single integers, so that no new failure is possible.
//!
//! Empty pieces and pieces of one iteration disappear when the kernel is [folded](super::fold). Iterations keep their
//! order, so that the same check fails first.

use super::MAX_WRAPS;
use crate::events::{Event, events};
use crate::kernel::{Carried, Class, Instr, Kernel, Order, Reg, SizeParam, SizeSource, Stmt};
use crate::lanes::rewrite::{Copier, Copies};
use crate::lanes::selections;
use crate::mentions::Mentions;
use crate::ranges::Ranges;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// Maximum number of events of a body that is copied.
const MAX_BODY: usize = 400;

/// Maximum nesting of a loop that is copied.
const MAX_HEIGHT: usize = 8;

/// Maximum number of terms, and maximum coefficient, of a sum that bounds its terms.
const MAX_TERMS: usize = 8;
const MAX_SLOPE: i64 = 1 << 10;

/// Returns the number of events that may be added to `kernel`.
pub(super) fn room(kernel: &Kernel) -> usize {
    2 * events(&kernel.body).len() + 400
}

/// Position where a comparison changes, over invariant registers.
enum Change {
    /// From here on it holds, or does not hold.
    From(Poly<Reg>, bool),
    /// It holds only here.
    At(Poly<Reg>, Place),
}

/// Place of an iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The first one or one before, or the last one or one after.
    Border,
    Any,
}

impl Change {
    fn at(&self) -> &Poly<Reg> {
        match self {
            Self::From(at, _) | Self::At(at, _) => at,
        }
    }

    /// Number of bodies that a cut adds; a piece without iterations is folded.
    fn n_copies(&self) -> usize {
        match self {
            Self::From(..) | Self::At(_, Place::Border) => 1,
            Self::At(_, Place::Any) => 2,
        }
    }
}

struct Cut {
    /// The comparison, or the integer whose form changes with it.
    reg: Reg,
    change: Change,
    /// Value of `reg` where the comparison does not hold, and where it does; `None` leaves it to
    /// [folding](super::fold), by the range of the index in the piece.
    sides: Option<[Poly<Reg>; 2]>,
}

/// Cuts each loop of `kernel` at one comparison at most, outer loops first; returns whether there was one.
pub(super) fn split(kernel: &mut Kernel, room: &mut usize) -> bool {
    let mut cuts = find(kernel, &events(&kernel.body), room);
    if cuts.is_empty() {
        return false;
    }
    let failure = kernel.failures.len();
    kernel.failures.push(("the bounds of a loop are none".to_owned(), None));
    let mut mentions = Mentions::of(&kernel.body);
    let mut body = std::mem::take(&mut kernel.body);
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order, body } => match cuts.remove(&index) {
            Some(cut) => pieces(kernel, &mut mentions, (failure, &cut), &Loop { index, count, carried, body }, done),
            None => done.push(Stmt::For { index, count, carried, order, body }),
        },
        stmt => done.push(stmt),
    });
    kernel.body = body;
    true
}

/// Open loop during the walk over the events.
struct Open {
    index: Option<Reg>,
    count: Poly<Reg>,
    begin: usize,
    height: usize,
    cut: Option<Cut>,
    /// Conditional loops are not copied.
    has_while: bool,
    /// Whether it, or a loop around it, has one iteration at most.
    is_thin: bool,
}

/// Loop that could be cut.
struct Candidate {
    index: Reg,
    begin: usize,
    end: usize,
    is_thin: bool,
    cut: Cut,
}

/// Integers as polynomials, the position of each definition, and the range facts at the current event.
struct Values {
    of: BTreeMap<Reg, Poly<Reg>>,
    defined: BTreeMap<Reg, usize>,
    ranges: Ranges,
}

impl Values {
    fn value(&self, p: &Poly<Reg>) -> Poly<Reg> {
        p.substitute(|r| self.of.get(&r).cloned().unwrap_or_else(|| Poly::var(r)))
    }
}

/// Returns the loops to cut, by index. Of nested loops the outer one, since its body is copied unchanged; loops that
/// are most of the work before borders of one iteration.
fn find(kernel: &Kernel, events: &[Event<'_>], room: &mut usize) -> BTreeMap<Reg, Cut> {
    let has_forms = |event: &Event<'_>| {
        matches!(
            event,
            Event::Instr(Instr::IntOp { op: Op::Lt | Op::Le | Op::Eq | Op::Min | Op::Max | Op::Abs | Op::Mod, .. })
        )
    };
    if !events.iter().any(has_forms) {
        return BTreeMap::new();
    }
    let mut candidates = candidates(kernel, events);
    candidates.sort_by_key(|c| (c.is_thin, c.begin));
    let mut cuts: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        let n_added = candidate.cut.change.n_copies() * (candidate.end - candidate.begin);
        let is_apart = |other: &Candidate| other.end < candidate.begin || candidate.end < other.begin;
        // Borders wait until the loops that are most of the work have all their cuts, which may use up the room.
        if candidate.is_thin && cuts.iter().any(|other| !other.is_thin) {
            break;
        }
        // Loops inside one that is cut are analysed again after the cut.
        if n_added <= *room && cuts.iter().all(is_apart) {
            *room -= n_added;
            cuts.push(candidate);
        }
    }
    cuts.into_iter().map(|c| (c.index, c.cut)).collect()
}

/// Returns the loops that a comparison splits.
fn candidates(kernel: &Kernel, events: &[Event<'_>]) -> Vec<Candidate> {
    // Bounded integers (loop indices, checked array indices, extents, and results computed from them), with the event
    // from which on they are bounded.
    let is_extent = |s: &&SizeParam| matches!(s.source, SizeSource::Extent { .. });
    let mut bounded: BTreeMap<Reg, usize> = kernel.sizes.iter().filter(is_extent).map(|s| (s.reg, 0)).collect();
    // Integers that are bounded in each open loop and branch.
    let mut checked: Vec<Vec<Reg>> = vec![Vec::new()];
    let selections = selections(events);
    let mut found: Vec<Candidate> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut values = Values { of: BTreeMap::new(), defined: BTreeMap::new(), ranges: Ranges::new(kernel) };
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::For { .. } | Event::While { .. } | Event::If { .. } => checked.push(Vec::new()),
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } | Event::Else { .. } => {
                checked.pop().into_iter().flatten().for_each(|r| {
                    bounded.remove(&r);
                });
                if matches!(event, Event::Else { .. }) {
                    checked.push(Vec::new());
                }
            }
            Event::Instr(Instr::CheckIndex { index, .. }) => {
                let index = values.value(&Poly::var(*index));
                if let Some(r) = bounded_with(&index, |r| bounded.contains_key(&r))
                    && let Some(inside) = checked.last_mut()
                {
                    bounded.insert(r, at);
                    inside.push(r);
                }
            }
            _ => {}
        }
        match event {
            Event::For { index, order, carried, count, .. } => {
                let is_once = values.ranges.is_at_least_zero(&Poly::constant(1).sub(count));
                open.push(Open {
                    index: (*order == Order::InOrder).then_some(*index),
                    count: (*count).clone(),
                    begin: at,
                    height: 1,
                    cut: None,
                    has_while: false,
                    is_thin: is_once || open.last().is_some_and(|l| l.is_thin),
                });
                bounded.insert(*index, at);
                values.defined.extend(carried.iter().map(|c| (c.var, at)).chain([(*index, at)]));
            }
            Event::While { carried, .. } => {
                open.iter_mut().for_each(|around| around.has_while = true);
                let is_thin = open.last().is_some_and(|l| l.is_thin);
                open.push(Open {
                    index: None,
                    count: Poly::zero(),
                    begin: at,
                    height: 1,
                    cut: None,
                    has_while: false,
                    is_thin,
                });
                values.defined.extend(carried.iter().map(|c| (c.var, at)));
            }
            Event::EndIf { choices } => values.defined.extend(choices.iter().map(|c| (c.var, at))),
            Event::EndFor { .. } | Event::EndWhile { .. } => {
                let Some(ended) = open.pop() else { continue };
                if let Some(around) = open.last_mut() {
                    around.height = around.height.max(ended.height + 1);
                }
                let Open { begin, height, is_thin, has_while, .. } = ended;
                if let (Some(index), Some(cut)) = (ended.index, ended.cut)
                    && at - begin <= MAX_BODY
                    && height <= MAX_HEIGHT
                    && !has_while
                {
                    found.push(Candidate { index, begin, end: at, is_thin, cut });
                }
            }
            Event::Instr(instr) => {
                if let Some(dst) = instr.dst() {
                    values.defined.insert(dst, at);
                }
                match instr {
                    Instr::Int { dst, value } => {
                        let value = values.value(value);
                        values.of.insert(*dst, value);
                    }
                    Instr::IntOp { dst, op, args, .. } => {
                        if is_bounded_result(&values, *op, *args, |r| bounded.contains_key(&r)) {
                            bounded.insert(*dst, at);
                            if let Some(inside) = checked.last_mut() {
                                inside.push(*dst);
                            }
                        }
                        if !selections.contains(dst)
                            && let Some(asked) = asked(&values, *op, *args)
                            && let Some((l, index)) = outermost(&mut open, &values, &asked.by)
                            && l.cut.is_none()
                            && let Some(change) = change(asked.op, &asked.by, index, |at| place(&values.ranges, l, at))
                            && is_bounded_at(&bounded, l.begin, change.at())
                        {
                            l.cut = Some(Cut { reg: *dst, change, sides: asked.sides });
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        values.ranges.event(event);
    }
    found
}

/// Comparison that an integer instruction makes.
struct Asked {
    op: Op,
    /// Second side less the first.
    by: Poly<Reg>,
    sides: Option<[Poly<Reg>; 2]>,
}

/// Returns the comparison that decides the form of `op` of `args`: of a minimum which side is less, of a remainder
/// whether the dividend reaches a multiple of the divisor.
fn asked(values: &Values, op: Op, args: [Reg; 3]) -> Option<Asked> {
    let [a, b, _] = args.map(|r| values.value(&Poly::var(r)));
    let [to_a, to_b, _] = args.map(Poly::var);
    Some(match op {
        Op::Lt | Op::Le | Op::Eq => Asked { op, by: b.sub(&a), sides: Some([0, 1].map(Poly::constant)) },
        Op::Min => Asked { op: Op::Le, by: b.sub(&a), sides: Some([to_b, to_a]) },
        Op::Max => Asked { op: Op::Le, by: b.sub(&a), sides: Some([to_a, to_b]) },
        Op::Abs => Asked { op: Op::Le, by: a, sides: Some([to_a.neg(), to_a]) },
        Op::Mod if values.ranges.is_at_least_zero(&b) => {
            let reaches = |k: i64| values.ranges.is_at_least_zero(&a.sub(&b.scale(k)));
            let is_below = |k: i64| values.ranges.is_at_least_zero(&b.scale(k).sub(&a).sub(&Poly::constant(1)));
            let least = (-MAX_WRAPS..=MAX_WRAPS).rev().find(|k| reaches(*k))?;
            // Without an upper bound, the part past one whole period stays a remainder.
            let is_split = if (least + 2..=MAX_WRAPS + 1).any(is_below) {
                !is_below(least + 1)
            } else {
                least <= 0 && b.as_constant().is_none() && !is_below(least + 1)
            };
            if !is_split {
                return None;
            }
            let by = a.sub(&b.scale(least + 1));
            Asked { op: Op::Le, by, sides: None }
        }
        _ => return None,
    })
}

/// Returns the outermost loop whose index alone of its registers is in `by`.
fn outermost<'l>(open: &'l mut [Open], values: &Values, by: &Poly<Reg>) -> Option<(&'l mut Open, Reg)> {
    open.iter_mut().find_map(|l| {
        let index = l.index?;
        (by.vars().contains(&index) && is_same_but(by, index, l.begin, &values.defined)).then_some((l, index))
    })
}

/// Returns whether the position `at` can be computed before the loop that begins at `begin`.
fn is_bounded_at(bounded: &BTreeMap<Reg, usize>, begin: usize, at: &Poly<Reg>) -> bool {
    let is_bounded = |r: &Reg| bounded.get(r).is_some_and(|since| *since <= begin);
    at.as_var().is_some() || at.vars().iter().all(is_bounded)
}

/// Returns whether `op` of `args`, a minimum, a maximum or a quotient by a constant, is neither negative nor far above
/// a bounded integer.
fn is_bounded_result(values: &Values, op: Op, args: [Reg; 3], is_bounded: impl Fn(Reg) -> bool) -> bool {
    let sides = [args[0], args[1]].map(|r| values.value(&Poly::var(r)));
    let is_limited = |p: &Poly<Reg>| {
        let (rest, c) = p.split_constant();
        (-MAX_SLOPE..=MAX_SLOPE).contains(&c) && (rest.is_zero() || rest.as_var().is_some_and(&is_bounded))
    };
    let is_at_least_zero = |p: &Poly<Reg>| values.ranges.is_at_least_zero(p);
    match op {
        Op::Min => sides.iter().all(is_at_least_zero) && sides.iter().any(is_limited),
        Op::Max => sides.iter().any(is_at_least_zero) && sides.iter().all(is_limited),
        Op::Quot => {
            is_at_least_zero(&sides[0]) && is_limited(&sides[0]) && sides[1].as_constant().is_some_and(|c| c > 0)
        }
        _ => false,
    }
}

/// Returns the register that is bounded if the sum `p` is, since all its other terms are.
fn bounded_with(p: &Poly<Reg>, is_bounded: impl Fn(Reg) -> bool) -> Option<Reg> {
    let is_sum = p.terms().all(|(monomial, c)| monomial.len() <= 1 && (-MAX_SLOPE..=MAX_SLOPE).contains(&c));
    let mut others = p.vars().into_iter().filter(|r| !is_bounded(*r));
    let r = others.next().filter(|_| is_sum && others.next().is_none())?;
    (p.terms().len() <= MAX_TERMS).then_some(r)
}

/// Returns whether `index` is the only register in `p` that is defined in the loop beginning at `begin`.
fn is_same_but(p: &Poly<Reg>, index: Reg, begin: usize, defined: &BTreeMap<Reg, usize>) -> bool {
    p.vars().iter().all(|r| *r == index || defined.get(r).is_none_or(|at| *at < begin))
}

/// Returns where the comparison `op` changes, if its second side is `by` more than the first.
fn change(op: Op, by: &Poly<Reg>, index: Reg, place: impl Fn(&Poly<Reg>) -> Place) -> Option<Change> {
    let (slope, base) = by.split_linear(index)?;
    let least = Poly::constant(i64::from(op == Op::Lt));
    match (op, slope.as_constant()?) {
        (Op::Eq, slope @ (-1 | 1)) => {
            let at = base.scale(-slope);
            let place = place(&at);
            Some(Change::At(at, place))
        }
        (_, 1) => Some(Change::From(least.sub(&base), true)),
        (_, -1) => Some(Change::From(base.sub(&least).add(&Poly::constant(1)), false)),
        _ => None,
    }
}

/// Returns the place of the iteration `at` of a loop; `ranges` are those of its body.
fn place(ranges: &Ranges, of: &Open, at: &Poly<Reg>) -> Place {
    let last = of.count.sub(&Poly::constant(1));
    let is_border = ranges.is_at_least_zero(&at.neg()) || ranges.is_at_least_zero(&at.sub(&last));
    if is_border { Place::Border } else { Place::Any }
}

struct Loop {
    index: Reg,
    count: Poly<Reg>,
    carried: Vec<Carried>,
    body: Vec<Stmt>,
}

/// Emits the pieces of a loop to `out`.
fn pieces(
    kernel: &mut Kernel,
    mentions: &mut Mentions,
    (failure, cut): (usize, &Cut),
    the: &Loop,
    out: &mut Vec<Stmt>,
) {
    let mut before = Vec::new();
    let int = |kernel: &mut Kernel, before: &mut Vec<Instr>, value: Poly<Reg>| {
        let dst = kernel.regs.push(Class::Int);
        before.push(Instr::Int { dst, value });
        dst
    };
    let zero = int(kernel, &mut before, Poly::zero());
    let count = int(kernel, &mut before, the.count.clone());
    kernel.regs.computes(count, the.index);
    // Start of a piece that should begin at `p`, and end of one.
    let limit = |kernel: &mut Kernel, before: &mut Vec<Instr>, op: Op, other: Reg, p: &Poly<Reg>| {
        let p = int(kernel, before, p.clone());
        let dst = kernel.regs.push(Class::Int);
        before.push(Instr::IntOp { dst, op, args: [p, other, p], failure });
        Poly::var(dst)
    };
    let begin = |kernel: &mut Kernel, before: &mut Vec<Instr>, p| limit(kernel, before, Op::Max, zero, p);
    let after = |p: &Poly<Reg>| p.add(&Poly::constant(1));
    // First, one past the last, value of the comparison.
    let mut pieces: Vec<(Poly<Reg>, Poly<Reg>, bool)> = Vec::new();
    match &cut.change {
        Change::From(t, holds) => {
            let from = begin(kernel, &mut before, t);
            let to = limit(kernel, &mut before, Op::Min, count, t);
            pieces.push((Poly::zero(), to, !holds));
            pieces.push((from, the.count.clone(), *holds));
        }
        Change::At(p, _) => {
            let at = begin(kernel, &mut before, p);
            // At most the end, so that adding one cannot overflow.
            let to = limit(kernel, &mut before, Op::Min, count, p);
            let next = begin(kernel, &mut before, &after(&to));
            let past = limit(kernel, &mut before, Op::Min, count, &after(&to));
            pieces.push((Poly::zero(), to, false));
            pieces.push((at, past, true));
            pieces.push((next, the.count.clone(), false));
        }
    }
    out.push(Stmt::Straight(before));
    let mut inits: Vec<Reg> = the.carried.iter().map(|c| c.init).collect();
    let last = pieces.len() - 1;
    for (i, (from, to, holds)) in pieces.into_iter().enumerate() {
        let step = kernel.regs.push(Class::Int);
        let by = Poly::var(step).add(&from);
        let buffers = if i == last { BTreeMap::new() } else { mentions.own(&mut kernel.buffers, &the.body) };
        let mut copier = Copier {
            regs: &mut kernel.regs,
            map: BTreeMap::new(),
            index: the.index,
            by: by.clone(),
            fresh: i != last,
            lane: None,
            buffers: &buffers,
        };
        let vars: Vec<Reg> = the.carried.iter().map(|c| copier.define(c.var)).collect();
        let index = copier.define(the.index);
        let mut body = copier.block(&the.body);
        let carried = the.carried.iter().zip(&vars).zip(&inits);
        let carried =
            carried.map(|((c, var), init)| Carried { var: *var, init: *init, next: copier.of(c.next) }).collect();
        if let Some(sides) = &cut.sides {
            let value = copier.poly(&sides[usize::from(holds)]);
            decide(&mut body, copier.of(cut.reg), &value);
        }
        body.insert(0, Stmt::Straight(vec![Instr::Int { dst: index, value: by }]));
        out.push(Stmt::For { index: step, count: to.sub(&from), carried, order: Order::InOrder, body });
        inits = vars;
    }
}

/// Replaces the definition of `reg` in `body` by `value`.
fn decide(body: &mut [Stmt], reg: Reg, value: &Poly<Reg>) {
    let mut open: Vec<&mut Stmt> = body.iter_mut().collect();
    while let Some(stmt) = open.pop() {
        match stmt {
            Stmt::Straight(code) => {
                for instr in code.iter_mut().filter(|instr| instr.dst() == Some(reg)) {
                    *instr = Instr::Int { dst: reg, value: value.clone() };
                }
            }
            Stmt::For { body, .. } => open.extend(body),
            Stmt::While { condition, body, .. } => open.extend(condition.iter_mut().chain(body)),
            Stmt::If { then, otherwise, .. } => open.extend(then.iter_mut().chain(otherwise)),
            Stmt::Copy { .. } => {}
        }
    }
}
