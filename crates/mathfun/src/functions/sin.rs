//! sin(x); see `circle`.

use super::circle::both;
use super::huge;
use super::lanes::Lanes;

/// sin(x) in lanes.
#[inline(always)]
pub fn sin<L: Lanes>(x: L) -> L {
    let (s, _, rare) = both(x);
    if L::any(rare) { x.each(rare, huge::sin, s) } else { s }
}
