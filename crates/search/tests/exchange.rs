//! Graphs as JSON text: written graphs are read back, and any fault gets an explanation.
#![allow(clippy::unwrap_used)]

#[path = "../../accumulate/tests/support/mod.rs"]
mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::{Edge, LinearGraph, VertexId};
use chainrule_base::{Diagnostic, Id, Kind};
use chainrule_search::exchange::{Document, from_json, to_json};
use proptest::prelude::*;

const CHAIN: &str = r#"{"name": "chain", "n_inputs": 1, "n_intermediates": 1, "n_outputs": 1,
    "edges": [[0, 1], [1, 2]], "edge_kind": ["neg1", "copy"], "sizes": [2, 3, 4], "pairs": [[0, 0]]}"#;

fn edges(graph: &LinearGraph) -> Vec<Edge> {
    graph.edges().map(|(_, edge)| *edge).collect()
}

fn assert_same(a: &Document, b: &Document) {
    assert_eq!((&a.name, &a.sizes), (&b.name, &b.sizes));
    assert_eq!(edges(&a.graph), edges(&b.graph));
    assert_eq!((a.graph.rows(), a.graph.columns()), (b.graph.rows(), b.graph.columns()));
    assert_eq!((a.graph.n_vertices(), a.graph.pairs()), (b.graph.n_vertices(), b.graph.pairs()));
}

/// Checks the rules for every message.
fn explained(error: &Diagnostic) -> bool {
    error.kind != Kind::Bug
        && [Some(&error.title), error.reason.as_ref(), error.help.as_ref()]
            .iter()
            .all(|text| text.is_some_and(|text| !text.trim().is_empty()))
}

/// Returns the example with a part replaced by another text.
fn with(part: &str, other: &str) -> String {
    assert!(CHAIN.contains(part), "{part}");
    CHAIN.replace(part, other)
}

#[test]
fn every_field_is_read() {
    use chainrule_accumulate::Label::{MinusOne, One};
    let document = from_json(CHAIN).unwrap();
    assert_eq!((document.name.as_str(), document.sizes.as_deref()), ("chain", Some(&[2, 3, 4][..])));
    assert_eq!(edges(&document.graph).iter().map(|e| e.label).collect::<Vec<_>>(), [MinusOne, One]);
    assert_eq!(document.graph.pairs(), Some(&[(0, 0)][..]));
}

#[test]
fn nodes_on_no_path_have_no_vertex() {
    let text = r#"{"n_inputs": 1, "n_intermediates": 2, "n_outputs": 1, "edges": [[0, 1], [0, 2], [2, 3]], "sizes": [1, 5, 6, 7]}"#;
    let document = from_json(text).unwrap();
    let vertex = |v: usize| Some(VertexId::new(v));
    assert_eq!(document.vertices, [vertex(0), None, vertex(1), vertex(2)]);
    assert_eq!(document.sizes, Some(vec![1, 6, 7]));
}

