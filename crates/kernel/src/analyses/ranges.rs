//! Range analysis of integers during a walk over a kernel, for backends and passes: symbolic values, bounds, and
//! conditions of the branches and loops around. It proves that addresses are in bounds, that checks hold, and decides
//! comparisons.
//!
//! In: the events of a kernel, one after the other. A bound of an integer is a polynomial over integers that were
//! defined before it. To show that a polynomial is not negative, the integer defined last in it gives way to the bound
//! that its coefficient asks for, then the one before, until what is left has no negative coefficient: Fourier and
//! Motzkin's elimination where each step has a direction already. So `j <= n - 1 - i` and `i` cancel, which intervals
//! would not see.
//!
//! Array programs have simpler tests: in `chainrule_ir`, one that must say what to require at entry where a proof
//! fails, and in `chainrule_rewrite`, one that also decides outside some of the loops. Their integers are natural, or
//! below one size. Here integers have several bounds, quotients, and values that are loaded.
//!
//! **Quotients.** `q = max(n, 0) / 8` has no bound that is a polynomial, but `8 q` has: `max(n, 0)`, which is `n` where
//! `q` is above 0, as it is inside of a loop of `q` iterations. It is at least 0 if `n` is, which `8 q > n - 8` does
//! not imply.

use crate::events::Event;
use crate::kernel::{BufferId, Class, Instr, Kernel, Reg, SizeSource};
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Maximum number of replacements in a proof.
const STEPS: u32 = 48;

/// Maximum number of terms of a recorded value.
const MAX_TERMS: usize = 8;

/// Maximum degree of a recorded value.
const MAX_DEGREE: usize = 8;

/// Maximum coefficient of a recorded value, far below overflow.
const MAX_COEFFICIENT: i64 = 1 << 50;

/// Maximum depth to which compound conditions are followed.
const MAX_CONNECTED: u32 = 8;

#[derive(Clone, Default)]
struct Known {
    /// Order of its first occurrence.
    order: u32,
    is_size: bool,
    non_negative: bool,
    /// Its value over other integers.
    value: Option<Poly<Reg>>,
    lower: Vec<Poly<Reg>>,
    upper: Vec<Poly<Reg>>,
    /// `(k, p)`: `k` times the integer is at most `p`, and more than `p - k`.
    scaled: Option<(i64, Poly<Reg>)>,
    /// Its definition, if that implies more than its bounds.
    made: Option<(Op, [Reg; 3])>,
}

/// Facts at the current event.
pub struct Ranges {
    /// Facts about each register.
    of: Vec<Known>,
    n_met: u32,
    /// Whether each buffer holds integers; empty where none does.
    of_integers: Vec<bool>,
    /// Polynomials over sizes that are not negative.
    required: Vec<Poly<Reg>>,
    /// Bounds of single sizes that `required` implies.
    bounds: Vec<SizeBound>,
    /// Quotients by the last defined register of their dividend.
    quotients: BTreeMap<Reg, Vec<Reg>>,
    /// Open scopes, the innermost last.
    open: Vec<Scope>,
    proofs: Proofs,
}

/// Cache of the last proofs that an index is below a length: a loop reads many arrays at one index.
#[derive(Default)]
struct Proofs {
    all: RefCell<Vec<(Poly<Reg>, Poly<Reg>)>>,
    /// Entry to replace next.
    next: Cell<usize>,
}

/// Number of cached proofs.
const MAX_PROOFS: usize = 8;

impl Proofs {
    fn has(&self, at: &Poly<Reg>, len: &Poly<Reg>) -> bool {
        self.all.borrow().iter().any(|(other, limit)| other == at && limit == len)
    }

    fn add(&self, at: &Poly<Reg>, len: &Poly<Reg>) {
        let (mut all, next) = (self.all.borrow_mut(), self.next.get());
        let proof = (at.clone(), len.clone());
        match all.get_mut(next) {
            Some(oldest) => *oldest = proof,
            None => all.push(proof),
        }
        self.next.set((next + 1) % MAX_PROOFS);
    }

    fn clear(&mut self) {
        self.all.get_mut().clear();
        self.next.set(0);
    }
}

/// A bound of a size over other sizes.
struct SizeBound {
    size: Reg,
    by: Poly<Reg>,
    is_upper: bool,
}

