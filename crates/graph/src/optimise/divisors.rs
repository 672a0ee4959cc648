//! Divisors: what several cubes, or several pairs of cubes of one sum, have in common.
//!
//! | paper (Rajski and Vasudevamurthy 1992) | here |
//! | --- | --- |
//! | two-literal single-cube divisor | [`Kind::Pair`] |
//! | double-cube divisor, cube-free | [`Kind::Double`] |
//! | base of a double-cube divisor | the common cube of a pair of cubes |
//! | weight | [`Saving`](super::extract), in the operators' weights |
//!
//! Theirs are Boolean; over the reals a literal has a power and a cube a coefficient (Hosangadi, Fallah,
//! Kastner, "Optimizing polynomial expressions by algebraic factorization and common subexpression
//! elimination", 2006). A double-cube divisor is known by its two cubes and the ratio of their coefficients,
//! so that `a - b`, `b - a` and `2*a - 2*b` are one. A number times a literal is a divisor too, for products
//! with the same factor.

use super::cube::{Literal, Powers, common};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// A literal, and whether a cube divides by it.
pub(super) type Factor = (Literal, bool);

/// A divisor.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Kind {
    /// The product of two literals, or the square of one.
    Pair(Factor, Factor),
    /// A number, positive and not 1, times a literal.
    Scaled(f64, Factor),
    /// `u + ratio * v`, without a common literal; `u` before `v`.
    Double {
        /// The first cube.
        u: Powers,
        /// The second cube.
        v: Powers,
        /// The coefficient of the second where that of the first is 1.
        ratio: f64,
    },
}

impl Kind {
    /// A number by which to find it. Different divisors may have equal numbers.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        match self {
            Self::Pair(a, b) => (0u8, a, b).hash(&mut hasher),
            Self::Scaled(c, a) => (1u8, c.to_bits(), a).hash(&mut hasher),
            Self::Double { u, v, ratio } => (2u8, u, v, ratio.to_bits()).hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// Two cubes of a sum as `coef * base * (u + ratio * v)`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Split {
    /// What multiplies the divisor.
    pub coef: f64,
    /// What both cubes have in common.
    pub base: Powers,
    /// The divisor.
    pub kind: Kind,
}

/// Splits two cubes, given as coefficient and powers; `None` when they differ in their coefficients only.
pub(super) fn split(a: (f64, &Powers), b: (f64, &Powers)) -> Option<Split> {
    let (base, u, v) = common(a.1, b.1);
    match u.cmp(&v) {
        std::cmp::Ordering::Less => Some(Split { coef: a.0, base, kind: Kind::Double { u, v, ratio: b.0 / a.0 } }),
        std::cmp::Ordering::Greater => {
            Some(Split { coef: b.0, base, kind: Kind::Double { u: v, v: u, ratio: a.0 / b.0 } })
        }
        std::cmp::Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_base::Id;

    #[test]
    fn opposite_and_scaled_differences_are_one_divisor() {
        let cube = |list: &[usize]| -> Powers { list.iter().map(|l| (Literal::new(*l), 1)).collect() };
        let (ax, bx) = (cube(&[0, 7]), cube(&[1, 7]));
        let first = split((1.0, &ax), (-1.0, &bx)).unwrap();
        let second = split((2.0, &bx), (-2.0, &ax)).unwrap();
        assert_eq!(first.kind, second.kind);
        assert_eq!((first.coef, second.coef), (1.0, -2.0));
        assert_eq!(first.base, cube(&[7]));
        let other = split((1.0, &ax), (1.0, &bx)).unwrap();
        assert_ne!(first.kind.fingerprint(), other.kind.fingerprint());
    }
}
