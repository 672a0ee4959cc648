//! What is known of integers: which are natural numbers, and which lie below a size.
//!
//! Size parameters and loop indices are natural numbers; an index is below the count of its loop, a
//! remainder by a positive constant below that constant; inside a loop over `n` there is an index, so
//! `n >= 1`; whatever is the size of an array is natural. That decides whether a polynomial is negative
//! nowhere, by a sufficient test: what is required at entry is not negative; variables with negative coefficients are replaced by the largest that
//! they can be, and what is left has no negative coefficient.

use chainrule_ir::{Size, VarId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Maximum degree of a polynomial that is written out at sizes of one and more: of degree `k` that has `2^k` terms.
const MAX_DEGREE: usize = 8;

/// How many variables one question replaces at most.
const MAX_REPLACED: usize = 8;

/// The largest coefficient of what is subtracted from an index.
const MAX_SHIFT: u64 = 1 << 31;

/// Facts about the integers in scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// By variable that is known to be natural: the size it is below, if that is known.
    natural: FxHashMap<VarId, Option<Size>>,
    /// Variables that are at least one, as often as loops over them are open.
    positive: Vec<VarId>,
    /// How many of those, at the front, are so everywhere.
    everywhere: usize,
    /// What is required at entry not to be negative, without the constant term, and that: of what differs by it, the least.
    required: BTreeMap<Size, i64>,
}

impl Ranges {
    /// `var` is a natural number, below `bound` if there is one.
    pub(crate) fn natural(&mut self, var: VarId, bound: Option<Size>) {
        self.natural.insert(var, bound);
    }

    /// A loop over `count` is entered. Every call is undone by one of [`Self::leave`].
    pub(crate) fn enter(&mut self, count: &Size) {
        // A count that is no variable says nothing that is used.
        self.positive.push(count.as_var().unwrap_or(chainrule_base::Id::new(u32::MAX as usize)));
    }

    /// The loop entered last is left.
    pub(crate) fn leave(&mut self) {
        self.positive.pop();
    }

    /// `var` is at least one everywhere.
    pub(crate) fn positive(&mut self, var: VarId) {
        self.positive.insert(0, var);
        self.everywhere += 1;
    }

    /// `size` is not negative, for that is required at entry.
    pub(crate) fn require(&mut self, size: &Size) {
        let (size, c) = size.split_constant();
        self.required.entry(size).and_modify(|least| *least = c.min(*least)).or_insert(c);
    }

    /// Whether an index less `size` fits into 64 bits: `size` is not far below 0, for what it is less by is below a size.
    pub(crate) fn can_be_subtracted(&self, size: &Size) -> bool {
        let is_bounded = |v: &VarId| matches!(self.natural.get(v), Some(Some(_)));
        let is_natural = |v: &VarId| self.natural.contains_key(v);
        size.terms().all(|(monomial, c)| {
            let is_small = c.unsigned_abs() <= MAX_SHIFT;
            is_small && if c > 0 { monomial.iter().all(is_natural) } else { monomial.iter().all(is_bounded) }
        })
    }

    /// Whether `size >= 0` whatever the variables are.
    pub(crate) fn not_negative(&self, size: &Size) -> bool {
        self.decide(size, &self.positive, &[])
    }

    /// As [`Self::not_negative`], outside of all but the first `loops` of the open loops, but where `more` are
    /// at least one.
    pub(crate) fn not_negative_outside(&self, size: &Size, loops: usize, more: &[VarId]) -> bool {
        let known = self.positive.get(..self.everywhere + loops).unwrap_or(&self.positive);
        self.decide(size, known, more)
    }

    fn decide(&self, size: &Size, positive: &[VarId], more: &[VarId]) -> bool {
        let mut size = size.clone();
        for _ in 0..MAX_REPLACED {
            if self.is_natural(&size) || self.follows(&size) {
                return true;
            }
            let Some(next) = self.replaced(&size) else { break };
            size = next;
        }
        if size.degree() > MAX_DEGREE {
            return false;
        }
        let shifted = size.substitute(|v| {
            let v_size = Size::var(v);
            if positive.contains(&v) || more.contains(&v) { v_size.add(&Size::constant(1)) } else { v_size }
        });
        self.is_natural(&shifted)
    }

    /// Whether `size >= 0` where what is required is.
    fn follows(&self, size: &Size) -> bool {
        let rest = |known: &Size, c: i64| size.sub(known).sub(&Size::constant(c));
        self.required.iter().any(|(known, c)| self.is_natural(&rest(known, *c)))
    }

