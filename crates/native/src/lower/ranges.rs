//! Which addresses are proven to lie inside their buffers, so that they need no check while running.
//!
//! Holds for each integer register, as far as known: whether it is never negative, and nothing less than
//! its largest value, as a polynomial over sizes. An address is taken apart into monomials: those of sizes alone are
//! exact, of the others each factor is between 0 and its bound. What is left to show is that
//! polynomials over sizes are not negative, which they are not when no coefficient is and no size is.

use chainrule_base::{Id, Poly};
use chainrule_kernel::{Event, Instr, Kernel, Reg, SizeSource};

#[derive(Clone, Default)]
struct Range {
    is_size: bool,
    non_negative: bool,
    upper: Option<Poly<Reg>>,
}

/// What is known at the current event.
pub(super) struct Ranges {
    /// By register, as far as something was ever known.
    of: Vec<Range>,
    /// For each open branch or loop, what was known before of what was learnt in it.
    undo: Vec<Vec<(Reg, Range)>>,
}

impl Ranges {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut this = Self { of: Vec::new(), undo: vec![Vec::new()] };
        for size in &kernel.sizes {
            let required = kernel.requires.iter().any(|c| c.size.as_var() == Some(size.reg));
            let non_negative = required || matches!(size.source, SizeSource::Extent { .. });
            *this.place(size.reg) = Range { is_size: true, non_negative, upper: Some(Poly::var(size.reg)) };
        }
        this
    }

    fn of(&self, r: Reg) -> &Range {
        const UNKNOWN: Range = Range { is_size: false, non_negative: false, upper: None };
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
    pub(super) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::For { index, count, .. } => {
                self.open();
                let upper = self.upper(count).map(|u| u.sub(&Poly::constant(1)));
                self.learn(*index, Range { is_size: false, non_negative: true, upper });
            }
            Event::While { .. } | Event::If { .. } => self.open(),
            Event::Else { .. } => {
                self.close();
                self.open();
            }
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => self.close(),
            Event::Instr(Instr::Int { dst, value }) => {
                let non_negative = self.lower(value).is_some_and(|p| self.is_non_negative(&p));
                let range = Range { is_size: false, non_negative, upper: self.upper(value) };
                self.learn(*dst, range);
            }
            Event::Instr(Instr::CheckIndex { index, len, .. }) => {
                let upper = self.upper(len).map(|u| u.sub(&Poly::constant(1)));
                self.learn(*index, Range { is_size: false, non_negative: true, upper });
            }
            Event::Instr(_) | Event::Copy { .. } | Event::Test { .. } => {}
        }
    }

    /// Whether `0 <= at < len`, for a length over sizes.
    pub(super) fn is_inside(&self, at: &Poly<Reg>, len: &Poly<Reg>) -> bool {
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
                let mut product = Poly::constant(c);
                for f in factors() {
                    product = product.mul(f.upper.as_ref()?);
                }
                sum = sum.add(&product);
            }
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_base::{Arena, Name};
    use chainrule_kernel::{Class, SizeParam};

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
        ranges.event(&Event::For { index: r[2], count: &m, carried: &[] });
        ranges.event(&Event::For { index: r[3], count: &n, carried: &[] });
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
}
