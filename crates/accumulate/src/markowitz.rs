//! Vertex elimination by lowest Markowitz degree.
//!
//! The next vertex is one whose elimination takes the fewest products now: predecessors times
//! successors. Ties decide much, so they are stated ([`Ties`]).
//!
//! In: a linearised graph. Out: a program, or the order alone ([`order`]).

use crate::vertex::Elimination;
use crate::{Budget, LinearGraph, Outcome, StopReason, VertexId};
use chainrule_base::Id;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which of several vertices of the lowest degree is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    /// The one with the lowest number: nearest to the inputs.
    Lowest,
    /// The one with the highest number: nearest to the outputs.
    Highest,
}

/// Elimination by lowest Markowitz degree. O(p log p), p counting the products.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, ties: Ties) -> Outcome {
    let mut elimination = Elimination::new(linear);
    let mut queue = Queue::new(linear, &elimination, ties);
    while let Some(v) = queue.next(&elimination) {
        let (before, behind) = elimination.eliminate(v);
        if elimination.n_products() > budget.products {
            return Outcome::stopped(StopReason::ProductBudget);
        }
        for u in before.into_iter().chain(behind) {
            queue.update(&elimination, u);
        }
    }
    Outcome::done(elimination.finish())
}

/// The order in which [`run`] eliminates.
#[must_use]
pub fn order(linear: &LinearGraph, ties: Ties) -> Vec<VertexId> {
    let mut elimination = Elimination::new(linear);
    let mut queue = Queue::new(linear, &elimination, ties);
    let mut order = Vec::with_capacity(linear.intermediates().len());
    while let Some(v) = queue.next(&elimination) {
        order.push(v);
        let (before, behind) = elimination.eliminate(v);
        for u in before.into_iter().chain(behind) {
            queue.update(&elimination, u);
        }
    }
    order
}

/// Vertices by degree. An entry is out of date when the degree has changed since, and skipped then.
struct Queue {
    heap: BinaryHeap<Reverse<(u64, usize, VertexId)>>,
    ties: Ties,
}

impl Queue {
    fn new(linear: &LinearGraph, elimination: &Elimination<'_>, ties: Ties) -> Self {
        let mut queue = Self { heap: BinaryHeap::new(), ties };
        for v in linear.intermediates() {
            queue.update(elimination, v);
        }
        queue
    }

    fn update(&mut self, elimination: &Elimination<'_>, v: VertexId) {
        if elimination.can_eliminate(v) {
            let rank = match self.ties {
                Ties::Lowest => v.index(),
                Ties::Highest => usize::MAX - v.index(),
            };
            self.heap.push(Reverse((elimination.markowitz_degree(v), rank, v)));
        }
    }

    fn next(&mut self, elimination: &Elimination<'_>) -> Option<VertexId> {
        while let Some(Reverse((degree, _, v))) = self.heap.pop() {
            if elimination.can_eliminate(v) && elimination.markowitz_degree(v) == degree {
                return Some(v);
            }
        }
        None
    }
}
