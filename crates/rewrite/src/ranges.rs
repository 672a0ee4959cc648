//! Ranges of integers: natural numbers, and integers below a size.
//!
//! Size parameters and loop indices are natural numbers. An index is below the count of its loop, a remainder by a
//! positive constant below that constant. Inside a loop over `n` there is an index, so `n >= 1`; every array size is
//! natural. Inside a loop over `max (n - 2) 0`, that is `n - 2`. In a branch on comparisons of integers, their
//! differences are nonnegative. These facts decide whether a polynomial is nonnegative, by a sufficient test:
//! requirements at entry and assumptions of branches are nonnegative; variables with negative coefficients are replaced
//! by their maximum, and the result has no negative coefficient.
//!
//! The kernel's ranges decide more, from several bounds of each integer, but only at the current statement. Here a
//! question may be about an outer block, without the facts of the loops between.

use chainrule_ir::{EqualSizes, Size, VarId};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Maximum degree of a polynomial that is written out at sizes of one and more: of degree `k` that has `2^k` terms.
const MAX_DEGREE: usize = 8;

/// Maximum number of variables replaced in a query.
const MAX_REPLACED: usize = 8;

/// Maximum coefficient of a size subtracted from an index.
const MAX_SHIFT: u64 = 1 << 31;

/// Facts about the integers in scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// Natural variables, each with a size that it is below, if known.
    natural: FxHashMap<VarId, Option<Size>>,
    /// Variables that are at least one, as many times as loops over them are open.
    positive: Vec<Positive>,
    /// Number of leading entries that are positive everywhere.
    everywhere: usize,
    /// Sizes required to be nonnegative at entry: polynomial without constant term, and the least constant.
    required: BTreeMap<Size, i64>,
    /// Variables that are required to equal others.
    equal: EqualSizes,
    /// Integers that are known where they have a value: a program may need them, because computing them may fail.
    known: FxHashMap<VarId, i64>,
    /// Sizes that are nonnegative in the open branches, each with the number of loops around its branch.
    assumed: Vec<(usize, Size)>,
}

/// Variables that are at least one: a count, or the factors of a count.
#[derive(Clone, Debug)]
struct Positive {
    vars: SmallVec<[VarId; 2]>,
    /// A size that equals the only one then: `n - 2`, for `max (n - 2) 0`.
    equal: Option<Size>,
}

impl Ranges {
    /// Records that `var` is a natural number, below `bound` if given.
    pub(crate) fn natural(&mut self, var: VarId, bound: Option<Size>) {
        self.natural.insert(var, bound);
    }

    /// Enters a loop over `count`, which equals `equal`, if given, when it is at least one. Each call is undone by
    /// [`Self::leave`].
    pub(crate) fn enter(&mut self, count: &Size, equal: Option<Size>) {
        let vars = self.positive_factors(&self.canonical(count));
        self.positive.push(Positive { vars, equal });
    }

    /// Returns the variables that are at least one if `size` is: factors of a product of natural numbers, or of one
    /// number. A sum says nothing about its terms.
    fn positive_factors(&self, size: &Size) -> SmallVec<[VarId; 2]> {
        let mut terms = size.terms();
        match (terms.next(), terms.next()) {
            (Some((factors, 1..)), None) if factors.len() == 1 || self.are_natural(factors) => {
                SmallVec::from_slice(factors)
            }
            _ => SmallVec::new(),
        }
    }

    /// Leaves the loop entered last.
    pub(crate) fn leave(&mut self) {
        self.positive.pop();
    }

    /// Records that `replaced` is required to equal `kept`, which stands for both from here on.
    pub(crate) fn equate(&mut self, replaced: VarId, kept: VarId) {
        self.equal.equate(replaced, kept);
    }

    /// Records that `var`, if it has a value, is `value`.
    pub(crate) fn know(&mut self, var: VarId, value: i64) {
        self.known.insert(var, value);
    }

    /// Returns `size` with known integers, and with one variable for each group of equal ones.
    fn canonical(&self, size: &Size) -> Size {
        let size = self.equal.canonical(size);
        if self.known.is_empty() || !size.vars().iter().any(|v| self.known.contains_key(v)) {
            return size;
        }
        size.substitute(|v| self.known.get(&v).map_or_else(|| Size::var(v), |value| Size::constant(*value)))
    }

