//! The angle of a point, used by atan and atan2.
//!
//! For the point (x, y) with x, y >= 0, and T = tan(pi/8):
//!
//! | condition | angle |
//! | --- | --- |
//! | y < T x | atan(y / x) |
//! | x < T y | pi/2 + atan(-x / y) |
//! | else | pi/4 + atan((y - x) / (y + x)) |
//!
//! so that the arc tangent is only computed for |t| <= T. To the left of the y axis, the result is pi minus the angle
//! for |x|. Sum, difference and quotient are carried as sums of two doubles.

use super::lanes::{Lanes, SIGN, fast_two_sum, polynomial, two_sum};

/// (atan(t) - t) / t^3 by t^2 for |t| <= tan(pi/8): error 2^-59.4 relative to atan(t).
const ATAN: [f64; 11] = [
    -0.333333333333332,
    0.1999999999995369,
    -0.14285714280202272,
    0.11111110783654075,
    -0.0909089776260985,
    0.07692060306159862,
    -0.06663105229157727,
    0.058478992379900716,
    -0.05039356179916503,
    0.038066046936530554,
    -0.017909034859609103,
];

const TAN_PI_8: f64 = 0.414_213_562_373_095_03;

/// pi = `PI` + `PI_LOW`; halves and quarters of both are exact.
const PI: f64 = core::f64::consts::PI;
const PI_LOW: f64 = 1.2246467991473532e-16;
/// 3 pi/4 = `PI_3_4` + `PI_3_4_LOW`.
const PI_3_4: f64 = 2.356194490192345;
const PI_3_4_LOW: f64 = 9.184850993605148e-17;

/// Returns the angle of (x, y); of (-x, y) if the sign bit of `left` is set. x and y are not negative, not both 0;
/// nonzero coordinates are between 2^-450 and 2^450.
#[inline(always)]
pub fn angle<L: Lanes>(y: L, x: L, left: L) -> L {
    let (zero, one, tangent) = (L::splat(0.0), L::splat(1.0), L::splat(TAN_PI_8));
    let low = y.less(tangent * x);
    let high = x.less(tangent * y);
    let middle = L::not(L::either(low, high));
    let (difference, difference_lo) = two_sum(y, -x);
    let (sum, sum_lo) = two_sum(y, x);
    let numerator = L::select(low, y, L::select(high, -x, difference));
    let denominator = L::select(low, x, L::select(high, y, sum));
    let numerator_lo = L::select(middle, difference_lo, zero);
    let denominator_lo = L::select(middle, sum_lo, zero);
    let reciprocal = one / denominator;
    let t = numerator * reciprocal;
    let rest = (-t).fma(denominator, numerator) + (-t).fma(denominator_lo, numerator_lo);
    let t_lo = rest * reciprocal;
    // atan(t + t_lo) = atan(t) + t_lo / (1 + t^2), and t_lo is below two ulp of t.
    let z = t * t;
    let small = (t * z).fma(polynomial(z, &ATAN), (-z).fma(t_lo, t_lo));
    // The angle is base + t + small to the right, and pi minus that to the left.
    let leftwards = left.sign_set();
    let base_of = |right: f64, middle_right: f64, middle_left: f64, far_left: f64| {
        let at_low = L::select(leftwards, L::splat(far_left), zero);
        let at_middle = L::select(leftwards, L::splat(middle_left), L::splat(middle_right));
        L::select(low, at_low, L::select(high, L::splat(right), at_middle))
    };
    let base = base_of(PI / 2.0, PI / 4.0, PI_3_4, PI);
    let base_lo = base_of(PI_LOW / 2.0, PI_LOW / 4.0, PI_3_4_LOW, PI_LOW);
    let turned = left.bits_and(L::splat_bits(SIGN));
    let (sum, lost) = fast_two_sum(base, t.bits_xor(turned));
    sum + (lost + (small.bits_xor(turned) + base_lo))
}
