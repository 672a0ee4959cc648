//! Optimisation of derivatives by passes of the scalar graph: value numbering, then factoring of sums and products.
//!
//! In: a graph and roots. Out: roots with the same values and at most the same weight.
//!
//! [`derive`](crate::derive::derive) optimises the function that it differentiates, compares programs by their
//! optimised code, and optimises its results quickly. Callers that join results in one function optimise them together
//! and thoroughly, so that common subexpressions are shared.

use crate::passes::{FACTOR, NUMBER};
use chainrule_base::timing;
use chainrule_graph::optimise::{Optimise as Factoring, Start, StopReason, optimise, optimise_both, optimise_from};
use chainrule_graph::{Graph, NodeId, NumberReport, Numbering, Semantics, counts, number, verify};
use chainrule_ops::Counts;
use std::fmt;

/// Whether derivatives are optimised, and the time spent on that. Strict semantics permits no change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Optimise {
    /// No optimisation.
    Off,
    /// Value numbering of the function and its derivatives, and a short factoring of the result; strategies of
    /// accumulation within [`QUICK_EFFORT`].
    Quick,
    /// A long search: factoring before differentiation, between orders of it, and after; all strategies within
    /// [`crate::Budget::effort`]; the function as given and the factored one are both differentiated.
    #[default]
    Thorough,
}

/// Effort of an optimisation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Equal values are shared.
    Quick,
    /// Cheaper expressions of the same values are searched too.
    Thorough,
}

/// Passes over a graph that an optimisation runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphPasses {
    /// Value numbering.
    pub number: bool,
    /// Factoring of sums and products.
    pub factor: bool,
}

impl Default for GraphPasses {
    fn default() -> Self {
        Self { number: true, factor: true }
    }
}

/// Effect of an optimisation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Improvement {
    /// Counts of the roots before.
    pub before: Counts,
    /// Counts of the roots after.
    pub after: Counts,
    /// Report of value numbering.
    pub numbering: NumberReport,
}

/// Prints `improved from 5982 to 4310 operations; by value numbering 6100 nodes are 4592 values up to a factor, ...`.
impl fmt::Display for Improvement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (self.before.arithmetic(), self.after.arithmetic());
        let NumberReport { nodes, classes, zeros, constants, .. } = self.numbering;
        write!(f, "improved from {before} to {after} operations; by value numbering ")?;
        write!(f, "{nodes} nodes are {classes} values up to a factor, {zeros} zeros, {constants} numbers")
    }
}

/// Factoring budget of a small graph, in visits of each node.
const FACTORING_LOOKS: u64 = 600;

/// The same for [`Optimise::Quick`], which goes on with twice the budget as long as that saves much.
const QUICK_LOOKS: u64 = 10;
/// Minimum saving for going on, in percent of the remaining arithmetic.
const SAVES_MUCH: u64 = 3;

/// Effort of optional strategies under [`Optimise::Quick`], in estimated microseconds for each edge.
pub const QUICK_EFFORT: u64 = 8;

/// Factoring budget of a large graph, in visited nodes.
const FACTORING: u64 = 400_000;
/// Maximum number of nodes below the roots of graphs that are optimised.
const MAX_IMPROVED: usize = 200_000;
/// Maximum number of nodes below the roots of graphs that are compared after optimisation.
const MAX_COMPARED: usize = 50_000;
/// Maximum number of nodes of graphs in which cheaper expressions are searched.
const MAX_SEARCHED: u64 = 50_000;

/// Fraction of the factoring budget that decides between the two starts: 1 / `PROBE`.
const PROBE: u64 = 10;
/// Fraction of the factoring budget that must remain for another attempt: 1 / `AGAIN`.
const AGAIN: u64 = 4;
/// Maximum remaining weight of a successful factoring, in percent of the weight before.
const MUCH: u64 = 97;

/// Roots of least weight so far.
struct Best {
    roots: Vec<NodeId>,
    counts: Counts,
}

impl Best {
    fn take(&mut self, roots: &[NodeId], counts: Counts) {
        if counts.weight < self.counts.weight {
            *self = Self { roots: roots.to_vec(), counts };
        }
    }

