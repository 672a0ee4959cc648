//! Cubes: a coefficient times a product of literals with integer powers.
//!
//! The terms are those of algebraic factorisation: a *literal* represents one value, a *cube* is a product of literals,
//! and a node of the [network](super::network) is a sum of cubes.

use chainrule_base::define_id;
use smallvec::SmallVec;

define_id! {
    /// Value: a leaf, an opaque operation, or a sum of cubes.
    pub struct Literal = "l";
}

/// Literals with powers other than 0, ascending by literal; a negative power divides.
pub(super) type Powers = SmallVec<[(Literal, i32); 4]>;

/// `coef` times the product of `powers`.
#[derive(PartialEq, Debug)]
pub(super) struct Cube {
    /// Normal number.
    pub coef: f64,
    /// Product.
    pub powers: Powers,
}

/// A bitwise copy of literals, which `derive` would not generate.
impl Clone for Cube {
    fn clone(&self) -> Self {
        Self { coef: self.coef, powers: Powers::from_slice(&self.powers) }
    }
}

impl Cube {
    /// Returns `coef` times one literal.
    pub fn literal(coef: f64, literal: Literal) -> Self {
        Self { coef, powers: SmallVec::from_slice(&[(literal, 1)]) }
    }

    /// Returns a number.
    pub fn number(coef: f64) -> Self {
        Self { coef, powers: Powers::new() }
    }

    /// Returns the literal if this is one, with its coefficient.
    pub fn as_literal(&self) -> Option<(f64, Literal)> {
        match self.powers.as_slice() {
            &[(literal, 1)] => Some((self.coef, literal)),
            _ => None,
        }
    }

    /// Returns the power of `literal`; negative in the divisor.
    pub fn power_of(&self, literal: Literal) -> i32 {
        self.powers.binary_search_by_key(&literal, |p| p.0).map_or(0, |i| self.powers[i].1)
    }
}

/// Returns the number of factors, with multiplicity.
pub(super) fn degree(powers: &[(Literal, i32)]) -> u32 {
    powers.iter().map(|(_, e)| e.unsigned_abs()).sum()
}

/// Returns the product of both.
pub(super) fn multiply(a: &[(Literal, i32)], b: &[(Literal, i32)]) -> Powers {
    let mut product = Powers::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let next = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                (i, j) = (i + 1, j + 1);
                (x.0, x.1 + y.1)
            }
            (Some(x), Some(y)) if y.0 < x.0 => {
                j += 1;
                *y
            }
            (Some(x), _) => {
                i += 1;
                *x
            }
            (None, Some(y)) => {
                j += 1;
                *y
            }
            (None, None) => break,
        };
        if next.1 != 0 {
            product.push(next);
        }
    }
    product
}

/// Returns `powers` without a literal.
pub(super) fn without(powers: &[(Literal, i32)], literal: Literal) -> Powers {
    powers.iter().filter(|p| p.0 != literal).copied().collect()
}

/// Returns `powers` raised to `e`.
pub(super) fn raise(powers: &[(Literal, i32)], e: i32) -> Powers {
    powers.iter().map(|(literal, power)| (*literal, power * e)).collect()
}

/// Returns the literals that divide `new` more often than `old`.
pub(super) fn gained<'a>(old: &'a [(Literal, i32)], new: &'a [(Literal, i32)]) -> impl Iterator<Item = Literal> + 'a {
    let mut rest = old.iter().peekable();
    let is_gained = move |(literal, e): &&(Literal, i32)| {
        while rest.next_if(|other| other.0 < *literal).is_some() {}
        let before = rest.next_if(|other| other.0 == *literal).map_or(0, |other| other.1);
        // As in `common`.
        before == 0 || (before > 0) != (*e > 0) || e.abs() > before.abs()
    };
    new.iter().filter(is_gained).map(|(literal, _)| *literal)
}

/// Returns the largest common cube of both and the remainders (Brayton's co-kernel and the cubes of the kernel).
/// Divisors are common if both divide by them.
pub(super) fn common(a: &[(Literal, i32)], b: &[(Literal, i32)]) -> (Powers, Powers, Powers) {
    let (mut base, mut u, mut v) = (Powers::new(), Powers::new(), Powers::new());
    let (mut i, mut j) = (0, 0);
    loop {
        match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                (i, j) = (i + 1, j + 1);
                let shared = if (x.1 > 0) == (y.1 > 0) { x.1.signum() * x.1.abs().min(y.1.abs()) } else { 0 };
                for (out, e) in [(&mut base, shared), (&mut u, x.1 - shared), (&mut v, y.1 - shared)] {
                    if e != 0 {
                        out.push((x.0, e));
                    }
                }
            }
            (Some(x), Some(y)) if y.0 < x.0 => {
                j += 1;
                v.push(*y);
            }
            (Some(x), _) => {
                i += 1;
                u.push(*x);
            }
            (None, Some(y)) => {
                j += 1;
                v.push(*y);
            }
            (None, None) => return (base, u, v),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_base::Id;

    fn powers(list: &[(usize, i32)]) -> Powers {
        list.iter().map(|(l, e)| (Literal::new(*l), *e)).collect()
    }

    #[test]
    fn products_and_common_cubes() {
        let (a, b) = (powers(&[(0, 2), (1, 1), (4, -2)]), powers(&[(0, 1), (1, -1), (3, 1), (4, -1)]));
        assert_eq!(multiply(&a, &b), powers(&[(0, 3), (3, 1), (4, -3)]));
        let (base, u, v) = common(&a, &b);
        assert_eq!(base, powers(&[(0, 1), (4, -1)]));
        assert_eq!((multiply(&base, &u), multiply(&base, &v)), (a.clone(), b.clone()));
        assert_eq!(degree(&a), 5);
        assert_eq!(raise(&base, -2), powers(&[(0, -2), (4, 2)]));
        let literals = |left: &Powers| left.iter().map(|p| p.0).collect::<Vec<_>>();
        for (old, new) in [(&a, &b), (&b, &a), (&a, &a), (&base, &a), (&a, &base)] {
            assert_eq!(gained(old, new).collect::<Vec<_>>(), literals(&common(new, old).1));
        }
    }
}
