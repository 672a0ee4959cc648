//! Shared by sin, cos, sin_cos and tan: reduction to the octant around a multiple of pi/2, and sine and cosine there.
//!
//! x = n pi/2 + r with an integer n and |r| <= pi/4 (1 + 2^-20). pi/2 is the sum of three doubles. Subtracting n times
//! the first from x is exact (Cody and Waite 1980; with fused products no part has to be short). r is carried as r +
//! r_lo with a relative error of 2^-60, even if x is as close to a multiple of pi/2 as a double can be.
//!
//! | | |
//! | --- | --- |
//! | `t` | 2 x / pi, rounded to the integer n in its low bits |
//! | `SIN` | (sin(r) - r) / r^3 by r^2 |
//! | `COS` | (cos(r) - 1 + r^2/2) / r^4 by r^2 |
//!
//! Rare: |x| above [`LARGEST`], infinity, NaN; see `huge`.

use super::lanes::{Lanes, ROUNDER, SIGN, fast_two_sum, polynomial, two_product, two_sum};

/// (sin(r) - r) / r^3 by r^2 for |r| <= pi/4: error 2^-57.9 relative to sin(r).
const SIN: [f64; 6] = [
    -0.1666666666666663,
    0.008333333333321908,
    -0.00019841269829448454,
    2.7557313578866845e-06,
    -2.5050741839273815e-08,
    1.5895919342482115e-10,
];

/// (cos(r) - 1 + r^2/2) / r^4 by r^2 for |r| <= pi/4: error 2^-63.9 relative to cos(r).
const COS: [f64; 6] = [
    0.041666666666666595,
    -0.0013888888888873344,
    2.4801587289004055e-05,
    -2.7557314217694787e-07,
    2.087570549057336e-09,
    -1.1358754248535979e-11,
];

/// pi/2 = `HALF_PI` + `HALF_PI_2` + `HALF_PI_3`.
pub const HALF_PI: f64 = core::f64::consts::FRAC_PI_2;
/// See [`HALF_PI`].
pub const HALF_PI_2: f64 = 6.123233995736766e-17;
const HALF_PI_3: f64 = -1.4973849048591698e-33;

/// Larger arguments are reduced by `huge`. n stays below 2^31, so the rounding error of n `HALF_PI_3` is below 2^-131.
pub const LARGEST: f64 = 1_073_741_824.0;

/// Below 2^-27 sin(x) and tan(x) are x.
pub const TINY: f64 = 7.450580596923828e-09;

/// (t, r, r_lo) for |x| <= [`LARGEST`].
#[inline(always)]
pub fn reduce<L: Lanes>(x: L) -> (L, L, L) {
    let t = x.fma(L::splat(core::f64::consts::FRAC_2_PI), L::splat(ROUNDER));
    let n = t - L::splat(ROUNDER);
    // Exact: n HALF_PI and x are multiples of 2^-52 (of 2^-53 where |x| < 1, and then |n| is at most 1), and
    // so is their difference, which is below 1.
    let exact = n.fma(L::splat(-HALF_PI), x);
    let (product, product_lo) = two_product(n, L::splat(-HALF_PI_2));
    let (r, lost) = two_sum(exact, product);
    let r_lo = n.fma(L::splat(-HALF_PI_3), lost + product_lo);
    (t, r, r_lo)
}

/// (s, c, c_small) with sin(r + r_lo) = r + s and cos(r + r_lo) = c + c_small for |r| <= pi/4.
#[inline(always)]
fn octant<L: Lanes>(r: L, r_lo: L) -> (L, L, L) {
    let (one, half) = (L::splat(1.0), L::splat(0.5));
    let z = r * r;
    let half_square = half * z;
    let (first, lost) = fast_two_sum(one, -half_square);
    // sin(r + r_lo) = sin(r) + r_lo cos(r), and the same for the cosine: r_lo is below half an ulp of r.
    let s = (z * r).fma(polynomial(z, &SIN), r_lo * first);
    (s, first, (z * z).fma(polynomial(z, &COS), (-r).fma(r_lo, lost)))
}

/// sin and cos of n pi/2 + r + r_lo, n in the low bits of t.
#[inline(always)]
pub fn rotate<L: Lanes>(t: L, r: L, r_lo: L) -> (L, L) {
    let (s, c, c_small) = octant(r, r_lo);
    let (sine, cosine) = (r + s, c + c_small);
    let odd = t.bits_up(63).sign_set();
    let sine_sign = t.bits_up(62).sign();
    let cosine_sign = t.bits_add(L::splat_bits(1)).bits_up(62).bits_and(L::splat_bits(SIGN));
    let s = L::select(odd, cosine, sine).bits_xor(sine_sign);
    let c = L::select(odd, sine, cosine).bits_xor(cosine_sign);
    (s, c)
}

/// tan of n pi/2 + r + r_lo, n in the low bits of t. Sine, cosine and quotient are carried as sums of two doubles.
#[inline(always)]
pub fn tangent<L: Lanes>(t: L, r: L, r_lo: L) -> L {
    let (s, c, c_small) = octant(r, r_lo);
    let ((sine, sine_lo), (cosine, cosine_lo)) = (fast_two_sum(r, s), fast_two_sum(c, c_small));
    let sign = t.bits_up(63);
    let odd = sign.sign_set();
    let (numerator, numerator_lo) = (L::select(odd, cosine, sine), L::select(odd, cosine_lo, sine_lo));
    let (denominator, denominator_lo) = (L::select(odd, sine, cosine), L::select(odd, sine_lo, cosine_lo));
    let reciprocal = L::splat(1.0) / denominator;
    let quotient = numerator * reciprocal;
    let rest = (-quotient).fma(denominator, numerator) + (-quotient).fma(denominator_lo, numerator_lo);
    rest.fma(reciprocal, quotient).bits_xor(sign)
}

/// sin(x) and cos(x) for |x| <= [`LARGEST`], and a mask of the other lanes.
#[inline(always)]
pub fn both<L: Lanes>(x: L) -> (L, L, L::Mask) {
    let (t, r, r_lo) = reduce(x);
    let (s, c) = rotate(t, r, r_lo);
    let magnitude = x.abs();
    let s = L::select(magnitude.less(L::splat(TINY)), x, s);
    (s, c, L::not(magnitude.at_most(L::splat(LARGEST))))
}
