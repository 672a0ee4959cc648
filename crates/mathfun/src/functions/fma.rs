//! Fused multiply-add and square root, by the processor or the standard library.

/// `a * b + c`, rounded once.
#[inline(always)]
#[must_use]
pub fn fma(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

/// The square root, rounded correctly.
#[inline(always)]
#[must_use]
pub fn sqrt(x: f64) -> f64 {
    x.sqrt()
}
