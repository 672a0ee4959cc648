//! The examples of D*'s figures 7 to 16, step by step. Vertices without a number in the figures have letters here.

use super::Ties;
use super::derivative_graph::{DerivativeGraph, Ends, Region, Way};
use super::factor::{factor, factor_subgraphs};
use super::isolate::isolate;
use super::parts::{Kind, PartId};
use super::separate::{Separated, separate};
use crate::{Label, LinearGraph, VertexId};
use chainrule_base::Id;

fn separated(n_inputs: usize, n_intermediates: usize, n_outputs: usize, edges: &[(usize, usize)]) -> Separated {
    let edges: Vec<_> = edges.iter().map(|(s, t)| (*s, *t, Label::Var)).collect();
    let linear = LinearGraph::from_edges(n_inputs, n_intermediates, n_outputs, &edges).unwrap();
    separate(&linear, 1000).unwrap()
}

/// Figure 7: nodes 0, x, 1, y, 2, 3 from the variable up; d1 is 3 - 2, d3 is 2 - 1, d4 is 1 - 0, d0 and
/// d2 lead from 3 over y to 1, d5 and d6 from 2 over x to 0.
const FIGURE_7: [(usize, usize); 7] = [(4, 5), (3, 5), (2, 3), (2, 4), (1, 4), (0, 1), (0, 2)];
const NODE_0: u32 = 0;
const NODE_X: u32 = 1;
const NODE_1: u32 = 2;
const NODE_Y: u32 = 3;
const NODE_2: u32 = 4;
const NODE_3: u32 = 5;

fn ends(upper: u32, lower: u32) -> Ends {
    Ends { upper, lower }
}

/// Returns the only part between two nodes.
fn part(graph: &DerivativeGraph, upper: u32, lower: u32) -> PartId {
    let between: Vec<PartId> = graph.edges(upper, Way::Down).filter(|e| e.1 == lower).map(|e| e.0).collect();
    assert_eq!(between.len(), 1, "{upper} {lower}");
    between[0]
}

/// Returns all edges as (upper, lower), ascending.
fn edges(graph: &DerivativeGraph) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> =
        (0..=graph.root()).flat_map(|u| graph.edges(u, Way::Down).map(move |(_, l)| (u, l))).collect();
    all.sort_unstable();
    all
}

/// Factors a subgraph; returns the replaced parts, and the new part.
fn step(separated: &mut Separated, of: Ends) -> (Vec<PartId>, PartId) {
    let graph = &mut separated.graphs[0];
    let mut region = Region::default();
    let way = graph.way_of(of).unwrap();
    graph.region(of, way, &mut region);
    region.parts.sort_unstable();
    let part = separated.parts.subgraph(&region.parts, graph.vertex(of.upper), graph.vertex(of.lower));
    graph.contract(of, way, &mut region, part);
    graph.assert_consistent();
    (region.parts, part)
}

#[test]
fn factor_subgraphs_of_figure_7() {
    let separated = separated(1, 4, 1, &FIGURE_7);
    let graph = &separated.graphs[0];
    // At node 3: [3, 1] and [3, 0]; at node 0: [0, 2] and [0, 3], which is [3, 0] again.
    assert_eq!(factor_subgraphs(graph), [ends(NODE_2, NODE_0), ends(NODE_3, NODE_0), ends(NODE_3, NODE_1)]);
    assert_eq!(graph.way_of(ends(NODE_3, NODE_1)), Some(Way::Up));
    assert_eq!(graph.way_of(ends(NODE_2, NODE_0)), Some(Way::Down));
    // There is no [1, 3]: 1 does not postdominate 3.
    assert_eq!(graph.factor_of(NODE_3, Way::Down), Some(ends(NODE_3, NODE_0)));
}

