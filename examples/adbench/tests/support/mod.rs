//! The real inputs, where they are, and what stands in them.

use std::path::{Path, PathBuf};

/// The folder of the inputs; `None`, with a word of it, where it is not there.
pub fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if data.exists() {
        return Some(data);
    }
    println!("skipped: {} is not there", data.display());
    None
}

/// The numbers of a file.
pub fn numbers(path: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}
