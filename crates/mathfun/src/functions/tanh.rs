//! tanh(x).
//!
//! |x| = n log(2) / 2 + r. With T = tanh(r) and s = 2^n, the sum formula gives tanh(|x|) = (T (s + 1) + (s - 1)) / (T
//! (s - 1) + (s + 1)). n is the nearest integer, but 0 up to 0.2225, where the numerator of n = 1 would cancel; so |r|
//! <= 0.2225. Numerator and denominator are carried as sums of two doubles, and the quotient is corrected once, so that
//! the roundings of T and of the result remain. Above 20 the result is 1; arguments are clamped to 20, and no argument
//! is rare.

use super::exp::power_of_two;
use super::lanes::{Lanes, ROUNDER, polynomial};

/// (tanh(r) - r) / r^3 by r^2 for |r| <= 0.2225: error 2^-60.4 relative to tanh(r).
const TANH: [f64; 7] = [
    -0.33333333333333226,
    0.1333333333327812,
    -0.05396825387200772,
    0.021869480569464993,
    -0.008862882147513962,
    0.003583483830344012,
    -0.0013453575648322944,
];

/// Up to this, n is 0.
const NEAR: f64 = 0.2225;

/// log(2) / 2 = `HALF_LN_2` + `HALF_LN_2_LOW`.
const HALF_LN_2: f64 = core::f64::consts::LN_2 / 2.0;
const HALF_LN_2_LOW: f64 = 1.1595234069231498e-17;

/// tanh(x) in lanes.
#[inline(always)]
pub fn tanh<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let magnitude = x.abs();
    let cut = L::select(L::splat(20.0).less(magnitude), L::splat(20.0), magnitude);
    let far = L::select(cut.less(L::splat(NEAR)), L::splat(0.0), cut);
    let t = far.fma(L::splat(2.0 * core::f64::consts::LOG2_E), L::splat(ROUNDER));
    let n = t - L::splat(ROUNDER);
    // Exact: multiples of 2^-55, with a difference below 1/4.
    let exact = n.fma(L::splat(-HALF_LN_2), cut);
    let r = n.fma(L::splat(-HALF_LN_2_LOW), exact);
    let r_lo = n.fma(L::splat(-HALF_LN_2_LOW), exact - r);
    let z = r * r;
    let tangent = r + (r * z).fma(polynomial(z, &TANH), r_lo);
    let above = power_of_two(t, 0) + one;
    // Not s - 1: if 1 is lost in s + 1, both have to lose it.
    let below = above - L::splat(2.0);
    let (numerator, denominator) = (tangent.fma(above, below), tangent.fma(below, above));
    // Both differences are exact.
    let numerator_lo = tangent.fma(above, below - numerator);
    let denominator_lo = tangent.fma(below, above - denominator);
    let reciprocal = one / denominator;
    let quotient = numerator * reciprocal;
    let rest = (-quotient).fma(denominator, numerator) + (-quotient).fma(denominator_lo, numerator_lo);
    rest.fma(reciprocal, quotient).bits_or(x.sign())
}
