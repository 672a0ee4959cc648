//! Sparse Jacobians and Hessians: by a few directions, by their entries, and in the way that takes less time.

pub(crate) mod coloured;
pub(crate) mod matrix;
pub(crate) mod sparse;
