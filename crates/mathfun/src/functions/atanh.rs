//! atanh(x).
//!
//! With u = 1 + |x|, v = 1 - |x| and s = (u - 2^n v) / (u + 2^n v), atanh(|x|) = log(u / v) / 2 = n log(2) / 2 +
//! atanh(s). The exponent of u / v is read off the bits of u and v, whose difference is 2^52 log2(u / v) up to 9 % of
//! 2^52 (Mitchell, Computer multiplication and division using binary logarithms, 1962); so |s| <= 0.2005. Numerator,
//! denominator and quotient are carried as sums of two doubles; up to |x| = 1/6, n is 0 and s is |x|. No argument is
//! rare.

use super::lanes::{Lanes, fast_two_sum, polynomial, two_sum};
use super::log::{LN_2, LN_2_LOW, exponent};

/// (atanh(s) - s) / s^3 by s^2 for |s| <= 0.2005: error 2^-62.6 relative to atanh(s).
const ATANH: [f64; 8] = [
    0.333333333333333,
    0.200000000000285,
    0.1428571427785477,
    0.11111112156325907,
    0.09090832398509807,
    0.07695574853360007,
    0.06586466400753367,
    0.06923858779158529,
];

/// The bits of sqrt(2) in Mitchell's approximation: those of 1 and half a unit of the exponent.
const ONE_AND_HALF: u64 = 0x3ff8_0000_0000_0000;
const EXPONENT: u64 = 0x7ff0_0000_0000_0000;

/// atanh(x) in lanes.
#[inline(always)]
pub fn atanh<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let magnitude = x.abs();
    let (u, u_lo) = fast_two_sum(one, magnitude);
    let (v, v_lo) = fast_two_sum(one, -magnitude);
    let ratio = u.bits_sub(v).bits_add(L::splat_bits(ONE_AND_HALF));
    let scale = ratio.bits_and(L::splat_bits(EXPONENT));
    let n = exponent(ratio.bits_down(52));
    let numerator = (-scale).fma(v, u);
    let numerator_lo = (-scale).fma(v_lo, u_lo);
    let (denominator, lost) = two_sum(u, v * scale);
    let denominator_lo = lost + scale.fma(v_lo, u_lo);
    let reciprocal = one / denominator;
    let s = numerator * reciprocal;
    let rest = (-s).fma(denominator, numerator) + (-s).fma(denominator_lo, numerator_lo);
    let z = s * s;
    let small = (s * z).fma(polynomial(z, &ATANH), rest * reciprocal);
    // n LN_2 / 2 is exact, and either 0 or larger than s.
    let (sum, lost) = fast_two_sum(n * L::splat(LN_2 / 2.0), s);
    let y = sum + (lost + n.fma(L::splat(LN_2_LOW / 2.0), small));
    let beyond = L::select(magnitude.at_most(one), L::splat(f64::INFINITY), L::splat(f64::NAN));
    let y = L::select(magnitude.less(one), y, beyond).bits_or(x.sign());
    L::select(magnitude.less(L::splat(TINY)), x, y)
}

/// Below 2^-28 atanh(x) is x.
const TINY: f64 = 3.725290298461914e-09;
