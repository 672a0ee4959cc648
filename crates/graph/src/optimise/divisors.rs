//! Divisors: common parts of several cubes, or of several pairs of cubes of one sum.
//!
//! | paper (Rajski and Vasudevamurthy 1992) | here |
//! | --- | --- |
//! | two-literal single-cube divisor | [`Kind::Pair`] |
//! | double-cube divisor, cube-free | [`Kind::Double`] |
//! | base of a double-cube divisor | the common cube of a pair of cubes |
//! | weight | saving of `extract`, in the operators' weights |
//!
//! Theirs are Boolean; over the reals a literal has a power and a cube a coefficient (Hosangadi, Fallah, Kastner,
//! "Optimizing polynomial expressions by algebraic factorization and common subexpression elimination", 2006). A
//! double-cube divisor is identified by its two cubes and the ratio of their coefficients, so that `a - b`, `b - a` and
//! `2*a - 2*b` are one. A number times a literal is a divisor too, for products with the same factor.

use super::cube::{Literal, Powers, common};
use chainrule_base::Id;

/// Literal, and whether a cube divides by it.
pub(super) type Factor = (Literal, bool);

/// Divisor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// Product of two literals, or square of one.
    Pair(Factor, Factor),
    /// Number, positive and not 1, times a literal.
    Scaled(f64, Factor),
    /// Double-cube divisor, determined by its places.
    Double,
}

/// `u + ratio * v`, without a common literal.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Double {
    /// First cube.
    pub u: Powers,
    /// Second cube.
    pub v: Powers,
    /// Coefficient of the second cube relative to the first.
    pub ratio: f64,
}

/// Two cubes of a sum as `coef * base * divisor`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Split {
    /// Coefficient of the divisor.
    pub coef: f64,
    /// Common cube of both cubes.
    pub base: Powers,
    /// Divisor.
    pub divisor: Double,
}

/// Summary from which a [`Split`] and its saving are computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sketch {
    /// Hash of the divisor. Different divisors may collide.
    pub fingerprint: u64,
    /// Coefficient of the divisor.
    pub coef: f64,
    /// Coefficient of the second cube relative to the first.
    pub ratio: f64,
    /// Degrees of the base, of the first cube and of the second.
    pub degrees: [u32; 3],
    /// Whether the first cube of the divisor comes from the second of the two.
    pub swapped: bool,
}

/// Returns the hash of a divisor that is not a double cube.
pub(super) fn fingerprint(kind: Kind) -> u64 {
    let factor = |f: Factor| (f.0.index() as u64) << 1 | u64::from(f.1);
    match kind {
        Kind::Pair(a, b) => mix(mix(1, factor(a)), factor(b)),
        Kind::Scaled(c, a) => mix(mix(2, factor(a)), c.to_bits()),
        Kind::Double => 3,
    }
}

fn mix(hash: u64, x: u64) -> u64 {
    let z = (hash.rotate_left(23) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z ^ (z >> 29)
}

/// Summarises the split of two cubes, given as coefficient and powers, without building the parts; `None` if they
/// differ only in their coefficients.
pub(super) fn sketch(a: (f64, &[(Literal, i32)]), b: (f64, &[(Literal, i32)])) -> Option<Sketch> {
    /// Remainder of a cube: its hash, and its degree.
    struct Rest(u64, u32);
    impl Rest {
        fn push(&mut self, literal: Literal, e: i32) {
            if e != 0 {
                self.0 = mix(self.0, (literal.index() as u64) << 32 | u64::from(e as u32));
                self.1 += e.unsigned_abs();
            }
        }
    }
    let (mut base, mut u, mut v) = (0, Rest(5, 0), Rest(5, 0));
    let (mut i, mut j) = (0, 0);
    loop {
        match (a.1.get(i), b.1.get(j)) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                (i, j) = (i + 1, j + 1);
                let shared = if (x.1 > 0) == (y.1 > 0) { x.1.signum() * x.1.abs().min(y.1.abs()) } else { 0 };
                base += shared.unsigned_abs();
                u.push(x.0, x.1 - shared);
                v.push(y.0, y.1 - shared);
            }
            (Some(x), Some(y)) if y.0 < x.0 => {
                j += 1;
                v.push(y.0, y.1);
            }
            (Some(x), _) => {
                i += 1;
                u.push(x.0, x.1);
            }
            (None, Some(y)) => {
                j += 1;
                v.push(y.0, y.1);
            }
            (None, None) => break,
        }
    }
    // The two cubes are ordered by their hashes.
    let (first, second, coef, ratio, swapped) = match u.0.cmp(&v.0) {
        std::cmp::Ordering::Less => (u, v, a.0, b.0 / a.0, false),
        std::cmp::Ordering::Greater => (v, u, b.0, a.0 / b.0, true),
        std::cmp::Ordering::Equal => return None,
    };
    let fingerprint = mix(mix(mix(3, first.0), second.0), ratio.to_bits());
    Some(Sketch { fingerprint, coef, ratio, degrees: [base, first.1, second.1], swapped })
}

/// Splits two cubes with this sketch.
pub(super) fn split(sketch: &Sketch, a: &[(Literal, i32)], b: &[(Literal, i32)]) -> Split {
    let (base, u, v) = common(a, b);
    let (u, v) = if sketch.swapped { (v, u) } else { (u, v) };
    Split { coef: sketch.coef, base, divisor: Double { u, v, ratio: sketch.ratio } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposite_and_scaled_differences_are_one_divisor() {
        let cube = |list: &[usize]| -> Powers { list.iter().map(|l| (Literal::new(*l), 1)).collect() };
        let (ax, bx) = (cube(&[0, 7]), cube(&[1, 7]));
        let first = sketch((1.0, &ax), (-1.0, &bx)).unwrap();
        let second = sketch((2.0, &bx), (-2.0, &ax)).unwrap();
        assert_eq!(first.fingerprint, second.fingerprint);
        let (p, q) = (split(&first, &ax, &bx), split(&second, &bx, &ax));
        assert_eq!(p.divisor, q.divisor);
        assert_eq!(p.coef * q.coef, -2.0);
        assert_eq!((&p.base, first.degrees), (&cube(&[7]), [1, 1, 1]));
        let other = sketch((1.0, &ax), (1.0, &bx)).unwrap();
        assert_ne!(first.fingerprint, other.fingerprint);
        assert_eq!(sketch((1.0, &ax), (2.0, &ax)), None);
    }
}
