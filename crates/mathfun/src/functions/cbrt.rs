//! cbrt(x), the cube root.
//!
//! |x| = 2^(3k) m with 1/2 <= m < 4. z is 1 / cbrt(m), up to 2^-17, by a polynomial of the fraction of x. With h = 1 -
//! m z^3, cbrt(m) = m z^2 (1 - h)^(-2/3), from the first terms of the series; then the cube is subtracted from m almost
//! exactly, and the root corrected (Newton). Subnormal arguments are scaled by 2^54, and no argument is rare.

use super::exp::power_of_two;
use super::lanes::{Lanes, ROUNDER, polynomial, two_product};
use super::log::exponent;

/// 1 / cbrt(m) for 1 <= m <= 2: error 2^-17.4.
const RECIPROCAL: [f64; 6] = [
    1.7810488052821425,
    -1.5659968475576194,
    1.2437405231149186,
    -0.5978414671412301,
    0.1560608147947594,
    -0.01701757921751708,
];

/// cbrt(2), and its reciprocal.
const ROOT: f64 = 1.259_921_049_894_873_2;
const ROOT_DOWN: f64 = 0.793_700_525_984_099_8;

/// 2^54 and the reciprocal of its root.
const UP: f64 = 18_014_398_509_481_984.0;
const DOWN: f64 = 1.0 / 262_144.0;

/// The bits of 1, and those of a fraction.
const ONE: u64 = 0x3ff0_0000_0000_0000;
const FRACTION: u64 = (1 << 52) - 1;

/// cbrt(x) in lanes.
#[inline(always)]
pub fn cbrt<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let magnitude = x.abs();
    let subnormal = magnitude.less(L::splat(f64::MIN_POSITIVE));
    let normal = L::select(subnormal, magnitude * L::splat(UP), magnitude);
    let fraction = normal.bits_and(L::splat_bits(FRACTION)).bits_or(L::splat_bits(ONE));
    let e = exponent(normal.bits_down(52));
    let t = e.fma(L::splat(1.0 / 3.0), L::splat(ROUNDER));
    // -1, 0 or 1.
    let rest = (t - L::splat(ROUNDER)).fma(L::splat(-3.0), e);
    let m = (rest + L::splat(ROUNDER)).bits_up(52).bits_add(fraction);
    let less = L::select(rest.less(L::splat(-0.5)), L::splat(ROOT), one);
    let factor = L::select(L::splat(0.5).less(rest), L::splat(ROOT_DOWN), less);
    let z = polynomial(fraction, &RECIPROCAL) * factor;
    let z_square = z * z;
    let root = m * z_square;
    let h = (-root).fma(z, one);
    let root = (root * h).fma(h.fma(L::splat(5.0 / 9.0), L::splat(2.0 / 3.0)), root);
    let (square, square_lo) = two_product(root, root);
    let missing = (-square_lo).fma(root, (-square).fma(root, m));
    let root = (missing * L::splat(1.0 / 3.0)).fma(z_square, root);
    let scale = power_of_two(t, 0) * L::select(subnormal, L::splat(DOWN), one);
    let y = (root * scale).bits_or(x.sign());
    let usual = L::both(L::splat(0.0).less(magnitude), magnitude.less(L::splat(f64::INFINITY)));
    L::select(usual, y, x)
}
