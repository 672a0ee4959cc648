//! The linearised graph, and the structure of derivatives that can be read off it.

pub(crate) mod branch_masks;
pub mod colouring;
pub(crate) mod linear;
pub(crate) mod linearise;
pub(crate) mod masked_slopes;
pub(crate) mod pattern;
pub mod reachability;
