//! The guide contains the output of this example.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

#[path = "../../../crates/chainrule/tests/guide/example.rs"]
mod example;
#[path = "../../../crates/chainrule/tests/guide/page.rs"]
mod page;

#[test]
fn the_guide_shows_what_the_example_prints() {
    example::check("chainrule-example-bundle_adjustment", env!("CARGO_BIN_EXE_chainrule-example-bundle_adjustment"));
}
