//! For the tests of backends: kernels with arguments, and what the interpreter says of them.
//!
//! A test makes [`Case`]s, runs them on a backend of its own, and compares with [`interpret`]. Nothing
//! here is for users; helpers panic where a test is wrong.
//!
//! | module | owns |
//! | --- | --- |
//! | [`data`] | arguments and results that own their elements |
//! | [`case`] | a kernel with arguments; the interpreter's results |
//! | [`generate`] | random kernels: from graphs, from functions, from functions that move arrays about |
//! | [`by_hand`] | kernels of loops that tests write by hand |
//! | [`kernels`] | hand-written kernels; every operator by itself |
//! | [`mod@exact`] | kernels without operators whose last places differ from library to library; products fused, loops cut |
//! | `native` | native code in all the ways that it runs, against the interpreter |
//! | [`c`], [`rust`] | emitted text, compiled and run with all its cases in one program |

#![allow(clippy::unwrap_used)] // helpers of tests

pub mod by_hand;
pub mod c;
pub mod case;
pub mod data;
pub mod exact;
pub mod generate;
pub mod kernels;
pub mod names;
#[cfg(all(target_arch = "x86_64", unix))]
pub mod native;
pub mod rust;

pub use case::{Case, Outcome, interpret};
pub use data::{Array, Data, around, flatten, int, ints, real, reals};
pub use exact::{at_once, exact, exact_at_once, exact_plain, fused, is_inexact, plain};