impl SizeBound {
    /// Returns the bounds that `required`, which is not negative, implies: an upper one of each size that it subtracts,
    /// and a constant lower one of the size that it adds.
    fn all(required: &Poly<Reg>) -> impl Iterator<Item = Self> {
        required.terms().filter_map(|(monomial, c)| {
            let ([size], 1 | -1) = (monomial, c) else { return None };
            // `size - by` or `by - size` is `required`.
            let by = Poly::var(*size).sub(&required.scale(c));
            let is_upper = c == -1;
            (is_upper || by.as_constant().is_some()).then_some(Self { size: *size, by, is_upper })
        })
    }
}

/// An open branch or loop.
#[derive(Default)]
struct Scope {
    /// Facts to restore at its end.
    before: Vec<(Reg, Known)>,
    /// Condition of a branch.
    condition: Option<Reg>,
    /// Trip count of a loop less one, which is not negative in its body.
    limit: Option<Poly<Reg>>,
}

impl Ranges {
    /// Returns the facts before the first event.
    #[must_use]
    pub fn new(kernel: &Kernel) -> Self {
        let buffers = kernel.buffers.as_slice().iter();
        let of_integers = buffers.map(|buffer| buffer.class == Class::Int);
        // Most kernels have no integer buffers, and small kernels are compiled often.
        let of_integers = if of_integers.clone().any(|is_int| is_int) { of_integers.collect() } else { Vec::new() };
        let mut this = Self {
            of: Vec::new(),
            n_met: 0,
            of_integers,
            required: Vec::new(),
            bounds: Vec::new(),
            quotients: BTreeMap::new(),
            open: Vec::new(),
            proofs: Proofs::default(),
        };
        for size in &kernel.sizes {
            let non_negative = !matches!(size.source, SizeSource::Value { .. });
            *this.place(size.reg) = Known { is_size: true, non_negative, ..Known::default() };
        }
        kernel.requires.iter().filter(|condition| condition.exactly_zero).for_each(|equal| this.equate(&equal.size));
        // Of conditions that differ by a constant, the strongest suffices.
        let mut least: BTreeMap<Poly<Reg>, i64> = BTreeMap::new();
        for condition in &kernel.requires {
            let negative = condition.exactly_zero.then(|| condition.size.neg());
            for size in std::iter::once(condition.size.clone()).chain(negative) {
                let size = this.value(&size);
                if let Some(size) = size.as_var() {
                    this.place(size).non_negative = true;
                } else if !size.is_zero() {
                    let (size, c) = size.split_constant();
                    least.entry(size).and_modify(|least| *least = c.min(*least)).or_insert(c);
                }
            }
        }
        this.required = least.into_iter().map(|(size, c)| size.add(&Poly::constant(c))).collect();
        let naturals = kernel.sizes.iter().filter_map(|size| Some((size.reg, size.natural()?)));
        this.required.extend(naturals.map(|(natural, of)| Poly::var(natural).sub(of)));
        this.bounds = this.required.iter().flat_map(SizeBound::all).collect();
        this
    }

    /// Replaces a size by another one, if `zero`, which is 0, is their difference.
    fn equate(&mut self, zero: &Poly<Reg>) {
        let Some((kept, replaced)) = self.value(zero).as_difference() else { return };
        let values = self.of.iter_mut().filter_map(|known| known.value.as_mut());
        values.filter(|value| value.as_var() == Some(replaced)).for_each(|value| *value = Poly::var(kept));
        let non_negative = self.known(replaced).is_some_and(|known| known.non_negative);
        self.place(kept).non_negative |= non_negative;
        self.place(replaced).value = Some(Poly::var(kept));
    }

    fn is_of_integers(&self, buffer: BufferId) -> bool {
        self.of_integers.get(buffer.index()).is_some_and(|is_int| *is_int)
    }

    fn known(&self, r: Reg) -> Option<&Known> {
        self.of.get(r.index())
    }

    fn place(&mut self, r: Reg) -> &mut Known {
        if self.of.len() <= r.index() {
            self.of.resize(r.index() + 1, Known::default());
        }
        &mut self.of[r.index()]
    }

    /// Returns the facts about `r` for additions that last until the current scope ends.
    fn learn(&mut self, r: Reg) -> &mut Known {
        let old = self.place(r).clone();
        if old.order == 0 && !old.is_size {
            self.n_met += 1;
            self.of[r.index()].order = self.n_met;
        }
        if let Some(scope) = self.open.last_mut() {
            scope.before.push((r, old));
        }
        &mut self.of[r.index()]
    }

