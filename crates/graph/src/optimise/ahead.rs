//! Speculative execution of the search that follows a local search.
//!
//! In: a search before a local search. Out: the state as if the local search had finished first.
//!
//! The last local search finds nothing, often the first one too, and takes longer than all subsequent steps. The steps
//! after a local search that finds nothing depend on it only through the remaining budget. So a *successor* on another
//! thread continues the search as if nothing had been found, and no budget spent. When the local search has ended and
//! found nothing, the successor *settles*: it deducts the local search's cost from its own budget. Its work until then
//! is valid if no step would have been denied for lack of budget: if the remaining budget is at least the maximum cost
//! of a round, which is the number of nodes. From then on it replaces the search.
//!
//! As soon as the local search is likely to find anything, or if too little budget remains, the successor is cancelled,
//! and the search continues on its own. So the result does not depend on threads.

use super::{Part, Search, StopReason};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Minimum number of nodes; in smaller graphs, starting a thread takes longer than it saves.
const FEWEST: usize = 200;

/// Minimum remaining budget, in visited nodes, for the same reason.
const MIN_BUDGET: u64 = 20_000;

/// Shared state between a local search and its successor.
pub(super) struct Watch {
    given_up: AtomicBool,
    /// Budget that local search spent, once it has ended and found nothing; before, [`UNKNOWN`].
    debt: AtomicU64,
}

const UNKNOWN: u64 = u64::MAX;

impl Default for Watch {
    fn default() -> Self {
        Self { given_up: AtomicBool::new(false), debt: AtomicU64::new(UNKNOWN) }
    }
}

impl Watch {
    /// Returns the cost of local search, once it is known.
    fn debt(&self) -> Option<u64> {
        Some(self.debt.load(Relaxed)).filter(|debt| *debt != UNKNOWN)
    }

    /// Returns whether local search has ended, and has found nothing.
    pub(super) fn is_waited_for(&self) -> bool {
        self.debt().is_some()
    }

    /// Returns whether the successor has been cancelled.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    pub(super) fn give_up(&self) {
        self.given_up.store(true, Relaxed);
    }
}

impl Search {
    /// Returns a search in the state that follows if local search finds nothing; `None` if no thread is available.
    pub(super) fn successor(&self) -> Option<Self> {
        let is_large = self.part.graph.len() >= FEWEST && self.budget >= MIN_BUDGET;
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

    /// Runs local search beside the successor. Returns whether it found an improvement, which is kept; and the reason
    /// to stop, if any.
    pub(super) fn search_beside(&mut self, mut successor: Self) -> (bool, Option<StopReason>) {
        let start = self.budget;
        let watch = successor.watch.clone().unwrap_or_default();
        let (saves, (mut successor, stop)) = std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let stop = successor.in_windows().unwrap_or_else(|| successor.run(None));
                (successor, stop)
            });
            let saves = self.search_locally(Some(&watch));
            if saves {
                watch.give_up();
            } else {
                watch.debt.store(start - self.budget, Relaxed);
            }
            (saves, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        if !saves {
            successor.settle();
        }
        if watch.is_given_up() {
            return (saves, None);
        }
        let extraction = std::mem::take(&mut self.extraction);
        *self = Self { extraction, looks_ahead: true, watch: None, has_settled: false, ..successor };
        (false, Some(stop))
    }

    /// In a successor: deducts the cost of local search as soon as that has ended; gives up if it cannot.
    pub(super) fn settle(&mut self) {
        let Some((watch, debt)) = self.watch.as_deref().and_then(|watch| Some((watch, watch.debt()?))) else { return };
        if std::mem::replace(&mut self.has_settled, true) {
            return;
        }
        if self.budget < debt + self.most_nodes {
            watch.give_up();
            self.budget = 0;
        } else {
            self.budget -= debt;
        }
    }

    /// In a successor with this remaining budget: returns whether it cannot settle, or is cancelled.
    pub(super) fn is_in_vain(&self, left: u64) -> bool {
        let too_little = |debt: u64| !self.has_settled && left < debt + self.most_nodes;
        self.watch.as_deref().is_some_and(|watch| watch.is_given_up() || watch.debt().is_some_and(too_little))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Found, Optimise, Start, Steps, StopReason};
    use super::FEWEST;
    use crate::Semantics;
    use crate::graph::{Graph, Node, NodeId};
    use chainrule_ops::Op;

    /// Returns sums and products of up to `near` previous values, with the last ones as roots.
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
            // Otherwise, differences of equal values would soon dominate.
            let value = graph.apply(op, &args);
            values.extend((graph.as_const(value).is_none() && !values.contains(&value)).then_some(value));
        }
        (graph, values.into_iter().rev().take(n / 4).collect())
    }

    /// Program and statistics of a search.
    type Seen = (Option<(Vec<Node>, Vec<NodeId>)>, usize, u64, StopReason);

    fn seen(found: Found) -> Seen {
        let listed = |(graph, roots): (Graph, Vec<NodeId>)| (graph.ids().map(|id| graph.node(id)).collect(), roots);
        (found.part.map(listed), found.rounds, found.left, found.stop)
    }

    /// Checks that the result does not depend on speculation: neither the program nor the statistics.
    #[test]
    fn looking_ahead_finds_the_same() {
        for (n, near) in [(500, 60), (700, 120), (900, 30), (2000, 100)] {
            let (graph, roots) = sums_of_products(n, near);
            let n_nodes = graph.reachable(&roots).len();
            assert!(n_nodes > FEWEST + 50, "{n_nodes} nodes of {n} steps");
            for budget in [0, 1_000, 5_000, 20_000, 60_000, 200_000] {
                let options = Optimise { budget, ..Optimise::default() };
                let found = |steps: Steps| seen(Found::new(&graph, &roots, &options, steps, None));
                let alone = found(Steps::InTurn);
                assert_eq!(found(Steps::Ahead), alone, "{n} steps, {near} near, {budget} nodes");
            }
        }
    }

    /// Checks that searches that share their first rounds find the same as each by itself, whatever its budget.
    #[test]
    fn shared_rounds_find_the_same() {
        for (n, near) in [(40, 10), (150, 30), (500, 60)] {
            let (graph, roots) = sums_of_products(n, near);
            let mut start = Start::new(&roots);
            for (seed, budget) in [60_000, 0, 1_000, 3_000, 10_000, 60_000].into_iter().enumerate() {
                let options = Optimise { budget, seed: seed as u64, ..Optimise::default() };
                let alone = seen(Found::new(&graph, &roots, &options, Steps::InTurn, None));
                let shared = seen(start.search(&graph, &options, Steps::InTurn));
                assert_eq!(shared, alone, "{n} steps, {near} near, {budget} nodes, seed {seed}");
                assert!(start.rounds.is_some());
            }
        }
    }
}
