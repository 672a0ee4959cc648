//! The functions, each written once for all [`lanes::Lanes`].
//!
//! Emitted Rust contains the files of this folder (see `source`): they only use `core` and each other, by `super::`,
//! and only `fma` needs the standard library.

pub mod acosh;
pub mod angle;
pub mod asinh;
pub mod atan;
pub mod atan2;
pub mod atanh;
pub mod cbrt;
pub mod circle;
pub mod cos;
pub mod cosh;
pub mod erf;
pub mod exp;
pub mod expm1;
pub mod fma;
pub mod fma_exact;
pub mod huge;
pub mod hypot;
pub mod lanes;
pub mod log;
pub mod log1p;
pub mod one;
pub mod pow;
pub mod sin;
pub mod sin_cos;
pub mod sinh;
pub mod tan;
pub mod tanh;
