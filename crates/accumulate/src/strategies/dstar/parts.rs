//! Parts: the edges of derivative graphs, called d0, d1, ... in D*.
//!
//! A part is an edge of the linearised graph, or a factored subgraph: the set of parts on the paths between two
//! vertices. Its value is the sum over these paths.
//!
//! Invariants: a part replaces parts with smaller ids; two subgraphs between the same vertices never replace the same
//! set, and never have the same value.

use super::value::Value;
use crate::{EdgeId, VertexId};
use chainrule_base::{Arena, Id, define_id};
use rustc_hash::FxHashMap;
use std::rc::Rc;

define_id! {
    /// A part.
    pub(super) struct PartId = "d";
}

/// Ends, value and definition of a part.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) upper: VertexId,
    pub(super) lower: VertexId,
    pub(super) kind: Kind,
    pub(super) value: Value,
}

/// Definition of a part.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// The label of this edge.
    Edge(EdgeId),
    /// The sum over all paths through these parts, ascending.
    Subgraph(Rc<[PartId]>),
}

/// All parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    parts: Arena<PartId, Part>,
    /// Part of each set. Only looked up.
    by_set: FxHashMap<Rc<[PartId]>, PartId>,
    /// First subgraph of each value between two vertices. Only looked up.
    by_value: FxHashMap<(VertexId, VertexId, Value), PartId>,
    /// Parts by their upper ends, with partial sums: scratch memory of [`Self::sum`].
    ascending: Vec<(VertexId, PartId)>,
    sums: Vec<(VertexId, Value)>,
}

impl Parts {
    /// Adds the part of an edge.
    pub(super) fn edge(&mut self, edge: EdgeId, upper: VertexId, lower: VertexId, value: Value) -> PartId {
        self.parts.push(Part { upper, lower, kind: Kind::Edge(edge), value })
    }

    /// Returns the part that replaces these parts, ascending: one of the same value, or a new one. O(n log n).
    pub(super) fn subgraph(&mut self, set: &[PartId], upper: VertexId, lower: VertexId) -> PartId {
        if let Some(part) = self.by_set.get(set) {
            return *part;
        }
        let value = self.sum(set, upper, lower);
        let next = self.parts.next_id();
        let part = *self.by_value.entry((upper, lower, value)).or_insert(next);
        let set: Rc<[PartId]> = set.into();
        if part == next {
            self.parts.push(Part { upper, lower, kind: Kind::Subgraph(Rc::clone(&set)), value });
        }
        self.by_set.insert(set, part);
        part
    }

    /// Returns the sum over all paths, by a sweep from the lower vertex up.
    fn sum(&mut self, set: &[PartId], upper: VertexId, lower: VertexId) -> Value {
        self.ascending.clear();
        self.ascending.extend(set.iter().map(|p| (self.parts[*p].upper, *p)));
        self.ascending.sort_unstable();
        self.sums.clear();
        self.sums.push((lower, Value::ONE));
        for &(vertex, part) in &self.ascending {
            let part = &self.parts[part];
            let found = self.sums.binary_search_by_key(&part.lower, |s| s.0);
            let below = found.map_or(Value::ZERO, |idx| self.sums[idx].1);
            match self.sums.last_mut() {
                Some(last) if last.0 == vertex => last.1 = last.1.plus_product(part.value, below),
                _ => self.sums.push((vertex, Value::ZERO.plus_product(part.value, below))),
            }
        }
        self.sums.last().filter(|last| last.0 == upper).map_or(Value::ZERO, |last| last.1)
    }

    pub(super) fn get(&self, part: PartId) -> &Part {
        &self.parts[part]
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns the part of an edge: ids are assigned in order.
    pub(super) fn of_edge(edge: EdgeId) -> PartId {
        PartId::new(edge.index())
    }
}
