//! One double as lanes.

use super::fma::{fma, sqrt};
use super::lanes::Lanes;

impl Lanes for f64 {
    type Mask = bool;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn splat_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        fma(self, b, c)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        sqrt(self)
    }
    #[inline(always)]
    fn less(self, other: Self) -> bool {
        self < other
    }
    #[inline(always)]
    fn at_most(self, other: Self) -> bool {
        self <= other
    }
    #[inline(always)]
    fn sign_set(self) -> bool {
        self.is_sign_negative()
    }
    #[inline(always)]
    fn both(a: bool, b: bool) -> bool {
        a & b
    }
    #[inline(always)]
    fn either(a: bool, b: bool) -> bool {
        a | b
    }
    #[inline(always)]
    fn not(a: bool) -> bool {
        !a
    }
    #[inline(always)]
    fn any(a: bool) -> bool {
        a
    }
    #[inline(always)]
    fn select(mask: bool, yes: Self, no: Self) -> Self {
        // No branch: the condition is as unpredictable as random data.
        core::hint::select_unpredictable(mask, yes, no)
    }
    #[inline(always)]
    fn bits_and(self, other: Self) -> Self {
        f64::from_bits(self.to_bits() & other.to_bits())
    }
    #[inline(always)]
    fn bits_or(self, other: Self) -> Self {
        f64::from_bits(self.to_bits() | other.to_bits())
    }
    #[inline(always)]
    fn bits_xor(self, other: Self) -> Self {
        f64::from_bits(self.to_bits() ^ other.to_bits())
    }
    #[inline(always)]
    fn bits_add(self, other: Self) -> Self {
        f64::from_bits(self.to_bits().wrapping_add(other.to_bits()))
    }
    #[inline(always)]
    fn bits_sub(self, other: Self) -> Self {
        f64::from_bits(self.to_bits().wrapping_sub(other.to_bits()))
    }
    #[inline(always)]
    fn bits_up(self, by: u64) -> Self {
        f64::from_bits(self.to_bits() << by)
    }
    #[inline(always)]
    fn bits_down(self, by: u64) -> Self {
        f64::from_bits(self.to_bits() >> by)
    }
    #[inline(always)]
    fn each(self, mask: bool, function: fn(f64) -> f64, otherwise: Self) -> Self {
        if mask { function(self) } else { otherwise }
    }
    #[inline(always)]
    fn each2(self, other: Self, mask: bool, function: fn(f64, f64) -> f64, otherwise: Self) -> Self {
        if mask { function(self, other) } else { otherwise }
    }
}
