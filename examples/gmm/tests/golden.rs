//! Value and gradient equal ADBench's hand-written C++ to 1e-10 relative.

// A failed test should stop.
#![allow(clippy::unwrap_used)]

use chainrule_example_gmm::{compile, evaluate, read};
use std::path::Path;

fn numbers(path: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn value_and_gradient_equal_the_golden_files() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !data.exists() {
        println!("skipped: {} is not there", data.display());
        return;
    }
    let compiled = compile().unwrap();
    for (problem, golden) in [("test.txt", "gmm_test"), ("gmm_d2_K5.txt", "gmm_1k_gmm_d2_K5")] {
        let (value, gradient) = evaluate(&compiled, &read(&data.join("gmm").join(problem)).unwrap()).unwrap();
        let expected = numbers(&data.join(format!("golden/{golden}_F.txt")))[0];
        assert!((value - expected).abs() <= 1e-10 * expected.abs(), "{problem}: {value} is not {expected}");
        let expected = numbers(&data.join(format!("golden/{golden}_J.txt")));
        assert_eq!(gradient.len(), expected.len());
        for (i, (g, e)) in gradient.iter().zip(&expected).enumerate() {
            assert!((g - e).abs() <= 1e-10 * e.abs().max(1e-10), "{problem}, element {i}: {g} is not {e}");
        }
    }
}
