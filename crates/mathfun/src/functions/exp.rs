//! exp(x).
//!
//! x = n log(2) + r with an integer n and |r| <= log(2)/2; exp(x) = 2^n exp(r) (Tang, Table-driven implementation of
//! the exponential function, 1989, without the table). n log(2) is subtracted in two steps, the first of them exact,
//! and the rounding error of r is carried as `r_lo`.
//!
//! | | |
//! | --- | --- |
//! | `t` | x / log(2), rounded to the integer n in its low bits |
//! | `r + r_lo` | x - n log(2) |
//! | `EXP` | (exp(r) - 1 - r) / r^2 |
//!
//! Rare: overflowing and subnormal results; NaN.

use super::lanes::{Lanes, ROUNDER, fast_two_sum, polynomial};

/// (exp(r) - 1 - r) / r^2 for |r| <= log(2)/2: error 2^-61.6, relative to exp(r) - 1.
const EXP: [f64; 11] = [
    0.5,
    0.16666666666666677,
    0.041666666666666685,
    0.008333333333321756,
    0.0013888888888890765,
    0.00019841269885460653,
    2.480158728879987e-05,
    2.755724504164741e-06,
    2.755731887751431e-07,
    2.510871953332681e-08,
    2.0897672024529572e-09,
];

/// log(2) = `LN_2` + `LN_2_LOW`.
const LN_2: f64 = core::f64::consts::LN_2;
const LN_2_LOW: f64 = 2.3190468138462996e-17;

/// The bits of 1.
const ONE: u64 = 0x3ff0_0000_0000_0000;

/// (t, r, r_lo) for |x| < 2^20, with n in the low bits of t.
#[inline(always)]
pub fn reduce<L: Lanes>(x: L) -> (L, L, L) {
    let t = x.fma(L::splat(core::f64::consts::LOG2_E), L::splat(ROUNDER));
    let n = t - L::splat(ROUNDER);
    // Exact: n LN_2 and x are multiples of 2^-53 (of 2^-54 where |x| < 1/2, and then n is at most 1), and so
    // is their difference, which is below 1/2.
    let exact = n.fma(L::splat(-LN_2), x);
    let r = n.fma(L::splat(-LN_2_LOW), exact);
    let r_lo = n.fma(L::splat(-LN_2_LOW), exact - r);
    (t, r, r_lo)
}

/// exp(r + r_lo) - 1 - r.
#[inline(always)]
pub fn beyond_first<L: Lanes>(r: L, r_lo: L) -> L {
    (r * r).fma(polynomial(r, &EXP), r_lo)
}

/// 2^(n + more) for an integer n in the low bits of t; -1022 <= n + more <= 1023.
#[inline(always)]
pub fn power_of_two<L: Lanes>(t: L, more: i64) -> L {
    t.bits_up(52).bits_add(L::splat_bits(ONE.wrapping_add_signed(more << 52)))
}

/// exp(r + r_lo) for |r| <= log(2)/2.
#[inline(always)]
pub fn of_reduced<L: Lanes>(r: L, r_lo: L) -> L {
    let (sum, lost) = fast_two_sum(L::splat(1.0), r);
    sum + (lost + beyond_first(r, r_lo))
}

/// exp(x) in lanes.
#[inline(always)]
pub fn exp<L: Lanes>(x: L) -> L {
    let (t, r, r_lo) = reduce(x);
    let y = of_reduced(r, r_lo) * power_of_two(t, 0);
    let usual = x.abs().at_most(L::splat(708.0));
    if !L::any(L::not(usual)) {
        return y;
    }
    let vanishes = x.less(L::splat(VANISHES));
    let y = L::select(vanishes, L::splat(0.0), y);
    let rare = L::not(L::either(usual, vanishes));
    if L::any(rare) { x.each(rare, unusual, y) } else { y }
}

/// Below, exp(x) is 0: the exponents of masked elements are, or minus infinity.
const VANISHES: f64 = -746.0;

/// exp(x) if 2^n may not be a double.
#[cold]
#[inline(never)]
fn unusual(x: f64) -> f64 {
    if x > 710.0 {
        return f64::INFINITY;
    }
    let (t, r, r_lo) = reduce(x);
    scaled(of_reduced(r, r_lo), t)
}

/// y 2^n for 1/4 < y < 4 and an integer -1100 <= n <= 1100 in the low bits of t, rounded once.
pub fn scaled(y: f64, t: f64) -> f64 {
    let n = (t - ROUNDER) as i64;
    let half = n >> 1;
    y * power_of_two(ROUNDER, half) * power_of_two(ROUNDER, n - half)
}
