//! The memory plan: how long workspace buffers are, and where they lie.
//!
//! In: requests for buffers, whose lengths are polynomials over any `Int` registers, and their ends. Out:
//! lengths and offsets over size registers only, and the total: everything is known at entry.
//!
//! **Lengths.** A length over loop indices or computed integers is replaced by a bound over sizes:
//! negative terms in variables that are never negative are left out, and every other variable is replaced
//! by its largest value. The bound is the length itself for sums of products of sizes.
//!
//! **Offsets.** A buffer gets the place of a dead one with the same length, or a new place after all
//! others. Places are handed out in the order of the kernel's text; since a buffer that is made in a loop
//! dies in the same iteration, its place is used again by the next one.

use crate::kernel::{Class, Reg};
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// What is known of an `Int` register at compile time.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Range {
    /// Whether it is known at entry.
    pub is_size: bool,
    /// Whether it is never negative.
    pub non_negative: bool,
    /// Over sizes: nothing less than its largest value. For a loop's index: where the loop runs at all.
    pub upper: Option<Poly<Reg>>,
    /// Over sizes: `upper` holds where none of these is negative. Whoever relies on it has to see to that at entry.
    pub assuming: Vec<Poly<Reg>>,
}

/// A bound of a length.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bound {
    /// Over size registers.
    pub len: Poly<Reg>,
    /// Whether it is negative for no sizes whatever.
    pub non_negative: bool,
    /// It is a bound where none of these is negative.
    pub assuming: Vec<Poly<Reg>>,
}

/// The smallest bound of `len` over sizes that the module's rules find; `None` when `len` depends on data.
pub(crate) fn bound(len: &Poly<Reg>, range: impl Fn(Reg) -> Range) -> Option<Bound> {
    let (mut sum, mut assuming) = (Poly::zero(), Vec::new());
    for (monomial, c) in len.terms() {
        let ranges: Vec<(Reg, Range)> = monomial.iter().map(|reg| (*reg, range(*reg))).collect();
        if c < 0 && ranges.iter().all(|(_, r)| r.non_negative) {
            continue;
        }
        let all_sizes = ranges.iter().all(|(_, r)| r.is_size);
        // With at most one factor of unknown sign, a product is largest where each factor is.
        let one_sign = ranges.iter().filter(|(_, r)| !r.non_negative).count() <= 1;
        if !all_sizes && (c < 0 || !one_sign || ranges.iter().any(|(_, r)| r.is_size && !r.non_negative)) {
            return None;
        }
        let mut product = Poly::constant(c);
        for (reg, r) in ranges {
            product = product.mul(&if r.is_size { Poly::var(reg) } else { r.upper? });
            join(&mut assuming, r.assuming);
        }
        sum = sum.add(&product);
    }
    let mut positive = Poly::zero();
    let mut non_negative = true;
    for (monomial, c) in sum.terms() {
        let sign_known = monomial.iter().all(|reg| range(*reg).non_negative);
        if c > 0 || !sign_known {
            positive = positive.add(&monomial.iter().fold(Poly::constant(c), |p, reg| p.mul(&Poly::var(*reg))));
            non_negative &= sign_known;
        }
    }
    Some(Bound { len: positive, non_negative, assuming })
}

fn join(all: &mut Vec<Poly<Reg>>, more: Vec<Poly<Reg>>) {
    for poly in more {
        if !all.contains(&poly) {
            all.push(poly);
        }
    }
}

/// The workspace of one class.
#[derive(Clone, Default, Debug)]
struct Space {
    total: Option<Poly<Reg>>,
    /// Places of dead buffers by length; the last that died is the first used again.
    free: BTreeMap<Poly<Reg>, Vec<Poly<Reg>>>,
}

