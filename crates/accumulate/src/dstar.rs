//! D*: the derivative graph is factored by dominance, then common subproducts are shared.
//!
//! Source: Guenter, "Efficient symbolic differentiation for graphics applications" (2007), sections 3
//! and 4. In the paper's drawings the root is at the top and the variables are at the bottom; `up` and
//! `down` are used in that sense, so that "up" goes from a source to a sink of the linearised graph.
//!
//! | D* 2007 | here |
//! | --- | --- |
//! | derivative graph f(i,j), section 3 | [`derivative_graph::DerivativeGraph`] |
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
mod queue;
mod separate;
mod subproducts;

use crate::{Budget, LinearGraph, Outcome, StopReason};

/// How many edges all derivative graphs may have together: about 100 bytes each.
pub const MEMBERSHIPS: u64 = 6_000_000;

/// How many edges and nodes may be looked at while factoring, for each edge of a derivative graph.
const VISITS: u64 = 100;

/// D*. Memory is linear in the edges of all derivative graphs together, which are counted before they
/// are made; time is in practice nearly so.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    let Some(mut separated) = separate::separate(linear, MEMBERSHIPS) else {
        return Outcome::stopped(StopReason::ProductBudget);
    };
    let visits = VISITS * (separated.n_memberships + 1000);
    if !factor::factor(&mut separated, visits) {
        return Outcome::stopped(StopReason::ProductBudget);
    }
    match isolate::isolate(&mut separated, visits) {
        Some(sums) => emit::emit(linear, budget, &separated, &sums),
        None => Outcome::stopped(StopReason::ProductBudget),
    }
}
