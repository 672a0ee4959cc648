//! pow(x, y): x to the power y.
//!
//! The power |x|^y is exp(y log |x|). The logarithm is needed with a relative error of 2^-66, because y log|x| is up to
//! 709. With x = 2^n (1 + f) and s = f / (2 + f), log(1 + f) = 2s + s^3 (2/3 + s^2 (POW_0 + s^2 POW(s^2))); all terms
//! except POW are carried as sums of two doubles (Dekker 1971), and so is the product with y. The error of exp is that
//! of `exp`.
//!
//! Negative x with an integer y is a usual argument. Rare: x that is 0, subnormal, infinite or NaN; negative x with a y
//! that is no integer or is above 2^51; overflowing, subnormal and zero results.

use super::exp::{of_reduced, power_of_two, reduce, scaled};
use super::lanes::{Lanes, ROUNDER, fast_two_sum, polynomial, two_product};
use super::log::{LN_2, LN_2_LOW, exponent, split};

/// (2 atanh(s) - 2 s - 2/3 s^3) / s^5 by s^2 for |s| <= 3 - 2 sqrt(2): error 2^-73.5 relative to 2 atanh(s). The lowest
/// coefficient is separate, because it is added exactly.
const POW_0: f64 = 0.3999999999999998;
const POW: [f64; 7] = [
    0.28571428571443835,
    0.22222222217791804,
    0.18181818843687986,
    0.15384558451515343,
    0.1333626356261013,
    0.11675800377992882,
    0.11981586414230704,
];

/// 2/3 = `TWO_THIRDS` + `TWO_THIRDS_LOW`.
const TWO_THIRDS: f64 = 0.6666666666666666;
const TWO_THIRDS_LOW: f64 = 3.700743415417188e-17;

/// 2^51.
const INTEGERS: f64 = 2_251_799_813_685_248.0;

/// n log(2) + log(m) as a sum of two doubles, for sqrt(1/2) <= m < sqrt(2). The second may exceed half an ulp of the
/// first, but is below 2^-33.
#[inline(always)]
pub fn precise_log<L: Lanes>(n: L, m: L) -> (L, L) {
    let f = m - L::splat(1.0);
    let (d, d_lo) = fast_two_sum(L::splat(2.0), f);
    let reciprocal = L::splat(1.0) / d;
    let s = f * reciprocal;
    let s_lo = (-s).fma(d_lo, (-s).fma(d, f)) * reciprocal;
    let (z, z_lo) = two_product(s, s);
    let z_lo = (s + s).fma(s_lo, z_lo);
    let (u, u_lo) = fast_two_sum(L::splat(POW_0), z * polynomial(z, &POW));
    let (v, v_lo) = two_product(z, u);
    let (c, c_lo) = fast_two_sum(L::splat(TWO_THIRDS), v);
    let v_lo = z.fma(u_lo, z_lo.fma(u, v_lo));
    let c_lo = c_lo + (v_lo + L::splat(TWO_THIRDS_LOW));
    let (v, v_lo) = two_product(z, c);
    let v_lo = z.fma(c_lo, z_lo.fma(c, v_lo));
    let (w, w_lo) = two_product(s, v);
    let w_lo = s.fma(v_lo, s_lo.fma(v, w_lo));
    let (log_m, lost) = fast_two_sum(s + s, w);
    let log_m_lo = lost + (w_lo + (s_lo + s_lo));
    // n LN_2 is exact, and either 0 or larger than log(m).
    let (sum, lost) = fast_two_sum(n * L::splat(LN_2), log_m);
    (sum, lost + n.fma(L::splat(LN_2_LOW), log_m_lo))
}

/// (y (log + log_lo) rounded, and the parts of its exponential: t, r and r_lo).
#[inline(always)]
pub fn exponent_of_power<L: Lanes>(y: L, log: L, log_lo: L) -> (L, L, L, L) {
    let (p, p_lo) = two_product(y, log);
    let p_lo = y.fma(log_lo, p_lo);
    let (t, r, r_lo) = reduce(p);
    // If r is smaller than the addend, the error is still below 2^-80.
    let (r, r_lo) = fast_two_sum(r, r_lo + p_lo);
    (p, t, r, r_lo)
}

/// pow(x, y) in lanes.
#[inline(always)]
pub fn pow<L: Lanes>(x: L, y: L) -> L {
    let magnitude = x.abs();
    let (biased, m) = split(magnitude);
    let (log, log_lo) = precise_log(exponent(biased), m);
    let (p, t, r, r_lo) = exponent_of_power(y, log, log_lo);
    // y as an integer in the low bits, if it is one.
    let integer = y + L::splat(ROUNDER);
    let fraction = y - (integer - L::splat(ROUNDER));
    let is_integer = L::both(fraction.abs().at_most(L::splat(0.0)), y.abs().less(L::splat(INTEGERS)));
    let odd = integer.bits_up(63);
    let power = (of_reduced(r, r_lo) * power_of_two(t, 0)).bits_xor(x.bits_and(odd));
    let normal = L::both(L::splat(f64::MIN_POSITIVE).at_most(magnitude), magnitude.less(L::splat(f64::INFINITY)));
    let signed = L::either(L::not(x.sign_set()), is_integer);
    let usual = L::both(L::both(normal, signed), p.abs().at_most(L::splat(708.0)));
    if L::any(L::not(usual)) { x.each2(y, L::not(usual), rare, power) } else { power }
}

/// Returns whether y is an integer, and whether it is odd.
fn parity(y: f64) -> (bool, bool) {
    let magnitude = y.abs();
    // From 2^53 on all doubles are even.
    if magnitude >= 9_007_199_254_740_992.0 {
        return (true, false);
    }
    let n = magnitude as u64;
    let is_integer = n as f64 == magnitude;
    (is_integer, is_integer && n & 1 == 1)
}

#[cold]
#[inline(never)]
fn rare(x: f64, y: f64) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (is_integer, is_odd) = parity(y);
    let magnitude = x.abs();
    let negative = x.is_sign_negative() && is_odd;
    let power = if magnitude == 0.0 || magnitude.is_infinite() {
        if (magnitude == 0.0) == (y > 0.0) { 0.0 } else { f64::INFINITY }
    } else if y.is_infinite() {
        if magnitude == 1.0 {
            1.0
        } else if (magnitude < 1.0) == (y > 0.0) {
            0.0
        } else {
            f64::INFINITY
        }
    } else if x < 0.0 && !is_integer {
        return f64::NAN;
    } else {
        finite(magnitude, y)
    };
    if negative { -power } else { power }
}

/// x^y for positive finite x and finite y.
fn finite(x: f64, y: f64) -> f64 {
    // 2^54 x is normal if x is not.
    let (up, less) = if x < f64::MIN_POSITIVE { (18_014_398_509_481_984.0, 54.0) } else { (1.0, 0.0) };
    let (biased, m) = split(x * up);
    let (log, log_lo) = precise_log(exponent(biased) - less, m);
    let (p, t, r, r_lo) = exponent_of_power(y, log, log_lo);
    if p > 710.0 {
        return f64::INFINITY;
    }
    if p < -746.0 {
        return 0.0;
    }
    scaled(of_reduced(r, r_lo), t)
}
