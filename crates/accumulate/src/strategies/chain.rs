//! Chains and blocks: simple ones are first replaced by reference edges. The rest is accumulated level by level, page
//! by page, or vertex by vertex, whichever is cheapest.
//!
//! Source: Y. Zhou, Notes on computational graph and Jacobian accumulation (2020). The notes' graphs lead from roots
//! (dependent variables) to terminals (independent ones). Here paths lead from sources to sinks, and a source takes the
//! role of a root; the two are mirror images.
//!
//! | module | owns | the notes |
//! | --- | --- | --- |
//! | `web` | reference edges for simple chains and blocks | section 3, step 1 of the strategy of section 5 |
//! | [`factorise`] | forward and backward factorisation of complex blocks | section 4 |
//! | [`expression`] | programs as expressions with references | section 4 |
//! | [`levels`] | depth levels, local Jacobians, bracketings | sections 3 and 4 |
//! | [`pages`] | several sources and sinks, page by page | section 5 |
//! | [`relations`] | direct and indirect relations, circular dependencies | section 5, proposition 1 |
//!
//! In: a linearised graph. Out: a program, or the reason for its absence.

pub mod expression;
pub mod factorise;
pub mod levels;
pub mod pages;
pub mod relations;
mod web;

pub use factorise::Direction;
pub use levels::{Cost, Levels, Segment, Side, bracketing};

use crate::reachability::Reachability;
use crate::{Budget, Builder, LinearGraph, Outcome, StopReason};
use web::Web;

/// Accumulation of the graph without simple chains and blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// Vertex by vertex, by lowest Markowitz degree.
    Vertices,
    /// As a product of the local Jacobians between depth levels.
    Levels(levels::Options),
    /// Page by page, the strategy for several sources and sinks.
    Pages,
}

/// Alternatives that [`run`] tries.
pub const RESTS: &[Rest] = &[
    Rest::Vertices,
    by_levels(Side::Sources, Segment::Tail, Cost::Free),
    Rest::Pages,
    by_levels(Side::Sources, Segment::Head, Cost::Free),
    by_levels(Side::Sinks, Segment::Tail, Cost::Free),
    by_levels(Side::Sinks, Segment::Head, Cost::Free),
    by_levels(Side::Sources, Segment::Tail, Cost::Sparse),
    by_levels(Side::Sources, Segment::Head, Cost::Sparse),
    by_levels(Side::Sinks, Segment::Tail, Cost::Sparse),
    by_levels(Side::Sinks, Segment::Head, Cost::Sparse),
    by_levels(Side::Sources, Segment::Tail, Cost::Dense),
];

const fn by_levels(side: Side, segment: Segment, cost: Cost) -> Rest {
    Rest::Levels(levels::Options { side, segment, cost })
}

/// Maximum number of edges for which [`run`] tries all of [`RESTS`].
pub const MANY: usize = 1000;

/// Returns the cheapest program of [`RESTS`]; the first of them on ties. On graphs of more than [`MANY`] edges only the
/// first two are tried.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    let rests = if linear.n_edges() > MANY { &RESTS[..2] } else { RESTS };
    Outcome::cheapest(rests.iter().map(|rest| run_with(linear, budget, *rest)))
}

/// Accumulates simple chains and blocks first, then the rest in the given way.
#[must_use]
pub fn run_with(linear: &LinearGraph, budget: &Budget, rest: Rest) -> Outcome {
    let reachability = Reachability::new(linear);
    let mut builder = Builder::new(linear);
    let mut web = Web::new(linear, reachability.as_ref(), &mut builder);
    web.reduce(&mut builder);
    let ends = match rest {
        Rest::Vertices => web.finish(&mut builder, budget.products).map(|()| web.ends()),
        Rest::Pages => pages::accumulate(web, &mut builder, budget.products),
        Rest::Levels(options) => levels::accumulate(&web, &mut builder, budget, options),
    };
    match ends {
        Err(stop) => Outcome::stopped(stop),
        Ok(_) if builder.n_products() > budget.products => Outcome::stopped(StopReason::ProductBudget),
        Ok(ends) => Outcome::done(builder.finish(linear, &ends)),
    }
}
