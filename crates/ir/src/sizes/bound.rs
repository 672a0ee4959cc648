//! Upper bounds of integers over quantities known at entry: maximum lengths of arrays.
//!
//! In: polynomials over integers with known facts ([`Range`]). Out: upper bounds as polynomials over sizes and integer
//! arguments ([`bound`]). The memory planner uses them for the integers of a kernel, and reverse mode, which makes
//! arrays of as many states as loops have iterations, for those of the function that it writes, so that its arrays can
//! be planned.
//!
//! Negative terms in nonnegative variables are dropped, and every other variable is replaced by its maximum. For sums
//! of products of sizes the bound is exact.
//!
//! Some bounds only hold if a polynomial is nonnegative, which must then be required at entry ([`Range::assuming`]).

use chainrule_base::Poly;
use chainrule_ops::Op;

/// Facts about an integer before execution.
#[derive(Clone, PartialEq, Debug)]
pub struct Range<V: Ord + Copy> {
    /// Whether it is known at entry.
    pub is_size: bool,
    /// Whether it is nonnegative.
    pub non_negative: bool,
    /// Upper bound over sizes. For a loop index: if the loop runs.
    pub upper: Option<Poly<V>>,
    /// `upper` holds if none of these polynomials over sizes is negative. Users must require that at entry.
    pub assuming: Vec<Poly<V>>,
}

// No facts.
impl<V: Ord + Copy> Default for Range<V> {
    fn default() -> Self {
        Self { is_size: false, non_negative: false, upper: None, assuming: Vec::new() }
    }
}

/// Bound of a length.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound<V: Ord + Copy> {
    /// Over sizes.
    pub len: Poly<V>,
    /// Whether it is nonnegative for all sizes.
    pub non_negative: bool,
    /// The bound holds if none of these is negative.
    pub assuming: Vec<Poly<V>>,
}

/// Returns the least bound of `len` over sizes that the module's rules find; `None` if `len` depends on data.
pub fn bound<V: Ord + Copy>(len: &Poly<V>, range: impl Fn(V) -> Range<V>) -> Option<Bound<V>> {
    if len.is_too_large() {
        return None;
    }
    let (mut sum, mut assuming) = (Poly::zero(), Vec::new());
    for (monomial, c) in len.terms() {
        let ranges: Vec<(V, Range<V>)> = monomial.iter().map(|var| (*var, range(*var))).collect();
        if c < 0 && ranges.iter().all(|(_, r)| r.non_negative) {
            continue;
        }
        let all_sizes = ranges.iter().all(|(_, r)| r.is_size);
        // With at most one factor of unknown sign, a product is maximal if each factor is.
        let one_sign = ranges.iter().filter(|(_, r)| !r.non_negative).count() <= 1;
        if !all_sizes && (c < 0 || !one_sign || ranges.iter().any(|(_, r)| r.is_size && !r.non_negative)) {
            return None;
        }
        let mut product = Poly::constant(c);
        for (var, r) in ranges {
            product = product.mul(&if r.is_size { Poly::var(var) } else { r.upper? });
            join(&mut assuming, r.assuming);
        }
        sum = sum.add(&product);
    }
    if sum.is_too_large() {
        return None;
    }
    let mut positive = Poly::zero();
    let mut non_negative = true;
    for (monomial, c) in sum.terms() {
        let sign_known = monomial.iter().all(|var| range(*var).non_negative);
        if c > 0 || !sign_known {
            positive = positive.add(&monomial.iter().fold(Poly::constant(c), |p, var| p.mul(&Poly::var(*var))));
            non_negative &= sign_known;
        }
    }
    Some(Bound { len: positive, non_negative, assuming })
}

fn join<V: Ord + Copy>(all: &mut Vec<Poly<V>>, more: Vec<Poly<V>>) {
    for poly in more {
        if !all.contains(&poly) {
            all.push(poly);
        }
    }
}

