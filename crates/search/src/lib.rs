//! Searches for cheap eliminations of linearised graphs, for `chainrule eliminate` and the benchmarks.
//!
//! The compiler differentiates with the strategies of `chainrule-accumulate`, which take little time. This crate spends
//! seconds on one graph, proves optima, and handles graphs that come from the literature instead of a program.
//!
//! | module | owns |
//! | --- | --- |
//! | [`strategies`] | the table of all strategies, with annealing |
//! | [`annealing`], `order_cost`, `bit_rows` | simulated annealing of vertex orders, on bit sets |
//! | [`edge_annealing`], `edge_cost` | simulated annealing of edge histories |
//! | [`exact`] | minimum multiplications of vertex elimination, with proof |
//! | [`edge_exact`] | minimum multiplications of edge elimination, with proof |
//! | [`face_exact`] | minimum multiplications of face elimination, with proof |
//! | [`metagraph`] | all stages of edge elimination, and the shortest path through them |
//! | [`vector`] | graphs whose vertices have sizes |
//! | [`exchange`] | linearised graphs as JSON text |
//! | [`draw`], [`pictures`] | pictures of small graphs |

pub mod annealing;
mod bit_rows;
pub mod draw;
pub mod edge_annealing;
mod edge_cost;
pub mod edge_exact;
pub mod exact;
pub mod exchange;
pub mod face_exact;
pub mod metagraph;
mod order_cost;
pub mod pictures;
pub mod strategies;
pub mod vector;

pub use order_cost::Objective;
pub use strategies::{STRATEGIES, strategy};
