//! The strategies of accumulation: from a linearised graph to an accumulation program.

pub mod chain;
pub mod dstar;
pub mod edge;
pub mod edge_greedy;
pub mod face;
pub mod forward;
pub mod greedy;
pub mod markowitz;
pub mod oracle;
pub(crate) mod queue;
pub mod reverse;
pub(crate) mod score;
pub mod vertex;
