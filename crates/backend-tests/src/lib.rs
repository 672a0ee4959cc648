//! Support for tests of backends: kernels with arguments, and the interpreter's results.
//!
//! A test makes [`Case`]s, runs them on a backend of its own, and compares with [`interpret`]. This crate is not for
//! users; helpers panic if a test is wrong.
//!
//! | module | owns |
//! | --- | --- |
//! | [`data`] | arguments and results that own their elements |
//! | [`case`] | a kernel with arguments; the interpreter's results |
//! | [`generate`] | random kernels: from graphs, from functions, from functions that move arrays |
//! | [`filetests`] | kernels as text, with arguments and outcomes |
//! | [`by_hand`] | builder of hand-written kernels with loops |
//! | [`kernels`] | every operator separately; kernels with given names |
//! | [`mod@exact`] | changes of kernels: no inexact operators, fused products, vectorised loops |
//! | `native` | native code in all its modes, against the interpreter |
//! | [`c`], [`rust`] | emitted text, compiled and run with all its cases in one program |

#![allow(clippy::unwrap_used)] // helpers of tests

pub mod by_hand;
pub mod c;
pub mod case;
pub mod data;
pub mod exact;
pub mod filetests;
pub mod generate;
pub mod kernels;
pub mod names;
#[cfg(all(target_arch = "x86_64", unix))]
pub mod native;
pub mod rust;

pub use case::{Case, Outcome, interpret};
pub use data::{Array, Data, around, flatten, int, ints, real, reals};
pub use exact::{at_once, exact, exact_at_once, exact_plain, fused, is_inexact, plain};
