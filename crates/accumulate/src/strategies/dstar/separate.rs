//! Separation of the linearised graph into the derivative graphs of the requested pairs.
//!
//! D*, section 4.1: "the derivative of f is just the derivative of each of its nm constituent functions".
//!
//! In: a linearised graph. Out: a derivative graph for each requested and connected pair of a root and a variable, all
//! made of the same parts.

use super::derivative_graph::DerivativeGraph;
use super::parts::Parts;
use super::value::Value;
use crate::{EdgeId, LinearGraph, VertexId};
use chainrule_base::Id;

/// The derivative graphs.
#[derive(Clone, Debug)]
pub(super) struct Separated {
    /// Parts; those of edges come first and have the ids of the edges.
    pub(super) parts: Parts,
    pub(super) graphs: Vec<DerivativeGraph>,
    /// Root and variable of each graph.
    pub(super) pairs: Vec<(VertexId, VertexId)>,
}

/// Returns the total number of edges of the derivative graphs; `None` if it exceeds `most`. Linear in the total, and
/// for each root in the vertices that it depends on.
pub(super) fn memberships(linear: &LinearGraph, most: u64) -> Option<u64> {
    let mut n = 0_u64;
    each_pair(linear, most, |pair| {
        n += pair.edges.len() as u64;
        n <= most
    })
    .then_some(n)
}

/// Returns the derivative graphs; `None` if a walk is abandoned, as in [`memberships`].
pub(super) fn separate(linear: &LinearGraph, most: u64) -> Option<Separated> {
    let mut parts = Parts::default();
    for (e, edge) in linear.edges() {
        parts.edge(e, edge.target, edge.source, Value::label(e, edge));
    }
    let mut separated = Separated { parts, graphs: Vec::new(), pairs: Vec::new() };
    let mut place = vec![0_u32; linear.n_vertices()];
    let done = each_pair(linear, most, |pair| {
        pair.vertices.sort_unstable();
        pair.edges.sort_unstable();
        for (idx, v) in pair.vertices.iter().enumerate() {
            place[v.index()] = idx as u32;
        }
        let edges = pair.edges.iter().map(|e| {
            let edge = linear.edge(*e);
            (Parts::of_edge(*e), place[edge.target.index()], place[edge.source.index()])
        });
        separated.graphs.push(DerivativeGraph::new(pair.vertices.clone(), edges));
        separated.pairs.push((pair.root, pair.variable));
        true
    });
    done.then_some(separated)
}

/// The subgraph of all paths between a root and a variable.
struct Pair {
    root: VertexId,
    variable: VertexId,
    /// In unspecified order.
    vertices: Vec<VertexId>,
    /// In unspecified order.
    edges: Vec<EdgeId>,
}

/// Walks from each root down, and from each variable below it up again. Stops and returns false if `found` does, or if
/// the downward walks visited many times more than `most` edges.
fn each_pair(linear: &LinearGraph, most: u64, mut found: impl FnMut(&mut Pair) -> bool) -> bool {
    let wanted = linear.wanted();
    let n = linear.n_vertices();
    // Last root, and last pair, that visited each vertex.
    let (mut below, mut between) = (vec![0_usize; n], vec![0_usize; n]);
    let (mut n_met, mut n_pairs) = (0_u64, 0);
    let mut variables: Vec<VertexId> = Vec::new();
    let mut open: Vec<VertexId> = Vec::new();
    let mut pair: Option<Pair> = None;
    for (mark, root) in (1..).zip(linear.sinks()) {
        let allowed = wanted.sources(root);
        if allowed.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        variables.clear();
        below[root.index()] = mark;
        open.push(root);
        while let Some(v) = open.pop() {
            for e in linear.in_edges(v) {
                n_met += 1;
                let u = linear.edge(e).source;
                if std::mem::replace(&mut below[u.index()], mark) != mark {
                    if linear.is_source(u) { variables.push(u) } else { open.push(u) }
                }
            }
        }
        if n_met > 20 * most.max(1000) {
            return false;
        }
        variables.sort_unstable();
        variables.retain(|v| allowed.as_ref().is_none_or(|a| a.binary_search(v).is_ok()));
        for &variable in &variables {
            n_pairs += 1;
            let pair = pair.get_or_insert_with(|| Pair { root, variable, vertices: Vec::new(), edges: Vec::new() });
            (pair.root, pair.variable) = (root, variable);
            pair.vertices.clear();
            pair.vertices.push(variable);
            pair.edges.clear();
            between[variable.index()] = n_pairs;
            let mut next = 0;
            while let Some(&u) = pair.vertices.get(next) {
                next += 1;
                for &e in linear.out_edges(u) {
                    let v = linear.edge(e).target;
                    if below[v.index()] != mark {
                        continue;
                    }
                    pair.edges.push(e);
                    if std::mem::replace(&mut between[v.index()], n_pairs) != n_pairs {
                        pair.vertices.push(v);
                    }
                }
            }
            if !found(pair) {
                return false;
            }
        }
    }
    true
}
