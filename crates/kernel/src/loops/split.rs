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
//! The bounds are computed from indices and extents, which are far from overflow, or are single integers, so that no
//! new failure is possible.
//!
//! Empty pieces and pieces of one iteration disappear when the kernel is [folded](super::fold). Iterations keep their
//! order, so that the same check fails first.

use crate::events::{Event, events};
use crate::kernel::{Carried, Class, Instr, Kernel, Order, Reg, SizeParam, SizeSource, Stmt};
use crate::lanes::rewrite::{Copier, Copies};
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
    At(Poly<Reg>),
}

struct Cut {
    condition: Reg,
    change: Change,
}

/// Cuts each loop of `kernel` at one comparison at most, outer loops first; returns whether there was one.
pub(super) fn split(kernel: &mut Kernel, room: &mut usize) -> bool {
    let mut cuts = find(kernel, &events(&kernel.body), room);
    if cuts.is_empty() {
        return false;
    }
    let failure = kernel.failures.len();
    kernel.failures.push(("the bounds of a loop are none".to_owned(), None));
    let mut body = std::mem::take(&mut kernel.body);
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order, body } => match cuts.remove(&index) {
            Some(cut) => pieces(kernel, failure, &cut, &Loop { index, count, carried, body }, done),
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
    begin: usize,
    height: usize,
    change: Option<(Reg, Change)>,
    /// Conditional loops are not copied.
    has_while: bool,
}

impl Open {
    fn new(index: Option<Reg>, begin: usize) -> Self {
        Self { index, begin, height: 1, change: None, has_while: false }
    }
}