/// What is known of `poly` itself.
pub(crate) fn range_of(poly: &Poly<Reg>, range: impl Fn(Reg) -> Range) -> Range {
    let non_negative = poly.terms().all(|(monomial, c)| c > 0 && monomial.iter().all(|reg| range(*reg).non_negative));
    let bound = bound(poly, range).filter(|b| b.non_negative);
    let (upper, assuming) = bound.map_or_else(Default::default, |b| (Some(b.len), b.assuming));
    Range { is_size: false, non_negative, upper, assuming }
}

/// What is known of the larger of 0 and `poly`, where the sign of `poly`, which is over sizes, is not known.
pub(crate) fn range_of_natural(poly: &Poly<Reg>, range: impl Fn(Reg) -> Range) -> Option<Range> {
    let sizes = poly.terms().all(|(monomial, _)| monomial.iter().all(|reg| range(*reg).is_size));
    let known =
        || Range { is_size: false, non_negative: true, upper: Some(poly.clone()), assuming: vec![poly.clone()] };
    sizes.then(known)
}

/// What is known of `op(a, b)` in integers, where something is known of `a` and `b`.
pub(crate) fn range_of_op(op: Op, a: &Range, b: &Range, b_constant: Option<i64>) -> Range {
    let both = a.non_negative && b.non_negative;
    let upper = match (op, b_constant) {
        (Op::Quot, Some(1..)) if a.non_negative => a.upper.clone(),
        (Op::Mod, Some(k @ 1..)) => Some(Poly::constant(k - 1)),
        (Op::Min, _) => a.upper.clone().or_else(|| b.upper.clone()),
        // Bounds are never negative, so the sum is no less than either.
        (Op::Max, _) => a.upper.as_ref().zip(b.upper.as_ref()).map(|(a, b)| a.add(b)),
        _ => None,
    };
    let non_negative = match (op, b_constant) {
        (Op::Quot, Some(1..)) => a.non_negative,
        (Op::Mod, Some(1..)) => true,
        (Op::Min, _) => both,
        (Op::Max, _) => a.non_negative || b.non_negative,
        _ => false,
    };
    let mut assuming = Vec::new();
    if upper.is_some() {
        join(&mut assuming, a.assuming.clone());
        join(&mut assuming, b.assuming.clone());
    }
    Range { is_size: false, non_negative, upper, assuming }
}

/// Hands out places in the workspace.
#[derive(Clone, Default, Debug)]
pub(crate) struct Planner {
    reals: Space,
    ints: Space,
}

impl Planner {
    fn space(&mut self, class: Class) -> &mut Space {
        match class {
            Class::Real => &mut self.reals,
            Class::Int => &mut self.ints,
        }
    }

    /// The offset of a new buffer.
    pub fn place(&mut self, class: Class, len: &Poly<Reg>) -> Poly<Reg> {
        let space = self.space(class);
        if let Some(offset) = space.free.get_mut(len).and_then(Vec::pop) {
            return offset;
        }
        let offset = space.total.take().unwrap_or_else(Poly::zero);
        space.total = Some(offset.add(len));
        offset
    }

    /// Says that the buffer at `offset` is dead.
    pub fn release(&mut self, class: Class, len: &Poly<Reg>, offset: Poly<Reg>) {
        self.space(class).free.entry(len.clone()).or_default().push(offset);
    }

