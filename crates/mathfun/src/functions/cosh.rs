//! cosh(x).
//!
//! (e + 1 / e) / 2 with e = exp(|x|), whose rounding error is carried. Everything is a quarter, then four times that,
//! so that powers of two near the largest double are no special case. Arguments are clamped to 710.5, where the result
//! overflows, and no argument is rare.

use super::exp::{beyond_first, power_of_two, reduce};
use super::lanes::{Lanes, ROUNDER, fast_two_sum};

/// cosh(x) in lanes.
#[inline(always)]
pub fn cosh<L: Lanes>(x: L) -> L {
    let magnitude = x.abs();
    let cut = L::select(L::splat(710.5).less(magnitude), L::splat(710.5), magnitude);
    let (t, r, r_lo) = reduce(cut);
    let (e, lost) = fast_two_sum(L::splat(1.0), r);
    let e_lo = lost + beyond_first(r, r_lo);
    let scale = power_of_two(t, -2);
    // 2^-n: none where it vanishes beside 2^n.
    let down = power_of_two(L::splat(ROUNDER + ROUNDER) - t, -2);
    let down = L::select(cut.less(L::splat(40.0)), down, L::splat(0.0));
    let less = down / (e + e_lo);
    e.fma(scale, e_lo.fma(scale, less)) * L::splat(2.0)
}
