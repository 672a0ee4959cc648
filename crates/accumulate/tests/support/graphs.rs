//! The literature's graphs, which lie beside the repository and not in it.

use chainrule_accumulate::{LinearGraph, exchange};
use std::path::Path;

/// The graph of this name; `None`, and says so, when there are no data.
pub fn load(name: &str) -> Option<LinearGraph> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/graphs").join(format!("{name}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped {name}: there is no shared/data beside the repository");
        return None;
    };
    Some(exchange::from_json(&text).unwrap().graph)
}
