//! Local search, and what comes after it, at once.
//!
//! In: a search that is about to search locally. Out: the same as if it had searched first and gone on then.
//!
//! The last local search finds nothing, often the first one too, and takes longer than all that follows. What follows a local
//! search that finds nothing depends on it by what it leaves of the budget only. So a *successor* on another thread goes on to
//! the end of the whole search as if nothing were found, and nothing taken. That is the end of the search where
//!
//! - local search indeed finds nothing, and
//! - so much of the budget would have been left in the end that nobody would have been told that it is too small: as much as
//!   the most that a round takes, which is the number of nodes.
//!
//! Otherwise the successor is given up, and the search goes on by itself. So what comes out does not depend on threads.

use super::{Part, Search, StopReason};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// In smaller graphs a thread takes longer to begin than it saves.
const FEWEST: usize = 200;

/// Who waits for a successor.
#[derive(Default)]
pub(super) struct Watch {
    given_up: AtomicBool,
    waited_for: AtomicBool,
}

impl Watch {
    /// Whether nobody wants to know any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    /// Whether local search is over, and has found nothing.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waited_for.load(Relaxed)
    }
}

impl Search {
    /// A search that stands where this one will stand if local search finds nothing; where there is a thread for it.
    pub(super) fn successor(&self) -> Option<Self> {
        let is_large = self.part.graph.len() >= FEWEST;
        if !self.looks_ahead || !is_large || std::thread::available_parallelism().map_or(1, usize::from) == 1 {
            return None;
        }
        let Part { graph, roots, exact } = &self.part;
        Some(Self {
            part: Part { graph: graph.clone(), roots: roots.clone(), exact: exact.clone() },
            extraction: Box::default(),
            in_vain: self.in_vain.clone(),
            looks_ahead: false,
            watch: Some(Arc::default()),
            ..*self
        })
    }

    /// Local search, while the successor goes on. Whether something was found, which is kept; and why there is no more to do,
    /// if so.
    pub(super) fn search_beside(&mut self, mut successor: Self) -> (bool, Option<StopReason>) {
        let start = self.budget;
        let watch = successor.watch.clone().unwrap_or_default();
        let (saves, (successor, stop)) = std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let stop = successor.in_windows().unwrap_or_else(|| successor.run());
                (successor, stop)
            });
            let saves = self.search_locally();
            if saves { &watch.given_up } else { &watch.waited_for }.store(true, Relaxed);
            (saves, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let spent = start - successor.budget;
        if saves || self.budget < spent + successor.most_nodes {
            return (saves, None);
        }
        let extraction = std::mem::take(&mut self.extraction);
        *self =
            Self { budget: self.budget - spent, extraction, looks_ahead: true, watch: self.watch.take(), ..successor };
        (false, Some(stop))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Found, Optimise};
    use super::FEWEST;
    use crate::graph::{Graph, Node, NodeId, Semantics};
    use chainrule_ops::Op;

    /// Sums and products of `near` values before, of which the last ones are wanted.
    fn sums_of_products(n: usize, near: u64) -> (Graph, Vec<NodeId>) {
        let mut random = n as u64 + near;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        let mut graph = Graph::new(Semantics::Algebraic);
        let mut values: Vec<NodeId> = (0..6).map(|i| graph.input(format!("x{i}"))).collect();
        for _ in 0..n {
            let op = [Op::Mul, Op::Add, Op::Mul, Op::Sub][below(4) as usize];
            let args = [(); 2].map(|()| values[values.len() - 1 - below(near.min(values.len() as u64)) as usize]);
            // Differences of equal values would soon be all that there is.
            let value = graph.apply(op, &args);
            values.extend((graph.as_const(value).is_none() && !values.contains(&value)).then_some(value));
        }
        (graph, values.into_iter().rev().take(n / 4).collect())
    }

    /// What comes out must not depend on whether anybody looked ahead: neither the program nor the account.
    #[test]
    fn looking_ahead_finds_the_same() {
        for (n, near) in [(500, 60), (700, 120), (900, 30), (2000, 100)] {
            let (graph, roots) = sums_of_products(n, near);
            let n_nodes = graph.reachable(&roots).len();
            assert!(n_nodes > FEWEST + 50, "{n_nodes} nodes of {n} steps");
            for budget in [0, 1_000, 5_000, 20_000, 60_000, 200_000] {
                let found = |looks_ahead: bool| {
                    let found = Found::new(&graph, &roots, &Optimise { budget, ..Optimise::default() }, looks_ahead);
                    let listed = |(graph, roots): (Graph, Vec<NodeId>)| -> (Vec<Node>, Vec<NodeId>) {
                        (graph.ids().map(|id| graph.node(id)).collect(), roots)
                    };
                    (found.part.map(listed), found.rounds, found.left, found.stop)
                };
                let alone = found(false);
                assert_eq!(found(true), alone, "{n} steps, {near} near, {budget} nodes");
            }
        }
    }
}
