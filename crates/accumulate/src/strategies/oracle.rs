//! The oracle: each derivative is the sum over all paths of the products of the labels on them.
//!
//! This is the chain rule itself (D*, section 3), which all other strategies factor. It is exponential, so the paths
//! are counted before they are walked.
//!
//! In: a linearised graph. Out: a program with one step for each pair, or the reason for its absence.

use crate::{Budget, Builder, EdgeId, LabelId, LinearGraph, Outcome, StopReason, VertexId};
use chainrule_base::Id;

/// Returns the program of the sum over all paths. Linear in the total length of the paths.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    let (n_paths, length) = paths(linear);
    if n_paths > budget.paths {
        return Outcome::stopped(StopReason::PathBudget);
    }
    if length > budget.products {
        return Outcome::stopped(StopReason::ProductBudget);
    }
    let wanted = linear.wanted();
    let mut builder = Builder::new(linear);
    let mut ends = Vec::new();
    for sink in linear.sinks() {
        let sources = wanted.sources(sink);
        let mut paths_from: Vec<Vec<Vec<EdgeId>>> = vec![Vec::new(); linear.sources().len()];
        walk(linear, sink, |source, path| {
            if sources.as_ref().is_none_or(|s| s.contains(&source)) {
                paths_from[source.index()].push(path.to_vec());
            }
        });
        for (source, paths) in linear.sources().zip(&paths_from) {
            if paths.is_empty() {
                continue;
            }
            for path in paths {
                let factors: Vec<LabelId> = path.iter().map(|e| builder.edge(*e)).collect();
                builder.add(&factors);
            }
            ends.push((sink, source, builder.close()));
        }
    }
    Outcome::done(builder.finish(linear, &ends))
}

/// Returns the number of paths from sources to sinks and their total length; both saturate.
#[must_use]
pub fn paths(linear: &LinearGraph) -> (u64, u64) {
    let mut count = vec![0u64; linear.n_vertices()];
    let mut length = vec![0u64; linear.n_vertices()];
    for source in linear.sources() {
        count[source.index()] = 1;
    }
    for (_, edge) in linear.edges() {
        let (s, t) = (edge.source.index(), edge.target.index());
        count[t] = count[t].saturating_add(count[s]);
        length[t] = length[t].saturating_add(length[s]).saturating_add(count[s]);
    }
    linear.sinks().fold((0, 0), |(n, l), v| (n.saturating_add(count[v.index()]), l.saturating_add(length[v.index()])))
}

/// Calls `found` with the source and the edges, from source to sink, of every path to `sink`.
fn walk(linear: &LinearGraph, sink: VertexId, mut found: impl FnMut(VertexId, &[EdgeId])) {
    // Edges of the current path from the sink down, and the remaining in-edges of each of its vertices.
    let mut path: Vec<EdgeId> = Vec::new();
    let mut open: Vec<Vec<EdgeId>> = vec![linear.in_edges(sink).rev().collect()];
    while let Some(edges) = open.last_mut() {
        let Some(e) = edges.pop() else {
            open.pop();
            path.pop();
            continue;
        };
        let source = linear.edge(e).source;
        path.push(e);
        if linear.is_source(source) {
            let upwards: Vec<EdgeId> = path.iter().rev().copied().collect();
            found(source, &upwards);
            path.pop();
        } else {
            open.push(linear.in_edges(source).rev().collect());
        }
    }
}
