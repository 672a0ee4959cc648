//! The field of p = 2^61 - 1 elements, a Mersenne prime: reduction is a shift and an addition.

use std::ops::{Add, Mul, Neg, Sub};

/// The prime.
pub(super) const P: u64 = (1 << 61) - 1;

/// Element, always below [`P`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct Fp(u64);

impl Fp {
    pub(super) const ZERO: Self = Self(0);
    pub(super) const ONE: Self = Self(1);

    /// Returns `x` modulo p.
    pub(super) fn new(x: u64) -> Self {
        let folded = (x & P) + (x >> 61);
        Self(if folded >= P { folded - P } else { folded })
    }

    /// Returns the number below p.
    pub(super) fn get(self) -> u64 {
        self.0
    }

    pub(super) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns `self * 2^exponent`: 2^61 is 1, so this is a rotation.
    pub(super) fn times_power_of_two(self, exponent: i32) -> Self {
        let shift = exponent.rem_euclid(61);
        Self::new((self.0 << shift & P) + (self.0 >> (61 - shift)))
    }

    pub(super) fn pow(self, mut exponent: u64) -> Self {
        let (mut base, mut result) = (self, Self::ONE);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result * base;
            }
            base = base * base;
            exponent >>= 1;
        }
        result
    }

    /// Returns `1 / self`, by Fermat's theorem; `None` for zero.
    pub(super) fn inverse(self) -> Option<Self> {
        (!self.is_zero()).then(|| self.pow(P - 2))
    }

    /// Returns the inverses of all, zero for zero; one inversion and three products each (Montgomery's trick).
    pub(super) fn invert_all(values: &[Self]) -> Vec<Self> {
        let mut product = Self::ONE;
        let mut result = Vec::with_capacity(values.len());
        for v in values {
            result.push(product);
            if !v.is_zero() {
                product = product * *v;
            }
        }
        let mut inverse = product.inverse().unwrap_or(Self::ONE);
        for (r, v) in result.iter_mut().zip(values).rev() {
            if v.is_zero() {
                *r = Self::ZERO;
            } else {
                *r = *r * inverse;
                inverse = inverse * *v;
            }
        }
        result
    }
}

impl Add for Fp {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        Self(if sum >= P { sum - P } else { sum })
    }
}

impl Sub for Fp {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for Fp {
    type Output = Self;
    fn neg(self) -> Self {
        Self(if self.0 == 0 { 0 } else { P - self.0 })
    }
}

impl Mul for Fp {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let product = u128::from(self.0) * u128::from(other.0);
        Self::new((product as u64 & P) + (product >> 61) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_that_of_the_integers_modulo_p() {
        let samples = [0, 1, 2, 3, 61, P - 1, P - 2, 1 << 60, 0x0123_4567_89ab_cdef];
        for a in samples {
            for b in samples {
                let exact = |x: u128| Fp((x % u128::from(P)) as u64);
                let (x, y) = (Fp::new(a), Fp::new(b));
                assert_eq!(x + y, exact(u128::from(a) + u128::from(b)));
                assert_eq!(x * y, exact(u128::from(a) * u128::from(b)));
                assert_eq!((x - y) + y, x);
            }
            for e in [-70, -61, -1, 0, 1, 60, 61, 62, 200] {
                assert_eq!(Fp::new(a).times_power_of_two(e).times_power_of_two(-e), Fp::new(a));
            }
        }
        assert_eq!(Fp::new(5).times_power_of_two(3), Fp::new(40));
        assert_eq!(Fp::new(P), Fp::ZERO);
        assert_eq!(Fp::new(u64::MAX), Fp::new(7));
    }

    #[test]
    fn inverses() {
        assert_eq!(Fp::ZERO.inverse(), None);
        let values: Vec<Fp> = [3, 0, P - 1, 12345, 0, 1].map(Fp::new).to_vec();
        for (v, inverse) in values.iter().zip(Fp::invert_all(&values)) {
            assert_eq!(v.inverse().unwrap_or(Fp::ZERO), inverse);
            assert_eq!(*v * inverse, if v.is_zero() { Fp::ZERO } else { Fp::ONE });
        }
    }
}