#[test]
fn every_mistake_has_a_reason_and_a_remedy() {
    let cases = [
        (String::new(), "this is no JSON text"),
        ("[1, 2".into(), "this is no JSON text"),
        ("[".repeat(100_000), "this is no JSON text"),
        ("[[0, 1]]".into(), "a graph is an object with fields, not a list of 1"),
        ("{}".into(), "the graph has no `n_inputs`"),
        (with("\"edges\"", "\"edge\""), "the graph has no `edges`"),
        (with("\"n_inputs\": 1", "\"n_inputs\": -1"), "`n_inputs` is -1"),
        (with("\"n_inputs\": 1", "\"n_inputs\": 1.5"), "`n_inputs` is 1.5"),
        (with("\"n_inputs\": 1", "\"n_inputs\": \"one\""), "`n_inputs` is the text \"one\""),
        (with("\"n_inputs\": 1", "\"n_inputs\": 18446744073709551615"), "this graph has too many vertices"),
        (with("\"n_outputs\": 1", "\"n_outputs\": 99999999999999999999999"), "this graph has too many vertices"),
        (with("\"n_outputs\": 1", "\"n_outputs\": 1e300"), "this graph has too many vertices"),
        (with("[[0, 1], [1, 2]]", "7"), "`edges` is 7"),
        (with("[1, 2]]", "[1]]"), "edge 1 is the list [1]"),
        (with("[1, 2]]", "[1, 2, 3]]"), "edge 1 is the list [1, 2, 3]"),
        (with("[1, 2]]", "\"1-2\"]"), "edge 1 is the text \"1-2\""),
        (with("[1, 2]]", "[1, 2.5]]"), "edge 1 is the list [1, 2.5]"),
        (with("[1, 2]]", "[1, 9]]"), "edge 1, from 1 to 9, cannot be"),
        (with("[1, 2]]", "[1, 99999999999999999999999]]"), "edge 1, from 1 to 18446744073709551615, cannot be"),
        (with("[1, 2]]", "[1, 0]]"), "edge 1, from 1 to 0, cannot be"),
        (with("\"copy\"", "\"copy\", \"var\""), "there are 2 edges and 3 kinds"),
        (with("\"copy\"", "\"two\""), "the kind of edge 1 is the text \"two\""),
        (with("\"copy\"", "1"), "the kind of edge 1 is 1"),
        (with("[2, 3, 4]", "[2, 3]"), "there are 3 vertices and 2 sizes"),
        (with("[2, 3, 4]", "[2, 0, 4]"), "the size of vertex 1 is 0"),
        (with("[2, 3, 4]", "[2, 1e30, 4]"), "the vertices of this graph are too large"),
        (with("[2, 3, 4]", "[2, 18446744073709551615, 4]"), "the vertices of this graph are too large"),
        (with("[[0, 0]]", "[[0, 1]]"), "there is no pair (0, 1)"),
        (with("[[0, 0]]", "[0, 1]"), "pair 0 is 0"),
        (with("\"chain\"", "{}"), "`name` is an object"),
    ];
    for (text, title) in cases {
        let shown: String = text.chars().take(200).collect();
        let error = from_json(&text).map(|_| ()).expect_err(&shown);
        assert_eq!(error.title, title, "{shown}");
        assert!(explained(&error), "{error:?} on {shown}");
    }
}

proptest! {
    #![proptest_config(support::config(500, 11))]

    #[test]
    fn what_is_written_is_read(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        sizes in prop::collection::vec(1_u64..9, 14),
        ask in any::<u64>(),
    ) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        for graph in support::whole_and_part(linear, ask) {
            let sizes = Some(sizes[..graph.n_vertices()].to_vec());
            let text = to_json("g", &graph, sizes.as_deref());
            let document = from_json(&text).unwrap();
            let vertices = (0..graph.n_vertices()).map(|v| Some(VertexId::new(v))).collect();
            assert_same(&document, &Document { name: "g".into(), graph, vertices, sizes });
            prop_assert_eq!(to_json("g", &document.graph, document.sizes.as_deref()), text);
        }
    }

    /// Parts of a graph's text removed, repeated and overwritten: a graph or a message, never a panic.
    #[test]
    fn damaged_texts_do_no_harm(damage in prop::collection::vec((any::<u16>(), any::<u8>(), 0..8_usize), 1..6)) {
        const TOKENS: [&str; 16] = [
            "", "[", "]", "{", "}", ",", ":", "\"", "-1", "0", "1e400", "184467440737095516160", "null", "\"var\"",
            "\"sizes\"", "\\ud800",
        ];
        let mut text = CHAIN.as_bytes().to_vec();
        for (place, token, n_cut) in damage {
            let first = usize::from(place) % (text.len() + 1);
            let end = (first + n_cut).min(text.len());
            text.splice(first..end, TOKENS[usize::from(token) % TOKENS.len()].bytes());
        }
        let text = String::from_utf8_lossy(&text);
        match from_json(&text) {
            Ok(document) => prop_assert!(from_json(&to_json(&document.name, &document.graph, None)).is_ok()),
            Err(error) => prop_assert!(explained(&error), "{error:?} on {text}"),
        }
    }
}
