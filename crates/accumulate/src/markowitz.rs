//! Vertex elimination by lowest Markowitz degree, all multiplications counted: the greedy order
//! (`greedy.rs`) that everybody knows.
//!
//! In: a linearised graph. Out: a program, or the order alone ([`order`]).

pub use crate::greedy::Ties;
use crate::greedy::{self, Options};
use crate::{Budget, LinearGraph, Outcome, Score, VertexId};

/// Elimination by lowest Markowitz degree. O(p log p), p counting the products.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, ties: Ties) -> Outcome {
    greedy::run(linear, budget, &options(ties))
}

/// The order in which [`run`] eliminates, whatever it takes.
#[must_use]
pub fn order(linear: &LinearGraph, ties: Ties) -> Vec<VertexId> {
    let budget = Budget { products: u64::MAX, ..Budget::default() };
    greedy::order(linear, &budget, &options(ties)).unwrap_or_default()
}

fn options(ties: Ties) -> Options {
    Options { ties, ..Options::new(Score::Markowitz) }
}
