//! Loops whose iterations run at once, in native code at every level that the machine has.

#![allow(clippy::unwrap_used)] // helpers of tests

mod branches;
mod gathers;
mod rests;
mod support;