/// Returns the loops to cut, by index. Of nested loops the outer one, since its body is copied unchanged.
fn find(kernel: &Kernel, events: &[Event<'_>], room: &mut usize) -> BTreeMap<Reg, Cut> {
    // Bounded integers (loop indices, checked array indices, extents), with the event from which on they are bounded.
    let is_extent = |s: &&SizeParam| matches!(s.source, SizeSource::Extent { .. });
    let mut bounded: BTreeMap<Reg, usize> = kernel.sizes.iter().filter(is_extent).map(|s| (s.reg, 0)).collect();
    // Indices checked in each open loop and branch.
    let mut checked: Vec<Vec<Reg>> = vec![Vec::new()];
    // By the start of the loop, in the order of loop ends: inner loops are the last entries when a loop ends.
    let mut cuts: Vec<(usize, usize, Reg, Cut)> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    // Integers as polynomials, and the position of each definition.
    let mut values: BTreeMap<Reg, Poly<Reg>> = BTreeMap::new();
    let mut defined: BTreeMap<Reg, usize> = BTreeMap::new();
    let value = |values: &BTreeMap<Reg, Poly<Reg>>, p: &Poly<Reg>| {
        p.substitute(|r| values.get(&r).cloned().unwrap_or_else(|| Poly::var(r)))
    };
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
                let index = value(&values, &Poly::var(*index));
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
            Event::For { index, order, carried, .. } => {
                open.push(Open::new((*order == Order::InOrder).then_some(*index), at));
                bounded.insert(*index, at);
                defined.extend(carried.iter().map(|c| (c.var, at)).chain([(*index, at)]));
            }
            Event::While { carried, .. } => {
                open.iter_mut().for_each(|around| around.has_while = true);
                open.push(Open::new(None, at));
                defined.extend(carried.iter().map(|c| (c.var, at)));
            }
            Event::EndIf { choices } => defined.extend(choices.iter().map(|c| (c.var, at))),
            Event::EndFor { .. } | Event::EndWhile { .. } => {
                let Some(ended) = open.pop() else { continue };
                if let Some(around) = open.last_mut() {
                    around.height = around.height.max(ended.height + 1);
                }
                let n_events = at - ended.begin;
                if let (Some(index), Some((condition, change))) = (ended.index, ended.change)
                    && n_events <= MAX_BODY.min(*room)
                    && ended.height <= MAX_HEIGHT
                    && !ended.has_while
                {
                    // Inner loops are analysed again after the cut.
                    while let Some((_, inner, ..)) = cuts.pop_if(|(begin, ..)| *begin > ended.begin) {
                        *room += 2 * inner;
                    }
                    *room = room.saturating_sub(2 * n_events);
                    cuts.push((ended.begin, n_events, index, Cut { condition, change }));
                }
            }
            Event::Instr(instr) => {
                if let Some(dst) = instr.dst() {
                    defined.insert(dst, at);
                }
                match instr {
                    Instr::Int { dst, value: p } => {
                        let p = value(&values, p);
                        values.insert(*dst, p);
                    }
                    Instr::IntOp { dst, op: op @ (Op::Lt | Op::Le | Op::Eq), args: [a, b, _], .. } => {
                        let [a, b] = [a, b].map(|r| value(&values, &Poly::var(*r)));
                        let by = b.sub(&a);
                        let outermost = open.iter_mut().find(|l| {
                            l.index.is_some_and(|i| by.vars().contains(&i) && is_same_but(&by, i, l.begin, &defined))
                        });
                        if let Some(l) = outermost
                            && l.change.is_none()
                            && let Some(index) = l.index
                        {
                            let change = change(*op, &by, index).filter(|change| {
                                let (Change::From(at, _) | Change::At(at)) = change;
                                let is_bounded = |r: &Reg| bounded.get(r).is_some_and(|since| *since <= l.begin);
                                at.as_var().is_some() || at.vars().iter().all(is_bounded)
                            });
                            l.change = change.map(|change| (*dst, change));
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    cuts.into_iter().map(|(_, _, index, cut)| (index, cut)).collect()
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
fn change(op: Op, by: &Poly<Reg>, index: Reg) -> Option<Change> {
    let (slope, base) = by.split_linear(index)?;
    let least = Poly::constant(i64::from(op == Op::Lt));
    match (op, slope.as_constant()?) {
        (Op::Eq, 1) => Some(Change::At(base.neg())),
        (Op::Eq, -1) => Some(Change::At(base)),
        (_, 1) => Some(Change::From(least.sub(&base), true)),
        (_, -1) => Some(Change::From(base.sub(&least).add(&Poly::constant(1)), false)),
        _ => None,
    }
}

struct Loop {
    index: Reg,
    count: Poly<Reg>,
    carried: Vec<Carried>,
    body: Vec<Stmt>,
}

/// Emits the pieces of a loop to `out`.
fn pieces(kernel: &mut Kernel, failure: usize, cut: &Cut, the: &Loop, out: &mut Vec<Stmt>) {
    let mut before = Vec::new();
    let int = |kernel: &mut Kernel, before: &mut Vec<Instr>, value: Poly<Reg>| {
        let dst = kernel.regs.push(Class::Int);
        before.push(Instr::Int { dst, value });
        dst
    };
    let zero = int(kernel, &mut before, Poly::zero());
    let count = int(kernel, &mut before, the.count.clone());
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
        Change::At(p) => {
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
    let (last, no_buffers) = (pieces.len() - 1, BTreeMap::new());
    for (i, (from, to, holds)) in pieces.into_iter().enumerate() {
        let step = kernel.regs.push(Class::Int);
        let by = Poly::var(step).add(&from);
        let mut copier = Copier {
            regs: &mut kernel.regs,
            map: BTreeMap::new(),
            index: the.index,
            by: by.clone(),
            fresh: i != last,
            lane: None,
            buffers: &no_buffers,
        };
        let vars: Vec<Reg> = the.carried.iter().map(|c| copier.define(c.var)).collect();
        let index = copier.define(the.index);
        let mut body = copier.block(&the.body);
        let carried = the.carried.iter().zip(&vars).zip(&inits);
        let carried =
            carried.map(|((c, var), init)| Carried { var: *var, init: *init, next: copier.of(c.next) }).collect();
        decide(&mut body, copier.of(cut.condition), holds);
        body.insert(0, Stmt::Straight(vec![Instr::Int { dst: index, value: by }]));
        out.push(Stmt::For { index: step, count: to.sub(&from), carried, order: Order::InOrder, body });
        inits = vars;
    }
}

/// Replaces `condition` in `body` by its known value.
fn decide(body: &mut [Stmt], condition: Reg, holds: bool) {
    let mut open: Vec<&mut Stmt> = body.iter_mut().collect();
    while let Some(stmt) = open.pop() {
        match stmt {
            Stmt::Straight(code) => {
                for instr in code.iter_mut().filter(|instr| instr.dst() == Some(condition)) {
                    *instr = Instr::Int { dst: condition, value: Poly::constant(i64::from(holds)) };
                }
            }
            Stmt::For { body, .. } => open.extend(body),
            Stmt::While { condition, body, .. } => open.extend(condition.iter_mut().chain(body)),
            Stmt::If { then, otherwise, .. } => open.extend(then.iter_mut().chain(otherwise)),
            Stmt::Copy { .. } => {}
        }
    }
}
