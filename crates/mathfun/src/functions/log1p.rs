//! log(1 + x).
//!
//! 1 + x = u + c exactly, where u is rounded; u = 2^n (1 + f) as for log, and c / 2^n is added to f. For n = 0 this
//! returns x itself.
//!
//! Rare: x <= -1, infinity, NaN.

use super::lanes::{Lanes, fast_two_sum, two_sum};
use super::log::{exponent, of_parts, split};

/// (n, f, f_lo) with log(u + c) = n log(2) + log(1 + f + f_lo), for a normal u and c of at most half its ulp.
#[inline(always)]
pub fn parts_of_sum<L: Lanes>(u: L, c: L) -> (L, L, L) {
    let (biased, m) = split(u);
    // 2^-n; beyond 2^100, c is negligible, and the power might not be a double.
    let scale = L::splat_bits(2046).bits_sub(biased).bits_up(52);
    let c = L::select(u.less(L::splat(BEYOND)), c * scale, L::splat(0.0));
    let (f, f_lo) = fast_two_sum(m - L::splat(1.0), c);
    // log(1 + f + f_lo) = log(1 + f) + f_lo / (1 + f), and f_lo is below half an ulp of f.
    (exponent(biased), f, (-f).fma(f_lo, f_lo))
}

/// log(1 + x) in lanes.
#[inline(always)]
pub fn log1p<L: Lanes>(x: L) -> L {
    let (u, c) = two_sum(L::splat(1.0), x);
    let (n, f, f_lo) = parts_of_sum(u, c);
    let y = of_parts(n, f, f_lo);
    let y = L::select(x.abs().less(L::splat(TINY)), x, y);
    let usual = L::both(L::splat(-1.0).less(x), x.less(L::splat(f64::INFINITY)));
    if L::any(L::not(usual)) { x.each(L::not(usual), rare, y) } else { y }
}

/// 2^100.
const BEYOND: f64 = 1.2676506002282294e30;

/// Below 2^-54 log(1 + x) is x.
const TINY: f64 = 5.551115123125783e-17;

#[cold]
#[inline(never)]
fn rare(x: f64) -> f64 {
    if x == -1.0 {
        return f64::NEG_INFINITY;
    }
    if x < -1.0 { f64::NAN } else { x + x }
}
