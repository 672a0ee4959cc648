//! Fewer operations for the same values, by what the scalar graph has for that: value numbering, then
//! the factoring of sums and products.
//!
//! In: a graph and roots. Out: roots with the same values that weigh no more.
//!
//! [`derive`](crate::derive::derive) improves what it differentiates, compares programs as the improved
//! code that they become, and improves what it made, quickly. Whoever joins results in one function
//! improves them together and thoroughly, so that they share what they can.

use chainrule_graph::optimise::{Optimise as Factoring, StopReason, optimise, optimise_both};
use chainrule_graph::{Graph, NodeId, NumberReport, Numbering, Semantics, counts, number};
use chainrule_ops::Counts;
use std::fmt;

/// Whether derivatives are improved. Nothing is ever changed under strict semantics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Optimise {
    /// They stay as they were accumulated.
    Off,
    /// Before differentiation, between orders of it, and after.
    #[default]
    On,
}

/// How much is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// What is equal.
    Quick,
    /// Cheaper ways to compute the same as well.
    Thorough,
}

/// What improving did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Improvement {
    /// What the roots cost before.
    pub before: Counts,
    /// What they cost after.
    pub after: Counts,
    /// What value numbering found.
    pub numbering: NumberReport,
}

/// `improved from 5982 to 4310 operations; by value numbering 6100 nodes are 4592 values up to a factor, ...`.
impl fmt::Display for Improvement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (self.before.arithmetic(), self.after.arithmetic());
        let NumberReport { nodes, classes, zeros, constants, .. } = self.numbering;
        write!(f, "improved from {before} to {after} operations; by value numbering ")?;
        write!(f, "{nodes} nodes are {classes} values up to a factor, {zeros} zeros, {constants} numbers")
    }
}

/// How many times factoring may look at each node of a small graph,
const FACTORING_LOOKS: u64 = 600;

/// and how many nodes it may look at in a large one.
const FACTORING: u64 = 400_000;
/// Graphs with more nodes than this below the roots are left as they are.
const MAX_IMPROVED: usize = 200_000;
/// Graphs with more nodes than this below the roots are compared as they are.
const MAX_COMPARED: usize = 50_000;
/// In graphs with more nodes than this, cheaper ways are not looked for.
const MAX_SEARCHED: u64 = 50_000;

/// The part of that which shows the better start,
const PROBE: u64 = 10;
/// and the part that must be left for another try.
const AGAIN: u64 = 4;
/// In hundredths of what it was, what is left where factoring finds much.
const MUCH: u64 = 97;

impl Optimise {
    /// The roots with the same values that weigh no more.
    #[must_use]
    pub fn improve(self, graph: &mut Graph, roots: &[NodeId], effort: Effort) -> (Vec<NodeId>, Improvement) {
        let before = counts(graph, roots);
        let mut improvement = Improvement { before, after: before, ..Improvement::default() };
        let mut best = roots.to_vec();
        if !self.may_change(graph) {
            return (best, improvement);
        }
        let n_nodes = graph.reachable(roots).len() as u64;
        let effort = if n_nodes <= MAX_SEARCHED { effort } else { Effort::Quick };
        let numbered = number(graph, roots, &numbering(MAX_IMPROVED));
        improvement.numbering = numbered.report;
        let mut keep = |candidate: &[NodeId], after: Counts| {
            if after.weight < improvement.after.weight {
                (best, improvement.after) = (candidate.to_vec(), after);
            }
        };
        keep(&numbered.roots, numbered.report.after);
        if effort == Effort::Thorough {
            // Factoring finds its way by chance: from what is there, and from what numbering made of it. Which
            // of the two is the better start shows early.
            let all = FACTORING.min(FACTORING_LOOKS * n_nodes);
            let (mut start, mut weight, mut next, mut left) = (roots, before.weight, roots.to_vec(), all);
            if numbered.roots != roots {
                let probe = Factoring { budget: all / PROBE, seed: 0, ..Factoring::default() };
                let [plain, equal] = optimise_both(graph, [roots, &numbered.roots], &probe);
                keep(&plain.roots, plain.report.after);
                keep(&equal.roots, equal.report.after);
                left -= 2 * (all / PROBE);
                let plain_is_better = plain.report.after.weight < equal.report.after.weight;
                (start, weight, next) = if plain_is_better {
                    (roots, weight, plain.roots)
                } else {
                    (&numbered.roots[..], equal.report.before.weight, equal.roots)
                };
            }
            // Where factoring finds much and comes to an end early, it may find a better end from the same start.
            for seed in 0.. {
                let factored = optimise(graph, &next, &Factoring { budget: left, seed, ..Factoring::default() });
                keep(&factored.roots, factored.report.after);
                let report = factored.report;
                left = report.left;
                let finds_much = report.after.weight < weight / 100 * MUCH;
                if !finds_much || report.stop != StopReason::Settled || left < all / AGAIN {
                    break;
                }
                next = start.to_vec();
            }
        }
        (best, improvement)
    }

    /// The roots improved in one quick round, and what they weigh then.
    #[must_use]
    pub fn quickly(self, graph: &mut Graph, roots: &[NodeId]) -> (Vec<NodeId>, u64) {
        if !self.may_change(graph) {
            return (roots.to_vec(), counts(graph, roots).weight);
        }
        let numbered = number(graph, roots, &numbering(MAX_COMPARED));
        (numbered.roots, numbered.report.after.weight)
    }

    fn may_change(self, graph: &Graph) -> bool {
        self == Self::On && graph.semantics() != Semantics::Strict
    }
}

/// Numbering up to this many nodes, without sums and products of two: those round worse than they save
/// (decision 0010).
fn numbering(max_nodes: usize) -> Numbering {
    Numbering { max_nodes, max_pairs: 0, ..Numbering::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (x + y)(x - y), and x^2 - y^2, which is the same.
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
        let (mut g, roots) = twice(Semantics::Algebraic);
        let (better, improvement) = Optimise::On.improve(&mut g, &roots, Effort::Thorough);
        assert_eq!(g.f64_at(&[1.5, -2.0], &better).unwrap(), [-1.75, -1.75]);
        assert_eq!((improvement.before.arithmetic(), improvement.after.arithmetic()), (6, 3));
        assert_eq!(counts(&g, &better).weight, improvement.after.weight);
        assert!(improvement.to_string().starts_with("improved from 6 to 3 operations"));
    }

    #[test]
    fn nothing_is_changed_unasked() {
        let (mut g, roots) = twice(Semantics::Algebraic);
        assert_eq!(Optimise::Off.improve(&mut g, &roots, Effort::Thorough).0, roots);
        assert_eq!(Optimise::Off.quickly(&mut g, &roots), (roots.clone(), counts(&g, &roots).weight));
        let (mut g, roots) = twice(Semantics::Strict);
        assert_eq!(Optimise::On.improve(&mut g, &roots, Effort::Thorough).0, roots);
    }
}
