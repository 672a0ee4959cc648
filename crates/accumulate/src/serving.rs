//! Which edges can serve a pair that is asked for: those from a vertex behind a source to a vertex
//! before a sink of one pair. Elimination makes no others, so that nothing unasked is computed.
//!
//! In: a linearised graph with pairs asked for. Out: a test for each pair of vertices.
//!
//! Dropping an edge that serves nothing changes no other: were it a part of a path of a pair asked for,
//! it would serve that pair; and every edge on a path from i to k serves what an edge i -> k serves.

use crate::{LinearGraph, VertexId};
use chainrule_base::Id;
use fixedbitset::FixedBitSet;

/// The most bits that are kept; larger graphs keep all edges, and programs are pruned in the end.
const MAX_BITS: usize = 1 << 32;

/// Bit sets over the sinks for each vertex.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    /// By vertex, the sinks asked for with a source that it depends on, or is.
    asked: Vec<FixedBitSet>,
    /// By vertex, the sinks that depend on it, or that it is.
    below: Vec<FixedBitSet>,
}

impl Serving {
    /// `None` when all pairs are asked for. O(edges times sinks / 64).
    pub(crate) fn new(linear: &LinearGraph) -> Option<Self> {
        let wanted = linear.wanted().sinks_by_source(linear.sources().len())?;
        let (n, n_sinks) = (linear.n_vertices(), linear.sinks().len());
        if n.checked_mul(2 * n_sinks).is_none_or(|bits| bits > MAX_BITS) {
            return None;
        }
        let first_sink = n - n_sinks;
        let mut asked = vec![FixedBitSet::with_capacity(n_sinks); n];
        for (source, sinks) in wanted.iter().enumerate() {
            asked[source].extend(sinks.iter().map(|sink| sink.index() - first_sink));
        }
        for (_, edge) in linear.edges() {
            let (before, behind) = asked.split_at_mut(edge.target.index());
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
        Some(Self { asked, below })
    }

    /// Whether an edge from `i` to `k` would serve a pair asked for.
    pub(crate) fn serves(&self, i: VertexId, k: VertexId) -> bool {
        !self.asked[i.index()].is_disjoint(&self.below[k.index()])
    }
}
