//! Forward and backward factorisation of a complex block (the notes, section 4): vertices on which paths overlap are
//! split from the sink upwards or from the source downwards; every simple block that appears becomes a reference edge.
//!
//! Backward, the part from a vertex to the sink is one expression, shared by all edges into the vertex (expressions 4.3
//! and 4.5). Forward, it is the part from the source to the vertex (expression 4.4). With several sources and sinks
//! each pair is a block, and blocks share common parts.
//!
//! In: a linearised graph. Out: a program with factors in the order of the paths.

use crate::{Budget, Builder, LabelId, LinearGraph, Outcome, StopReason, VertexId};
use chainrule_base::Id;

/// Direction of splitting a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the source downwards: the part before a vertex is shared.
    Forward,
    /// From the sink upwards: the part behind a vertex is shared.
    Backward,
}

/// Factorises. Linear in the edges for each source (forward) or sink (backward).
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, direction: Direction) -> Outcome {
    let mut builder = Builder::new(linear);
    let mut ends = Vec::new();
    let starts: Vec<VertexId> = match direction {
        Direction::Forward => linear.sources().collect(),
        Direction::Backward => linear.sinks().collect(),
    };
    for start in starts {
        let part = parts(linear, &mut builder, direction, start);
        if builder.n_products() > budget.products {
            return Outcome::stopped(StopReason::ProductBudget);
        }
        match direction {
            Direction::Forward => {
                ends.extend(linear.sinks().filter_map(|v| Some((v, start, part[v.index()]?))));
            }
            Direction::Backward => {
                ends.extend(linear.sources().filter_map(|v| Some((start, v, part[v.index()]?))));
            }
        }
    }
    Outcome::done(builder.finish(linear, &ends))
}

/// Returns, for each vertex, the derivative between it and `start`; `None` if there is no path.
fn parts(linear: &LinearGraph, builder: &mut Builder, direction: Direction, start: VertexId) -> Vec<Option<LabelId>> {
    let forward = direction == Direction::Forward;
    let mut part: Vec<Option<LabelId>> = vec![None; linear.n_vertices()];
    let mut vertices: Vec<VertexId> = (0..linear.n_vertices()).map(VertexId::new).collect();
    if !forward {
        vertices.reverse();
    }
    for v in vertices {
        let mut any = false;
        let edges = if forward { linear.in_edges(v).collect() } else { linear.out_edges(v).to_vec() };
        for e in edges {
            let edge = linear.edge(e);
            let other = if forward { edge.source } else { edge.target };
            let label = builder.edge(e);
            if other == start {
                builder.add(&[label]);
            } else if let Some(rest) = part[other.index()] {
                builder.add(&if forward { [rest, label] } else { [label, rest] });
            } else {
                continue;
            }
            any = true;
        }
        if any {
            part[v.index()] = Some(builder.close());
        }
    }
    part
}
