//! Four and eight lanes on x86-64: AVX2 with FMA, and AVX-512 (F and DQ).
//!
//! Invariant: a value of type [`X4`] is only made in code compiled for AVX2 and FMA, an [`X8`] only in code compiled
//! for AVX-512F and DQ: inside the entry points of `entry` and `slices`, whose callers have checked the processor. All
//! methods are inlined into those, and with them LLVM inlines the intrinsics. Every `unsafe` block of this module rests
//! on this.

#![allow(unsafe_code)]

use crate::functions::lanes::{Lanes, SIGN};
use core::arch::x86_64::*;
use core::ops::{Add, Div, Mul, Neg, Sub};

/// Four lanes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct X4(pub __m256d);

/// Eight lanes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct X8(pub __m512d);

macro_rules! operator {
    ($lanes:ident, $trait:ident, $method:ident, $intrinsic:ident) => {
        impl $trait for $lanes {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: by the invariant of this module the processor has the instruction.
                Self(unsafe { $intrinsic(self.0, other.0) })
            }
        }
    };
}

operator!(X4, Add, add, _mm256_add_pd);
operator!(X4, Sub, sub, _mm256_sub_pd);
operator!(X4, Mul, mul, _mm256_mul_pd);
operator!(X4, Div, div, _mm256_div_pd);
operator!(X8, Add, add, _mm512_add_pd);
operator!(X8, Sub, sub, _mm512_sub_pd);
operator!(X8, Mul, mul, _mm512_mul_pd);
operator!(X8, Div, div, _mm512_div_pd);

impl Neg for X4 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.bits_xor(Self::splat_bits(SIGN))
    }
}

impl Neg for X8 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.bits_xor(Self::splat_bits(SIGN))
    }
}

// An expression that is one intrinsic.
macro_rules! by {
    ($e:expr) => {{
        // SAFETY: by the invariant of this module the processor has the instruction.
        unsafe { $e }
    }};
}

#[inline(always)]
fn int4(x: X4) -> __m256i {
    by!(_mm256_castpd_si256(x.0))
}

#[inline(always)]
fn double4(bits: __m256i) -> X4 {
    X4(by!(_mm256_castsi256_pd(bits)))
}

#[inline(always)]
fn int8(x: X8) -> __m512i {
    by!(_mm512_castpd_si512(x.0))
}

#[inline(always)]
fn double8(bits: __m512i) -> X8 {
    X8(by!(_mm512_castsi512_pd(bits)))
}

impl X4 {
    /// Returns the lanes of four doubles.
    #[inline(always)]
    pub fn from_array(a: [f64; 4]) -> Self {
        // SAFETY: `a` is four doubles, and the load needs no alignment; the instruction as above.
        Self(unsafe { _mm256_loadu_pd(a.as_ptr()) })
    }

    /// Returns the lanes as doubles.
    #[inline(always)]
    pub fn to_array(self) -> [f64; 4] {
        let mut a = [0.0; 4];
        // SAFETY: `a` is four doubles, and the store needs no alignment; the instruction as above.
        unsafe { _mm256_storeu_pd(a.as_mut_ptr(), self.0) };
        a
    }
}

impl X8 {
    /// Returns the lanes of eight doubles.
    #[inline(always)]
    pub fn from_array(a: [f64; 8]) -> Self {
        // SAFETY: `a` is eight doubles, and the load needs no alignment; the instruction as above.
        Self(unsafe { _mm512_loadu_pd(a.as_ptr()) })
    }

    /// Returns the lanes as doubles.
    #[inline(always)]
    pub fn to_array(self) -> [f64; 8] {
        let mut a = [0.0; 8];
        // SAFETY: `a` is eight doubles, and the store needs no alignment; the instruction as above.
        unsafe { _mm512_storeu_pd(a.as_mut_ptr(), self.0) };
        a
    }
}

/// Stores `function(x)` into `y` in the lanes of the mask. Not inlined, so that its callers stay small.
#[cold]
#[inline(never)]
fn rare(mask: u32, x: &[f64], function: fn(f64) -> f64, y: &mut [f64]) {
    for (i, (x, y)) in x.iter().zip(y).enumerate() {
        if mask >> i & 1 == 1 {
            *y = function(*x);
        }
    }
}

#[cold]
#[inline(never)]
fn rare2(mask: u32, a: &[f64], b: &[f64], function: fn(f64, f64) -> f64, y: &mut [f64]) {
    for (i, ((a, b), y)) in a.iter().zip(b).zip(y).enumerate() {
        if mask >> i & 1 == 1 {
            *y = function(*a, *b);
        }
    }
}

