//! Separating the linearised graph into the derivative graphs of the pairs asked for.
//!
//! D*, section 4.1: "the derivative of f is just the derivative of each of its nm constituent functions".
//!
//! In: a linearised graph. Out: a derivative graph for each pair of a root and a variable that are
//! connected and asked for, all made of the same parts.

use super::derivative_graph::DerivativeGraph;
use super::parts::Parts;
use crate::{EdgeId, LinearGraph, VertexId};
use chainrule_base::Id;

/// The derivative graphs.
#[derive(Clone, Debug)]
pub(super) struct Separated {
    /// The parts; those of edges come first and have their ids.
    pub(super) parts: Parts,
    pub(super) graphs: Vec<DerivativeGraph>,
    /// Root and variable of each.
    pub(super) pairs: Vec<(VertexId, VertexId)>,
    /// How many edges they have together, at first.
    pub(super) n_memberships: u64,
}

/// Separates, unless there would be more than `memberships` edges together. For each root linear in
/// what it depends on, and in the edges made.
pub(super) fn separate(linear: &LinearGraph, memberships: u64) -> Option<Separated> {
    let wanted = linear.wanted();
    let mut parts = Parts::default();
    for (e, edge) in linear.edges() {
        parts.edge(e, edge.target, edge.source);
    }
    let mut separated = Separated { parts, graphs: Vec::new(), pairs: Vec::new(), n_memberships: 0 };
    let n = linear.n_vertices();
    let (mut below, mut above) = (vec![0_usize; n], vec![0_usize; n]);
    let mut place = vec![0_u32; n];
    let mut visits = 0_u64;
    let mut edges: Vec<EdgeId> = Vec::new();
    for (mark, root) in (1..).zip(linear.sinks()) {
        let allowed = wanted.sources(root);
        if allowed.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let mut reached = vec![root];
        below[root.index()] = mark;
        let mut next = 0;
        while let Some(&v) = reached.get(next) {
            next += 1;
            for e in linear.in_edges(v) {
                visits += 1;
                let u = linear.edge(e).source;
                if std::mem::replace(&mut below[u.index()], mark) != mark {
                    reached.push(u);
                }
            }
        }
        if visits > 20 * memberships {
            return None;
        }
        let mut variables: Vec<VertexId> = reached.into_iter().filter(|v| linear.is_source(*v)).collect();
        variables.sort_unstable();
        variables.retain(|v| allowed.as_ref().is_none_or(|a| a.binary_search(v).is_ok()));
        for variable in variables {
            let stamp = separated.pairs.len() + 1;
            edges.clear();
            let mut vertices = vec![variable];
            above[variable.index()] = stamp;
            let mut next = 0;
            while let Some(&u) = vertices.get(next) {
                next += 1;
                for &e in linear.out_edges(u) {
                    let v = linear.edge(e).target;
                    if below[v.index()] == mark {
                        edges.push(e);
                        if std::mem::replace(&mut above[v.index()], stamp) != stamp {
                            vertices.push(v);
                        }
                    }
                }
            }
            separated.n_memberships += edges.len() as u64;
            if separated.n_memberships > memberships {
                return None;
            }
            vertices.sort_unstable();
            edges.sort_unstable();
            for (idx, v) in vertices.iter().enumerate() {
                place[v.index()] = idx as u32;
            }
            let ends = edges.iter().map(|e| {
                let edge = linear.edge(*e);
                (Parts::id(e.index()), place[edge.target.index()], place[edge.source.index()])
            });
            separated.graphs.push(DerivativeGraph::new(vertices, ends));
            separated.pairs.push((root, variable));
        }
    }
    Some(separated)
}
