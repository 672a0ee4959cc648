//! Value numbering by random evaluation: DESIGN.md's section of that name, and "Scale freedom".
//!
//! In: roots. Out: roots with the same values from fewer operations, in the same graph.
//!
//! ```text
//! nodes ──model──▶ values ──class──▶ classes ──choose, join──▶ ways ──scale──▶ code ──replay──▶ nodes ──check
//!            └──────hazard──▶ where undefined ──┘
//! ```
//!
//! Every input is a random element of a finite field; so is every call of a distinct argument. Nodes
//! that have equal values in several draws are equal, but for a probability of about (degree / 2^61)^2
//! for each pair; nodes that are equal in the ratios of the draws are equal up to a constant factor
//! (Schwartz 1980, Zippel 1979: a polynomial that is not zero has few zeros). What the field says is
//! confirmed in real numbers of 32 digits, which also give the factor.
//!
//! # What holds
//! - A node is replaced only by one that is equal and defined wherever it is (`hazard.rs`).
//! - Values never leave a branch that is not taken: a choice is a value of its own.
//! - The result weighs less than what came in, or is what came in.
//! - Nothing is replaced under [`Semantics::Strict`].
//!
//! # Rounding
//! A class is computed in one of the ways in which its own nodes compute it, the one that was there
//! first (the function's own before the derivative's), or as a sum or product of two others that costs
//! less. Sums that cancel, and those for which running error analysis says that they round worse than
//! the class did, are not taken (`join.rs`, `choose.rs`); divisions are never introduced. Constants are
//! doubles that round the exact factors once. In the end the rounding errors of the old and the new
//! roots are measured (`check.rs`), and the new ones taken only if theirs are about as small.
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

use crate::evaluate::counts;
use crate::graph::{Graph, Node, NodeId, Semantics};
use chainrule_ops::Counts;
use check::Verdict;
use class::{Classes, Place, one};

/// Options of [`number`].
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    /// The seed of the random elements.
    pub seed: u64,
    /// Graphs with more nodes than this below the roots are left as they are.
    pub max_nodes: usize,
    /// How many pairs of values are looked at, at most, for cheaper ways to compute others.
    pub max_pairs: usize,
}

/// Seed 0x5eed, two million nodes, four million pairs.
impl Default for Numbering {
    fn default() -> Self {
        Self { seed: 0x5eed, max_nodes: 2_000_000, max_pairs: 4_000_000 }
    }
}

/// The result of [`number`].
#[derive(Clone, Debug)]
pub struct Numbered {
    /// The same values.
    pub roots: Vec<NodeId>,
    /// What was done.
    pub report: NumberReport,
}

/// What [`number`] did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NumberReport {
    /// What the roots cost before.
    pub before: Counts,
    /// What they cost after.
    pub after: Counts,
    /// Nodes below the roots.
    pub nodes: usize,
    /// Classes of nodes that are equal up to a factor.
    pub classes: usize,
    /// Nodes that are 0.
    pub zeros: usize,
    /// Operations whose value is a number.
    pub constants: usize,
}

/// The roots with the same values, from fewer operations or as they are. Near linear.
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
    // Cheaper ways are given up where they round worse, and so is everything where values differ.
    let tries = if options.max_pairs > 0 { &[options.max_pairs, 0][..] } else { &[0] };
    for &max_pairs in tries {
        let code = choose::choose(graph, &classes, roots, max_pairs, before.weight);
        if !code.is_moderate() {
            continue;
        }
        // The models know nothing of the values that calls of numbers have.
        let new = code.replay(graph, false);
        if counts(graph, &new).weight >= before.weight {
            continue;
        }
        match check::compare(graph, options.seed ^ 1, roots, &new) {
            Verdict::Good => {
                let simplified = code.replay(graph, true);
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
