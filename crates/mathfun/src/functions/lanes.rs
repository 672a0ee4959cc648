//! What a function is written on: a few doubles side by side, or one.
//!
//! A function is written once, for every [`Lanes`]. All operations here are exact or rounded correctly,
//! lane by lane, so that all forms of a function give the same bits. Bits of a double are treated as
//! `u64`: [`Lanes::bits_add`] and the shifts look at doubles in that way, and wrap.

use core::ops::{Add, Div, Mul, Neg, Sub};

/// One double, or several that are treated alike.
pub trait Lanes:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// A truth value a lane.
    type Mask: Copy;

    /// The number in every lane.
    fn splat(x: f64) -> Self;
    /// The double of these bits in every lane.
    fn splat_bits(bits: u64) -> Self;
    /// `self * b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;

    /// `self < other`, and so on; false where one is NaN.
    fn less(self, other: Self) -> Self::Mask;
    /// `self <= other`.
    fn at_most(self, other: Self) -> Self::Mask;
    /// Lanes whose sign bit is set.
    fn sign_set(self) -> Self::Mask;
    /// Lanes where both hold.
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Lanes where one or both hold.
    fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Lanes where it does not hold.
    fn not(a: Self::Mask) -> Self::Mask;
    /// Whether it holds in some lane.
    fn any(a: Self::Mask) -> bool;
    /// `yes` where the mask holds, otherwise `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Bits of both.
    fn bits_and(self, other: Self) -> Self;
    /// Bits of one or both.
    fn bits_or(self, other: Self) -> Self;
    /// Bits of exactly one.
    fn bits_xor(self, other: Self) -> Self;
    /// The sum of the bits as integers.
    fn bits_add(self, other: Self) -> Self;
    /// The difference of the bits as integers.
    fn bits_sub(self, other: Self) -> Self;
    /// The bits, moved up.
    fn bits_up(self, by: u64) -> Self;
    /// The bits, moved down, zeros after them.
    fn bits_down(self, by: u64) -> Self;

    /// `function` of the lanes of `self` where the mask holds, `otherwise` elsewhere. Slow: for rare arguments.
    fn each(self, mask: Self::Mask, function: fn(f64) -> f64, otherwise: Self) -> Self;
    /// The same for a function of two numbers.
    fn each2(self, other: Self, mask: Self::Mask, function: fn(f64, f64) -> f64, otherwise: Self) -> Self;

    /// The magnitude.
    #[inline(always)]
    fn abs(self) -> Self {
        self.bits_and(Self::splat_bits(!SIGN))
    }

    /// The sign bit alone: 0 or -0.
    #[inline(always)]
    fn sign(self) -> Self {
        self.bits_and(Self::splat_bits(SIGN))
    }
}

/// The sign bit of a double.
pub const SIGN: u64 = 1 << 63;

/// 1.5 * 2^52. A number below 2^51 in magnitude, added to it, is rounded to an integer, which stands in
/// the low bits of the sum as two's complement.
pub const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// The polynomial with these coefficients, lowest first: pairs of coefficients, pairs of pairs by x^2, and Horner by
/// x^4. A third of the length of Horner's chain, for two more multiplications (Estrin 1960, in part).
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

/// `a + b` and what rounding took from it, exactly (Knuth, The Art of Computer Programming, 4.2.2, theorem B).
#[inline(always)]
pub fn two_sum<L: Lanes>(a: L, b: L) -> (L, L) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// The same, where |a| >= |b| or a is 0 (Dekker 1971).
#[inline(always)]
pub fn fast_two_sum<L: Lanes>(a: L, b: L) -> (L, L) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// `a * b` and what rounding took from it, exactly.
#[inline(always)]
pub fn two_product<L: Lanes>(a: L, b: L) -> (L, L) {
    let product = a * b;
    (product, a.fma(b, -product))
}