#[test]
fn figures_10_and_11() {
    let mut separated = separated(1, 4, 1, &FIGURE_7);
    let graph = &separated.graphs[0];
    let d4 = part(graph, NODE_1, NODE_0);
    let mut expected = vec![part(graph, NODE_2, NODE_1), d4, part(graph, NODE_2, NODE_X), part(graph, NODE_X, NODE_0)];
    expected.sort_unstable();
    let (replaced, d7) = step(&mut separated, ends(NODE_2, NODE_0));
    assert_eq!(replaced, expected);
    // d3, d5 and d6 are removed; d4 fails the postdominator test and stays. [3, 1] no longer exists.
    let graph = &separated.graphs[0];
    assert_eq!(part(graph, NODE_1, NODE_0), d4);
    assert_eq!(
        edges(graph),
        [(NODE_1, NODE_0), (NODE_Y, NODE_1), (NODE_2, NODE_0), (NODE_3, NODE_Y), (NODE_3, NODE_2)]
    );
    assert_eq!(part(graph, NODE_2, NODE_0), d7);
    assert_eq!(factor_subgraphs(graph), [ends(NODE_3, NODE_0)]);
    let (replaced, d8) = step(&mut separated, ends(NODE_3, NODE_0));
    assert_eq!(replaced.len(), 5);
    assert_eq!(edges(&separated.graphs[0]), [(NODE_3, NODE_0)]);
    // d8 = d1 d7 + d0 d2 d4, d7 = d5 d6 + d3 d4.
    let sums = isolate(&mut separated, 1000).unwrap();
    assert_eq!(sums.results, [[d8]]);
    let lengths = |p: PartId| {
        let mut lengths: Vec<usize> = sums.terms[p.index()].iter().map(Vec::len).collect();
        lengths.sort_unstable();
        lengths
    };
    assert_eq!((lengths(d8), lengths(d7)), (vec![2, 3], vec![2, 2]));
}

#[test]
fn figures_12_and_13() {
    let mut separated = separated(1, 4, 1, &FIGURE_7);
    let d1 = part(&separated.graphs[0], NODE_3, NODE_2);
    let (replaced, _) = step(&mut separated, ends(NODE_3, NODE_1));
    assert!(replaced.contains(&d1) && replaced.len() == 4);
    // d0, d2 and d3 are removed; d1 fails the dominator test and stays. [0, 2] no longer exists.
    let graph = &separated.graphs[0];
    assert_eq!(part(graph, NODE_3, NODE_2), d1);
    assert_eq!(
        edges(graph),
        [(NODE_X, NODE_0), (NODE_1, NODE_0), (NODE_2, NODE_X), (NODE_3, NODE_1), (NODE_3, NODE_2)]
    );
    assert_eq!(factor_subgraphs(graph), [ends(NODE_3, NODE_0)]);
    step(&mut separated, ends(NODE_3, NODE_0));
    assert_eq!(edges(&separated.graphs[0]), [(NODE_3, NODE_0)]);
}

#[test]
fn figures_14_to_16_the_more_frequent_one_first() {
    // Variables 0 and 1, then 2, 3 and the root 4. [4, 2] is in both derivatives, [3, 0] in one.
    let mut separated = separated(2, 2, 1, &[(0, 2), (0, 3), (1, 2), (2, 3), (2, 4), (3, 4)]);
    assert!(factor(&mut separated, Ties::Nearest, 1000));
    let sums = isolate(&mut separated, 1000).unwrap();
    // f1 is the part of [4, 2] times an edge, and f0 contains the same part.
    let shared = sums.results[1][0];
    let Kind::Subgraph(set) = &separated.parts.get(shared).kind else { panic!("{sums:?}") };
    assert_eq!(set.len(), 3);
    let whole = sums.results[0][0];
    assert_eq!(sums.results[0].len(), 1);
    assert!(sums.terms[whole.index()].iter().any(|term| term.contains(&shared)));
}

#[test]
fn equal_ends_are_not_equal_values() {
    // Variables 0 to 3; c = 4 over all of them; y = 5, q = 6 over 0; w = 7 over c, y, q; b = 8 over w and
    // c; roots 9, 10, 11 over b, and 12 over w.
    let edges = [
        (0, 4),
        (1, 4),
        (2, 4),
        (3, 4),
        (0, 5),
        (0, 6),
        (4, 7),
        (5, 7),
        (6, 7),
        (4, 8),
        (7, 8),
        (8, 9),
        (8, 10),
        (8, 11),
        (7, 12),
    ];
    // [b, c] is the most frequent, with 3 roots by 4 variables, and removes the path w - c from the graphs of three
    // roots. [w, 0] is then in all graphs of variable 0, with two paths for these roots, and three for the last.
    let mut separated = separated(4, 5, 4, &edges);
    assert!(factor(&mut separated, Ties::Nearest, 1000));
    let (w, variable) = (VertexId::new(7), VertexId::new(0));
    let mut sizes: Vec<usize> = (0..separated.parts.len())
        .map(|idx| separated.parts.get(PartId::new(idx)))
        .filter(|part| (part.upper, part.lower) == (w, variable))
        .map(|part| match &part.kind {
            Kind::Subgraph(set) => set.len(),
            Kind::Edge(_) => 1,
        })
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [4, 6]);
}
