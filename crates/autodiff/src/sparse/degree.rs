//! Growth of polynomials in sizes, by their monomials.
//!
//! In: sizes. Out: whether one grows asymptotically faster than another.

use chainrule_ir::{Size, VarId};

/// Variables of a monomial, ascending, each repeated according to its power.
pub(crate) type Monomial = Vec<VarId>;

/// Maximum number of monomials that are compared; a longer list is truncated, so that no polynomial counts as growing
/// faster.
const MAX_MONOMIALS: usize = 64;

/// Returns the monomial of constants.
pub(crate) fn one() -> Vec<Monomial> {
    vec![Vec::new()]
}

pub(crate) fn monomials(size: &Size) -> Vec<Monomial> {
    distinct(size.terms().map(|(vars, _)| vars.to_vec()).collect())
}

/// Returns the monomials of a sum of sizes that are not negative.
pub(crate) fn union(sizes: impl Iterator<Item = Size>) -> Vec<Monomial> {
    distinct(sizes.flat_map(|size| monomials(&size)).collect())
}

pub(crate) fn product(a: &[Monomial], b: &[Monomial]) -> Vec<Monomial> {
    let times = |(a, b): (&Monomial, &Monomial)| {
        let mut all = [a.as_slice(), b].concat();
        all.sort_unstable();
        all
    };
    distinct(a.iter().flat_map(|a| b.iter().map(move |b| (a, b))).map(times).collect())
}

fn distinct(mut monomials: Vec<Monomial>) -> Vec<Monomial> {
    monomials.sort_unstable();
    monomials.dedup();
    monomials.truncate(MAX_MONOMIALS);
    monomials
}

/// Returns whether each monomial of `a` other than a constant divides a greater one of `b`, and there is one.
pub(crate) fn is_below(a: &[Monomial], b: &[Monomial]) -> bool {
    let divides = |a: &Monomial, b: &Monomial| {
        let mut rest = b.iter();
        a.len() < b.len() && a.iter().all(|var| rest.any(|other| other == var))
    };
    let mut growing = a.iter().filter(|a| !a.is_empty()).peekable();
    a.len() < MAX_MONOMIALS && growing.peek().is_some() && growing.all(|a| b.iter().any(|b| divides(a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_base::Id;

    #[test]
    fn faster_growth_is_above_and_incomparable_growth_is_not() {
        let (n, m) = (VarId::new(0), VarId::new(1));
        let dense = |sizes: &[Vec<VarId>]| product(sizes, sizes);
        let all = dense(&[vec![n]]);
        assert!(is_below(&all, &product(&[vec![n]], &dense(&[vec![n], vec![]]))));
        // Neighbours: n rows of m each.
        assert!(!is_below(&all, &product(&[vec![n]], &dense(&[vec![m]]))));
        // An arrow: each of n is paired with the same m.
        assert!(!is_below(&dense(&[vec![n], vec![m]]), &product(&[vec![n]], &dense(&[vec![m], vec![]]))));
        assert!(!is_below(&all, &all));
        assert!(!is_below(&one(), &all));
    }
}
