//! tanh(x).
//!
//! With e = exp(2 |x|) - 1: tanh(|x|) = e / (e + 2). Numerator and denominator are carried as sums of two doubles, and
//! the quotient is corrected once, so that little more than the last rounding is lost. Above 20 the result is 1;
//! arguments are clamped to 20, and no argument is rare.

use super::exp::{beyond_first, power_of_two, reduce};
use super::lanes::{Lanes, fast_two_sum, two_sum};

/// tanh(x) in lanes.
#[inline(always)]
pub fn tanh<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let magnitude = x.abs();
    let cut = L::select(L::splat(20.0).less(magnitude), L::splat(20.0), magnitude);
    let (t, r, r_lo) = reduce(cut + cut);
    let (p, p_lo) = fast_two_sum(r, beyond_first(r, r_lo));
    let scale = power_of_two(t, 0);
    let (e, lost) = fast_two_sum(scale - one, p * scale);
    let e_lo = p_lo.fma(scale, lost);
    let (d, lost) = two_sum(e, L::splat(2.0));
    let d_lo = lost + e_lo;
    let reciprocal = one / d;
    let quotient = e * reciprocal;
    let rest = (-quotient).fma(d, e) + (-quotient).fma(d_lo, e_lo);
    let y = rest.fma(reciprocal, quotient).bits_or(x.sign());
    L::select(magnitude.less(L::splat(TINY)), x, y)
}

/// Below 2^-28 tanh(x) is x.
const TINY: f64 = 3.725290298461914e-09;
