//! Pictures of the factorisation of a small derivative graph, step by step.

use super::derivative_graph::{DerivativeGraph, Region, Way};
use super::factor::factor_subgraphs;
use super::parts::{Kind, PartId};
use super::separate::{Separated, separate};
use crate::LinearGraph;
use crate::draw::{Arrow, Mark, Picture, Tone};
use chainrule_base::Id;

/// Maximum number of edges of a graph with pictures.
const MOST_EDGES: u64 = 500;

/// Returns pictures of the derivative graph of the first requested pair of a root and a variable: before, and after
/// each factorisation in sequence. Edges that the next step replaces are red, the edge made by the last step is blue.
/// Empty for graphs with more than 500 edges.
#[must_use]
pub fn pictures(linear: &LinearGraph) -> Vec<Picture> {
    let Some(mut separated) = separate(linear, MOST_EDGES) else { return Vec::new() };
    let mut pictures = Vec::new();
    if separated.graphs.is_empty() {
        return pictures;
    }
    let mut region = Region::default();
    let mut made = None;
    loop {
        let graph = &separated.graphs[0];
        // The subgraph with the lowest upper end first: inner ones before outer ones.
        let next = factor_subgraphs(graph).into_iter().find_map(|ends| Some((ends, graph.way_of(ends)?)));
        let Some((ends, way)) = next else {
            pictures.push(picture(linear, &separated, &[], made));
            return pictures;
        };
        graph.region(ends, way, &mut region);
        pictures.push(picture(linear, &separated, &region.parts, made));
        region.parts.sort_unstable();
        let (upper, lower) = (graph.vertex(ends.upper), graph.vertex(ends.lower));
        let part = separated.parts.subgraph(&region.parts, upper, lower);
        separated.graphs[0].contract(ends, way, &mut region, part);
        made = Some(part);
    }
}

fn picture(linear: &LinearGraph, separated: &Separated, active: &[PartId], made: Option<PartId>) -> Picture {
    let graph: &DerivativeGraph = &separated.graphs[0];
    let mut used = vec![false; linear.n_vertices()];
    let mut arrows = Vec::new();
    for node in 0..graph.n_nodes() as u32 {
        for (part, upper) in graph.edges(node, Way::Up) {
            let (from, to) = (graph.vertex(node).index(), graph.vertex(upper).index());
            (used[from], used[to]) = (true, true);
            let tone = if active.contains(&part) {
                Tone::Active
            } else if made == Some(part) {
                Tone::New
            } else {
                Tone::Plain
            };
            arrows.push(Arrow { from, to, label: part.to_string(), tone });
        }
    }
    let tone = |v: usize| if used[v] { Tone::Plain } else { Tone::Faded };
    let marks = (0..linear.n_vertices()).map(|v| Mark { label: v.to_string(), tone: tone(v) }).collect();
    let title = made.map_or_else(String::new, |part| match &separated.parts.get(part).kind {
        Kind::Edge(_) => String::new(),
        Kind::Subgraph(set) => {
            let names: Vec<String> = set.iter().map(ToString::to_string).collect();
            format!("{part} replaces {}", names.join(", "))
        }
    });
    Picture { title, marks, arrows }
}
