//! Analyses of kernels: facts for passes and backends.

pub mod addresses;
pub mod counts;
pub mod events;
pub mod liveness;
pub mod ranges;
pub mod registers;
pub mod zeros;
