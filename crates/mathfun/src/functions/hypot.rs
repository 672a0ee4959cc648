//! hypot(x, y): the length of a vector.
//!
//! With x >= y >= 0, x^2 + y^2 is x x + y y for y < x/2, and otherwise 2y x + (x - y)^2, where x - y is exact. The
//! second product is the smaller one, and only it and the sum are rounded before the root. Very large and very small
//! coordinates are scaled by a power of two, and no argument is rare.

use super::lanes::Lanes;

/// Longer vectors are scaled by 2^-600, shorter ones than `SHORT` by 2^700: 2^500 and 2^-400.
const LONG: f64 = 3.273390607896142e150;
const SHORT: f64 = 3.8725919148493183e-121;
const LONG_DOWN: f64 = 2.409919865102884e-181;
const LONG_UP: f64 = 4.149515568880993e180;
const SHORT_UP: f64 = 5.260135901548374e210;
const SHORT_DOWN: f64 = 1.90109156629516e-211;

/// hypot(x, y) in lanes.
#[inline(always)]
pub fn hypot<L: Lanes>(x: L, y: L) -> L {
    let (x, y) = (x.abs(), y.abs());
    let infinity = L::splat(f64::INFINITY);
    let infinite = L::either(infinity.at_most(x), infinity.at_most(y));
    let higher = x.less(y);
    let (x, y) = (L::select(higher, y, x), L::select(higher, x, y));
    let (long, short) = (L::splat(LONG).less(x), x.less(L::splat(SHORT)));
    let scale = L::select(long, L::splat(LONG_DOWN), L::select(short, L::splat(SHORT_UP), L::splat(1.0)));
    let back = L::select(long, L::splat(LONG_UP), L::select(short, L::splat(SHORT_DOWN), L::splat(1.0)));
    let (x, y) = (x * scale, y * scale);
    let twice = y + y;
    let near = x.at_most(twice);
    let factor = L::select(near, twice, x);
    let rest = L::select(near, x - y, y);
    let length = factor.fma(x, rest * rest).sqrt() * back;
    L::select(infinite, infinity, length)
}
