//! sinh(x).
//!
//! With e = exp(|x|) - 1: sinh(|x|) = (e + e / (e + 1)) / 2. e is carried as a sum of two doubles. Everything is a
//! quarter, then four times that, so that powers of two near the largest double are no special case. Arguments are
//! clamped to 710.5, where the result overflows, and no argument is rare.

use super::exp::{beyond_first, power_of_two, reduce};
use super::lanes::{Lanes, fast_two_sum, two_sum};

/// sinh(x) in lanes.
#[inline(always)]
pub fn sinh<L: Lanes>(x: L) -> L {
    let magnitude = x.abs();
    let cut = L::select(L::splat(710.5).less(magnitude), L::splat(710.5), magnitude);
    let (t, r, r_lo) = reduce(cut);
    let (p, p_lo) = fast_two_sum(r, beyond_first(r, r_lo));
    let scale = power_of_two(t, -2);
    let quarter = L::splat(0.25);
    let (e, lost) = fast_two_sum(scale - quarter, p * scale);
    let e_lo = p_lo.fma(scale, lost);
    let (d, lost) = two_sum(e, quarter);
    let d_lo = lost + e_lo;
    let quotient = e / d;
    // The quotient of the sums differs by this, to first order.
    let more = (e_lo - quotient * d_lo) / d;
    let y = (e + quarter.fma(quotient, quarter.fma(more, e_lo))) * L::splat(2.0);
    L::select(magnitude.less(L::splat(TINY)), x, y.bits_or(x.sign()))
}

/// Below 2^-28 sinh(x) is x.
const TINY: f64 = 3.725290298461914e-09;
