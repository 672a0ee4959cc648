//! Scalar regions: small arrays in loops become straight lines.

use chainrule::Module;

const BUNDLE: &str = include_str!("../../../examples/adbench/programs/ba.ft");

#[test]
fn the_rows_of_an_observation_are_one_straight_line() {
    let module = Module::from_text("ba.ft", BUNDLE).unwrap();
    let listing = module.function("baJacobian").unwrap().compile().unwrap().listing();
    println!("{listing}");
    let loops = listing.lines().filter(|line| line.trim_start().starts_with("for ")).count();
    assert!(loops <= 8, "{loops} loops:\n{listing}");
}
