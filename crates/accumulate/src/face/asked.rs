//! Which pairs of a source and a sink each line serves, when not all pairs are asked for.
//!
//! For a line, `asked` are the sinks asked for with any source before it, and `reached` the sinks behind it.
//! Line j follows line i to some purpose exactly when a sink is in i's `asked` and in j's `reached`:
//! then a pair asked for has a path through both.
//!
//! Invariant: both sets only shrink, and contain what a walk over the line graph would find.

use super::line_graph::LineId;
use crate::LinearGraph;
use chainrule_base::Id;
use fixedbitset::FixedBitSet;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    asked: Vec<FixedBitSet>,
    reached: Vec<FixedBitSet>,
}

impl Asked {
    /// By line, one for each pair of vertices with an edge, in the order of the first of such edges;
    /// `None` when all pairs are asked for.
    pub fn new(linear: &LinearGraph) -> Option<Self> {
        let wanted = linear.wanted().sinks_by_source(linear.sources().len())?;
        let n_sinks = linear.sinks().len();
        let first_sink = linear.n_vertices() - n_sinks;
        let mut asked = vec![FixedBitSet::with_capacity(n_sinks); linear.n_vertices()];
        let mut reached = asked.clone();
        for (source, sinks) in linear.sources().zip(&wanted) {
            asked[source.index()].extend(sinks.iter().map(|sink| sink.index() - first_sink));
        }
        for sink in linear.sinks() {
            reached[sink.index()].insert(sink.index() - first_sink);
        }
        for (_, edge) in linear.edges() {
            let (low, high) = asked.split_at_mut(edge.target.index());
            high[0].union_with(&low[edge.source.index()]);
        }
        for (_, edge) in linear.edges().rev() {
            let (low, high) = reached.split_at_mut(edge.target.index());
            low[edge.source.index()].union_with(&high[0]);
        }
        let mut lines = Self { asked: Vec::new(), reached: Vec::new() };
        let mut seen = rustc_hash::FxHashSet::default();
        for (_, edge) in linear.edges() {
            if seen.insert((edge.source, edge.target)) {
                lines.asked.push(asked[edge.source.index()].clone());
                lines.reached.push(reached[edge.target.index()].clone());
            }
        }
        Some(lines)
    }

    /// Whether a pair asked for has a path through both lines.
    pub fn follows(&self, i: LineId, j: LineId) -> bool {
        !self.asked[i.index()].is_disjoint(&self.reached[j.index()])
    }

    /// A new line, with what is before i and what is behind j.
    pub fn add(&mut self, i: LineId, j: LineId) {
        self.asked.push(self.asked[i.index()].clone());
        self.reached.push(self.reached[j.index()].clone());
    }

    /// Shrinks a line's sets to what the lines before and behind it say, where it has such (`inner`).
    /// Whether anything changed.
    pub fn narrow(&mut self, line: LineId, before: &[LineId], behind: &[LineId], inner: (bool, bool)) -> bool {
        let mut changed = false;
        if inner.0 {
            let asked = union(&self.asked, before, self.asked[line.index()].len());
            changed |= asked != self.asked[line.index()];
            self.asked[line.index()] = asked;
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
