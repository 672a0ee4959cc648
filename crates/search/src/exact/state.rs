//! The graph during elimination as bit rows: small, quick to copy, without labels of a program.

use chainrule_accumulate::is_unit;
use chainrule_accumulate::{Counting, Label, LinearGraph};
use chainrule_base::Id;
use fixedbitset::FixedBitSet;

/// The neighbours of a vertex on one side.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) all: FixedBitSet,
    /// Neighbours by free labels 1 or -1; none if every product counts.
    pub(super) unit: FixedBitSet,
}

/// The graph with some intermediates eliminated; it only depends on their set, not on their order.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) n_sources: usize,
    pub(super) first_sink: usize,
    pub(super) before: Vec<Side>,
    pub(super) behind: Vec<Side>,
}

impl State {
    pub(super) fn new(linear: &LinearGraph, counting: Counting) -> Self {
        let n = linear.n_vertices();
        let side = Side { all: FixedBitSet::with_capacity(n), unit: FixedBitSet::with_capacity(n) };
        let mut state = Self {
            n_sources: linear.sources().len(),
            first_sink: n - linear.sinks().len(),
            before: vec![side.clone(); n],
            behind: vec![side; n],
        };
        let free = |label: Label| counting != Counting::Plain && is_unit(label);
        for (_, edge) in linear.edges() {
            state.join(edge.source.index(), edge.target.index(), free(edge.label));
        }
        state
    }

    /// Adds an edge; a sum with an existing edge is no unit.
    fn join(&mut self, i: usize, k: usize, unit: bool) {
        let unit = unit && !self.behind[i].all.contains(k);
        for (side, other) in [(&mut self.behind[i], k), (&mut self.before[k], i)] {
            side.all.insert(other);
            side.unit.set(other, unit);
        }
    }

    pub(super) fn n_vertices(&self) -> usize {
        self.before.len()
    }

    pub(super) fn is_intermediate(&self, v: usize) -> bool {
        v >= self.n_sources && v < self.first_sink
    }

    /// Returns the number of multiplications for the elimination of `v` now.
    pub(super) fn cost(&self, v: usize) -> u64 {
        let paid = |side: &Side| (side.all.count_ones(..) - side.unit.count_ones(..)) as u64;
        paid(&self.before[v]) * paid(&self.behind[v])
    }

    /// Returns whether each edge that the elimination of `v` makes already exists with a paid label.
    pub(super) fn fills_nothing(&self, v: usize) -> bool {
        let behind = &self.behind[v].all;
        self.before[v]
            .all
            .ones()
            .all(|i| behind.is_subset(&self.behind[i].all) && behind.is_disjoint(&self.behind[i].unit))
    }

    pub(super) fn eliminate(&mut self, v: usize) {
        let n = self.n_vertices();
        let nothing = Side { all: FixedBitSet::with_capacity(n), unit: FixedBitSet::with_capacity(n) };
        let before = std::mem::replace(&mut self.before[v], nothing.clone());
        let behind = std::mem::replace(&mut self.behind[v], nothing);
        for i in before.all.ones() {
            absorb(&mut self.behind[i], v, &behind, before.unit.contains(i));
        }
        for k in behind.all.ones() {
            absorb(&mut self.before[k], v, &before, behind.unit.contains(k));
        }
    }
}

/// Replaces `v` in `side` by the neighbours beyond it; existing neighbours among them are no units any more.
fn absorb(side: &mut Side, v: usize, beyond: &Side, by_unit: bool) {
    let mut absorbed = beyond.all.clone();
    absorbed.intersect_with(&side.all);
    side.unit.difference_with(&absorbed);
    if by_unit {
        let mut new = beyond.unit.clone();
        new.difference_with(&absorbed);
        side.unit.union_with(&new);
    }
    side.all.union_with(&beyond.all);
    side.all.remove(v);
    side.unit.remove(v);
}
