//! The `chainrule` command.
fn main() {}
