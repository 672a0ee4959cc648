//! Names of the passes that differentiate and optimise scalar graphs, for reports of time and checks.

/// Linearisation of a graph.
pub const LINEARISE: &str = "linearise";
/// Strategies that compete for the cheapest accumulation program.
pub const ACCUMULATE: &str = "accumulate";
/// Replay of an accumulation program into the graph.
pub const REPLAY: &str = "replay";
/// Value numbering.
pub const NUMBER: &str = "value-numbering";
/// Factoring of sums and products.
pub const FACTOR: &str = "factoring";
