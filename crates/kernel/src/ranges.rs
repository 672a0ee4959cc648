//! What is known of integers while a kernel is walked, for backends and passes: that they are not negative, and bounds over
//! sizes. It proves that addresses are inside of their buffers.
//!
//! In: the events of a kernel, one after the other. A bound of a polynomial: each monomial is as large, or as small, as its
//! factors allow where each of them is between 0 and its bound. What is left to show is that
//! polynomials over sizes are not negative, which they are not when no coefficient is and no size is.
//!
//! **Quotients.** `q = max(n, 0) / 8` has no bound that is a polynomial, but `8 q` has: `n`, where `q` is above 0, which it is
//! inside of a loop of `q` iterations. So the index of such a loop has a bound of eight times itself.

use crate::events::Event;
use crate::kernel::{Instr, Kernel, Reg, SizeSource};
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;

#[derive(Clone, Default)]
struct Range {
    is_size: bool,
    non_negative: bool,
    upper: Option<Poly<Reg>>,
    /// `(k, p)`: `k` times it is at most `p`.
    scaled: Option<(i64, Poly<Reg>)>,
    /// The same, but only where it is above 0.
    positive: Option<(i64, Poly<Reg>)>,
    constant: Option<i64>,
}

/// What is known at the current event.
pub struct Ranges {
    /// By register, as far as something was ever known.
    of: Vec<Range>,
    /// For each open branch or loop, what was known before of what was learnt in it.
    undo: Vec<Vec<(Reg, Range)>>,
}

impl Ranges {
    /// What is known before the first event.
    #[must_use]
    pub fn new(kernel: &Kernel) -> Self {
        let mut this = Self { of: Vec::new(), undo: vec![Vec::new()] };
        for size in &kernel.sizes {
            let required = kernel.requires.iter().any(|c| c.size.as_var() == Some(size.reg));
            let non_negative = required || matches!(size.source, SizeSource::Extent { .. });
            let upper = Some(Poly::var(size.reg));
            *this.place(size.reg) = Range { is_size: true, non_negative, upper, ..Range::default() };
        }
        this
    }

    fn of(&self, r: Reg) -> &Range {
        const UNKNOWN: Range =
            Range { is_size: false, non_negative: false, upper: None, scaled: None, positive: None, constant: None };
        self.of.get(r.index()).unwrap_or(const { &UNKNOWN })
    }

    fn place(&mut self, r: Reg) -> &mut Range {
        if self.of.len() <= r.index() {
            self.of.resize(r.index() + 1, Range::default());
        }
        &mut self.of[r.index()]
    }

    fn learn(&mut self, r: Reg, range: Range) {
        let old = std::mem::replace(self.place(r), range);
        if let Some(log) = self.undo.last_mut() {
            log.push((r, old));
        }
    }

    fn open(&mut self) {
        self.undo.push(Vec::new());
    }

    fn close(&mut self) {
        for (r, old) in self.undo.pop().unwrap_or_default().into_iter().rev() {
            *self.place(r) = old;
        }
    }

