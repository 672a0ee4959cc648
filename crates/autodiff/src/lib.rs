//! Differentiation of the array IR: IR in, IR out.
//!
//! | module | owns |
//! | --- | --- |
//! | [`forward`] | forward mode: every `Jvp` replaced by ordinary code |
//! | [`request`] | a function that computes the derivatives that were asked for |
//! | [`tidy`] | forwarding and dead code, after either |
//!
//! Inside: `activity` (what depends on what is differentiated by), `dual` (dual numbers in code),
//! `chain` (the chain rule for one operator), `emit` (writing statements), `operands` (rewriting them).

mod activity;
mod chain;
pub mod check;
mod dual;
mod emit;
pub mod forward;
mod operands;
pub mod request;
pub mod tidy;

pub use forward::expand;
pub use request::{Part, Request, derive};
