//! D*: the derivative graph is factored by dominance, then common subproducts are shared.
//!
//! Source: Guenter, "Efficient symbolic differentiation for graphics applications" (2007), sections 3
//! and 4. In the paper's drawings the root is at the top and the variables are at the bottom; `up` and
//! `down` are used in that sense, so that "up" goes from a source to a sink of the linearised graph.
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
//! In: a linearised graph. Out: a program for the pairs asked for.
//!
//! **Why it is right.** An edge serves exactly the pairs in whose derivative graphs it stands. A
//! factorisation is done in each derivative graph by itself, where it keeps the sum over all paths (see
//! `contract`). A new edge is shared between derivative graphs only where it replaces the same set of
//! edges, so that it has the same value in all of them; edges with equal ends that replace different
//! sets stay different edges. Merging by the ends alone is what makes other versions of D* wrong: after
//! an edge out of a region was kept for some pairs only, the "same" region holds other paths for them.

mod derivative_graph;
mod dominance;
mod emit;
mod factor;
#[cfg(test)]
mod figures;
mod isolate;
mod parts;
mod pictures;
mod queue;
mod separate;
mod subproducts;
mod value;

pub use pictures::pictures;

use crate::{Budget, LinearGraph, Outcome, StopReason};

/// The default for [`Options::memberships`]: about 100 bytes and a microsecond for each.
pub const MEMBERSHIPS: u64 = 6_000_000;

/// How many edges may be looked at while factoring, for each edge of a derivative graph.
const VISITS: u64 = 100;

/// Which of several equally frequent factor subgraphs is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    /// The one whose ends are nearest to each other (then the lowest), so that what lies inside another
    /// comes before it.
    Nearest,
    /// The one whose lower end is nearest to the roots (then the smaller one).
    Highest,
}

/// What becomes of labels that are 1 and -1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Units {
    /// They are left out of products: the program takes fewer multiplications in any counting.
    LeftOut,
    /// They are factors like others, so that [`crate::Counting::Plain`] counts what the literature counts.
    Kept,
}

/// How D* goes about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Between equally frequent factor subgraphs.
    pub ties: Ties,
    /// Labels of 1 and -1.
    pub units: Units,
    /// How many edges all derivative graphs may have together.
    pub memberships: u64,
}

/// The defaults, with [`Ties::Highest`].
pub const HIGHEST: Options = Options { ties: Ties::Highest, units: Units::LeftOut, memberships: MEMBERSHIPS };

impl Default for Options {
    fn default() -> Self {
        Self { ties: Ties::Nearest, units: Units::LeftOut, memberships: MEMBERSHIPS }
    }
}

/// D* by [`Options::default`].
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    run_with(linear, budget, &Options::default())
}

/// D*. Memory is linear in the edges of all derivative graphs together ([`memberships`]), which are counted
/// before they are made; time is in practice nearly so.
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

/// How many edges all derivative graphs have together; `None` when more than `most`. Takes a small part of
/// the time of [`run`], so that a caller can decide whether it is worth it.
#[must_use]
pub fn memberships(linear: &LinearGraph, most: u64) -> Option<u64> {
    separate::memberships(linear, most)
}

/// Everything up to the sums of products; nothing when it took more visits than is usual.
fn sums(linear: &LinearGraph, memberships: u64, options: &Options) -> Option<(separate::Separated, isolate::Sums)> {
    let mut separated = separate::separate(linear, memberships)?;
    let visits = VISITS * (memberships + 1000);
    if !factor::factor(&mut separated, options.ties, visits) {
        return None;
    }
    let sums = isolate::isolate(&mut separated, visits)?;
    Some((separated, sums))
}
