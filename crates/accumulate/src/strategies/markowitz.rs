//! Vertex elimination by lowest Markowitz degree with all multiplications counted: the classical greedy order
//! (`greedy.rs`).
//!
//! In: a linearised graph. Out: a program, or only the order ([`order`]).

pub use crate::greedy::Ties;
use crate::greedy::{self, Options};
use crate::{Budget, LinearGraph, Outcome, Score, VertexId};

/// Eliminates by lowest Markowitz degree. O(p log p) for p products.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, ties: Ties) -> Outcome {
    greedy::run(linear, budget, &options(ties))
}

/// Returns the order of [`run`], without a budget.
#[must_use]
pub fn order(linear: &LinearGraph, ties: Ties) -> Vec<VertexId> {
    let budget = Budget { products: u64::MAX, ..Budget::default() };
    greedy::order(linear, &budget, &options(ties)).unwrap_or_default()
}

fn options(ties: Ties) -> Options {
    Options { ties, ..Options::new(Score::Markowitz) }
}
