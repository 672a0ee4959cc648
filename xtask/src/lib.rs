//! What the chores do; a library so that `cargo test` runs the checks too.

pub mod memcheck;
pub mod tidy;
