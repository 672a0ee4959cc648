//! Requested pairs of a source and a sink that each line serves, if not all pairs are requested.
//!
//! For a line, `requested` are the sinks requested with any source before it, and `reached` the sinks behind it. Line j
//! usefully follows i if a sink is in i's `requested` and in j's `reached`: then a requested pair has a path through
//! both.
//!
//! Invariant: both sets only shrink, and contain the result of a walk over the line graph.

use super::line_graph::LineId;
use crate::LinearGraph;
use chainrule_base::Id;
use fixedbitset::FixedBitSet;

/// Sets of sinks of each line. See the module.
#[derive(Clone, Debug)]
pub(super) struct Requested {
    requested: Vec<FixedBitSet>,
    reached: Vec<FixedBitSet>,
}

impl Requested {
    /// Returns the sets of lines, one for each pair of vertices with an edge, in the order of the first such edge;
    /// `None` if all pairs are requested.
    pub fn new(linear: &LinearGraph) -> Option<Self> {
        let wanted = linear.wanted().sinks_by_source(linear.sources().len())?;
        let n_sinks = linear.sinks().len();
        let first_sink = linear.n_vertices() - n_sinks;
        let mut requested = vec![FixedBitSet::with_capacity(n_sinks); linear.n_vertices()];
        let mut reached = requested.clone();
        for (source, sinks) in linear.sources().zip(&wanted) {
            requested[source.index()].extend(sinks.iter().map(|sink| sink.index() - first_sink));
        }
        for sink in linear.sinks() {
            reached[sink.index()].insert(sink.index() - first_sink);
        }
        for (_, edge) in linear.edges() {
            let (low, high) = requested.split_at_mut(edge.target.index());
            high[0].union_with(&low[edge.source.index()]);
        }
        for (_, edge) in linear.edges().rev() {
            let (low, high) = reached.split_at_mut(edge.target.index());
            low[edge.source.index()].union_with(&high[0]);
        }
        let mut lines = Self { requested: Vec::new(), reached: Vec::new() };
        let mut seen = rustc_hash::FxHashSet::default();
        for (_, edge) in linear.edges() {
            if seen.insert((edge.source, edge.target)) {
                lines.requested.push(requested[edge.source.index()].clone());
                lines.reached.push(reached[edge.target.index()].clone());
            }
        }
        Some(lines)
    }

    /// Returns whether a requested pair has a path through both lines.
    pub fn follows(&self, i: LineId, j: LineId) -> bool {
        !self.requested[i.index()].is_disjoint(&self.reached[j.index()])
    }

    /// Adds a new line, with the predecessors of i and the successors of j.
    pub fn add(&mut self, i: LineId, j: LineId) {
        self.requested.push(self.requested[i.index()].clone());
        self.reached.push(self.reached[j.index()].clone());
    }

    /// Shrinks a line's sets by those of the lines before and behind it, if it has such lines (`inner`). Returns
    /// whether anything changed.
    pub fn narrow(&mut self, line: LineId, before: &[LineId], behind: &[LineId], inner: (bool, bool)) -> bool {
        let mut changed = false;
        if inner.0 {
            let requested = union(&self.requested, before, self.requested[line.index()].len());
            changed |= requested != self.requested[line.index()];
            self.requested[line.index()] = requested;
        }
        if inner.1 {
            let reached = union(&self.reached, behind, self.reached[line.index()].len());
            changed |= reached != self.reached[line.index()];
            self.reached[line.index()] = reached;
        }
        changed
    }
}

fn union(sets: &[FixedBitSet], lines: &[LineId], n: usize) -> FixedBitSet {
    let mut all = FixedBitSet::with_capacity(n);
    for line in lines {
        all.union_with(&sets[line.index()]);
    }
    all
}
