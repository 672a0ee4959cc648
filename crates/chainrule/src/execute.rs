//! Execution of functions in this process: options, compiled functions, their memory, and the engines that run them.

pub(crate) mod batch;
pub(crate) mod bound;
pub(crate) mod compile_options;
pub(crate) mod compiled;
pub(crate) mod engine;
pub(crate) mod prepared;
pub(crate) mod saved;
pub(crate) mod within;
