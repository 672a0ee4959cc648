//! cos(x); see `circle`.

use super::circle::both;
use super::huge;
use super::lanes::Lanes;

/// cos(x) in lanes.
#[inline(always)]
pub fn cos<L: Lanes>(x: L) -> L {
    let (_, c, rare) = both(x);
    if L::any(rare) { x.each(rare, huge::cos, c) } else { c }
}