    /// Learns from an event.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::For { index, count, .. } => {
                self.open();
                let upper = self.upper(count).map(|u| u.sub(&Poly::constant(1)));
                // There is an iteration, so the count is above 0.
                let count = count.as_var().and_then(|count| self.of(count).positive.clone());
                let scaled = count.map(|(k, p)| (k, p.sub(&Poly::constant(k))));
                self.learn(*index, Range { non_negative: true, upper, scaled, ..Range::default() });
            }
            Event::While { .. } | Event::If { .. } => self.open(),
            Event::Else { .. } => {
                self.close();
                self.open();
            }
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => self.close(),
            Event::Instr(Instr::Int { dst, value }) => {
                let non_negative = self.lower(value).is_some_and(|p| self.is_non_negative(&p));
                let (upper, constant) = (self.upper(value), value.as_constant());
                self.learn(*dst, Range { non_negative, upper, constant, ..Range::default() });
            }
            Event::Instr(Instr::IntOp { dst, op, args: [a, b, _], .. }) => self.int_op(*dst, *op, *a, *b),
            Event::Instr(Instr::CheckIndex { index, len, .. }) => {
                let upper = self.upper(len).map(|u| u.sub(&Poly::constant(1)));
                self.learn(*index, Range { non_negative: true, upper, ..Range::default() });
            }
            Event::Instr(_) | Event::Copy { .. } | Event::Test { .. } => {}
        }
    }

    fn int_op(&mut self, dst: Reg, op: Op, a: Reg, b: Reg) {
        let (of_a, of_b) = (self.of(a), self.of(b));
        let range = match (op, of_b.constant) {
            (Op::Max, Some(0)) => {
                let positive = of_a.upper.clone().map(|p| (1, p));
                Range { non_negative: true, positive, ..Range::default() }
            }
            // Rounded down, so the divisor times the quotient is at most the dividend; where the one is above 0 the other is.
            (Op::Quot, Some(k @ 1..)) => {
                let bound = of_a.upper.clone().map(|p| (1, p)).or_else(|| of_a.positive.clone());
                let positive = bound.and_then(|(j, p)| Some((j.checked_mul(k)?, p)));
                Range { non_negative: of_a.non_negative, positive, ..Range::default() }
            }
            _ => return,
        };
        self.learn(dst, range);
    }

    /// Whether `0 <= at < len`, for a length over sizes.
    #[must_use]
    pub fn is_inside(&self, at: &Poly<Reg>, len: &Poly<Reg>) -> bool {
        let Some(lower) = self.lower(at) else { return false };
        let Some(upper) = self.upper(at) else { return false };
        self.is_non_negative(&lower) && self.is_non_negative(&len.sub(&upper).sub(&Poly::constant(1)))
    }

    fn is_non_negative(&self, p: &Poly<Reg>) -> bool {
        p.terms().all(|(m, c)| c >= 0 && m.iter().all(|r| self.of(*r).non_negative))
    }

    fn upper(&self, p: &Poly<Reg>) -> Option<Poly<Reg>> {
        self.bound(p, |c| c > 0)
    }

    fn lower(&self, p: &Poly<Reg>) -> Option<Poly<Reg>> {
        self.bound(p, |c| c < 0)
    }

    /// The sum where monomials whose coefficient is `at_most` are as large as they can be, the others 0.
    fn bound(&self, p: &Poly<Reg>, at_most: impl Fn(i64) -> bool) -> Option<Poly<Reg>> {
        let mut sum = Poly::zero();
        for (monomial, c) in p.terms() {
            let factors = || monomial.iter().map(|r| self.of(*r));
            if factors().all(|f| f.is_size) {
                let exact = monomial.iter().fold(Poly::constant(c), |p, r| p.mul(&Poly::var(*r)));
                sum = sum.add(&exact);
                continue;
            }
            if !factors().all(|f| f.non_negative) {
                return None;
            }
            if at_most(c) {
                let mut c = c;
                let mut product = Poly::constant(1);
                for f in factors() {
                    product = product.mul(match (&f.upper, &f.scaled) {
                        (_, Some((k, scaled))) if c % k == 0 => {
                            c /= k;
                            scaled
                        }
                        (Some(upper), _) => upper,
                        _ => return None,
                    });
                }
                sum = sum.add(&product.scale(c));
            }
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Class, Order, SizeParam};
    use chainrule_base::{Arena, Name};

    fn kernel() -> (Kernel, Vec<Reg>) {
        let mut regs = Arena::new();
        let all: Vec<Reg> = (0..6).map(|_| regs.push(Class::Int)).collect();
        let size =
            |name, reg, dim| SizeParam { name: Name::new(name), reg, source: SizeSource::Extent { input: 0, dim } };
        let kernel = Kernel {
            name: Name::new("k"),
            regs,
            sizes: vec![size("m", all[0], 0), size("n", all[1], 1)],
            inputs: vec![],
            outputs: vec![],
            buffers: Arena::new(),
            requires: vec![],
            workspace_reals: Poly::zero(),
            workspace_ints: Poly::zero(),
            externals: vec![],
            failures: vec![],
            body: vec![],
        };
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
        let m = var(0);
        assert!(ranges.is_inside(&m.mul(&at), &m.mul(&n).add(&Poly::constant(1))));
        assert!(!ranges.is_inside(&at.add(&Poly::var(block)), &n), "nine times the index may be more");
    }
}
