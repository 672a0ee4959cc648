//! asinh(x).
//!
//! log(u) with u = |x| + sqrt(x^2 + 1), where the square, the root and both sums are carried as sums of two doubles.
//! Beyond 2^30 it is log(2 |x|), and no argument is rare.

use super::lanes::{Lanes, fast_two_sum, two_product, two_sum};
use super::log::of_parts;
use super::log1p::parts_of_sum;

/// asinh(x) in lanes.
#[inline(always)]
pub fn asinh<L: Lanes>(x: L) -> L {
    let (zero, one) = (L::splat(0.0), L::splat(1.0));
    let magnitude = x.abs();
    let (square, square_lo) = two_product(magnitude, magnitude);
    let (sum, lost) = two_sum(square, one);
    let root = sum.sqrt();
    let root_lo = ((-root).fma(root, sum) + (lost + square_lo)) / (root + root);
    let (u, lost) = fast_two_sum(root, magnitude);
    let far = L::splat(FAR).less(magnitude);
    let (n, f, f_lo) = parts_of_sum(L::select(far, magnitude, u), L::select(far, zero, lost + root_lo));
    let n = n + L::select(far, one, zero);
    let y = of_parts(n, f, f_lo).bits_or(x.sign());
    let usual = L::both(L::splat(TINY).at_most(magnitude), magnitude.less(L::splat(f64::INFINITY)));
    L::select(usual, y, x)
}

/// 2^30: beyond, 1 is negligible beside the square.
const FAR: f64 = 1_073_741_824.0;

/// Below 2^-28 asinh(x) is x.
const TINY: f64 = 3.725290298461914e-09;
