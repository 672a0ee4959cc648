//! What fuzzers give to Chainrule: functions of bytes that panic where something is wrong, whatever the bytes are.
//!
//! The targets for `cargo fuzz` in `fuzz_targets` call them, and so do the tests, with random bytes.

#[cfg(all(target_arch = "x86_64", unix))]
pub mod kernels;
pub mod saved;
