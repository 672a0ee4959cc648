//! Nodes, and the hash-consing table that stores each node once.
//!
//! In: operators, numbers, inputs, calls of users' functions, specifications of derivatives. Out: ids.
//!
//! Invariants: arguments have smaller ids than the node; no two nodes are equal, with arguments of commutative
//! operators in either order (D*'s section 2.1); nodes are immutable.

use crate::external::ExternalFunction;
use crate::origin::Origins;
use chainrule_base::{Arena, Id, Name, define_id};
use chainrule_ops::{Op, Semantics};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::{BuildHasher, BuildHasherDefault};

define_id! {
    /// Node of a [`Graph`].
    pub struct NodeId = "n";
    /// Input of a [`Graph`]: an independent variable, or a parameter that is not differentiated.
    pub struct InputId = "x";
    /// A user's scalar function, which is not an operator of the table.
    pub struct ExternalId = "f";
}

/// Node. Arguments have smaller ids.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Node {
    /// Number. Compared by bits; all NaNs are equal.
    Const(f64),
    /// Input.
    Input(InputId),
    /// Operator applied to [`Op::arity`] arguments; unused places repeat the first argument.
    Apply(Op, [NodeId; 3]),
    /// Call of a user's function; [`Graph::args`] returns the arguments.
    External(ExternalId, u32),
    /// Unexpanded derivative; [`Graph::args`] returns the expression, then the variables.
    Derivative(u32),
}

type Hasher = BuildHasherDefault<rustc_hash::FxHasher>;

/// Hash-consed graph of scalar expressions.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    semantics: Semantics,
    nodes: Vec<Node>,
    table: HashTable<NodeId>,
    /// Whether a node with a composite operator exists.
    has_steps: bool,
    inputs: Vec<(Name, NodeId)>,
    /// Arguments of the nodes with an argument list.
    lists: Vec<SmallVec<[NodeId; 4]>>,
    pub(crate) externals: Arena<ExternalId, ExternalFunction>,
    /// Nodes that are 0 if all masks below them are off, but are not masks themselves (`simplify/mask.rs`).
    pub(crate) masked: FxHashSet<NodeId>,
    /// Condition under which such a node is not masked off, memoised.
    pub(crate) active: FxHashMap<NodeId, NodeId>,
    /// Origins of nodes; `None` if they are not tracked (`origin.rs`).
    pub(crate) origins: Option<Box<Origins>>,
}

impl Graph {
    /// Returns an empty graph.
    #[must_use]
    pub fn new(semantics: Semantics) -> Self {
        Self { semantics, ..Self::default() }
    }

    /// Returns whether a node with a composite operator exists ([`Op::has_steps`]).
    #[must_use]
    pub fn has_steps(&self) -> bool {
        self.has_steps
    }

