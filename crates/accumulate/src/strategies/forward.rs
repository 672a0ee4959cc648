//! Forward mode: for each column a tangent at every vertex that depends on the column,
//! `v_tan = sum over edges u -> v of label * u_tan`.
//!
//! Vector mode with sparsity: only connected pairs are computed. The tangent of a source with respect to itself is 1
//! and never multiplied. Columns are independent steps; [`crate::Program::tidied`] shares equal steps between them.
//! Counted with [`crate::Counting::Plain`], it takes as many operations as forward vertex elimination.
//!
//! In: a linearised graph. Out: a program.

use crate::{Budget, Builder, LabelId, LinearGraph, Outcome, StopReason, VertexId};
use chainrule_base::Id;

/// Forward accumulation. Takes O(n log n + e) for each column, where n and e count the vertices and edges that depend
/// on it.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget) -> Outcome {
    let wanted = linear.wanted().sinks_by_source(linear.sources().len());
    let mut builder = Builder::new(linear);
    let mut ends = Vec::new();
    let mut tangent: Vec<LabelId> = vec![LabelId::new(0); linear.n_vertices()];
    let mut reached_by: Vec<Option<VertexId>> = vec![None; linear.n_vertices()];
    for source in linear.sources() {
        let allowed = match wanted.as_ref().map(|w| &w[source.index()]) {
            Some(sinks) if sinks.is_empty() => continue,
            Some(sinks) => Some(below(linear, sinks)),
            None => None,
        };
        for v in above(linear, source, allowed.as_deref(), &mut reached_by) {
            for e in linear.in_edges(v) {
                let u = linear.edge(e).source;
                if u == source {
                    builder.add(&[builder.edge(e)]);
                } else if reached_by[u.index()] == Some(source) {
                    builder.add(&[builder.edge(e), tangent[u.index()]]);
                }
            }
            tangent[v.index()] = builder.close();
            if linear.is_sink(v) {
                ends.push((v, source, tangent[v.index()]));
            }
            if builder.n_products() > budget.products {
                return Outcome::stopped(StopReason::ProductBudget);
            }
        }
    }
    Outcome::done(builder.finish(linear, &ends))
}

/// Returns the `allowed` vertices that depend on `source`, without itself, ascending; marks them in `reached_by`.
fn above(
    linear: &LinearGraph,
    source: VertexId,
    allowed: Option<&[bool]>,
    reached_by: &mut [Option<VertexId>],
) -> Vec<VertexId> {
    let mut reached = Vec::new();
    let mut stack = vec![source];
    while let Some(u) = stack.pop() {
        for &e in linear.out_edges(u) {
            let v = linear.edge(e).target;
            if reached_by[v.index()] != Some(source) && allowed.is_none_or(|a| a[v.index()]) {
                reached_by[v.index()] = Some(source);
                reached.push(v);
                stack.push(v);
            }
        }
    }
    reached.sort_unstable();
    reached
}

/// Returns, for each vertex, whether it is one of `sinks` or one of them depends on it.
fn below(linear: &LinearGraph, sinks: &[VertexId]) -> Vec<bool> {
    let mut marks = vec![false; linear.n_vertices()];
    for sink in sinks {
        marks[sink.index()] = true;
    }
    for (_, edge) in linear.edges().rev() {
        marks[edge.source.index()] |= marks[edge.target.index()];
    }
    marks
}
