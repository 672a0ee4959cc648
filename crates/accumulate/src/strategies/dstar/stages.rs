//! Stages of the factorisation of a small derivative graph, for pictures.

use super::derivative_graph::{DerivativeGraph, Region, Way};
use super::factor::factor_subgraphs;
use super::parts::{Kind, PartId};
use super::separate::{Separated, separate};
use crate::{LinearGraph, VertexId};

/// Part that an edge plays in a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Made by the last step.
    New,
    /// Replaced by the next step.
    Replaced,
    /// Neither.
    Other,
}

/// An edge of a derivative graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedEdge {
    /// Start, towards the variable.
    pub source: VertexId,
    /// End, towards the root.
    pub target: VertexId,
    /// Name of the edge or of the subgraph that it replaces.
    pub name: String,
    /// Role in this stage.
    pub role: Role,
}

/// Derivative graph between two factorisations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Last step in words; empty before the first one.
    pub title: String,
    /// The edges.
    pub edges: Vec<NamedEdge>,
}

/// Maximum number of edges of a graph with stages.
const MOST_EDGES: u64 = 500;

/// Returns the derivative graph of the first requested pair of a root and a variable: before, and after each
/// factorisation in sequence. Empty for graphs with more than 500 edges.
#[must_use]
pub fn stages(linear: &LinearGraph) -> Vec<Stage> {
    let Some(mut separated) = separate(linear, MOST_EDGES) else { return Vec::new() };
    let mut stages = Vec::new();
    if separated.graphs.is_empty() {
        return stages;
    }
    let mut region = Region::default();
    let mut made = None;
    loop {
        let graph = &separated.graphs[0];
        // The subgraph with the lowest upper end first: inner ones before outer ones.
        let next = factor_subgraphs(graph).into_iter().find_map(|ends| Some((ends, graph.way_of(ends)?)));
        let Some((ends, way)) = next else {
            stages.push(stage(&separated, &[], made));
            return stages;
        };
        graph.region(ends, way, &mut region);
        stages.push(stage(&separated, &region.parts, made));
        region.parts.sort_unstable();
        let (upper, lower) = (graph.vertex(ends.upper), graph.vertex(ends.lower));
        let part = separated.parts.subgraph(&region.parts, upper, lower);
        separated.graphs[0].contract(ends, way, &mut region, part);
        made = Some(part);
    }
}

fn stage(separated: &Separated, active: &[PartId], made: Option<PartId>) -> Stage {
    let graph: &DerivativeGraph = &separated.graphs[0];
    let mut edges = Vec::new();
    for node in 0..graph.n_nodes() as u32 {
        for (part, upper) in graph.edges(node, Way::Up) {
            let role = if active.contains(&part) {
                Role::Replaced
            } else if made == Some(part) {
                Role::New
            } else {
                Role::Other
            };
            edges.push(NamedEdge {
                source: graph.vertex(node),
                target: graph.vertex(upper),
                name: part.to_string(),
                role,
            });
        }
    }
    let title = made.map_or_else(String::new, |part| match &separated.parts.get(part).kind {
        Kind::Edge(_) => String::new(),
        Kind::Subgraph(set) => {
            let names: Vec<String> = set.iter().map(ToString::to_string).collect();
            format!("{part} replaces {}", names.join(", "))
        }
    });
    Stage { title, edges }
}
