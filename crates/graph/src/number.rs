//! Value numbering by random evaluation: DESIGN.md's section of that name, and "Scale freedom".
//!
//! In: roots. Out: roots with the same values from fewer operations, in the same graph.
//!
//! ```text
//! nodes ──model──▶ values ──class──▶ classes ──choose, join──▶ ways ──scale──▶ code ──replay──▶ nodes ──check
//!            └──────hazard──▶ where undefined ──┘
//! ```
//!
//! Every input is a random element of a finite field; so is every call of a distinct argument. Nodes with equal values
//! in several draws are equal, except with a probability of about (degree / 2^61)^2 for each pair; nodes with equal
//! ratios of the draws are equal up to a constant factor (Schwartz 1980, Zippel 1979: a nonzero polynomial has few
//! zeros). Equality in the field is confirmed in real numbers of 32 digits, which also yield the factor.
//!
//! # Invariants
//! - A node is replaced only by an equal one that is defined wherever the node is (`hazard.rs`).
//! - Values are never moved out of a branch that is not taken: a choice is a separate value.
//! - The result weighs less than the input, or is the input.
//! - Nothing is replaced under [`Semantics::Strict`].
//!
//! # Rounding
//! A class is computed in one of the ways in which its own nodes compute it, by default the oldest (the function's own
//! before the derivative's), or as a sum or product of two others that costs less. Sums that cancel, and those that
//! round worse than the class according to running error analysis, are rejected (`join.rs`, `choose.rs`); divisions are
//! never introduced. Constants are doubles that round the exact factors once. At the end, the rounding errors of the
//! old and the new roots are measured (`check.rs`), and the new ones are accepted only if their errors are about as
//! small.
//!
//! ```
//! use chainrule_graph::{Graph, Numbering, Semantics, number};
//! use chainrule_ops::Op;
//! let mut g = Graph::new(Semantics::Algebraic);
//! let (x, y) = (g.input("x"), g.input("y"));
//! let (s, d) = (g.add(x, y), g.sub(x, y));
//! let (p, xx, yy) = (g.mul(s, d), g.mul(x, x), g.mul(y, y));
//! let q = g.sub(xx, yy);
//! let numbered = number(&mut g, &[p, q], &Numbering::default());
//! assert_eq!(numbered.roots, [p, p]);
//! ```

mod check;
mod choose;
mod class;
mod code;
mod constant;
mod field;
mod hazard;
mod join;
mod model;
mod real;
mod scale;

use crate::Semantics;
use crate::evaluate::counts;
use crate::graph::{Graph, Node, NodeId};
use chainrule_ops::Counts;
use check::Verdict;
use class::{Classes, Place, one};
use code::Calls;

/// Options of [`number`].
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    /// Seed of the random elements.
    pub seed: u64,
    /// Maximum number of nodes below the roots; larger graphs are returned unchanged.
    pub max_nodes: usize,
    /// Maximum number of pairs of values that are searched for cheaper ways to compute others.
    pub max_pairs: usize,
}

/// Seed 0x5eed, two million nodes, four million pairs.
impl Default for Numbering {
    fn default() -> Self {
        Self { seed: 0x5eed, max_nodes: 2_000_000, max_pairs: 4_000_000 }
    }
}

/// Result of [`number`].
#[derive(Clone, Debug)]
pub struct Numbered {
    /// Roots with the same values.
    pub roots: Vec<NodeId>,
    /// Statistics.
    pub report: NumberReport,
}

/// Statistics of [`number`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NumberReport {
    /// Cost of the roots before.
    pub before: Counts,
    /// Cost of the roots after.
    pub after: Counts,
    /// Nodes below the roots.
    pub nodes: usize,
    /// Classes of nodes that are equal up to a factor.
    pub classes: usize,
    /// Nodes that are 0.
    pub zeros: usize,
    /// Operations with a constant value.
    pub constants: usize,
}

/// Returns roots with the same values, from fewer operations or unchanged. Near linear.
#[must_use]
pub fn number(graph: &mut Graph, roots: &[NodeId], options: &Numbering) -> Numbered {
    let before = counts(graph, roots);
    let mut report = NumberReport { before, after: before, ..NumberReport::default() };
    let reachable = graph.reachable(roots);
    report.nodes = reachable.len();
    if graph.semantics() == Semantics::Strict || reachable.len() > options.max_nodes {
        return Numbered { roots: roots.to_vec(), report };
    }
    let numbers = reachable.iter().filter_map(|id| graph.as_const(id));
    let model = model::Model::new(options.seed, numbers);
    let values = model.values(graph, &reachable);
    let hazards = hazard::hazards(graph, &reachable, &values);
    let classes = Classes::new(graph, &reachable, &values, &hazards);
    report.classes = classes.classes.len();
    for id in reachable.iter().filter(|id| matches!(graph.node(*id), Node::Apply(..))) {
        match classes.places[chainrule_base::Id::index(id)] {
            Place::Zero => report.zeros += 1,
            Place::Times(_, class) => report.constants += usize::from(class == one()),
        }
    }
    // Cheaper ways are discarded if they round worse, and the whole result is if values differ.
    let tries = if options.max_pairs > 0 { &[options.max_pairs, 0][..] } else { &[0] };
    for &max_pairs in tries {
        let code = choose::choose(graph, &classes, roots, max_pairs, before.weight);
        if !code.is_moderate() {
            continue;
        }
        // The models do not know the values of calls of numbers.
        let new = code.replay(graph, Calls::Kept);
        if counts(graph, &new).weight >= before.weight {
            continue;
        }
        match check::compare(graph, options.seed ^ 1, roots, &new) {
            Verdict::Good => {
                let simplified = code.replay(graph, Calls::Simplified);
                let [plain_counts, counts] = [&new, &simplified].map(|roots| counts(graph, roots));
                let is_better = counts.weight <= plain_counts.weight;
                report.after = if is_better { counts } else { plain_counts };
                return Numbered { roots: if is_better { simplified } else { new }, report };
            }
            Verdict::Rough | Verdict::Wrong if max_pairs == 0 => break,
            Verdict::Rough | Verdict::Wrong => {}
        }
    }
    Numbered { roots: roots.to_vec(), report }
}
