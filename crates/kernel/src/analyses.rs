//! Analyses of kernels: facts for passes and backends.

pub mod addresses;
pub mod counts;
pub mod events;
pub mod liveness;
pub(crate) mod mentions;
pub mod ranges;
pub mod registers;
pub mod zeros;
