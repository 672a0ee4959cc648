//! Accumulation programs: their steps, counts and clean-up, and the optimisation of the graphs into which they are
//! replayed.

pub(crate) mod cleanup;
pub(crate) mod count;
pub(crate) mod listing;
pub(crate) mod origin;
pub(crate) mod post_optimisation;
pub(crate) mod program;