    /// Factors from `start` on, with twice the budget as long as that saves much.
    fn factor_quickly(&mut self, graph: &mut Graph, mut start: Vec<NodeId>, n_nodes: u64) {
        let mut left = FACTORING.min(FACTORING_LOOKS * n_nodes);
        let mut budget = QUICK_LOOKS * n_nodes;
        for seed in 0.. {
            budget = budget.min(left);
            let factoring = Factoring { budget, seed, ..Factoring::default() };
            let factored = timing::time(FACTOR, || optimise(graph, &start, &factoring));
            let report = factored.report;
            self.take(&factored.roots, report.after);
            left -= budget;
            let saved = report.before.weight - report.after.weight;
            let pays = 100 * saved >= SAVES_MUCH * report.after.arithmetic();
            if report.stop == StopReason::Settled || left == 0 || !pays {
                break;
            }
            budget *= 2;
            start = factored.roots;
        }
    }

    /// Factors by a random search from the given `roots`, of weight `weight`, and from the `numbered` ones. The better
    /// start shows early.
    fn factor_thoroughly(
        &mut self,
        graph: &mut Graph,
        (roots, weight): (&[NodeId], u64),
        numbered: &[NodeId],
        n_nodes: u64,
    ) {
        let all = FACTORING.min(FACTORING_LOOKS * n_nodes);
        let (mut start, mut weight, mut next, mut left) = (Start::new(roots), weight, None, all);
        if numbered != roots {
            let probe = Factoring { budget: all / PROBE, seed: 0, ..Factoring::default() };
            let mut other = Start::new(numbered);
            let [plain, equal] = timing::time(FACTOR, || optimise_both(graph, [&mut start, &mut other], &probe));
            self.take(&plain.roots, plain.report.after);
            self.take(&equal.roots, equal.report.after);
            left -= 2 * (all / PROBE);
            let plain_is_better = plain.report.after.weight < equal.report.after.weight;
            (start, weight, next) = if plain_is_better {
                (start, weight, Some(plain.roots))
            } else {
                (other, equal.report.before.weight, Some(equal.roots))
            };
        }
        // If factoring succeeds and stops early, another seed may find a better result from the same start.
        for seed in 0.. {
            let factoring = Factoring { budget: left, seed, ..Factoring::default() };
            let factored = timing::time(FACTOR, || match next.take() {
                Some(next) => optimise(graph, &next, &factoring),
                None => optimise_from(graph, &mut start, &factoring),
            });
            self.take(&factored.roots, factored.report.after);
            let report = factored.report;
            left = report.left;
            let finds_much = report.after.weight < weight / 100 * MUCH;
            if !finds_much || report.stop != StopReason::Settled || left < all / AGAIN {
                break;
            }
        }
    }
}

impl Optimise {
    /// Returns roots with the same values and at most the same weight.
    #[must_use]
    pub fn improve(self, graph: &mut Graph, roots: &[NodeId], effort: Effort) -> (Vec<NodeId>, Improvement) {
        self.improve_by(graph, roots, effort, GraphPasses::default())
    }

    /// As [`Self::improve`], by these passes.
    #[must_use]
    pub fn improve_by(
        self,
        graph: &mut Graph,
        roots: &[NodeId],
        effort: Effort,
        passes: GraphPasses,
    ) -> (Vec<NodeId>, Improvement) {
        let before = counts(graph, roots);
        let mut improvement = Improvement { before, after: before, ..Improvement::default() };
        if !self.may_change(graph) {
            return (roots.to_vec(), improvement);
        }
        let n_nodes = graph.reachable(roots).len() as u64;
        let effort = if passes.factor && n_nodes <= MAX_SEARCHED { effort } else { Effort::Quick };
        let numbered = passes.number.then(|| timing::time(NUMBER, || number(graph, roots, &numbering(MAX_IMPROVED))));
        improvement.numbering = numbered.as_ref().map_or_else(NumberReport::default, |numbered| numbered.report);
        let mut best = Best { roots: roots.to_vec(), counts: before };
        if let Some(numbered) = &numbered {
            check(NUMBER, graph, &numbered.roots);
            best.take(&numbered.roots, numbered.report.after);
        }
        let numbered = numbered.map_or_else(|| roots.to_vec(), |numbered| numbered.roots);
        match (effort, self) {
            (Effort::Quick, _) => {}
            (Effort::Thorough, Self::Quick) => best.factor_quickly(graph, numbered, n_nodes),
            (Effort::Thorough, _) => best.factor_thoroughly(graph, (roots, before.weight), &numbered, n_nodes),
        }
        check(FACTOR, graph, &best.roots);
        improvement.after = best.counts;
        (best.roots, improvement)
    }

