//! Scalarisation: from the typed array IR to scalar graphs, of a whole function or of regions in its loops.
//!
//! In: an `ir::Function`. Out: a `graph::Graph` with the function's operations, or the function with straight-line
//! statements in place of operations on small arrays.
//!
//! | module | owns |
//! | --- | --- |
//! | [`unroll()`] | loops unrolled, arrays decomposed into graph nodes |
//! | [`pays`] | estimate of whether straight-line code pays, before it is generated |
//! | [`regions`] | statements of a loop body as a graph, and back |
//! | [`leaves`] | decomposition of types into arrays of scalars |

pub mod leaves;
pub mod regions;
mod unroll;

pub use unroll::pays;
pub use unroll::{Alternatives, Tree, Truth, UNROLL_BUDGET, unroll};
