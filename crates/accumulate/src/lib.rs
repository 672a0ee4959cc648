//! Jacobian accumulation on the linearised graph.
//!
//! ```text
//! scalar graph ──linearise──▶ linearised graph ──strategy──▶ accumulation program ──replay──▶ scalar graph
//! ```
//!
//! | module | owns |
//! | --- | --- |
//! | `linear` | the linearised graph |
//! | `linearise` | making it from a scalar graph: rows, columns, seeds |
//! | `lazy` | masks for labels inside of branches |
//! | `program`, `count`, `tidy`, `listing` | accumulation programs: steps, counting, sharing, as text |
//! | `origin` | which place of the function each operation is done for |
//! | `pattern` | sparsity patterns |
//! | [`colouring`] | columns that are computed together |
//! | [`oracle`] | the sum over all paths |
//! | [`forward`], [`reverse`] | the two modes, scalar and vector |
//! | [`vertex`] | vertex elimination in a given order |
//! | [`greedy`], `score`, `queue`, [`markowitz`] | greedy vertex orders: the mechanism, the heuristics, the best known one |
//! | [`edge`], [`edge_greedy`] | edge elimination along a given history, and greedy |
//! | [`metagraph`] | all stages of edge elimination, and the shortest way through them |
//! | [`edge_exact`] | fewest multiplications by edge elimination, proved |
//! | [`annealing`], `order_cost`, `bit_rows` | simulated annealing over vertex orders, by bit sets |
//! | [`edge_annealing`], `edge_cost` | simulated annealing over edge histories |
//! | [`vector`] | graphs whose vertices have sizes |
//! | `serving` | which edges serve a pair asked for |
//! | [`chain`] | simple chains and blocks first, local Jacobians by levels |
//! | [`face`] | face elimination on the line graph |
//! | [`dstar`] | D*: factoring by dominance, common subproducts |
//! | [`strategy`] | the table of strategies; running and checking them |
//! | `portfolio` | several of them, of which the cheapest program is taken |
//! | `report` | what was tried |
//! | [`mod@derive`] | Jacobian, gradient, Hessian, higher orders, products with vectors |
//! | `improve` | fewer operations before, between and after: [`Optimise`] |
//! | [`check`] | the checkers |
//! | [`exact`] | fewest multiplications by vertex elimination, proved |
//! | [`draw`] | pictures of small graphs |
//! | [`exchange`] | linearised graphs as JSON text |
//! | `budget` | budgets and stop reasons |
//! | `random` | seeded random numbers |

pub mod annealing;
mod bit_rows;
mod budget;
pub mod chain;
pub mod check;
pub mod colouring;
mod count;
pub mod derive;
pub mod draw;
pub mod dstar;
pub mod edge;
pub mod edge_annealing;
mod edge_cost;
pub mod edge_exact;
pub mod edge_greedy;
pub mod exact;
pub mod exchange;
pub mod face;
pub mod forward;
pub mod greedy;
mod improve;
mod lazy;
mod linear;
mod linearise;
mod listing;
pub mod markowitz;
pub mod metagraph;
pub mod oracle;
mod order_cost;
mod origin;
mod pattern;
mod portfolio;
mod program;
mod queue;
mod random;
mod report;
pub mod reverse;
mod score;
mod serving;
pub mod strategy;
mod tidy;
pub mod vector;
pub mod vertex;

pub use chainrule_base::Id;

pub use budget::{Budget, Outcome, StopReason};
pub use count::Counting;
pub use improve::{Effort, Improvement, Optimise};
pub use linear::{Edge, EdgeId, Label, LinearGraph, VertexId, Wanted};
pub use linearise::{Column, Row};
pub use order_cost::Objective;
pub use pattern::{Compressed, Pattern};
pub use program::{Builder, Entry, LabelId, Product, Program};
pub use score::Score;
pub use strategy::{STRATEGIES, Strategy};
