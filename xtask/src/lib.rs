//! The chores as a library, so that `cargo test` runs the checks too.

pub mod links;
pub mod memcheck;
pub mod pages;
pub mod paths;
pub mod pictures;
pub mod python;
pub mod quick;
pub mod shape;
pub mod tidy;
mod walk;
pub mod words;
