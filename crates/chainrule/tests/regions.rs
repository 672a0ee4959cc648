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

/// How deep loops nest inside of a loop that runs at once, at most, by the listing's indentation.
fn deepest_at_once(listing: &str) -> usize {
    let depth = |line: &str| (line.len() - line.trim_start().len()) / 2;
    let lines: Vec<&str> = listing.lines().collect();
    let mut deepest = 0;
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.ends_with("at once")) {
        let inside = lines[at + 1..].iter().take_while(|inner| depth(inner) > depth(line));
        let loops = inside.filter(|inner| inner.trim_start().starts_with("for "));
        deepest = loops.map(|inner| depth(inner) - depth(line)).max().unwrap_or(0).max(deepest);
    }
    deepest
}

const MIXTURE: &str = include_str!("../../../examples/gmm/gmm.ft");

#[test]
fn eight_points_of_a_mixture_run_at_once_in_value_and_gradient() {
    let gmm = Module::from_text("gmm.ft", MIXTURE).unwrap().function("gmm").unwrap();
    let value = gmm.compile().unwrap().listing();
    // Gaussians, rows, columns.
    assert_eq!(deepest_at_once(&value), 3, "{value}");
    let gradient = gmm.gradient().by(&["alphas", "means", "icf"]).function().unwrap().compile().unwrap().listing();
    assert_eq!(deepest_at_once(&gradient), 3, "{gradient}");
}