    /// Records that `size` is required to be nonnegative at entry.
    pub(crate) fn require(&mut self, size: &Size) {
        let (size, c) = self.canonical(size).split_constant();
        // `n - 1 >= 0`, `n * m - 6 >= 0`.
        let vars = if c < 0 { self.positive_factors(&size) } else { SmallVec::new() };
        if !vars.is_empty() {
            vars.iter().for_each(|v| _ = self.natural.entry(*v).or_default());
            self.positive.insert(0, Positive { vars, equal: None });
            self.everywhere += 1;
        }
        self.required.entry(size).and_modify(|least| *least = c.min(*least)).or_insert(c);
    }

    /// Returns sizes that are nonnegative where the comparison `op` of `x` and `y` is `value`: two integers that differ
    /// do so by more than known before.
    pub(crate) fn learned(&self, op: Op, [x, y]: [Size; 2], value: bool) -> Vec<Size> {
        let one = Size::constant(1);
        let (above, below) = (x.sub(&y), y.sub(&x));
        match (op, value) {
            (Op::Lt, true) => vec![below.sub(&one)],
            (Op::Lt, false) => vec![above],
            (Op::Le, true) => vec![below],
            (Op::Le, false) => vec![above.sub(&one)],
            (Op::Eq, true) => vec![above, below],
            (Op::Eq, false) => {
                [above, below].into_iter().filter(|size| self.not_negative(size)).map(|size| size.sub(&one)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Records that `size` is nonnegative in the branch opened last.
    pub(crate) fn assume(&mut self, size: &Size) {
        self.assumed.push((self.positive.len() - self.everywhere, self.canonical(size)));
    }

    /// Returns the number of recorded assumptions, for [`Self::drop_assumptions`].
    pub(crate) fn assumptions(&self) -> usize {
        self.assumed.len()
    }

    /// Removes all assumptions but the first `kept`.
    pub(crate) fn drop_assumptions(&mut self, kept: usize) {
        self.assumed.truncate(kept);
    }

    /// Returns whether an index minus `size` fits into 64 bits: `size` is not far below 0, because it is a bounded
    /// distance below a size.
    pub(crate) fn can_be_subtracted(&self, size: &Size) -> bool {
        let is_bounded = |v: &VarId| matches!(self.natural.get(v), Some(Some(_)));
        size.terms().all(|(monomial, c)| {
            let is_small = c.unsigned_abs() <= MAX_SHIFT;
            is_small && if c > 0 { self.are_natural(monomial) } else { monomial.iter().all(is_bounded) }
        })
    }

    /// Returns whether `size >= 0` for all values of the variables.
    pub(crate) fn not_negative(&self, size: &Size) -> bool {
        self.decide(size, &self.positive, &[])
    }

    /// As [`Self::not_negative`], outside all but the first `loops` of the open loops, if `more` are at least one.
    pub(crate) fn not_negative_outside(&self, size: &Size, loops: usize, more: &[VarId]) -> bool {
        let known = self.positive.get(..self.everywhere + loops).unwrap_or(&self.positive);
        self.decide(size, known, more)
    }

    fn decide(&self, size: &Size, positive: &[Positive], more: &[VarId]) -> bool {
        let mut size = self.canonical(&with_equals(self.canonical(size), positive));
        for _ in 0..MAX_REPLACED {
            if self.is_natural(&size) || self.follows(&size, positive) {
                return true;
            }
            let Some(next) = self.replaced(&size) else { break };
            size = self.canonical(&with_equals(next, positive));
        }
        // A shift adds to the terms that divide others, and to no other one.
        let stays = |(monomial, c): (&[VarId], i64)| {
            let is_factor = |(other, _): (&[VarId], i64)| other.len() > monomial.len();
            (c < 0 || !self.are_natural(monomial)) && !size.terms().any(is_factor)
        };
        if size.degree() > MAX_DEGREE || size.terms().any(stays) {
            return false;
        }
        let shifted = size.substitute(|v| {
            let v_size = Size::var(v);
            if positive.iter().any(|known| known.vars.contains(&v))
                || more.iter().any(|more| self.equal.same(*more) == v)
            {
                v_size.add(&Size::constant(1))
            } else {
                v_size
            }
        });
        self.is_natural(&shifted)
    }

    /// Returns whether `size >= 0` follows from a requirement, from a loop that runs, or from a branch around these
    /// loops.
    fn follows(&self, size: &Size, positive: &[Positive]) -> bool {
        let runs = positive.iter().filter_map(|known| known.equal.as_ref());
        let loops = positive.len() - self.everywhere;
        let assumed = self.assumed.iter().filter(|(around, _)| *around <= loops);
        self.required.iter().any(|(known, c)| self.is_natural_above(size, known, *c))
            || runs.into_iter().any(|count| self.is_natural_above(size, count, -1))
            || assumed.into_iter().any(|(_, known)| self.is_natural_at_bounds(size.sub(known)))
    }

    /// Returns whether `size >= 0` with variables replaced by their maximum.
    fn is_natural_at_bounds(&self, mut size: Size) -> bool {
        for _ in 0..MAX_REPLACED {
            if self.is_natural(&size) {
                return true;
            }
            let Some(next) = self.replaced(&size) else { return false };
            size = self.canonical(&next);
        }
        false
    }

    fn is_natural(&self, size: &Size) -> bool {
        size.terms().all(|(monomial, c)| c >= 0 && self.are_natural(monomial))
    }

    /// Returns whether `size - known - c` is natural.
    fn is_natural_above(&self, size: &Size, known: &Size, c: i64) -> bool {
        let mut constant = c.checked_neg();
        let are_others = size.terms_of_difference(known).all(|term| match term {
            Some(([], more)) => {
                constant = constant.and_then(|c| c.checked_add(more));
                true
            }
            Some((monomial, slope)) => slope >= 0 && self.are_natural(monomial),
            None => false,
        });
        are_others && constant.is_some_and(|c| c >= 0)
    }

    fn are_natural(&self, vars: &[VarId]) -> bool {
        vars.iter().all(|v| self.natural.contains_key(v))
    }

    // `size` with the innermost variable with a negative coefficient replaced by its maximum.
    fn replaced(&self, size: &Size) -> Option<Size> {
        size.vars().into_iter().rev().find_map(|v| {
            let bound = self.natural.get(&v)?.as_ref()?;
            let is_negative = |(monomial, c): (&[VarId], i64)| {
                !monomial.contains(&v) || c < 0 && monomial.iter().all(|w| *w == v || self.natural.contains_key(w))
            };
            if !size.terms().all(is_negative) {
                return None;
            }
            let (slope, rest) = size.split_linear(v)?;
            Some(slope.mul(&bound.sub(&Size::constant(1))).add(&rest))
        })
    }

    /// Returns whether `0 <= index < size`.
    pub(crate) fn in_range(&self, index: &Size, size: &Size) -> bool {
        self.not_negative(index) && self.not_negative(&size.sub(index).sub(&Size::constant(1)))
    }

    /// As [`Self::in_range`], if `more` are at least one.
    pub(crate) fn in_range_where(&self, index: &Size, size: &Size, more: &[VarId]) -> bool {
        self.in_range_outside(index, size, self.positive.len() - self.everywhere, more)
    }

    /// As [`Self::in_range`], decided by [`Self::not_negative_outside`].
    pub(crate) fn in_range_outside(&self, index: &Size, size: &Size, loops: usize, more: &[VarId]) -> bool {
        let below = size.sub(index).sub(&Size::constant(1));
        self.not_negative_outside(index, loops, more) && self.not_negative_outside(&below, loops, more)
    }

    /// Returns whether `a < b`, if known.
    pub(crate) fn less(&self, a: &Size, b: &Size) -> Option<bool> {
        if self.not_negative(&b.sub(a).sub(&Size::constant(1))) {
            Some(true)
        } else if self.not_negative(&a.sub(b)) {
            Some(false)
        } else {
            None
        }
    }

    /// Returns whether `a` and `b` are equal, if known.
    pub(crate) fn equal(&self, a: &Size, b: &Size) -> Option<bool> {
        let one = Size::constant(1);
        let difference = self.canonical(&a.sub(b));
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

/// Returns `size` with each variable replaced by what it equals.
fn with_equals(size: Size, positive: &[Positive]) -> Size {
    let known = positive.iter().filter_map(|known| Some((*known.vars.first()?, known.equal.as_ref()?)));
    known.fold(size, |size, (var, equal)| {
        if size.vars().contains(&var) {
            size.substitute(|v| if v == var { equal.clone() } else { Size::var(v) })
        } else {
            size
        }
    })
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
        ranges.enter(&n, None);
        assert!(ranges.in_range(&Size::zero(), &n));
        ranges.leave();
        assert!(!ranges.in_range(&Size::zero(), &n));
        assert!(!ranges.not_negative(&Size::var(k)));
        // A loop over k = max (n - 2) 0.
        let at = VarId::new(5);
        ranges.natural(k, None);
        ranges.natural(at, Some(Size::var(k)));
        let index = Size::var(at).add(&Size::constant(2));
        assert!(!ranges.in_range(&index, &n));
        ranges.enter(&Size::var(k), Some(n.sub(&Size::constant(2))));
        assert!(ranges.in_range(&index, &n));
        assert!(ranges.in_range(&Size::var(k).sub(&Size::var(at)), &n));
        assert!(ranges.not_negative(&n.sub(&Size::constant(3))));
        assert!(!ranges.in_range(&index.add(&Size::constant(1)), &n));
        assert!(!ranges.not_negative(&n.sub(&Size::constant(4))));
        ranges.leave();
        assert!(!ranges.in_range(&index, &n));
        assert_eq!(ranges.less(&i, &n), Some(true));
        assert_eq!(ranges.less(&n, &i), Some(false));
        assert_eq!(ranges.less(&i, &j), None);
        assert_eq!(ranges.equal(&i.add(&n), &i), None);
        assert_eq!(ranges.equal(&i, &n), Some(false));
        // Where `k` is required to be `n`, each stands for the other, also as the count of a loop.
        let equal = Size::var(k);
        assert!(!ranges.in_range(&i, &equal));
        ranges.equate(k, n.as_var().unwrap());
        assert!(ranges.in_range(&i, &equal));
        assert!(!ranges.in_range(&i, &equal.sub(&Size::constant(1))));
        assert_eq!(ranges.equal(&n, &equal), Some(true));
        ranges.enter(&equal, None);
        assert!(ranges.in_range(&Size::zero(), &n));
        ranges.leave();
        assert!(!ranges.in_range(&Size::zero(), &n));
        // A product that counts a loop has no factor of 0, nor has one that is required to be above 0.
        ranges.enter(&n.mul(&m).scale(3), None);
        assert!(ranges.in_range(&Size::zero(), &n) && ranges.in_range(&Size::zero(), &m));
        ranges.leave();
        ranges.enter(&n.add(&m), None);
        assert!(!ranges.in_range(&Size::zero(), &m));
        ranges.leave();
        let any = Size::var(VarId::new(6));
        ranges.require(&any.mul(&n).sub(&Size::constant(2)));
        assert!(!ranges.in_range(&Size::zero(), &any), "both may be negative");
        ranges.require(&n.mul(&m).sub(&Size::constant(2)));
        assert!(ranges.in_range(&Size::zero(), &n) && ranges.in_range(&Size::zero(), &m));
        // An index before another one is not the last.
        let after = VarId::new(6);
        ranges.natural(after, Some(n.clone()));
        let last = n.sub(&Size::constant(1));
        assert_eq!(ranges.less(&i, &last), None);
        ranges.assume(&Size::var(after).sub(&i).sub(&Size::constant(1)));
        assert_eq!(ranges.less(&i, &last), Some(true));
        assert_eq!(ranges.less(&Size::var(after), &last), None);
        ranges.drop_assumptions(0);
        assert_eq!(ranges.less(&i, &last), None);
        // A difference of squares is not decided, and not decided wrongly.
        assert!(!ranges.not_negative(&n.mul(&n).sub(&i.mul(&i).scale(2))));
    }
}
