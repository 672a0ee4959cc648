//! Reverse mode: for each row a cotangent (adjoint) at every vertex that the row depends on,
//! `v_adj = sum over edges v -> w of w_adj * label`.
//!
//! Vector mode with sparsity: only connected pairs are computed. The cotangent of a sink with respect to itself is 1
//! and never multiplied. Rows are independent steps; [`crate::Program::tidied`] shares equal steps between them.
//! Counted with [`crate::Counting::Plain`], it takes as many operations as backward vertex elimination.
//!
//! In: a linearised graph. Out: a program.

use crate::{Budget, Builder, LabelId, LinearGraph, Outcome, StopReason, VertexId};
use chainrule_base::Id;

/// Reverse accumulation. Takes O(n log n + e) for each row, where n and e count the vertices and edges that the row
/// depends on.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    let wanted = linear.wanted();
    let mut builder = Builder::new(linear);
    let mut ends = Vec::new();
    let mut adjoint: Vec<LabelId> = vec![LabelId::new(0); linear.n_vertices()];
    let mut reached_by: Vec<Option<VertexId>> = vec![None; linear.n_vertices()];
    for sink in linear.sinks() {
        let allowed = match wanted.sources(sink) {
            Some(sources) if sources.is_empty() => continue,
            Some(sources) => Some(above(linear, &sources)),
            None => None,
        };
        for v in below(linear, sink, allowed.as_deref(), &mut reached_by) {
            for &e in linear.out_edges(v) {
                let w = linear.edge(e).target;
                if w == sink {
                    builder.add(&[builder.edge(e)]);
                } else if reached_by[w.index()] == Some(sink) {
                    builder.add(&[adjoint[w.index()], builder.edge(e)]);
                }
            }
            adjoint[v.index()] = builder.close();
            if linear.is_source(v) {
                ends.push((sink, v, adjoint[v.index()]));
            }
            if builder.n_products() > budget.products {
                return Outcome::stopped(StopReason::ProductBudget);
            }
        }
    }
    Outcome::done(builder.finish(linear, &ends))
}

/// Returns the `allowed` vertices that `sink` depends on, without itself, descending; marks them in `reached_by`.
fn below(
    linear: &LinearGraph,
    sink: VertexId,
    allowed: Option<&[bool]>,
    reached_by: &mut [Option<VertexId>],
) -> Vec<VertexId> {
    let mut reached = Vec::new();
    let mut stack = vec![sink];
    while let Some(w) = stack.pop() {
        for e in linear.in_edges(w) {
            let v = linear.edge(e).source;
            if reached_by[v.index()] != Some(sink) && allowed.is_none_or(|a| a[v.index()]) {
                reached_by[v.index()] = Some(sink);
                reached.push(v);
                stack.push(v);
            }
        }
    }
    reached.sort_unstable_by(|a, b| b.cmp(a));
    reached
}

/// Returns, for each vertex, whether it is one of `sources` or depends on one of them.
fn above(linear: &LinearGraph, sources: &[VertexId]) -> Vec<bool> {
    let mut marks = vec![false; linear.n_vertices()];
    for source in sources {
        marks[source.index()] = true;
    }
    for (_, edge) in linear.edges() {
        marks[edge.target.index()] |= marks[edge.source.index()];
    }
    marks
}
