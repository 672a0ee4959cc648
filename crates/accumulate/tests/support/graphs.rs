//! The literature's graphs, which are stored outside the repository.

use chainrule_accumulate::LinearGraph;
use chainrule_search::exchange;
use std::path::Path;

/// Returns the graph of this name; `None`, with a message, if there are no data.
pub fn load(name: &str) -> Option<LinearGraph> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/graphs").join(format!("{name}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped {name}: there is no shared/data beside the repository");
        return None;
    };
    Some(exchange::from_json(&text).unwrap().graph)
}
