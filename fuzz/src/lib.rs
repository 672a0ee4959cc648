//! Fuzz targets of Chainrule: functions of arbitrary bytes that panic if something is wrong.
//!
//! The targets for `cargo fuzz` in `fuzz_targets` call them, and so do the tests, with random bytes.

#[cfg(all(target_arch = "x86_64", unix))]
pub mod kernels;
pub mod programs;
pub mod saved;

// Comparisons of the library's random tests.
#[path = "../../crates/chainrule/tests/random/case.rs"]
mod case;
#[path = "../../crates/chainrule/tests/random/compare.rs"]
mod compare;
#[allow(dead_code)] // The tests use more of it.
#[path = "../../crates/chainrule/tests/random/exact.rs"]
mod exact;
#[allow(dead_code)] // The tests use more of it.
#[path = "../../crates/chainrule/tests/random/values.rs"]
mod values;
