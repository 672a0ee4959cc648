//! tan(x); see `circle`.

use super::circle::{LARGEST, TINY, reduce, tangent};
use super::huge;
use super::lanes::Lanes;

/// tan(x) in lanes.
#[inline(always)]
pub fn tan<L: Lanes>(x: L) -> L {
    let (t, r, r_lo) = reduce(x);
    let magnitude = x.abs();
    let y = L::select(magnitude.less(L::splat(TINY)), x, tangent(t, r, r_lo));
    let rare = L::not(magnitude.at_most(L::splat(LARGEST)));
    if L::any(rare) { x.each(rare, huge::tan, y) } else { y }
}
