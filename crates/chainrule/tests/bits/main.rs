//! Bitwise equality: emitted C and Rust against compiled code with equal options, strict code against the reference
//! evaluator.
//!
//! Programs are those of the examples and of `tests/programs`, with their gradients, and random ones with their
//! Jacobians.
//!
//! | module | owns |
//! | --- | --- |
//! | `samples` | functions with arguments |
//! | `emitted` | emitted text, compiled and run |
//! | `strict` | strict semantics |

#![allow(clippy::unwrap_used)] // helpers of tests

mod emitted;
mod samples;
mod strict;

#[allow(dead_code)] // it is shared
#[path = "../random/support.rs"]
mod support;