    /// Returns the effort of optional strategies on a graph of so many edges.
    pub(crate) fn effort(self, n_edges: usize) -> u64 {
        if self == Self::Quick { QUICK_EFFORT * n_edges as u64 } else { u64::MAX }
    }

    /// Returns the roots optimised in one quick round, and their weight.
    #[must_use]
    pub fn quickly(self, graph: &mut Graph, roots: &[NodeId]) -> (Vec<NodeId>, u64) {
        if !self.may_change(graph) {
            return (roots.to_vec(), counts(graph, roots).weight);
        }
        let numbered = timing::time(NUMBER, || number(graph, roots, &numbering(MAX_COMPARED)));
        check(NUMBER, graph, &numbered.roots);
        (numbered.roots, numbered.report.after.weight)
    }

    fn may_change(self, graph: &Graph) -> bool {
        self != Self::Off && graph.semantics() != Semantics::Strict
    }
}

/// Checks the invariants of a graph after a pass, with debug assertions.
///
/// # Panics
/// With debug assertions, if the pass breaks an invariant.
pub(crate) fn check(pass: &str, graph: &Graph, roots: &[NodeId]) {
    debug_assert_eq!(verify(graph, roots), Ok(()), "{pass} broke the graph:\n{}", graph.listing(roots));
}

/// Options of numbering up to this many nodes, without sums and products of two: these increase rounding errors more
/// than they save (decision 0010).
fn numbering(max_nodes: usize) -> Numbering {
    Numbering { max_nodes, max_pairs: 0, ..Numbering::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns (x + y)(x - y), and the equal x^2 - y^2.
    fn twice(semantics: Semantics) -> (Graph, Vec<NodeId>) {
        let mut g = Graph::new(semantics);
        let (x, y) = (g.input("x"), g.input("y"));
        let (sum, difference) = (g.add(x, y), g.sub(x, y));
        let (xx, yy) = (g.mul(x, x), g.mul(y, y));
        let roots = vec![g.mul(sum, difference), g.sub(xx, yy)];
        (g, roots)
    }

    #[test]
    fn values_stay_and_operations_go() {
        for optimise in [Optimise::Quick, Optimise::Thorough] {
            let (mut g, roots) = twice(Semantics::Algebraic);
            let (better, improvement) = optimise.improve(&mut g, &roots, Effort::Thorough);
            assert_eq!(g.f64_at(&[1.5, -2.0], &better).unwrap(), [-1.75, -1.75]);
            assert_eq!((improvement.before.arithmetic(), improvement.after.arithmetic()), (6, 3));
            assert_eq!(counts(&g, &better).weight, improvement.after.weight);
            assert!(improvement.to_string().starts_with("improved from 6 to 3 operations"));
        }
    }

    #[test]
    fn nothing_is_changed_unless_requested() {
        let (mut g, roots) = twice(Semantics::Algebraic);
        assert_eq!(Optimise::Off.improve(&mut g, &roots, Effort::Thorough).0, roots);
        assert_eq!(Optimise::Off.quickly(&mut g, &roots), (roots.clone(), counts(&g, &roots).weight));
        let (mut g, roots) = twice(Semantics::Strict);
        assert_eq!(Optimise::Thorough.improve(&mut g, &roots, Effort::Thorough).0, roots);
    }
}
