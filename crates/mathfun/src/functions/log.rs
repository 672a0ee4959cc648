//! log(x).
//!
//! x = 2^n (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). With s = f / (2 + f), log(1 + f) = 2 atanh(s) = f - f^2/2 + s
//! (f^2/2 + s^2 LOG(s^2)). In this form f is exact, and all rounded terms are small relative to it (the arrangement of
//! FDLIBM's e_log.c, Sun 1993; coefficients and code are our own).
//!
//! Rare: 0, subnormal and negative arguments, infinity, NaN.

use super::lanes::{Lanes, polynomial};

/// (2 atanh(s) - 2 s) / s^3 by s^2 for |s| <= 3 - 2 sqrt(2): error 2^-59.5.
const LOG: [f64; 7] = [
    0.6666666666666734,
    0.39999999999417135,
    0.2857142874186043,
    0.22222198625871428,
    0.18183561647214275,
    0.1531411777276928,
    0.1479528906418291,
];

/// log(2) = `LN_2` + `LN_2_LOW`; the first ends in 11 zero bits, so that its product with n is exact.
pub const LN_2: f64 = 0.6931471805598903;
/// See [`LN_2`].
pub const LN_2_LOW: f64 = 5.497923018708371e-14;

/// The bits of sqrt(1/2), and their difference from those of 1.
const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
const TO_ONE: u64 = 0x3ff0_0000_0000_0000 - SQRT_HALF;

/// (n + 1023 as an integer, 1 + f) for a positive normal x.
#[inline(always)]
pub fn split<L: Lanes>(x: L) -> (L, L) {
    let moved = x.bits_add(L::splat_bits(TO_ONE));
    let m = moved.bits_and(L::splat_bits((1 << 52) - 1)).bits_add(L::splat_bits(SQRT_HALF));
    (moved.bits_down(52), m)
}

/// Returns the integer of `split` minus 1023, as a number: the low bits of a double just above 2^52.
#[inline(always)]
pub fn exponent<L: Lanes>(biased: L) -> L {
    biased.bits_or(L::splat_bits(0x4330_0000_0000_0000)) - L::splat(4_503_599_627_370_496.0 + 1023.0)
}

/// n log(2) + log(1 + f + f_lo).
#[inline(always)]
pub fn of_parts<L: Lanes>(n: L, f: L, f_lo: L) -> L {
    let s = f / (f + L::splat(2.0));
    let z = s * s;
    let half_square = L::splat(0.5) * f * f;
    let tail = z.fma(polynomial(z, &LOG), half_square);
    let small = s.fma(tail, n.fma(L::splat(LN_2_LOW), f_lo));
    n.fma(L::splat(LN_2), f - (half_square - small))
}

/// log(x) in lanes.
#[inline(always)]
pub fn log<L: Lanes>(x: L) -> L {
    let (biased, m) = split(x);
    let y = of_parts(exponent(biased), m - L::splat(1.0), L::splat(0.0));
    let usual = L::both(L::splat(f64::MIN_POSITIVE).at_most(x), x.less(L::splat(f64::INFINITY)));
    if L::any(L::not(usual)) { x.each(L::not(usual), rare, y) } else { y }
}

#[cold]
#[inline(never)]
fn rare(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    if x >= f64::MIN_POSITIVE || x.is_nan() {
        // Infinity, or NaN.
        return x + x;
    }
    // 2^54 x is normal.
    let (biased, m) = split(x * 18_014_398_509_481_984.0);
    of_parts(exponent(biased) - 54.0, m - 1.0, 0.0)
}
