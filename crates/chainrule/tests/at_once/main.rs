//! Vectorised loops, in native code at every level that the machine supports.

#![allow(clippy::unwrap_used)] // helpers of tests

mod branches;
mod gathers;
mod recurrences;
mod rests;
mod reversed;
mod rows;
mod support;
