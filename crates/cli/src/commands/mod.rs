//! The commands, one file each.

pub mod check;
pub mod compile;
pub mod derive;
pub mod eliminate;
pub mod emit;
pub mod fmt;
pub mod passes;
pub mod run;
pub mod test;
