//! Jacobian accumulation on the linearised graph.
//!
//! ```text
//! scalar graph ──linearise──▶ linearised graph ──strategy──▶ accumulation program ──replay──▶ scalar graph
//! ```
//!
//! | module | owns |
//! | --- | --- |
//! | [`mod@derive`] | Jacobian, gradient, Hessian, higher orders, products with vectors |
//! | [`strategy`] | the table of strategies; running and checking them |
//! | `portfolio` | several strategies, of which the cheapest program is taken |
//! | `report`, `budget` | report of the strategies tried; budgets and stop reasons |
//! | [`check`] | the checkers |
//! | [`random`] | seeded random numbers |
//! | **`linearised`** | **the linearised graph** |
//! | `linear`, `linearise` | the graph, and the linearisation of a scalar graph: rows, columns, seeds |
//! | `branch_masks` | masks of labels inside branches |
//! | `masked_slopes` | slopes of roots and exponentials that are infinite only where they meet zeros |
//! | [`reachability`] | reachability of requested pairs |
//! | `pattern`, [`colouring`] | sparsity patterns; columns that one product computes together |
//! | **`strategies`** | **from a linearised graph to an accumulation program** |
//! | [`oracle`] | sum over all paths |
//! | [`forward`], [`reverse`] | forward and reverse mode, scalar and vector |
//! | [`vertex`] | vertex elimination in a given order |
//! | [`greedy`], `score`, `queue`, [`markowitz`] | greedy vertex orders: queue, heuristics, lowest Markowitz degree |
//! | [`edge`], [`edge_greedy`] | edge elimination along a given history, and greedy histories |
//! | [`face`] | face elimination on the line graph |
//! | [`chain`] | simple chains and blocks first, then local Jacobians by levels |
//! | [`dstar`] | D*: factoring by dominance, common subproducts |
//! | **`programs`** | **accumulation programs** |
//! | `program`, `count`, `cleanup`, `listing` | steps, operation counts, clean-up, listing |
//! | `origin` | origin of each operation in the source function |
//! | [`passes`] | names of the passes over scalar graphs |
//! | `post_optimisation` | optimisation before, between and after differentiations: [`Optimise`] |

mod budget;
pub mod check;
pub mod derive;
mod linearised;
pub mod passes;
mod portfolio;
mod programs;
pub mod random;
mod report;
mod strategies;
pub mod strategy;

pub use linearised::{colouring, reachability};
pub use strategies::{chain, dstar, edge, edge_greedy, face, forward, greedy, markowitz, oracle, reverse, vertex};

use linearised::{branch_masks, linear, linearise, masked_slopes, pattern};
use programs::{count, origin, post_optimisation, program};
use strategies::{queue, score};

pub use chainrule_base::Id;

pub use budget::{Budget, Outcome, StopReason};
pub use count::Counting;
pub use linear::{Edge, EdgeId, Label, LinearGraph, VertexId, Wanted};
pub use linearise::{Column, Row};
pub use pattern::{Compressed, Pattern};
pub use post_optimisation::{Effort, GraphPasses, Improvement, Optimise, QUICK_EFFORT};
pub use program::{Builder, Entry, LabelId, Product, Program, is_unit};
pub use score::Score;
pub use strategy::{STRATEGIES, Strategy};