    /// Returns the facts about `r`, which is defined now.
    fn define(&mut self, r: Reg) -> &mut Known {
        if self.known(r).is_some_and(|known| known.order > 0) {
            self.proofs.clear();
        }
        self.n_met += 1;
        let order = self.n_met;
        let known = self.learn(r);
        *known = Known { order, ..Known::default() };
        known
    }

    fn close(&mut self) {
        self.proofs.clear();
        for (r, old) in self.open.pop().unwrap_or_default().before.into_iter().rev() {
            self.of[r.index()] = old;
        }
    }

    /// Updates the facts for an event.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::For { index, count, .. } => {
                self.open.push(Scope::default());
                // There is an iteration, so the count is above 0.
                let limit = self.value(count).sub(&Poly::constant(1));
                self.assume_non_negative(&limit);
                if let Some(scope) = self.open.last_mut() {
                    scope.limit = Some(limit.clone()).filter(is_short);
                }
                if let Some(count) = count.as_var() {
                    self.assume_positive(count);
                }
                let known = self.define(*index);
                known.non_negative = true;
                bound(&mut known.upper, limit);
            }
            Event::While { .. } => self.open.push(Scope::default()),
            Event::Test { holds, .. } => self.assume(*holds, true, MAX_CONNECTED),
            Event::If { condition } => {
                self.open.push(Scope { condition: Some(*condition), ..Scope::default() });
                self.assume(*condition, true, MAX_CONNECTED);
            }
            Event::Else { .. } => {
                let condition = self.open.last().and_then(|scope| scope.condition);
                self.close();
                self.open.push(Scope::default());
                if let Some(condition) = condition {
                    self.assume(condition, false, MAX_CONNECTED);
                }
            }
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => self.close(),
            Event::Instr(Instr::Int { dst, value }) => {
                let value = self.value(value);
                let non_negative = self.is_plain(&value);
                let known = self.define(*dst);
                known.non_negative = non_negative;
                known.value = is_short(&value).then_some(value);
            }
            Event::Instr(Instr::IntOp { dst, op, args, .. }) => self.int_op(*dst, *op, *args),
            Event::Instr(Instr::Op { dst, op: op @ (Op::And | Op::Or | Op::Not), args }) => {
                self.define(*dst).made = Some((*op, *args));
            }
            Event::Instr(Instr::CheckIndex { index, len, .. }) => {
                let index = self.value(&Poly::var(*index));
                let rest = self.value(len).sub(&index).sub(&Poly::constant(1));
                self.assume_non_negative(&index);
                self.assume_non_negative(&rest);
            }
            // Later facts about it refer to earlier registers.
            Event::Instr(Instr::Load { dst, buffer, .. }) if self.is_of_integers(*buffer) => {
                self.define(*dst);
            }
            Event::Instr(_) | Event::Copy { .. } => {}
        }
    }

    fn int_op(&mut self, dst: Reg, op: Op, args: [Reg; 3]) {
        let [a, b, _] = args.map(|r| self.value(&Poly::var(r)));
        let value = match op {
            Op::Add => Some(a.add(&b)),
            Op::Sub => Some(a.sub(&b)),
            Op::Mul => Some(a.mul(&b)),
            Op::Neg => Some(a.neg()),
            _ => None,
        };
        let both = self.is_plain(&a) && self.is_plain(&b);
        let either = self.is_plain(&a) || self.is_plain(&b);
        let b_non_negative = self.is_plain(&b);
        let quotient_non_negative = op == Op::Quot && b_non_negative && self.is_non_negative(&a);
        if let (Op::Quot, Some(last)) = (op, self.last(&a)) {
            self.quotients.entry(last).or_default().push(dst);
        }
        let known = self.define(dst);
        match op {
            Op::Min => {
                known.non_negative = both;
                [a, b].into_iter().for_each(|p| bound(&mut known.upper, p));
            }
            Op::Max => {
                known.non_negative = either;
                [a, b].into_iter().for_each(|p| bound(&mut known.lower, p));
                known.made = Some((op, args));
            }
            // Floor division: the divisor times the quotient is at most the dividend.
            Op::Quot => {
                if let Some(k @ 1..) = b.as_constant() {
                    known.non_negative = quotient_non_negative;
                    known.scaled = is_small(&a).then_some((k, a));
                    known.made = Some((op, args));
                }
            }
            // Floor division by a nonzero divisor.
            Op::Mod if b_non_negative => {
                known.non_negative = true;
                bound(&mut known.upper, b.sub(&Poly::constant(1)));
            }
            _ if op.gives_truth() => known.made = Some((op, args)),
            _ => {}
        }
        if let Some(value) = value.filter(is_short) {
            let non_negative = self.is_plain(&value);
            let known = &mut self.of[dst.index()];
            known.non_negative = non_negative;
            known.value = Some(value);
        }
    }

    /// Adds the fact that a condition holds or does not hold.
    fn assume(&mut self, condition: Reg, holds: bool, depth: u32) {
        let Some((op, [a, b, _])) = self.known(condition).and_then(|known| known.made) else { return };
        if depth == 0 {
            return;
        }
        match (op, holds) {
            (Op::And, true) | (Op::Or, false) => {
                self.assume(a, holds, depth - 1);
                self.assume(b, holds, depth - 1);
            }
            (Op::Not, _) => self.assume(a, !holds, depth - 1),
            (Op::Lt | Op::Le | Op::Eq, _) => {
                let by = self.value(&Poly::var(b)).sub(&self.value(&Poly::var(a)));
                let less = |p: &Poly<Reg>| p.sub(&Poly::constant(1));
                match (op, holds) {
                    (Op::Lt, true) => self.assume_non_negative(&less(&by)),
                    (Op::Lt, false) => self.assume_non_negative(&by.neg()),
                    (Op::Le, true) => self.assume_non_negative(&by),
                    (Op::Le, false) => self.assume_non_negative(&less(&by.neg())),
                    (_, true) => {
                        self.assume_non_negative(&by);
                        self.assume_non_negative(&by.neg());
                    }
                    (_, false) => {}
                }
            }
            _ => {}
        }
    }

    /// Adds a bound of the last defined register in `p`.
    fn assume_non_negative(&mut self, p: &Poly<Reg>) {
        let Some(last) = self.last(p) else { return };
        let Some((slope, base)) = p.split_linear(last) else { return };
        match slope.as_constant() {
            Some(1) => {
                let least = base.neg();
                let non_negative = self.is_plain(&least);
                let known = self.learn(last);
                known.non_negative |= non_negative;
                bound(&mut known.lower, least);
                self.learn_quotients(last);
            }
            Some(-1) => bound(&mut self.learn(last).upper, base),
            _ => {}
        }
    }

    /// Updates the quotients of `r`, about which a fact was added.
    fn learn_quotients(&mut self, r: Reg) {
        for quotient in self.quotients.get(&r).cloned().unwrap_or_default() {
            let is_more = self.known(quotient).is_some_and(|known| {
                let dividend = known.scaled.as_ref().map(|(_, dividend)| dividend);
                !known.non_negative && dividend.is_some_and(|dividend| self.is_non_negative(dividend))
            });
            if is_more {
                self.learn(quotient).non_negative = true;
            }
        }
    }

    /// Adds the fact that `r` is positive, which strengthens facts about quotients and maxima with 0.
    fn assume_positive(&mut self, r: Reg) {
        let mut next = Some(r);
        while let Some((op, [a, b, _])) = next.and_then(|r| self.known(r)).and_then(|known| known.made) {
            let (of_a, of_b) = (self.value(&Poly::var(a)), self.value(&Poly::var(b)));
            let zero = |p: &Poly<Reg>| p.is_zero();
            let Some(r) = next else { return };
            next = match op {
                Op::Quot => Some(a),
                Op::Max if zero(&of_b) || zero(&of_a) => {
                    let other = if zero(&of_b) { of_a } else { of_b };
                    bound(&mut self.learn(r).upper, other);
                    None
                }
                _ => None,
            };
        }
    }

    /// Returns whether `0 <= at < len` is proved.
    #[must_use]
    pub fn is_inside(&self, at: &Poly<Reg>, len: &Poly<Reg>) -> bool {
        if self.proofs.has(at, len) {
            return true;
        }
        let (value, limit) = (self.value(at), self.value(len));
        let is_inside =
            self.is_non_negative(&value) && self.is_non_negative(&limit.sub(&value).sub(&Poly::constant(1)));
        if is_inside {
            self.proofs.add(at, len);
        }
        is_inside
    }

    /// Returns whether `p >= 0` is proved.
    #[must_use]
    pub fn is_at_least_zero(&self, p: &Poly<Reg>) -> bool {
        self.is_non_negative(&self.value(p))
    }

    /// Returns the result of a comparison of integers, if it is known.
    #[must_use]
    pub fn compare(&self, op: Op, a: Reg, b: Reg) -> Option<bool> {
        let by = self.value(&Poly::var(b)).sub(&self.value(&Poly::var(a)));
        let is_at_least = |p: &Poly<Reg>, least: i64| self.is_non_negative(&p.sub(&Poly::constant(least)));
        let (yes, no) = match op {
            Op::Lt => (is_at_least(&by, 1), is_at_least(&by.neg(), 0)),
            Op::Le => (is_at_least(&by, 0), is_at_least(&by.neg(), 1)),
            Op::Eq => (
                by.is_zero() || (is_at_least(&by, 0) && is_at_least(&by.neg(), 0)),
                is_at_least(&by, 1) || is_at_least(&by.neg(), 1),
            ),
            _ => return None,
        };
        (yes || no).then_some(yes)
    }

    /// Returns the polynomial expanded over integers without a known value.
    #[must_use]
    pub fn value(&self, p: &Poly<Reg>) -> Poly<Reg> {
        let value = |r: Reg| self.known(r).and_then(|known| known.value.as_ref());
        if p.terms().flat_map(|(monomial, _)| monomial).all(|r| value(*r).is_none()) {
            return p.clone();
        }
        p.substitute(|r| value(r).cloned().unwrap_or_else(|| Poly::var(r)))
    }

    /// Returns the last defined register of `p` that is no size.
    fn last(&self, p: &Poly<Reg>) -> Option<Reg> {
        let regs = p.terms().flat_map(|(monomial, _)| monomial).copied();
        let order = |r: &Reg| self.known(*r).map_or(0, |known| known.order);
        regs.filter(|r| self.known(*r).is_none_or(|known| !known.is_size)).max_by_key(|r| (order(r), r.index()))
    }

    /// Returns whether no term is negative.
    fn is_plain(&self, p: &Poly<Reg>) -> bool {
        p.terms().all(|term| self.is_plain_term(term))
    }

    /// Returns whether no term is positive, and the constant one is negative.
    fn is_plainly_negative(&self, p: &Poly<Reg>) -> bool {
        let mut terms = p.terms();
        matches!(terms.next(), Some(([], ..=-1)))
            && terms.all(|(monomial, c)| c < 0 && self.is_plain_term((monomial, 1)))
    }

    fn is_plain_term(&self, (monomial, c): (&[Reg], i64)) -> bool {
        c >= 0 && monomial.iter().all(|r| self.known(*r).is_some_and(|known| known.non_negative))
    }

    /// Returns whether `p - required` has no negative part, as [`Self::is_plain`].
    fn is_plain_above(&self, p: &Poly<Reg>, required: &Poly<Reg>) -> bool {
        p.terms_of_difference(required).all(|term| term.is_some_and(|term| self.is_plain_term(term)))
    }

    /// Returns whether a factor of an integer is at least 0, by its signs or by one requirement.
    fn is_factor(&self, slope: &Poly<Reg>) -> bool {
        let is_above = |required: &Poly<Reg>| self.is_plain_above(slope, required);
        self.is_plain(slope) || slope.as_constant().is_none() && self.required.iter().any(is_above)
    }

    /// Returns a lower bound of `p`: with the maximum in place of a size that is subtracted, or the minimum in place of
    /// one that is added.
    fn at_bound(&self, p: &Poly<Reg>, bound: &SizeBound) -> Option<Poly<Reg>> {
        if !p.terms().any(|(monomial, _)| monomial.contains(&bound.size)) {
            return None;
        }
        let (slope, base) = p.split_linear(bound.size)?;
        let is_lower_bound = if bound.is_upper { self.is_plain(&slope.neg()) } else { self.is_plain(&slope) };
        is_lower_bound.then(|| slope.mul(&bound.by).add(&base))
    }

    /// Returns whether the expanded polynomial `p` is proved to be at least 0.
    fn is_non_negative(&self, p: &Poly<Reg>) -> bool {
        let mut left = STEPS;
        let mut open = vec![p.clone()];
        let mut asks_loops = true;
        // Any of the open polynomials suffices.
        while let Some(p) = open.pop() {
            if !is_small(&p) || self.is_plainly_negative(&p) {
                continue;
            }
            if self.is_plain(&p) || self.required.iter().any(|required| self.is_plain_above(&p, required)) {
                return true;
            }
            left -= 1;
            if left == 0 {
                return false;
            }
            let Some(last) = self.last(&p) else {
                // Only sizes are left: some are bounded, and a loop around has an iteration.
                open.extend(self.bounds.iter().filter_map(|bound| self.at_bound(&p, bound)));
                if std::mem::take(&mut asks_loops) {
                    open.extend(self.open.iter().filter_map(|scope| Some(p.sub(scope.limit.as_ref()?))));
                }
                continue;
            };
            let (Some((slope, base)), Some(known)) = (p.split_linear(last), self.known(last)) else { continue };
            let with = |bound: &Poly<Reg>| slope.mul(bound).add(&base);
            // Replacement by the upper or lower bound of a quotient.
            let scaled = |above: bool| {
                let (k, bound) = known.scaled.as_ref().filter(|(k, _)| slope.terms().all(|(_, c)| c % k == 0))?;
                let bound = if above { bound.clone() } else { bound.sub(&Poly::constant(k - 1)) };
                let terms = slope.terms().map(|(monomial, c)| (monomial.to_vec(), c / k)).collect();
                Poly::from_terms(terms).map(|slope| slope.mul(&bound).add(&base))
            };
            if self.is_factor(&slope) {
                if known.non_negative {
                    open.push(base.clone());
                }
                open.extend(scaled(false));
                open.extend(known.lower.iter().map(with));
            } else if self.is_factor(&slope.neg()) {
                open.extend(scaled(true));
                open.extend(known.upper.iter().map(with));
            }
        }
        false
    }
}

