//! acosh(x).
//!
//! log(u) with u = x + sqrt(x^2 - 1), where the square, the root and both sums are carried as sums of two doubles.
//! Beyond 2^30 it is log(2 x), and no argument is rare.

use super::lanes::{Lanes, fast_two_sum, two_product};
use super::log::of_parts;
use super::log1p::parts_of_sum;

/// acosh(x) in lanes.
#[inline(always)]
pub fn acosh<L: Lanes>(x: L) -> L {
    let (zero, one) = (L::splat(0.0), L::splat(1.0));
    let (square, square_lo) = two_product(x, x);
    let (difference, lost) = fast_two_sum(square, -one);
    let (difference, difference_lo) = fast_two_sum(difference, lost + square_lo);
    let root = difference.sqrt();
    let root_lo = ((-root).fma(root, difference) + difference_lo) / (root + root);
    let (u, lost) = fast_two_sum(x, root);
    let far = L::splat(FAR).less(x);
    let (n, f, f_lo) = parts_of_sum(L::select(far, x, u), L::select(far, zero, lost + root_lo));
    let n = n + L::select(far, one, zero);
    let y = L::select(x.less(L::splat(f64::INFINITY)), of_parts(n, f, f_lo), x);
    let is_one = L::both(x.at_most(one), one.at_most(x));
    L::select(one.less(x), y, L::select(is_one, zero, L::splat(f64::NAN)))
}

/// 2^30: beyond, 1 is negligible beside the square.
const FAR: f64 = 1_073_741_824.0;
