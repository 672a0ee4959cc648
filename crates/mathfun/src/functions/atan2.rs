//! atan2(y, x): the angle of the point (x, y); see `angle`.
//!
//! Rare: both 0, infinity, NaN, and magnitudes above 2^450 or between 0 and 2^-450.

use super::angle::angle;
use super::lanes::Lanes;

/// atan2(y, x) in lanes.
#[inline(always)]
pub fn atan2<L: Lanes>(y: L, x: L) -> L {
    let (height, width) = (y.abs(), x.abs());
    let result = angle(height, width, x).bits_or(y.sign());
    let wider = height.less(width);
    let larger = L::select(wider, width, height);
    let smaller = L::select(wider, height, width);
    let fits = L::both(L::splat(LEAST).at_most(larger), larger.at_most(L::splat(MOST)));
    let usual = L::both(fits, L::either(L::splat(LEAST).at_most(smaller), smaller.at_most(L::splat(0.0))));
    if L::any(L::not(usual)) { y.each2(x, L::not(usual), rare, result) } else { result }
}

/// 2^450, and its reciprocal.
const MOST: f64 = 2.907354897182427e135;
const LEAST: f64 = 1.0 / MOST;

/// 2^64 and 2^700.
const FAR: f64 = 18_446_744_073_709_551_616.0;
const UP: f64 = 5.260135901548374e210;

#[cold]
#[inline(never)]
fn rare(y: f64, x: f64) -> f64 {
    if y.is_nan() || x.is_nan() {
        return f64::NAN;
    }
    let (height, width) = (y.abs(), x.abs());
    let (height, width) = if height.is_infinite() || width.is_infinite() || (height == 0.0 && width == 0.0) {
        // The angles that C defines for these points: axes and diagonals; 0 / 0 counts as 0.
        let both_infinite = height.is_infinite() && width.is_infinite();
        if both_infinite {
            (1.0, 1.0)
        } else if height.is_infinite() {
            (1.0, 0.0)
        } else {
            (0.0, 1.0)
        }
    } else {
        let ratio = height / width;
        if ratio > FAR {
            (1.0, 0.0)
        } else if ratio < 1.0 / FAR {
            if x > 0.0 {
                // atan(t) is t, rounded once even if it is subnormal.
                return y / x;
            }
            (0.0, 1.0)
        } else if height.max(width) > MOST {
            (height / UP, width / UP)
        } else if height.max(width) < LEAST {
            (height * UP, width * UP)
        } else {
            (height, width)
        }
    };
    let result = angle(height, width, x);
    if y.is_sign_negative() { -result } else { result }
}