    /// How much workspace of the class is needed.
    pub fn total(&self, class: Class) -> Poly<Reg> {
        let space = match class {
            Class::Real => &self.reals,
            Class::Int => &self.ints,
        };
        space.total.clone().unwrap_or_else(Poly::zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_base::Id;

    /// r0, r1: extents; r2: an integer argument; r3: an index below r0; r4: data.
    fn range(reg: Reg) -> Range {
        let n = Poly::var(Reg::new(0));
        match reg.index() {
            0 | 1 => Range { is_size: true, non_negative: true, ..Range::default() },
            2 => Range { is_size: true, ..Range::default() },
            3 => Range { non_negative: true, upper: Some(n.sub(&Poly::constant(1))), ..Range::default() },
            4 => range_of_natural(&Poly::var(Reg::new(2)), range).unwrap(),
            _ => Range::default(),
        }
    }

    fn bounded(len: &Poly<Reg>) -> Option<(String, bool)> {
        bound(len, range).map(|b| (b.len.to_string(), b.non_negative))
    }

    #[test]
    fn lengths_are_bounded_over_sizes() {
        let [n, m, k, i, data] = [0, 1, 2, 3, 5].map(|idx| Poly::var(Reg::new(idx)));
        let one = Poly::constant(1);
        let is = |len: Poly<Reg>, text: &str, non_negative| {
            assert_eq!(bounded(&len), Some((text.to_owned(), non_negative)), "{len}");
        };
        is(n.mul(&m).add(&one), "r0*r1 + 1", true);
        is(i.add(&one), "r0", true);
        is(n.sub(&i), "r0", true);
        is(i.mul(&i), "r0*r0 + 1", true);
        is(i.mul(&m).sub(&n), "r0*r1", true);
        is(k.add(&n), "r0 + r2", false);
        is(n.sub(&k), "r0 - r2", false);
        assert_eq!(bounded(&data), None);
        assert_eq!(bounded(&n.sub(&data)), None);
        assert_eq!(bounded(&k.mul(&i)), None);
    }

    #[test]
    fn what_may_be_negative_is_a_bound_where_it_is_not() {
        let [n, k, natural] = [0, 2, 4].map(|idx| Poly::var(Reg::new(idx)));
        for len in [natural.clone(), natural.mul(&n), natural.add(&n).sub(&Poly::constant(1))] {
            assert_eq!(bound(&len, range).unwrap().assuming, std::slice::from_ref(&k), "{len}");
        }
        // What is left out of a bound need not hold.
        assert_eq!(bound(&n.sub(&natural), range).unwrap().assuming, []);
        // Bounds of operators are never negative whatever the sizes.
        assert_eq!(range_of(&natural, range).upper, None);
        assert_eq!(range_of_natural(&Poly::var(Reg::new(5)), range), None);
    }

    #[test]
    fn integer_operators_have_ranges() {
        let [n, m, k] = [0, 1, 2].map(|idx| range_of(&Poly::var(Reg::new(idx)), range));
        let shown = |op, a: &Range, b: &Range, c| {
            let r = range_of_op(op, a, b, c);
            (r.upper.map_or_else(|| "none".to_owned(), |p| p.to_string()), r.non_negative)
        };
        assert_eq!(shown(Op::Quot, &n, &m, Some(2)), ("r0".to_owned(), true));
        assert_eq!(shown(Op::Quot, &k, &m, Some(2)), ("none".to_owned(), false));
        assert_eq!(shown(Op::Mod, &k, &m, Some(3)), ("2".to_owned(), true));
        assert_eq!(shown(Op::Min, &n, &m, None), ("r0".to_owned(), true));
        assert_eq!(shown(Op::Max, &n, &m, None), ("r0 + r1".to_owned(), true));
        assert_eq!(shown(Op::Sub, &n, &m, None), ("none".to_owned(), false));
    }

    #[test]
    fn places_of_the_dead_are_used_again() {
        let mut planner = Planner::default();
        let (n, m) = (Poly::var(Reg::new(0)), Poly::var(Reg::new(1)));
        let a = planner.place(Class::Real, &n);
        let b = planner.place(Class::Real, &n);
        assert_eq!((a.to_string(), b.to_string()), ("0".to_owned(), "r0".to_owned()));
        planner.release(Class::Real, &n, a.clone());
        assert_eq!(planner.place(Class::Real, &m).to_string(), "2*r0");
        assert_eq!(planner.place(Class::Int, &n).to_string(), "0");
        assert_eq!(planner.place(Class::Real, &n), a);
        assert_eq!(planner.total(Class::Real).to_string(), "2*r0 + r1");
    }
}