    fn is_natural(&self, size: &Size) -> bool {
        size.terms().all(|(monomial, c)| c >= 0 && monomial.iter().all(|v| self.natural.contains_key(v)))
    }

    // `size` with the innermost variable that has a negative coefficient replaced by its maximum.
    fn replaced(&self, size: &Size) -> Option<Size> {
        size.vars().into_iter().rev().find_map(|v| {
            let bound = self.natural.get(&v)?.as_ref()?;
            let (slope, rest) = size.split_linear(v)?;
            if slope.is_zero() || !self.is_natural(&slope.neg()) {
                return None;
            }
            Some(slope.mul(&bound.sub(&Size::constant(1))).add(&rest))
        })
    }

    /// Whether `0 <= index < size`.
    pub(crate) fn in_range(&self, index: &Size, size: &Size) -> bool {
        self.not_negative(index) && self.not_negative(&size.sub(index).sub(&Size::constant(1)))
    }

    /// As [`Self::in_range`], where `more` are at least one.
    pub(crate) fn in_range_where(&self, index: &Size, size: &Size, more: &[VarId]) -> bool {
        self.in_range_outside(index, size, self.positive.len() - self.everywhere, more)
    }

    /// As [`Self::in_range`], where [`Self::not_negative_outside`] decides.
    pub(crate) fn in_range_outside(&self, index: &Size, size: &Size, loops: usize, more: &[VarId]) -> bool {
        let below = size.sub(index).sub(&Size::constant(1));
        self.not_negative_outside(index, loops, more) && self.not_negative_outside(&below, loops, more)
    }

    /// Whether `a < b`, as far as that can be told.
    pub(crate) fn less(&self, a: &Size, b: &Size) -> Option<bool> {
        if self.not_negative(&b.sub(a).sub(&Size::constant(1))) {
            Some(true)
        } else if self.not_negative(&a.sub(b)) {
            Some(false)
        } else {
            None
        }
    }

    /// Whether `a` and `b` are equal, as far as that can be told.
    pub(crate) fn equal(&self, a: &Size, b: &Size) -> Option<bool> {
        let one = Size::constant(1);
        let difference = a.sub(b);
        if difference.is_zero() {
            Some(true)
        } else if self.not_negative(&difference.sub(&one)) || self.not_negative(&difference.neg().sub(&one)) {
            Some(false)
        } else if self.not_negative(&difference) && self.not_negative(&difference.neg()) {
            Some(true)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_base::Id;

    #[test]
    fn polynomials_of_indices_are_compared() {
        let [n, m, i, j, k] = [0, 1, 2, 3, 4].map(VarId::new);
        let mut ranges = Ranges::default();
        ranges.natural(n, None);
        ranges.natural(m, None);
        ranges.natural(i, Some(Size::var(n)));
        ranges.natural(j, Some(Size::var(m)));
        let (n, m, i, j) = (Size::var(n), Size::var(m), Size::var(i), Size::var(j));
        assert!(ranges.in_range(&i, &n));
        assert!(!ranges.in_range(&i, &m));
        ranges.require(&m.sub(&n));
        assert!(ranges.in_range(&i, &m), "m >= n is required");
        assert!(!ranges.in_range(&j, &n));
        assert!(ranges.in_range(&i.mul(&m).add(&j), &n.mul(&m)));
        assert!(ranges.in_range(&n.sub(&i).sub(&Size::constant(1)), &n));
        assert!(!ranges.in_range(&i.add(&Size::constant(1)), &n));
        assert!(!ranges.in_range(&Size::zero(), &n));
        ranges.enter(&n);
        assert!(ranges.in_range(&Size::zero(), &n));
        ranges.leave();
        assert!(!ranges.in_range(&Size::zero(), &n));
        assert!(!ranges.not_negative(&Size::var(k)));
        assert_eq!(ranges.less(&i, &n), Some(true));
        assert_eq!(ranges.less(&n, &i), Some(false));
        assert_eq!(ranges.less(&i, &j), None);
        assert_eq!(ranges.equal(&i.add(&n), &i), None);
        assert_eq!(ranges.equal(&i, &n), Some(false));
        // A difference of squares is not decided, and not decided wrongly.
        assert!(!ranges.not_negative(&n.mul(&n).sub(&i.mul(&i).scale(2))));
    }
}
