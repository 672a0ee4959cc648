//! Local search, and what comes after it, at once.
//!
//! In: a search that is about to search locally. Out: the same as if it had searched first and gone on then.
//!
//! The last local search finds nothing, often the first one too, and takes longer than all that follows. What follows a local
//! search that finds nothing depends on it by what it leaves of the budget only. So a *successor* on another thread goes on
//! towards the end of the whole search as if nothing were found, and nothing taken. When local search is over and has
//! found nothing, the successor *settles*: it pays what local search took out of its own budget. It is right until then if
//! nobody would have been told that the budget is too small: if there is at least as much left as the most that a round takes,
//! which is the number of nodes. From then on it is the search.
//!
//! As soon as local search seems to find anything, and where too little is left, the successor is given up, and the search goes on by
//! itself. So what comes out does not depend on threads.

use super::{Part, Search, StopReason};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// In smaller graphs a thread takes longer to begin than it saves.
const FEWEST: usize = 200;

/// What a successor is told by whom it comes after.
pub(super) struct Watch {
    given_up: AtomicBool,
    /// What local search took of the budget, when it is over and has found nothing; before, [`UNKNOWN`].
    debt: AtomicU64,
}

const UNKNOWN: u64 = u64::MAX;

impl Default for Watch {
    fn default() -> Self {
        Self { given_up: AtomicBool::new(false), debt: AtomicU64::new(UNKNOWN) }
    }
}

impl Watch {
    /// What local search took, once that is known.
    fn debt(&self) -> Option<u64> {
        Some(self.debt.load(Relaxed)).filter(|debt| *debt != UNKNOWN)
    }

    /// Whether local search is over, and has found nothing.
    pub(super) fn is_waited_for(&self) -> bool {
        self.debt().is_some()
    }

    /// Whether nobody wants the successor any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    pub(super) fn give_up(&self) {
        self.given_up.store(true, Relaxed);
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
        let (saves, (mut successor, stop)) = std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let stop = successor.in_windows().unwrap_or_else(|| successor.run());
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

    /// In a successor: pays for local search as soon as that is over; gives up where it cannot.
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

    /// In a successor that has so much left: whether it will not be able to settle, or is given up for another reason.
    pub(super) fn is_in_vain(&self, left: u64) -> bool {
        let too_little = |debt: u64| !self.has_settled && left < debt + self.most_nodes;
        self.watch.as_deref().is_some_and(|watch| watch.is_given_up() || watch.debt().is_some_and(too_little))
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
