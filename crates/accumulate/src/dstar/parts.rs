//! Parts: the edges of derivative graphs, which D* calls d0, d1, ...
//!
//! A part is an edge of the linearised graph, or stands for a factored subgraph: for the set of parts
//! on the paths between two vertices. Its value is the sum over these paths.
//!
//! Invariants: a part replaces parts with smaller ids; two parts never replace the same set.

use crate::{EdgeId, VertexId};
use chainrule_base::{Arena, Id, define_id};
use rustc_hash::FxHashMap;
use std::rc::Rc;

define_id! {
    /// A part.
    pub(super) struct PartId = "d";
}

/// One part.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) upper: VertexId,
    pub(super) lower: VertexId,
    pub(super) value: Value,
}

/// What a part is worth.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// The label of this edge.
    Edge(EdgeId),
    /// The sum over all paths through these parts, ascending.
    Subgraph(Rc<[PartId]>),
}

/// All parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    parts: Arena<PartId, Part>,
    /// The part for each set. Looked up only.
    made: FxHashMap<Rc<[PartId]>, PartId>,
}

impl Parts {
    /// A part for an edge.
    pub(super) fn edge(&mut self, edge: EdgeId, upper: VertexId, lower: VertexId) -> PartId {
        self.parts.push(Part { upper, lower, value: Value::Edge(edge) })
    }

    /// The part that replaces these, ascending: the one there is, or a new one.
    pub(super) fn subgraph(&mut self, set: &[PartId], upper: VertexId, lower: VertexId) -> PartId {
        if let Some(part) = self.made.get(set) {
            return *part;
        }
        let set: Rc<[PartId]> = set.into();
        let part = self.parts.push(Part { upper, lower, value: Value::Subgraph(Rc::clone(&set)) });
        self.made.insert(set, part);
        part
    }

    pub(super) fn get(&self, part: PartId) -> &Part {
        &self.parts[part]
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The part of this index; ids are given in order.
    pub(super) fn id(idx: usize) -> PartId {
        PartId::new(idx)
    }
}
