//! Reachability of requested pairs: an edge can serve a pair if its source is reachable from the pair's source, and the
//! pair's sink from its target. Elimination makes no other edges.
//!
//! In: a linearised graph with requested pairs. Out: a test for pairs of vertices.
//!
//! A dropped edge serves no pair and changes no other edge: an edge on a path of a requested pair serves that pair, and
//! every edge on a path from i to k serves all pairs that an edge i -> k serves.

use crate::{LinearGraph, VertexId};
use chainrule_base::Id;
use fixedbitset::FixedBitSet;

/// Maximum number of bits stored; larger graphs keep all edges, and programs are pruned in the end.
const MAX_BITS: usize = 1 << 32;

/// Bit sets of sinks for each vertex.
#[derive(Clone, Debug)]
pub struct Reachability {
    /// For each vertex, the sinks requested with a source that it depends on or is.
    requested: Vec<FixedBitSet>,
    /// For each vertex, the sinks that depend on it or that it is.
    below: Vec<FixedBitSet>,
}

impl Reachability {
    /// Returns the bit sets; `None` if all pairs are requested. O(edges times sinks / 64).
    pub fn new(linear: &LinearGraph) -> Option<Self> {
        let wanted = linear.wanted().sinks_by_source(linear.sources().len())?;
        let (n, n_sinks) = (linear.n_vertices(), linear.sinks().len());
        if n.checked_mul(2 * n_sinks).is_none_or(|bits| bits > MAX_BITS) {
            return None;
        }
        let first_sink = n - n_sinks;
        let mut requested = vec![FixedBitSet::with_capacity(n_sinks); n];
        for (source, sinks) in wanted.iter().enumerate() {
            requested[source].extend(sinks.iter().map(|sink| sink.index() - first_sink));
        }
        for (_, edge) in linear.edges() {
            let (before, behind) = requested.split_at_mut(edge.target.index());
            behind[0].union_with(&before[edge.source.index()]);
        }
        let mut below = vec![FixedBitSet::with_capacity(n_sinks); n];
        for sink in linear.sinks() {
            below[sink.index()].insert(sink.index() - first_sink);
        }
        for (_, edge) in linear.edges().rev() {
            let (before, behind) = below.split_at_mut(edge.target.index());
            before[edge.source.index()].union_with(&behind[0]);
        }
        Some(Self { requested, below })
    }

    /// Returns whether an edge from `i` to `k` would serve a requested pair.
    pub fn serves(&self, i: VertexId, k: VertexId) -> bool {
        !self.requested[i.index()].is_disjoint(&self.below[k.index()])
    }
}