impl Lanes for X4 {
    /// All bits of a lane are equal to its truth value.
    type Mask = __m256d;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self(by!(_mm256_set1_pd(x)))
    }
    #[inline(always)]
    fn splat_bits(bits: u64) -> Self {
        Self::splat(f64::from_bits(bits))
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self(by!(_mm256_fmadd_pd(self.0, b.0, c.0)))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(by!(_mm256_sqrt_pd(self.0)))
    }
    #[inline(always)]
    fn less(self, other: Self) -> __m256d {
        by!(_mm256_cmp_pd::<_CMP_LT_OQ>(self.0, other.0))
    }
    #[inline(always)]
    fn at_most(self, other: Self) -> __m256d {
        by!(_mm256_cmp_pd::<_CMP_LE_OQ>(self.0, other.0))
    }
    #[inline(always)]
    fn sign_set(self) -> __m256d {
        let zero = by!(_mm256_setzero_si256());
        by!(_mm256_castsi256_pd(_mm256_cmpgt_epi64(zero, int4(self))))
    }
    #[inline(always)]
    fn both(a: __m256d, b: __m256d) -> __m256d {
        by!(_mm256_and_pd(a, b))
    }
    #[inline(always)]
    fn either(a: __m256d, b: __m256d) -> __m256d {
        by!(_mm256_or_pd(a, b))
    }
    #[inline(always)]
    fn not(a: __m256d) -> __m256d {
        by!(_mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_set1_epi64x(-1))))
    }
    #[inline(always)]
    fn any(a: __m256d) -> bool {
        by!(_mm256_movemask_pd(a)) != 0
    }
    #[inline(always)]
    fn select(mask: __m256d, yes: Self, no: Self) -> Self {
        Self(by!(_mm256_blendv_pd(no.0, yes.0, mask)))
    }
    #[inline(always)]
    fn bits_and(self, other: Self) -> Self {
        Self(by!(_mm256_and_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn bits_or(self, other: Self) -> Self {
        Self(by!(_mm256_or_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn bits_xor(self, other: Self) -> Self {
        Self(by!(_mm256_xor_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn bits_add(self, other: Self) -> Self {
        double4(by!(_mm256_add_epi64(int4(self), int4(other))))
    }
    #[inline(always)]
    fn bits_sub(self, other: Self) -> Self {
        double4(by!(_mm256_sub_epi64(int4(self), int4(other))))
    }
    #[inline(always)]
    fn bits_up(self, by: u64) -> Self {
        double4(by!(_mm256_sllv_epi64(int4(self), _mm256_set1_epi64x(by as i64))))
    }
    #[inline(always)]
    fn bits_down(self, by: u64) -> Self {
        double4(by!(_mm256_srlv_epi64(int4(self), _mm256_set1_epi64x(by as i64))))
    }
    #[inline(always)]
    fn each(self, mask: __m256d, function: fn(f64) -> f64, otherwise: Self) -> Self {
        let mut y = otherwise.to_array();
        rare(by!(_mm256_movemask_pd(mask)) as u32, &self.to_array(), function, &mut y);
        Self::from_array(y)
    }
    #[inline(always)]
    fn each2(self, other: Self, mask: __m256d, function: fn(f64, f64) -> f64, otherwise: Self) -> Self {
        let mut y = otherwise.to_array();
        let mask = by!(_mm256_movemask_pd(mask)) as u32;
        rare2(mask, &self.to_array(), &other.to_array(), function, &mut y);
        Self::from_array(y)
    }
}

impl Lanes for X8 {
    type Mask = __mmask8;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self(by!(_mm512_set1_pd(x)))
    }
    #[inline(always)]
    fn splat_bits(bits: u64) -> Self {
        Self::splat(f64::from_bits(bits))
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self(by!(_mm512_fmadd_pd(self.0, b.0, c.0)))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(by!(_mm512_sqrt_pd(self.0)))
    }
    #[inline(always)]
    fn less(self, other: Self) -> __mmask8 {
        by!(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, other.0))
    }
    #[inline(always)]
    fn at_most(self, other: Self) -> __mmask8 {
        by!(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0, other.0))
    }
    #[inline(always)]
    fn sign_set(self) -> __mmask8 {
        by!(_mm512_movepi64_mask(int8(self)))
    }
    #[inline(always)]
    fn both(a: __mmask8, b: __mmask8) -> __mmask8 {
        a & b
    }
    #[inline(always)]
    fn either(a: __mmask8, b: __mmask8) -> __mmask8 {
        a | b
    }
    #[inline(always)]
    fn not(a: __mmask8) -> __mmask8 {
        !a
    }
    #[inline(always)]
    fn any(a: __mmask8) -> bool {
        a != 0
    }
    #[inline(always)]
    fn select(mask: __mmask8, yes: Self, no: Self) -> Self {
        Self(by!(_mm512_mask_blend_pd(mask, no.0, yes.0)))
    }
    #[inline(always)]
    fn bits_and(self, other: Self) -> Self {
        Self(by!(_mm512_and_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn bits_or(self, other: Self) -> Self {
        Self(by!(_mm512_or_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn bits_xor(self, other: Self) -> Self {
        Self(by!(_mm512_xor_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn bits_add(self, other: Self) -> Self {
        double8(by!(_mm512_add_epi64(int8(self), int8(other))))
    }
    #[inline(always)]
    fn bits_sub(self, other: Self) -> Self {
        double8(by!(_mm512_sub_epi64(int8(self), int8(other))))
    }
    #[inline(always)]
    fn bits_up(self, by: u64) -> Self {
        double8(by!(_mm512_sllv_epi64(int8(self), _mm512_set1_epi64(by as i64))))
    }
    #[inline(always)]
    fn bits_down(self, by: u64) -> Self {
        double8(by!(_mm512_srlv_epi64(int8(self), _mm512_set1_epi64(by as i64))))
    }
    #[inline(always)]
    fn each(self, mask: __mmask8, function: fn(f64) -> f64, otherwise: Self) -> Self {
        let mut y = otherwise.to_array();
        rare(u32::from(mask), &self.to_array(), function, &mut y);
        Self::from_array(y)
    }
    #[inline(always)]
    fn each2(self, other: Self, mask: __mmask8, function: fn(f64, f64) -> f64, otherwise: Self) -> Self {
        let mut y = otherwise.to_array();
        rare2(u32::from(mask), &self.to_array(), &other.to_array(), function, &mut y);
        Self::from_array(y)
    }
}
