//! Jacobian accumulation on the linearised graph.
//!
//! ```text
//! scalar graph ──linearise──▶ linearised graph ──strategy──▶ accumulation program ──replay──▶ scalar graph
//! ```
//!
//! | module | owns |
//! | --- | --- |
//! | `linear` | the linearised graph |
//! | `linearise` | linearisation of a scalar graph: rows, columns, seeds |
//! | `branch_masks` | masks of labels inside branches |
//! | `masked_slopes` | slopes of roots and exponentials that are infinite only where they meet zeros |
//! | `program`, `count`, `cleanup`, `listing` | accumulation programs: steps, operation counts, clean-up, listing |
//! | `origin` | origin of each operation in the source function |
//! | `pattern` | sparsity patterns |
//! | [`colouring`] | columns that one product computes together |
//! | [`oracle`] | sum over all paths |
//! | [`forward`], [`reverse`] | forward and reverse mode, scalar and vector |
//! | [`vertex`] | vertex elimination in a given order |
//! | [`greedy`], `score`, `queue`, [`markowitz`] | greedy vertex orders: queue, heuristics, lowest Markowitz degree |
//! | [`edge`], [`edge_greedy`] | edge elimination along a given history, and greedy histories |
//! | [`reachability`] | reachability of requested pairs |
//! | [`chain`] | simple chains and blocks first, then local Jacobians by levels |
//! | [`face`] | face elimination on the line graph |
//! | [`dstar`] | D*: factoring by dominance, common subproducts |
//! | [`strategy`] | the table of strategies; running and checking them |
//! | `portfolio` | several strategies, of which the cheapest program is taken |
//! | `report` | report of the strategies tried |
//! | [`mod@derive`] | Jacobian, gradient, Hessian, higher orders, products with vectors |
//! | `post_optimisation` | optimisation before, between and after differentiations: [`Optimise`] |
//! | [`check`] | the checkers |
//! | `budget` | budgets and stop reasons |
//! | [`random`] | seeded random numbers |

mod branch_masks;
mod budget;
pub mod chain;
pub mod check;
mod cleanup;
pub mod colouring;
mod count;
pub mod derive;
pub mod dstar;
pub mod edge;
pub mod edge_greedy;
pub mod face;
pub mod forward;
pub mod greedy;
mod linear;
mod linearise;
mod listing;
pub mod markowitz;
mod masked_slopes;
pub mod oracle;
mod origin;
mod pattern;
mod portfolio;
mod post_optimisation;
mod program;
mod queue;
pub mod random;
pub mod reachability;
mod report;
pub mod reverse;
mod score;
pub mod strategy;
pub mod vertex;

pub use chainrule_base::Id;

pub use budget::{Budget, Outcome, StopReason};
pub use count::Counting;
pub use linear::{Edge, EdgeId, Label, LinearGraph, VertexId, Wanted};
pub use linearise::{Column, Row};
pub use pattern::{Compressed, Pattern};
pub use post_optimisation::{Effort, Improvement, Optimise, QUICK_EFFORT};
pub use program::{Builder, Entry, LabelId, Product, Program, is_unit};
pub use score::Score;
pub use strategy::{STRATEGIES, Strategy};
