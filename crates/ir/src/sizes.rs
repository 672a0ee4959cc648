//! Facts about sizes and integers: upper bounds, proofs that a size is not negative, and the choice of the mode of a
//! Jacobian.

pub mod bound;
pub mod range;
pub mod rows;
