//! Real numbers of about 32 digits with a bound on their error: pairs of doubles.
//!
//! The factor between two values that are equal up to one is computed here, and every equality found in the field is
//! confirmed here: powers that are equal in a finite field only, such as `x^p` and `x`, are not.
//!
//! Source: Dekker, "A floating-point technique for extending the available precision" (1971); Knuth's two-sum. The
//! error bounds are our own: a few units of 2^-104 relative, rounded up to 2^-100.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// Generous bound of the relative error of one operation.
const UNIT: f64 = 1.0 / (1u128 << 100) as f64;

/// `high + low`, |low| at most half a unit in the last place of high.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Double2 {
    pub(super) high: f64,
    pub(super) low: f64,
}

fn two_sum(a: f64, b: f64) -> Double2 {
    let high = a + b;
    let virtual_b = high - a;
    Double2 { high, low: (a - (high - virtual_b)) + (b - virtual_b) }
}

fn two_product(a: f64, b: f64) -> Double2 {
    let split = |x: f64| {
        let t = 134_217_729.0 * x;
        let head = t - (t - x);
        (head, x - head)
    };
    let high = a * b;
    let ((a1, a2), (b1, b2)) = (split(a), split(b));
    Double2 { high, low: ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2 }
}

impl Double2 {
    pub(super) const ONE: Self = Self { high: 1.0, low: 0.0 };

    pub(super) fn abs(self) -> Self {
        if self.high < 0.0 { -self } else { self }
    }

    /// Returns whether the two agree to about 63 bits: as constants in a program they are then equal.
    pub(super) fn is_near(self, other: Self) -> bool {
        // Most differ already in their high parts.
        (self.high - other.high).abs() <= self.high.abs() * 1e-15
            && (self - other).high.abs() <= self.high.abs() * 1e-19
    }
}

impl From<f64> for Double2 {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Add for Double2 {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (s, t) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let s = two_sum(s.high, s.low + t.high);
        two_sum(s.high, s.low + t.low)
    }
}

impl Neg for Double2 {
    type Output = Self;
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for Double2 {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double2 {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let p = two_product(self.high, other.high);
        two_sum(p.high, p.low + (self.high * other.low + self.low * other.high))
    }
}

impl Div for Double2 {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        // By far the most factors are signs.
        if other.low == 0.0 && other.high.abs() == 1.0 {
            return if other.high < 0.0 { -self } else { self };
        }
        let first = self.high / other.high;
        let rest = self - other * first.into();
        let second = rest.high / other.high;
        let rest = rest - other * second.into();
        two_sum(first, second) + (rest.high / other.high).into()
    }
}

/// Number with a bound on its absolute error; NaN or infinite if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Real {
    pub(super) value: Double2,
    pub(super) error: f64,
}

impl Real {
    pub(super) const ONE: Self = Self { value: Double2::ONE, error: 0.0 };

    /// Returns a number that is known to about 100 bits.
    pub(super) fn new(value: Double2) -> Self {
        Self { value, error: value.high.abs() * UNIT }
    }

    fn size(self) -> f64 {
        self.value.high.abs()
    }

    /// Returns the relative error.
    pub(super) fn uncertainty(self) -> f64 {
        self.error / self.size()
    }

    /// Returns whether the value may be zero, at a precision sufficient to detect values of the size of `scale`.
    pub(super) fn is_zero_beside(self, scale: f64) -> bool {
        self.size() <= 4.0 * self.error && self.error <= scale * 1e-15
    }

    pub(super) fn magnitude(self) -> f64 {
        self.size()
    }

    pub(super) fn powi(self, exponent: u64) -> Self {
        let (mut base, mut result, mut exponent) = (self, Self::ONE, exponent);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result * base;
            }
            base = base * base;
            exponent >>= 1;
        }
        result
    }
}

impl From<f64> for Real {
    fn from(c: f64) -> Self {
        Self { value: c.into(), error: 0.0 }
    }
}

impl Add for Real {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let value = self.value + other.value;
        Self { value, error: self.error + other.error + (self.size() + other.size()) * UNIT }
    }
}

impl Neg for Real {
    type Output = Self;
    fn neg(self) -> Self {
        Self { value: -self.value, error: self.error }
    }
}

impl Sub for Real {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Real {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let value = self.value * other.value;
        let error = self.size() * other.error + other.size() * self.error + self.error * other.error;
        Self { value, error: error + value.high.abs() * UNIT }
    }
}

impl Div for Real {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let certain = other.size() - other.error;
        if certain <= 0.5 * other.size() {
            return Self { value, error: f64::INFINITY };
        }
        let error = (self.error + value.high.abs() * other.error) / certain;
        Self { value, error: error + value.high.abs() * UNIT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_digits() {
        let third = Double2::ONE / 3.0.into();
        assert!((third * 3.0.into()).is_near(Double2::ONE));
        let tiny = Double2::from(1e-25) + Double2::ONE - Double2::ONE;
        assert!((tiny.high - 1e-25).abs() < 1e-31);
        assert!(!(Double2::ONE + 1e-18.into()).is_near(Double2::ONE));
        // 10! / 7! / 90 - 8 = 0, within the bound
        let x = Real::from(3_628_800.0) / 5040.0.into() / 90.0.into() - 8.0.into();
        assert!(x.is_zero_beside(1.0));
        let y = x + Real::from(1e-20);
        assert!(!y.is_zero_beside(1.0));
    }
}
