//! atan(x); see `angle`.

use super::angle::angle;
use super::lanes::Lanes;

/// atan(x) in lanes. No argument is rare.
#[inline(always)]
pub fn atan<L: Lanes>(x: L) -> L {
    let magnitude = x.abs();
    // Beyond, the result is pi/2; this avoids infinities.
    let cut = L::select(L::splat(CUT).less(magnitude), L::splat(CUT), magnitude);
    let y = angle(cut, L::splat(1.0), L::splat(0.0)).bits_or(x.sign());
    L::select(magnitude.less(L::splat(TINY)), x, y)
}

/// 2^100.
const CUT: f64 = 1.2676506002282294e30;

/// Below 2^-28 atan(x) is x.
const TINY: f64 = 3.725290298461914e-09;
