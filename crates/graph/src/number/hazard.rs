//! Hazards: the conditions under which a node is undefined.
//!
//! In: a graph and the values of its nodes. Out: for each node the set of hazards below it. A node may replace another
//! one only if its hazards are a subset of the other's: then it is defined wherever the other is.
//!
//! | node | hazard |
//! | --- | --- |
//! | `a / b` | b is 0, keyed by b up to a factor |
//! | `x ** n` for a negative integer n | x is 0, likewise |
//! | `tan x` | `cos x` is 0 |
//! | an operator that is not defined everywhere, by its row's domain | keyed by operator and arguments |
//! | a choice, an extremum, a comparison, a connective | *its own value is undefined*, if an argument may be |
//! | a sign, a user's function | the same |
//!
//! The hazards of the last two rows are keyed by operator and arguments. They make a choice that guards a hazard a
//! separate value: nodes computed from it are undefined only if it is, and hazards in a branch that is not taken have
//! no effect. Values are never moved out of a branch: nodes with the branch's hazards do not replace nodes without.
//!
//! Sets are words of 128 bits. A node with a hazard beyond the 128th is never merged.

use super::field::Fp;
use super::model::{FIELD_DRAWS, Value, Values};
use crate::graph::{Graph, Node, NodeId};
use crate::traverse::NodeSet;
use chainrule_base::Id;
use chainrule_ops::{CostClass, Op};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Set of hazards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hazards {
    /// Known hazards, one per bit.
    Known(u128),
    /// More than the set can hold.
    Many,
}

impl Hazards {
    pub(super) const NONE: Self = Self::Known(0);

    fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(a | b),
            _ => Self::Many,
        }
    }

    /// Returns whether a node with these hazards is defined wherever one with `other` is.
    pub(super) fn are_among(self, other: Self) -> bool {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => a & !b == 0,
            (Self::Known(a), Self::Many) => a == 0,
            (Self::Many, _) => false,
        }
    }
}

/// Identity of a hazard.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    /// A value is 0: the ratios of its draws.
    Zero([Fp; FIELD_DRAWS - 1]),
    /// Operator, or a user's function, and its arguments.
    Call(u64, SmallVec<[Fp; 9]>),
}

#[derive(Default)]
struct Table {
    known: FxHashMap<Key, u32>,
}

impl Table {
    fn hazard(&mut self, key: Key) -> Hazards {
        let n = self.known.len() as u32;
        if n >= 128 && !self.known.contains_key(&key) {
            return Hazards::Many;
        }
        Hazards::Known(1 << *self.known.entry(key).or_insert(n))
    }

    fn zero_of(&mut self, value: &Value) -> Hazards {
        match super::class::ratios(value) {
            Some(ratios) if value.is_known() => self.hazard(Key::Zero(ratios)),
            _ => Hazards::Many,
        }
    }

    fn call(&mut self, kind: u64, args: impl Iterator<Item = Value>) -> Hazards {
        let mut fields = SmallVec::new();
        for value in args {
            if !value.is_known() {
                return Hazards::Many;
            }
            fields.extend(value.field);
        }
        self.hazard(Key::Call(kind, fields))
    }
}

/// Computes the hazards of all nodes of `reachable`, by id. O(1) per node.
pub(super) fn hazards(graph: &Graph, reachable: &NodeSet, values: &Values) -> Vec<Hazards> {
    let mut table = Table::default();
    let mut all = vec![Hazards::NONE; graph.len()];
    for id in reachable.iter() {
        let below = graph.args(id).iter().fold(Hazards::NONE, |set, a| set.union(all[a.index()]));
        all[id.index()] = match graph.node(id) {
            Node::Input(_) => Hazards::NONE,
            Node::Const(c) if c.is_finite() => Hazards::NONE,
            Node::Const(_) | Node::Derivative(_) => Hazards::Many,
            Node::Apply(op, _) => own(&mut table, graph, id, op, below, values),
            // Its domain is unknown, so it always is a hazard.
            Node::External(function, _) => table.call(1 << 32 | function.index() as u64, values_of(graph, id, values)),
        };
    }
    all
}

fn values_of<'a>(graph: &'a Graph, id: NodeId, values: &'a Values) -> impl Iterator<Item = Value> + 'a {
    graph.args(id).iter().map(|a| values[a.index()])
}

fn own(table: &mut Table, graph: &Graph, id: NodeId, op: Op, below: Hazards, values: &Values) -> Hazards {
    let args = graph.args(id);
    match op {
        Op::Div => below.union(table.zero_of(&values[args[1].index()])),
        Op::Tan => below.union(table.call(op as u64, values_of(graph, id, values))),
        Op::Pow => match graph.as_const(args[1]) {
            Some(n) if n.fract() == 0.0 && n >= 0.0 => below,
            Some(n) if n.fract() == 0.0 => below.union(table.zero_of(&values[args[0].index()])),
            _ => below.union(table.call(op as u64, values_of(graph, id, values))),
        },
        _ if op.row().cost == CostClass::Logic => match below {
            Hazards::NONE => Hazards::NONE,
            _ => table.call(op as u64, values_of(graph, id, values)),
        },
        // Only the text of a domain shows that it is unrestricted.
        _ if op.row().domain.text == Op::Add.row().domain.text => below,
        _ => below.union(table.call(op as u64, values_of(graph, id, values))),
    }
}