/// Adds a bound.
fn bound(bounds: &mut Vec<Poly<Reg>>, p: Poly<Reg>) {
    if is_small(&p) && !bounds.contains(&p) {
        bounds.push(p);
    }
}

/// Returns whether every coefficient is at most [`MAX_COEFFICIENT`].
pub(crate) fn is_small(p: &Poly<Reg>) -> bool {
    p.terms().all(|(_, c)| (-MAX_COEFFICIENT..=MAX_COEFFICIENT).contains(&c))
}

fn is_short(p: &Poly<Reg>) -> bool {
    p.terms().len() <= MAX_TERMS && p.degree() <= MAX_DEGREE && is_small(p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Class, Condition, Order, SizeParam};
    use chainrule_base::{Arena, Name};

    fn kernel() -> (Kernel, Vec<Reg>) {
        let mut regs = Arena::new();
        let all: Vec<Reg> = (0..6).map(|_| regs.push(Class::Int)).collect();
        let size =
            |name, reg, dim| SizeParam { name: Name::new(name), reg, source: SizeSource::Extent { input: 0, dim } };
        let sizes = vec![size("m", all[0], 0), size("n", all[1], 1)];
        let kernel = Kernel { regs: regs.into(), sizes, ..Kernel::empty(Name::new("k")) };
        (kernel, all)
    }

    #[test]
    fn rows_of_a_matrix_are_inside_and_one_further_is_not() {
        let (kernel, r) = kernel();
        let var = |i: usize| Poly::var(r[i]);
        let mut ranges = Ranges::new(&kernel);
        let (m, n) = (var(0), var(1));
        ranges.event(&Event::For { index: r[2], count: &m, carried: &[], order: Order::InOrder });
        ranges.event(&Event::For { index: r[3], count: &n, carried: &[], order: Order::InOrder });
        let at = var(2).mul(&n).add(&var(3));
        let len = m.mul(&n);
        assert!(ranges.is_inside(&at, &len));
        assert!(ranges.is_inside(&at, &len), "what was shown is remembered");
        assert!(!ranges.is_inside(&at.add(&Poly::constant(1)), &len));
        assert!(!ranges.is_inside(&at.sub(&Poly::constant(1)), &len));
        let backwards = m.sub(&Poly::constant(1)).sub(&var(2));
        assert!(ranges.is_inside(&backwards, &m));
        assert!(!ranges.is_inside(&var(4), &m));
        ranges.event(&Event::Instr(&Instr::CheckIndex { index: r[4], len: m.clone(), failure: 0 }));
        assert!(ranges.is_inside(&var(4), &m));
        ranges.event(&Event::EndFor { index: r[3], carried: &[] });
        assert!(!ranges.is_inside(&var(4), &m), "what was checked in the loop is not known after it");
        assert!(!ranges.is_inside(&at, &len));
    }

    #[test]
    fn sizes_that_are_required_to_be_equal_or_less_bound_rows() {
        for exactly_zero in [true, false] {
            let (mut kernel, r) = kernel();
            let var = |i: usize| Poly::var(r[i]);
            let (m, n) = (var(0), var(1));
            let size = n.sub(&m);
            kernel.requires = vec![Condition { size, exactly_zero, message: "m is at most n".into(), span: None }];
            let mut ranges = Ranges::new(&kernel);
            ranges.event(&Event::For { index: r[2], count: &m, carried: &[], order: Order::InOrder });
            ranges.event(&Event::For { index: r[3], count: &n, carried: &[], order: Order::InOrder });
            // The first m of n rows of n elements.
            let at = var(2).mul(&n).add(&var(3));
            assert!(ranges.is_inside(&at, &n.mul(&n)), "{exactly_zero}");
            assert!(!ranges.is_inside(&at.add(&Poly::constant(1)), &n.mul(&n)), "{exactly_zero}");
            assert_eq!(ranges.is_inside(&at, &m.mul(&m)), exactly_zero);
            assert_eq!(ranges.is_inside(&var(2).mul(&m).add(&var(3)), &m.mul(&n)), exactly_zero);
        }
    }

    #[test]
    fn least_sizes_bound_last_rows_and_rows_without_a_border() {
        let (mut kernel, r) = kernel();
        let var = |i: usize| Poly::var(r[i]);
        let (m, n) = (var(0), var(1));
        let least = |of: &Poly<Reg>, least| Condition {
            size: of.sub(&Poly::constant(least)),
            exactly_zero: false,
            message: "too few".into(),
            span: None,
        };
        kernel.requires = vec![least(&m, 2), least(&n, 4)];
        let mut ranges = Ranges::new(&kernel);
        ranges.event(&Event::For { index: r[2], count: &m, carried: &[], order: Order::InOrder });
        let inner = n.sub(&Poly::constant(4));
        ranges.event(&Event::For { index: r[3], count: &inner, carried: &[], order: Order::InOrder });
        let len = m.mul(&n);
        let last = m.mul(&n).sub(&n).add(&var(3));
        assert!(ranges.is_inside(&last, &len));
        assert!(ranges.is_inside(&last.sub(&n), &len), "there are two rows");
        assert!(!ranges.is_inside(&last.sub(&n.scale(2)), &len), "there may be no third one");
        let without_border = var(2).mul(&inner).add(&var(3));
        assert!(ranges.is_inside(&without_border, &len));
        assert!(ranges.is_inside(&without_border, &m.mul(&inner)));
        assert!(!ranges.is_inside(&without_border.add(&Poly::constant(1)), &m.mul(&inner)));
        let too_wide = var(2).mul(&n.sub(&Poly::constant(5))).add(&var(3));
        assert!(!ranges.is_inside(&too_wide, &len), "5 may be more than n");
    }

    #[test]
    fn a_part_of_a_loop_is_inside() {
        let (kernel, r) = kernel();
        let var = |i: usize| Poly::var(r[i]);
        let mut ranges = Ranges::new(&kernel);
        let n = var(1);
        // r2 is 0; r3 and r4 are the iterations before the part and after it.
        ranges.event(&Event::Instr(&Instr::Int { dst: r[2], value: Poly::zero() }));
        let max = |dst: usize| Instr::IntOp { dst: r[dst], op: Op::Max, args: [r[0], r[2], r[0]], failure: 0 };
        ranges.event(&Event::Instr(&max(3)));
        ranges.event(&Event::Instr(&max(4)));
        let count = n.sub(&var(3)).sub(&var(4));
        ranges.event(&Event::For { index: r[5], count: &count, carried: &[], order: Order::InOrder });
        let at = var(3).add(&var(5));
        assert!(ranges.is_inside(&at, &n));
        assert!(!ranges.is_inside(&at.add(&Poly::constant(1)), &n));
        assert!(!ranges.is_inside(&at.sub(&Poly::constant(1)), &n));
        assert!(!ranges.is_inside(&at.add(&var(3)), &n));
        let backwards = var(3).add(&count).sub(&Poly::constant(1)).sub(&var(5));
        assert!(ranges.is_inside(&backwards, &n));
    }

    #[test]
    fn a_quotient_is_at_least_0_if_the_dividend_is() {
        let (kernel, r) = kernel();
        let var = |i: usize| Poly::var(r[i]);
        let mut ranges = Ranges::new(&kernel);
        let int = |ranges: &mut Ranges, dst: usize, value: Poly<Reg>| {
            ranges.event(&Event::Instr(&Instr::Int { dst: r[dst], value }));
        };
        // r2 is an integer of which nothing is known; r4 is (r2 - 1) / 4.
        int(&mut ranges, 3, Poly::constant(4));
        let dividend = var(2).sub(&Poly::constant(1));
        int(&mut ranges, 5, dividend.clone());
        let quotient = Instr::IntOp { dst: r[4], op: Op::Quot, args: [r[5], r[3], r[5]], failure: 0 };
        ranges.event(&Event::Instr(&quotient));
        assert!(!ranges.is_at_least_zero(&var(4)));
        ranges.event(&Event::For { index: r[3], count: &var(0), carried: &[], order: Order::InOrder });
        // Of an array with n elements, so it is at least 0, but not known to be above.
        ranges.event(&Event::Instr(&Instr::CheckIndex { index: r[2], len: var(1), failure: 0 }));
        assert!(!ranges.is_at_least_zero(&var(4)));
        ranges.event(&Event::Instr(&Instr::CheckIndex { index: r[5], len: var(1), failure: 0 }));
        assert!(ranges.is_at_least_zero(&var(4)));
        assert!(ranges.is_at_least_zero(&var(4).scale(3).add(&var(3))));
        ranges.event(&Event::EndFor { index: r[3], carried: &[] });
        assert!(!ranges.is_at_least_zero(&var(4)), "what was learnt in the loop is not known after it");
    }

    #[test]
    fn eight_times_a_quotient_and_less_than_eight_is_inside() {
        let (kernel, r) = kernel();
        let var = |i: usize| Poly::var(r[i]);
        let mut ranges = Ranges::new(&kernel);
        let n = var(1);
        let mut int = |dst: usize, value: i64| {
            ranges.event(&Event::Instr(&Instr::Int { dst: r[dst], value: Poly::constant(value) }));
        };
        int(2, 0);
        int(3, 8);
        let op =
            |dst: usize, op, a: usize, b: usize| Instr::IntOp { dst: r[dst], op, args: [r[a], r[b], r[a]], failure: 0 };
        ranges.event(&Event::Instr(&op(4, Op::Max, 1, 2)));
        ranges.event(&Event::Instr(&op(5, Op::Quot, 4, 3)));
        let (blocks, block, lane) = (var(5), r[2], r[3]);
        ranges.event(&Event::For { index: block, count: &blocks, carried: &[], order: Order::InOrder });
        ranges.event(&Event::For { index: lane, count: &Poly::constant(8), carried: &[], order: Order::Lanes });
        let at = Poly::var(block).scale(8).add(&Poly::var(lane));
        assert!(ranges.is_inside(&at, &n));
        assert!(!ranges.is_inside(&at.add(&Poly::constant(1)), &n));
        // Of max(n, 0) less than eight are left, and none is missing.
        let rest = var(4).sub(&var(5).scale(8));
        assert!(ranges.is_at_least_zero(&rest) && ranges.is_at_least_zero(&Poly::constant(7).sub(&rest)));
        assert!(!ranges.is_at_least_zero(&Poly::constant(6).sub(&rest)));
        let m = var(0);
        assert!(ranges.is_inside(&m.mul(&at), &m.mul(&n).add(&Poly::constant(1))));
        assert!(!ranges.is_inside(&at.add(&Poly::var(block)), &n), "nine times the index may be more");
    }

    #[test]
    fn a_check_of_the_distance_to_an_index_bounds_a_read_integer() {
        let (mut kernel, r) = kernel();
        let place = crate::kernel::Place::Workspace(Poly::zero());
        let buffer = kernel.buffers.push(crate::kernel::Buffer { class: Class::Int, len: Poly::constant(1), place });
        let var = |i: usize| Poly::var(r[i]);
        let mut ranges = Ranges::new(&kernel);
        let five = Poly::constant(5);
        ranges.event(&Event::For { index: r[2], count: &five, carried: &[], order: Order::InOrder });
        ranges.event(&Event::Instr(&Instr::Load { dst: r[3], buffer, at: Poly::zero() }));
        // Which of four from 4 i on.
        let which = var(3).sub(&var(2).scale(4));
        ranges.event(&Event::Instr(&Instr::Int { dst: r[4], value: which }));
        let inside = |ranges: &Ranges, c: i64| {
            let at = var(2).scale(40).add(&var(4).scale(10)).add(&Poly::constant(c));
            ranges.is_inside(&at, &Poly::constant(200))
        };
        assert!(!inside(&ranges, 0));
        ranges.event(&Event::Instr(&Instr::CheckIndex { index: r[4], len: Poly::constant(4), failure: 0 }));
        assert!(inside(&ranges, 0) && inside(&ranges, 9));
        assert!(!inside(&ranges, 10) && !inside(&ranges, -1));
    }
}