    /// Returns the allowed rewrites.
    #[must_use]
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the node of `id`.
    #[must_use]
    #[inline]
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes[id.index()]
    }

    /// Returns all ids, ascending: a topological order, arguments first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }

    /// Returns the arguments of `id`.
    #[must_use]
    #[inline]
    pub fn args(&self, id: NodeId) -> &[NodeId] {
        match &self.nodes[id.index()] {
            Node::Const(_) | Node::Input(_) => &[],
            Node::Apply(op, args) => &args[..op.arity()],
            Node::External(_, idx) | Node::Derivative(idx) => &self.lists[*idx as usize],
        }
    }

    /// Returns the arguments of `id`, or `None` if its list of arguments does not exist.
    pub(crate) fn list(&self, id: NodeId) -> Option<&[NodeId]> {
        match &self.nodes[id.index()] {
            Node::External(_, idx) | Node::Derivative(idx) => Some(self.lists.get(*idx as usize)?),
            _ => Some(self.args(id)),
        }
    }

    /// Creates a new input. Inputs are never merged, not even with equal names.
    pub fn input(&mut self, name: impl Into<Name>) -> NodeId {
        let input = InputId::new(self.inputs.len());
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(Node::Input(input));
        self.inputs.push((name.into(), id));
        self.mark_new(id);
        id
    }

    /// Returns all inputs in the order of their creation: name and node.
    #[must_use]
    pub fn inputs(&self) -> &[(Name, NodeId)] {
        &self.inputs
    }

    /// Returns the number if `id` is a constant.
    #[must_use]
    pub fn as_const(&self, id: NodeId) -> Option<f64> {
        match self.nodes[id.index()] {
            Node::Const(c) => Some(c),
            _ => None,
        }
    }

    /// Returns the node of the number `c`.
    pub fn constant(&mut self, c: f64) -> NodeId {
        let c = if c.is_nan() { f64::NAN } else { c };
        self.intern(Node::Const(c))
    }

    /// Adds a call of a user's function; never simplified, merged with equal calls.
    ///
    /// # Panics
    /// Panics if the function is registered with another number of arguments.
    pub fn external(&mut self, function: ExternalId, args: &[NodeId]) -> NodeId {
        if let Some(f) = self.externals.get(function) {
            assert_eq!(args.len(), f.arity(), "{} takes {} arguments", f.name(), f.arity());
        }
        self.with_list(args, |idx| Node::External(function, idx))
    }

    /// Adds a node with an argument list; the list is kept only if the node is new.
    pub(crate) fn with_list(&mut self, list: &[NodeId], node: impl FnOnce(u32) -> Node) -> NodeId {
        let idx = u32::try_from(self.lists.len()).expect("fewer lists than ids");
        self.lists.push(list.into());
        let n_before = self.nodes.len();
        let id = self.intern(node(idx));
        if self.nodes.len() == n_before {
            self.lists.pop();
        }
        id
    }

    /// Adds the node `op(args)` unsimplified, once; arguments of commutative operators in either order.
    /// [`Graph::apply`] simplifies.
    ///
    /// # Panics
    /// Panics if the number of arguments is not the operator's arity.
    pub fn raw(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        assert_eq!(args.len(), op.arity(), "{op:?} takes {} arguments", op.arity());
        if let Some(id) = self.existing(op, args) {
            return id;
        }
        let id = self.insert(Node::Apply(op, padded(args)));
        self.has_steps |= op.has_steps();
        self.note_mask(id);
        id
    }

    /// Returns the node `op(args)` if it exists; arguments of commutative operators in either order.
    #[must_use]
    pub fn existing(&self, op: Op, args: &[NodeId]) -> Option<NodeId> {
        let found = self.find(&Node::Apply(op, padded(args)));
        if found.is_none() && op.is_commutative() && args[0] != args[1] {
            return self.find(&Node::Apply(op, [args[1], args[0], args[1]]));
        }
        found
    }

    /// Changes nodes without regard to any invariant.
    #[cfg(test)]
    pub(crate) fn with_nodes(&mut self, change: impl FnOnce(&mut Vec<Node>)) {
        change(&mut self.nodes);
    }

    /// Returns the node of the table that is equal to `node`.
    pub(crate) fn find(&self, node: &Node) -> Option<NodeId> {
        self.table.find(self.hash(node), |id| self.same(&self.nodes[id.index()], node)).copied()
    }

    fn intern(&mut self, node: Node) -> NodeId {
        self.find(&node).unwrap_or_else(|| self.insert(node))
    }

    fn insert(&mut self, node: Node) -> NodeId {
        let hash = self.hash(&node);
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(node);
        let (nodes, lists) = (&self.nodes, &self.lists);
        self.table.insert_unique(hash, id, |id| hash_node(&nodes[id.index()], lists));
        self.mark_new(id);
        id
    }

    fn hash(&self, node: &Node) -> u64 {
        hash_node(node, &self.lists)
    }

    fn same(&self, a: &Node, b: &Node) -> bool {
        match (a, b) {
            (Node::Const(x), Node::Const(y)) => x.to_bits() == y.to_bits(),
            (Node::Input(x), Node::Input(y)) => x == y,
            (Node::Apply(f, x), Node::Apply(g, y)) => f == g && x[..f.arity()] == y[..f.arity()],
            (Node::External(f, x), Node::External(g, y)) => {
                f == g && self.lists[*x as usize] == self.lists[*y as usize]
            }
            (Node::Derivative(x), Node::Derivative(y)) => self.lists[*x as usize] == self.lists[*y as usize],
            _ => false,
        }
    }
}

/// Returns arguments in the three places of a node, with the first repeated.
fn padded(args: &[NodeId]) -> [NodeId; 3] {
    let mut padded = [args[0]; 3];
    padded[..args.len()].copy_from_slice(args);
    padded
}

fn hash_node(node: &Node, lists: &[SmallVec<[NodeId; 4]>]) -> u64 {
    let hasher = Hasher::default();
    match node {
        Node::Const(c) => hasher.hash_one((0u8, c.to_bits())),
        Node::Input(x) => hasher.hash_one((1u8, x)),
        Node::Apply(op, args) => hasher.hash_one((2u8, op, &args[..op.arity()])),
        Node::External(f, idx) => hasher.hash_one((3u8, f, &lists[*idx as usize])),
        Node::Derivative(idx) => hasher.hash_one((4u8, &lists[*idx as usize])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_made_once_in_either_order() {
        let mut g = Graph::new(Semantics::Strict);
        let (a, b) = (g.input("a"), g.input("b"));
        let ab = g.raw(Op::Add, &[a, b]);
        assert_eq!(g.raw(Op::Add, &[b, a]), ab);
        assert_ne!(g.raw(Op::Sub, &[a, b]), g.raw(Op::Sub, &[b, a]));
        assert_eq!(g.constant(2.0), g.constant(2.0));
        assert_ne!(g.constant(0.0), g.constant(-0.0));
        assert_eq!(g.constant(f64::NAN), g.constant(-f64::NAN));
        let f = ExternalId::new(0);
        assert_eq!(g.external(f, &[a, b]), g.external(f, &[a, b]));
        assert_ne!(g.external(f, &[a, b]), g.external(f, &[b, a]));
    }
}
