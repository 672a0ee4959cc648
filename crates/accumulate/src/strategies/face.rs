//! Face elimination: the faces of the line graph are eliminated one by one, each by one multiplication.
//!
//! A face is a pair of consecutive edges. Eliminating a vertex eliminates all faces at it, eliminating an edge all
//! faces at one of its ends. Face elimination reaches every count that those reach, and lower ones (on the lion, 11
//! multiplications against 12 by vertices).
//!
//! Source: U. Naumann, Optimal accumulation of Jacobian matrices by elimination methods on the dual
//! computational graph (2004), section 2, for the rules; Y. Zhou, Notes on computational graph and
//! Jacobian accumulation (2020), section 1, for the extended ones.
//!
//! | module | owns |
//! | --- | --- |
//! | [`line_graph`] | the line graph and the rules |
//! | `requested` | requested pairs that a line serves |
//! | `labels` | labels of a program, or only their kinds |
//! | [`greedy`] | greedy orders |
//!
//! In: a linearised graph. Out: a program, or the reason for its absence.

pub mod greedy;
mod labels;
pub mod line_graph;
mod requested;

pub use greedy::{Absorbed, Free, Options, Order};
pub use labels::{Kinds, Labels, Recorder, is_free};
pub use line_graph::{Line, LineGraph, LineId, Rules};

use crate::greedy::Ties;
use crate::{Budget, LinearGraph, Outcome};

/// Returns the cheapest program of the greedy orders in [`ORDERS`], with both tie-breaking rules; the first of them on
/// ties.
///
/// On graphs of more than [`MANY`] edges only the first order is tried.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    let orders = if linear.n_edges() > MANY { &ORDERS[..1] } else { ORDERS };
    Outcome::cheapest(orders.iter().flat_map(|&(order, absorbed)| {
        [Ties::Highest, Ties::Lowest].map(|ties| {
            let options = Options { order, ties, absorbed, ..Options::default() };
            greedy::run(linear, budget, &options)
        })
    }))
}

/// Orders that [`run`] tries: on graphs of the literature no other order was best.
pub const ORDERS: &[(Order, Absorbed)] = &[
    (Order::Markowitz, Absorbed::Alike),
    (Order::Markowitz, Absorbed::First),
    (Order::Reduction, Absorbed::First),
    (Order::Distance, Absorbed::First),
];

/// Maximum number of edges for which [`run`] tries all orders.
pub const MANY: usize = 1000;
