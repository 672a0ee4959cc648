//! Correct use of `chainrule eliminate`.

#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::io::Write;
use std::process::Stdio;
use support::{Content, Place};

/// The lion: 12 multiplications by vertices, 11 by edges and faces.
const LION: &str = r#"{"name": "lion", "n_inputs": 2, "n_intermediates": 2, "n_outputs": 4,
    "edges": [[0, 2], [1, 2], [2, 3], [2, 4], [3, 4], [3, 5], [3, 6], [3, 7]]}"#;
/// Vertex 1 leads nowhere; the edge from 2 to 4 is 1.
const UNITS: &str = r#"{"n_inputs": 1, "n_intermediates": 3, "n_outputs": 1,
    "edges": [[0, 1], [0, 2], [2, 3], [0, 3], [2, 4], [3, 4]], "edge_kind": ["var", "var", "var", "var", "one", "var"]}"#;
const VECTORS: &str = r#"{"n_inputs": 1, "n_intermediates": 2, "n_outputs": 1,
    "edges": [[0, 1], [1, 2], [2, 3]], "sizes": [5, 2, 3, 7]}"#;

fn place() -> Place {
    Place::with(&[
        ("lion.json", Content::Text(LION)),
        ("units.json", Content::Text(UNITS)),
        ("vectors.json", Content::Text(VECTORS)),
    ])
}

#[track_caller]
fn prints(place: &Place, args: &[&str]) -> String {
    let outcome = place.run(args);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
    outcome.stdout
}

/// Returns the columns of the row of this method.
#[track_caller]
fn row(text: &str, method: &str) -> Vec<u64> {
    let line =
        text.lines().find(|line| line.split_whitespace().next() == Some(method)).unwrap_or_else(|| panic!("{text}"));
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn every_method_has_a_row() {
    let text = prints(&place(), &["eliminate", "lion.json", "--method", "all"]);
    assert!(text.starts_with("lion: 2 inputs, 2 intermediates, 4 outputs, 8 edges\n"), "{text}");
    // Plain and unit-free multiplications and additions.
    assert_eq!(row(&text, "reverse")[..4], [12, 1, 12, 1]);
    assert_eq!(row(&text, "dstar")[..4], [11, 1, 11, 1]);
    assert_eq!(row(&text, "annealed")[0], 12);
    for strategy in chainrule::STRATEGIES {
        row(&text, strategy.name);
    }
}

#[test]
fn proofs_and_gaps_are_reported() {
    let place = place();
    let text = prints(&place, &["eliminate", "lion.json", "--method", "forward", "--prove"]);
    assert!(text.contains("fewest multiplications of vertex orders (plain): 12, proved\n"), "{text}");
    let order = text.lines().find_map(|line| line.trim().strip_prefix("best order: ")).unwrap();
    let again = prints(&place, &["eliminate", "lion.json", "--order", order]);
    assert_eq!(row(&again, "order")[0], 12);
}

#[test]
fn an_order_is_in_the_numbers_of_the_file() {
    let place = place();
    let text = prints(&place, &["eliminate", "units.json", "--order", "3,1", "--show", "program"]);
    assert!(text.contains("1 on no path left out"), "{text}");
    // Of 3 first: (3, 4) times (2, 3) and (0, 3); then of 2, where the 1 was absorbed.
    assert_eq!(row(&text, "order")[..4], [3, 2, 3, 2]);
    let program = text.lines().filter(|line| line.contains(" = ")).collect::<Vec<_>>();
    assert_eq!(program.last(), Some(&"d(0, 0) = t2"), "{text}");
    // 2 first: one of its two products is by the 1.
    let other = prints(&place, &["eliminate", "units.json", "--order", "2,3"]);
    assert_eq!(row(&other, "order")[..4], [3, 2, 2, 2]);
}

#[test]
fn json_lines_are_objects() {
    let place = place();
    let text = prints(&place, &["eliminate", "lion.json", "--method", "forward", "--json", "--prove"]);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<_> =
        lines.iter().map(|l| (l["method"].as_str().unwrap(), l["counting"].as_str().unwrap())).collect();
    assert_eq!(shown, [("forward", "plain"), ("forward", "unit-free"), ("exact", "plain")]);
    assert_eq!(
        (&lines[2]["mul"], &lines[2]["status"], &lines[2]["graph"]),
        (&12.into(), &"proved".into(), &"lion".into())
    );
    assert!(lines.iter().all(|line| line["seconds"].is_f64() && line["add"].is_u64()));
}

#[test]
fn standard_input_is_a_file_too() {
    let place = place();
    let mut child = place.command(&["eliminate", "-", "--method", "reverse"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(LION.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(row(&String::from_utf8(output.stdout).unwrap(), "reverse")[0], 12);
}

#[test]
fn vector_graphs_count_with_sizes() {
    let place = place();
    let text = prints(&place, &["eliminate", "vectors.json"]);
    // 3 by 2 times 2 by 5, then 7 by 3 times that; or 7 by 3 times 3 by 2, and that times 2 by 5.
    assert_eq!((row(&text, "forward")[0], row(&text, "reverse")[0]), (3 * 2 * 5 + 7 * 3 * 5, 7 * 3 * 2 + 7 * 2 * 5));
    assert_eq!(row(&text, "annealed")[0], 112);
    assert_eq!(row(&prints(&place, &["eliminate", "vectors.json", "--order", "2"]), "order")[0], 112);
}

#[test]
fn a_picture_is_written() {
    let place = place();
    let outcome = place.run(&["eliminate", "lion.json", "--svg", "lion.svg"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), "wrote lion.svg\n"));
    let svg = String::from_utf8(place.read("lion.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains(">lion</text>"), "{svg}");
}