/// Returns the facts about the index of a loop of `count` iterations.
pub fn range_of_index<V: Ord + Copy>(count: &Poly<V>, range: impl Fn(V) -> Range<V>) -> Range<V> {
    let (upper, assuming) =
        bound(count, range).map_or_else(Default::default, |b| (Some(b.len.sub(&Poly::constant(1))), b.assuming));
    Range { is_size: false, non_negative: true, upper, assuming }
}

/// Returns the facts about `poly` itself.
pub fn range_of<V: Ord + Copy>(poly: &Poly<V>, range: impl Fn(V) -> Range<V>) -> Range<V> {
    let non_negative = poly.terms().all(|(monomial, c)| c > 0 && monomial.iter().all(|var| range(*var).non_negative));
    let bound = bound(poly, range).filter(|b| b.non_negative);
    let (upper, assuming) = bound.map_or_else(Default::default, |b| (Some(b.len), b.assuming));
    Range { is_size: false, non_negative, upper, assuming }
}

/// Returns a bound of `poly` that is nonnegative under its assumptions, and the assumptions.
fn assumed<V: Ord + Copy>(poly: &Poly<V>, range: impl Fn(V) -> Range<V>) -> Option<(Poly<V>, Vec<Poly<V>>)> {
    let Bound { len, non_negative, mut assuming } = bound(poly, range)?;
    if !non_negative {
        join(&mut assuming, vec![len.clone()]);
    }
    Some((len, assuming))
}

