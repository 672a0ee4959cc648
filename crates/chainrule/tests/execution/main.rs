//! Compiled functions: arguments, numbers, threads, saved code.

mod checks;
mod integers;
mod nan;
mod products;
mod saved;
mod threads;
