//! The commands, one file each.

pub mod check;
pub mod derive;
pub mod emit;
pub mod fmt;
pub mod run;
pub mod test;