/// Returns the facts about `op` of two integers.
pub fn range_of_op<V: Ord + Copy>(op: Op, args: [&Poly<V>; 2], range: impl Fn(V) -> Range<V>) -> Range<V> {
    let [a, b] = args.map(|arg| range_of(arg, &range));
    let second = args[1].as_constant();
    let non_negative = match (op, second) {
        (Op::Quot, Some(1..)) => a.non_negative,
        (Op::Mod, Some(1..)) => true,
        (Op::Min, _) => a.non_negative && b.non_negative,
        (Op::Max, _) => a.non_negative || b.non_negative,
        _ => false,
    };
    let upper = match (op, second) {
        (Op::Quot, Some(1..)) => assumed(args[0], &range),
        (Op::Mod, Some(k @ 1..)) => Some((Poly::constant(k - 1), Vec::new())),
        // Either is a bound; one without assumptions is better.
        (Op::Min, _) => {
            let bounds: Vec<_> = args.into_iter().filter_map(|arg| assumed(arg, &range)).collect();
            bounds.iter().find(|(_, assuming)| assuming.is_empty()).or(bounds.first()).cloned()
        }
        (Op::Max, _) => match (a.upper, b.upper) {
            // Bounds are nonnegative, so the sum is a bound of both.
            (Some(upper), Some(other)) => {
                let mut assuming = a.assuming;
                join(&mut assuming, b.assuming);
                Some((upper.add(&other), assuming))
            }
            // Integers that are not natural are replaced by 0.
            _ => {
                let other = |k: usize| args[1 - k];
                (0..2).find(|k| args[*k].is_zero()).and_then(|k| assumed(other(k), &range))
            }
        },
        _ => None,
    };
    let (upper, assuming) = upper.map_or_else(Default::default, |(upper, assuming)| (Some(upper), assuming));
    Range { is_size: false, non_negative, upper, assuming }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0, 1: extents; 2: an integer argument; 3: an index below 0; 4: the larger of 2 and 0; 5: data.
    fn range(var: u32) -> Range<u32> {
        match var {
            0 | 1 => Range { is_size: true, non_negative: true, ..Range::default() },
            2 => Range { is_size: true, ..Range::default() },
            3 => range_of_index(&Poly::var(0), range),
            4 => range_of_op(Op::Max, [&Poly::var(2), &Poly::zero()], range),
            _ => Range::default(),
        }
    }

    fn bounded(len: &Poly<u32>) -> Option<(String, bool)> {
        bound(len, range).map(|b| (b.len.to_string(), b.non_negative))
    }

    #[test]
    fn lengths_are_bounded_over_sizes() {
        let [n, m, k, i, data] = [0, 1, 2, 3, 5].map(Poly::var);
        let one = Poly::constant(1);
        let is = |len: Poly<u32>, text: &str, non_negative| {
            assert_eq!(bounded(&len), Some((text.to_owned(), non_negative)), "{len}");
        };
        is(n.mul(&m).add(&one), "0*1 + 1", true);
        is(i.add(&one), "0", true);
        is(n.sub(&i), "0", true);
        is(i.mul(&i), "0*0 + 1", true);
        is(i.mul(&m).sub(&n), "0*1", true);
        is(k.add(&n), "0 + 2", false);
        is(n.sub(&k), "0 - 2", false);
        assert_eq!(bounded(&data), None);
        assert_eq!(bounded(&n.sub(&data)), None);
        assert_eq!(bounded(&k.mul(&i)), None);
    }

    #[test]
    fn what_may_be_negative_is_a_bound_where_it_is_not() {
        let [n, k, natural, data] = [0, 2, 4, 5].map(Poly::var);
        for len in [natural.clone(), natural.mul(&n), natural.add(&n).sub(&Poly::constant(1))] {
            assert_eq!(bound(&len, range).unwrap().assuming, std::slice::from_ref(&k), "{len}");
        }
        // Dropped terms of a bound add no assumptions.
        assert_eq!(bound(&n.sub(&natural), range).unwrap().assuming, []);
        // A number without assumptions is nonnegative for all sizes.
        assert_eq!(range_of(&natural, range).upper, None);
        // 0 may be on either side; data has no bound from it.
        let zero = Poly::zero();
        for args in [[&k, &zero], [&zero, &k]] {
            let natural = range_of_op(Op::Max, args, range);
            assert_eq!((natural.upper, natural.assuming), (Some(k.clone()), vec![k.clone()]));
        }
        assert_eq!(range_of_op(Op::Max, [&data, &zero], range).upper, None);
    }

    #[test]
    fn integer_operators_have_ranges() {
        let [n, m, k, data] = [0, 1, 2, 5].map(Poly::var);
        let shown = |op, a: &Poly<u32>, b: &Poly<u32>| {
            let r = range_of_op(op, [a, b], range);
            let assuming: Vec<String> = r.assuming.iter().map(ToString::to_string).collect();
            (r.upper.map_or_else(|| "none".to_owned(), |p| p.to_string()), r.non_negative, assuming.join(", "))
        };
        let is = |text: &str, non_negative, assuming: &str| (text.to_owned(), non_negative, assuming.to_owned());
        let two = Poly::constant(2);
        assert_eq!(shown(Op::Quot, &n, &two), is("0", true, ""));
        assert_eq!(shown(Op::Quot, &k, &two), is("2", false, "2"));
        assert_eq!(shown(Op::Quot, &data, &two), is("none", false, ""));
        assert_eq!(shown(Op::Mod, &k, &Poly::constant(3)), is("2", true, ""));
        assert_eq!(shown(Op::Min, &n, &m), is("0", true, ""));
        assert_eq!(shown(Op::Max, &n, &m), is("0 + 1", true, ""));
        assert_eq!(shown(Op::Sub, &n, &m), is("none", false, ""));
        // Of two bounds of a minimum, one without assumptions is preferred.
        assert_eq!(shown(Op::Min, &k, &n), is("0", false, ""));
        assert_eq!(shown(Op::Min, &data, &k), is("2", false, "2"));
        let further = k.add(&Poly::constant(100));
        assert_eq!(shown(Op::Min, &data, &further), is("2 + 100", false, "2 + 100"));
        // The maximum of an argument and 1 is at least 1 for any argument, which no polynomial expresses.
        assert_eq!(shown(Op::Max, &k, &Poly::constant(1)), is("none", true, ""));
    }
}
