//! exp(x) - 1.
//!
//! With n and r as for exp: exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1), where the last term is exact or nearly exact.
//! The rounding errors of exp(r) - 1 and of the sum are carried. Everything is halved, then doubled, so that n = 1024
//! is no special case. Below -40 the result is -1, above 710 infinite; arguments are clamped to that range, and no
//! argument is rare.

use super::exp::{beyond_first, power_of_two, reduce};
use super::lanes::{Lanes, ROUNDER, fast_two_sum};

/// exp(x) - 1 in lanes.
#[inline(always)]
pub fn expm1<L: Lanes>(x: L) -> L {
    let cut = L::select(x.less(L::splat(-40.0)), L::splat(-40.0), x);
    let cut = L::select(L::splat(710.0).less(cut), L::splat(710.0), cut);
    let (t, r, r_lo) = reduce(cut);
    let (p, p_lo) = fast_two_sum(r, beyond_first(r, r_lo));
    let half_scale = power_of_two(t, -1);
    let (sum, lost) = fast_two_sum(half_scale - L::splat(0.5), p * half_scale);
    let scaled = (sum + p_lo.fma(half_scale, lost)) * L::splat(2.0);
    // For n = 0, halving could lose bits, and loses the sign of 0.
    let n_is_zero = (t - L::splat(ROUNDER)).abs().less(L::splat(0.5));
    let y = L::select(n_is_zero, p, scaled);
    L::select(x.abs().less(L::splat(TINY)), x, y)
}

/// Below 2^-54 exp(x) - 1 is x.
const TINY: f64 = 5.551115123125783e-17;
