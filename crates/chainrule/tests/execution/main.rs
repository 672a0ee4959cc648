//! Compiled functions: arguments, numbers, threads, saved code.

mod checks;
mod integers;
mod nan;
mod saved;
mod threads;
