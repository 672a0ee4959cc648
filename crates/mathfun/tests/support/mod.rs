//! Helpers of the tests.

#![allow(dead_code, missing_docs, clippy::unwrap_used)]

pub mod arguments;
pub mod truth;
