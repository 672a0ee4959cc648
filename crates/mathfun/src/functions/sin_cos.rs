//! sin(x) and cos(x) together, with the same bits as each separately; see `circle`.

use super::circle::both;
use super::huge;
use super::lanes::Lanes;

/// (sin(x), cos(x)) in lanes.
#[inline(always)]
pub fn sin_cos<L: Lanes>(x: L) -> (L, L) {
    let (s, c, rare) = both(x);
    if L::any(rare) { (x.each(rare, huge::sin, s), x.each(rare, huge::cos, c)) } else { (s, c) }
}
