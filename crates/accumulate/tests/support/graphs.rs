//! The literature's graphs, which lie beside the repository and not in it.

use chainrule_accumulate::{Label, LinearGraph};
use std::path::Path;

/// The graph of this name; `None`, and says so, when there are no data.
pub fn load(name: &str) -> Option<LinearGraph> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/graphs").join(format!("{name}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped {name}: there is no shared/data beside the repository");
        return None;
    };
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |value: &serde_json::Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let edges: Vec<(usize, usize, Label)> = json["edges"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(i, e)| {
            let label = match json["edge_kind"].get(i).and_then(|k| k.as_str()) {
                Some("one" | "copy") => Label::One,
                Some("neg1") => Label::MinusOne,
                Some("const") => Label::Const,
                Some("var") | None => Label::Var,
                Some(other) => panic!("edge kind {other}"),
            };
            (number(&e[0]), number(&e[1]), label)
        })
        .collect();
    let graph = LinearGraph::from_edges(
        number(&json["n_inputs"]),
        number(&json["n_intermediates"]),
        number(&json["n_outputs"]),
        &edges,
    );
    Some(graph.unwrap())
}
