//! The pictures of the guide, made from the methods' own data. `UPDATE_GUIDE=1 cargo test -p chainrule-search
//! --test pictures` draws them again.
#![allow(missing_docs, clippy::unwrap_used)]

use chainrule_accumulate::face::{Kinds, LineGraph, LineId, Rules};
use chainrule_accumulate::vertex::Elimination;
use chainrule_accumulate::{Label, LinearGraph, VertexId};
use chainrule_base::Id;
use chainrule_search::draw::{Picture, Tone};
use chainrule_search::pictures;
use std::path::Path;

fn graph(n_inputs: usize, n_intermediates: usize, n_outputs: usize, edges: &[(usize, usize)]) -> LinearGraph {
    let edges: Vec<(usize, usize, Label)> = edges.iter().map(|(i, k)| (*i, *k, Label::Var)).collect();
    LinearGraph::from_edges(n_inputs, n_intermediates, n_outputs, &edges).unwrap()
}

/// Returns the lion: two inputs, two intermediates, four results.
fn lion() -> LinearGraph {
    graph(2, 2, 4, &[(0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (3, 5), (3, 6), (3, 7)])
}

fn in_the_guide(name: &str, picture: &Picture) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/pictures").join(format!("{name}.svg"));
    let svg = picture.svg();
    if std::env::var_os("UPDATE_GUIDE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, svg).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == svg, "{name}.svg is not what the code draws: UPDATE_GUIDE=1 draws it anew");
}

/// D*'s first example: the root depends on one vertex, which depends on two that meet again.
#[test]
fn a_factorisation_of_dstar() {
    let nested = graph(1, 5, 1, &[(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (1, 4), (4, 5), (4, 6), (5, 6)]);
    let drawn = pictures::factorisation(&nested);
    assert_eq!(drawn.len(), 3);
    let edges: Vec<usize> = drawn.iter().map(|p| p.arrows.len()).collect();
    // Five edges between 1 and 4 become one, and three between 4 and 6.
    assert_eq!(edges, [9, 5, 3]);
    assert!(drawn[2].arrows.iter().all(|arrow| arrow.tone != Tone::Active));
    for (idx, picture) in drawn.iter().enumerate() {
        in_the_guide(&format!("dstar-{idx}"), picture);
    }
}

#[test]
fn an_order_of_vertices() {
    let lion = lion();
    in_the_guide("lion", &Picture::of(&lion));
    let mut elimination = Elimination::new(&lion);
    for (step, v) in [3, 2].into_iter().enumerate() {
        elimination.eliminate(VertexId::new(v));
        let mut picture = pictures::vertices(&elimination);
        picture.title = format!("after vertex {v}: {} multiplications", multiplications(&lion, &[3, 2][..=step]));
        in_the_guide(&format!("lion-vertex-{}", step + 1), &picture);
    }
    assert_eq!(multiplications(&lion, &[3, 2]), 12);
}

/// Returns the sum of the Markowitz degrees at the time of each elimination.
fn multiplications(linear: &LinearGraph, order: &[usize]) -> u64 {
    let mut elimination = Elimination::new(linear);
    order
        .iter()
        .map(|v| {
            let degree = elimination.markowitz_degree(VertexId::new(*v));
            elimination.eliminate(VertexId::new(*v));
            degree
        })
        .sum()
}

#[test]
fn a_face_elimination() {
    let lion = lion();
    let mut lines = LineGraph::new(&lion, Kinds, Rules::Naumann);
    // Lines have the numbers of the edges: the face at vertex 3 between 2 -> 3 and 3 -> 4.
    let find = |from: usize, to: usize| {
        let edge = lion.edges().find(|(_, e)| (e.source.index(), e.target.index()) == (from, to));
        LineId::new(edge.unwrap().0.index())
    };
    let (i, j) = (find(2, 3), find(3, 4));
    assert!(lines.is_face(i, j));
    let mut before = pictures::faces(&lines);
    let mark = |label: &str| before.marks.iter().position(|m| m.label == label);
    let ends = (mark("23").unwrap(), mark("34").unwrap());
    for arrow in before.arrows.iter_mut().filter(|a| (a.from, a.to) == ends) {
        arrow.tone = Tone::Active;
    }
    let n_faces = lines.n_faces();
    lines.eliminate(i, j);
    // The product is absorbed by 2 -> 4, and 3 -> 4 has no predecessor any more: one multiplication.
    assert_eq!(lines.n_faces(), n_faces - 1);
    before.title = "the line graph of the lion: an arrow is a face".into();
    in_the_guide("lion-face-0", &before);
    let mut after = pictures::faces(&lines);
    after.title = "after the red face: its product is absorbed by the line 24".into();
    in_the_guide("lion-face-1", &after);
}
