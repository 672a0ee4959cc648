//! The number type of functions: one double, or several in lanes.
//!
//! A function is written once, for every [`Lanes`]. All operations of this trait are exact or rounded correctly in each
//! lane, so that all forms of a function give the same bits. [`Lanes::bits_add`] and the shifts treat the bits of a
//! double as a `u64`, and wrap.

use core::ops::{Add, Div, Mul, Neg, Sub};

/// One double, or several that are treated alike.
pub trait Lanes:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// A truth value for each lane.
    type Mask: Copy;

    /// Returns the number in every lane.
    fn splat(x: f64) -> Self;
    /// Returns the double of these bits in every lane.
    fn splat_bits(bits: u64) -> Self;
    /// Returns `self * b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    /// Returns the square root, rounded correctly.
    fn sqrt(self) -> Self;

    /// Returns `self < other`; false if one is NaN.
    fn less(self, other: Self) -> Self::Mask;
    /// Returns `self <= other`; false if one is NaN.
    fn at_most(self, other: Self) -> Self::Mask;
    /// Returns the lanes whose sign bit is set.
    fn sign_set(self) -> Self::Mask;
    /// Returns the lanes in which both hold.
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Returns the lanes in which one or both hold.
    fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Returns the lanes in which `a` does not hold.
    fn not(a: Self::Mask) -> Self::Mask;
    /// Returns whether `a` holds in some lane.
    fn any(a: Self::Mask) -> bool;
    /// Returns `yes` in lanes in which the mask holds, otherwise `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Returns the bitwise and.
    fn bits_and(self, other: Self) -> Self;
    /// Returns the bitwise or.
    fn bits_or(self, other: Self) -> Self;
    /// Returns the bitwise exclusive or.
    fn bits_xor(self, other: Self) -> Self;
    /// Returns the sum of the bits as integers.
    fn bits_add(self, other: Self) -> Self;
    /// Returns the difference of the bits as integers.
    fn bits_sub(self, other: Self) -> Self;
    /// Returns the bits shifted left.
    fn bits_up(self, by: u64) -> Self;
    /// Returns the bits shifted right, filled with zeros.
    fn bits_down(self, by: u64) -> Self;

    /// Returns `function` of the lanes of `self` in which the mask holds, `otherwise` elsewhere. Slow: for rare
    /// arguments.
    fn each(self, mask: Self::Mask, function: fn(f64) -> f64, otherwise: Self) -> Self;
    /// As [`Lanes::each`], for a function of two numbers.
    fn each2(self, other: Self, mask: Self::Mask, function: fn(f64, f64) -> f64, otherwise: Self) -> Self;

    /// Returns the magnitude.
    #[inline(always)]
    fn abs(self) -> Self {
        self.bits_and(Self::splat_bits(!SIGN))
    }

    /// Returns only the sign bit: 0 or -0.
    #[inline(always)]
    fn sign(self) -> Self {
        self.bits_and(Self::splat_bits(SIGN))
    }
}

/// The sign bit of a double.
pub const SIGN: u64 = 1 << 63;

/// 1.5 * 2^52. Adding it to a number below 2^51 in magnitude rounds the number to an integer, which is in the low bits
/// of the sum in two's complement.
pub const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Returns the polynomial with these coefficients, lowest first: pairs of coefficients, pairs of pairs by x^2, and
/// Horner by x^4. A third of the latency of Horner's chain, for two more multiplications (Estrin 1960, in part).
#[inline(always)]
pub fn polynomial<L: Lanes, const N: usize>(x: L, coefficients: &[f64; N]) -> L {
    let square = x * x;
    let fourth = square * square;
    let pair = |i: usize| {
        let low = L::splat(coefficients[i]);
        if i + 1 < N { L::splat(coefficients[i + 1]).fma(x, low) } else { low }
    };
    let quad = |i: usize| if i + 2 < N { pair(i + 2).fma(square, pair(i)) } else { pair(i) };
    let mut i = (N - 1) / 4 * 4;
    let mut sum = quad(i);
    while i > 0 {
        i -= 4;
        sum = sum.fma(fourth, quad(i));
    }
    sum
}

/// `a + b` and its rounding error, exactly (Knuth, The Art of Computer Programming, 4.2.2, theorem B).
#[inline(always)]
pub fn two_sum<L: Lanes>(a: L, b: L) -> (L, L) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// As [`two_sum`], if |a| >= |b| or a is 0 (Dekker 1971).
#[inline(always)]
pub fn fast_two_sum<L: Lanes>(a: L, b: L) -> (L, L) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// `a * b` and its rounding error, exactly.
#[inline(always)]
pub fn two_product<L: Lanes>(a: L, b: L) -> (L, L) {
    let product = a * b;
    (product, a.fma(b, -product))
}
