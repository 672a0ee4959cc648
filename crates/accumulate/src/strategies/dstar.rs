//! D*: factoring of derivative graphs by dominance, then sharing of common subproducts.
//!
//! Source: Guenter, "Efficient symbolic differentiation for graphics applications" (2007), sections 3 and 4. In the
//! paper's drawings the root is at the top and the variables are at the bottom. `up` and `down` follow that convention,
//! so "up" leads from a source to a sink of the linearised graph.
//!
//! | D* 2007 | here |
//! | --- | --- |
//! | derivative graph f(i,j), section 3 | `DerivativeGraph` |
//! | edge d(k), subgraph edge | a part (`parts.rs`) |
//! | dom, pdom, section 4 | the two trees of `dominance.rs` |
//! | factor node, factor base, factor subgraph \[b, c\] | `DerivativeGraph::factor_of`, `DerivativeGraph::region` |
//! | dominatorTest, postDominatorTest | `DerivativeGraph::contract` |
//! | `factorSubgraphs`, most frequent first, section 4.1 | `factor.rs` with `queue.rs` |
//! | incremental dominance (announced there as future work) | `DerivativeGraph::contract` |
//! | recursive evaluation of subgraph edges, section 4 | `isolate.rs` |
//! | `optimumSubproducts`, section 4.2 | `subproducts.rs` |
//!
//! ```text
//! linearised graph ──separate──▶ derivative graphs ──factor──▶ one path each ──isolate──▶ sums of products
//!                                                                      ──subproducts──▶ program
//! ```
//!
//! In: a linearised graph. Out: a program for the requested pairs.
//!
//! **Correctness.** An edge serves exactly the pairs whose derivative graphs contain it. Each derivative graph is
//! factored separately, which preserves its sum over all paths (see `contract`). A new edge is shared between
//! derivative graphs only if it replaces the same set of edges, so that it has the same value in all of them; edges
//! with equal ends that replace different sets stay different edges. Merging by the ends alone is the fault of other
//! versions of D*: once an edge out of a region was kept for some pairs only, the "same" region contains other paths
//! for them.

mod derivative_graph;
mod dominance;
mod emit;
mod factor;
#[cfg(test)]
mod figures;
mod isolate;
mod parts;
mod queue;
mod separate;
mod stages;
mod subproducts;
mod value;

pub use stages::{NamedEdge, Role, Stage, stages};

use crate::{Budget, LinearGraph, Outcome, StopReason};

/// The default for [`Options::memberships`]; each takes about 100 bytes and a microsecond.
pub const MEMBERSHIPS: u64 = 6_000_000;

/// Maximum number of edge visits while factoring, for each edge of a derivative graph.
const VISITS: u64 = 100;

/// Tie-breaking rule among equally frequent factor subgraphs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    /// The subgraph whose ends are nearest to each other (then the lowest), so that inner subgraphs precede outer ones.
    Nearest,
    /// The subgraph whose lower end is nearest to the roots (then the smaller one).
    Highest,
}

/// Treatment of labels that are 1 and -1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Units {
    /// Omitted from products: the program takes fewer multiplications in any counting.
    LeftOut,
    /// Factors like others, so that [`crate::Counting::Plain`] agrees with the literature's counts.
    Kept,
}

/// Options of D*.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Tie-breaking rule among equally frequent factor subgraphs.
    pub ties: Ties,
    /// Treatment of labels that are 1 and -1.
    pub units: Units,
    /// Maximum total number of edges of the derivative graphs.
    pub memberships: u64,
}

/// The defaults, with [`Ties::Highest`].
pub const HIGHEST: Options = Options { ties: Ties::Highest, units: Units::LeftOut, memberships: MEMBERSHIPS };

impl Default for Options {
    fn default() -> Self {
        Self { ties: Ties::Nearest, units: Units::LeftOut, memberships: MEMBERSHIPS }
    }
}

/// Runs D* with [`Options::default`].
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    run_with(linear, budget, &Options::default())
}

/// Runs D*. Memory is linear in the total number of edges of the derivative graphs ([`memberships`]), which are counted
/// before they are made; in practice time is nearly linear too.
#[must_use]
pub fn run_with(linear: &LinearGraph, budget: &Budget, options: &Options) -> Outcome {
    let Some(n) = memberships(linear, options.memberships) else {
        return Outcome::stopped(StopReason::SeparationBudget);
    };
    match sums(linear, n, options) {
        Some((separated, sums)) => emit::emit(linear, budget, options.units, &separated, &sums),
        None => Outcome::stopped(StopReason::SeparationBudget),
    }
}

/// Returns the total number of edges of the derivative graphs; `None` if it exceeds `most`. Takes a small part of the
/// time of [`run`], so that a caller can decide whether to run it.
#[must_use]
pub fn memberships(linear: &LinearGraph, most: u64) -> Option<u64> {
    separate::memberships(linear, most)
}

/// Returns the sums of products; `None` if it took more visits than usual.
fn sums(linear: &LinearGraph, memberships: u64, options: &Options) -> Option<(separate::Separated, isolate::Sums)> {
    let mut separated = separate::separate(linear, memberships)?;
    let visits = VISITS * (memberships + 1000);
    if !factor::factor(&mut separated, options.ties, visits) {
        return None;
    }
    let sums = isolate::isolate(&mut separated, visits)?;
    Some((separated, sums))
}
