//! Reports on functions: counts of operations by result, by line and in sizes, the work of the array optimiser,
//! predicted times, and graphs of programs.

pub(crate) mod array_dot;
pub(crate) mod loop_counts;
pub(crate) mod optimisation;
pub(crate) mod prediction;
pub(crate) mod where_spent;
