//! Nodes, and the table that makes each node once.
//!
//! In: operators, numbers, inputs, calls of users' functions, specifications of derivatives. Out: ids.
//!
//! Invariants: arguments have smaller ids than the node; no two nodes are equal, arguments of
//! commutative operators taken in either order (D*'s section 2.1); nodes are never changed.

use crate::external::ExternalFunction;
use crate::origin::Origins;
use chainrule_base::{Arena, Id, Name, define_id};
use chainrule_ops::Op;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::{BuildHasher, BuildHasherDefault};

define_id! {
    /// A node of a [`Graph`].
    pub struct NodeId = "n";
    /// An input of a [`Graph`]: an independent variable, or a parameter that is not differentiated by.
    pub struct InputId = "x";
    /// A scalar function that is not an operator of the table: a user's own.
    pub struct ExternalId = "f";
}

/// One node. Arguments have smaller ids.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Node {
    /// A number. Compared by bits, but for NaN, of which there is one.
    Const(f64),
    /// An input.
    Input(InputId),
    /// An operator applied to [`Op::arity`] arguments; unused places repeat the first argument.
    Apply(Op, [NodeId; 3]),
    /// A call of a user's function; [`Graph::args`] gives the arguments.
    External(ExternalId, u32),
    /// A derivative that is still to be made; [`Graph::args`] gives the expression, then the variables.
    Derivative(u32),
}

/// Which rewrites are allowed at construction and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Semantics {
    /// Real arithmetic: `x*0` is 0, sums may be regrouped, as in D*.
    #[default]
    Algebraic,
    /// Only what is exact in IEEE 754.
    Strict,
}

type Hasher = BuildHasherDefault<rustc_hash::FxHasher>;

/// A hash-consed graph of scalar expressions.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    semantics: Semantics,
    nodes: Vec<Node>,
    table: HashTable<NodeId>,
    /// Whether a node was made whose operator is composite.
    has_steps: bool,
    inputs: Vec<(Name, NodeId)>,
    /// Arguments of the nodes that have a list of them.
    lists: Vec<SmallVec<[NodeId; 4]>>,
    pub(crate) externals: Arena<ExternalId, ExternalFunction>,
    /// Nodes that are 0 wherever all masks below them are off, but are no masks themselves (`simplify/mask.rs`).
    pub(crate) masked: FxHashSet<NodeId>,
    /// Where such a node is not masked off, as far as it has been asked.
    pub(crate) active: FxHashMap<NodeId, NodeId>,
    /// Where nodes come from; `None` where nobody has asked (`origin.rs`).
    pub(crate) origins: Option<Box<Origins>>,
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new(semantics: Semantics) -> Self {
        Self { semantics, ..Self::default() }
    }

    /// Returns whether a node was made whose operator is composite ([`Op::has_steps`]).
    #[must_use]
    pub fn has_steps(&self) -> bool {
        self.has_steps
    }

    /// Which rewrites are allowed.
    #[must_use]
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of `id`.
    #[must_use]
    #[inline]
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes[id.index()]
    }

    /// All ids, ascending: a topological order, arguments first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }

    /// The arguments of `id`.
    #[must_use]
    #[inline]
    pub fn args(&self, id: NodeId) -> &[NodeId] {
        match &self.nodes[id.index()] {
            Node::Const(_) | Node::Input(_) => &[],
            Node::Apply(op, args) => &args[..op.arity()],
            Node::External(_, idx) | Node::Derivative(idx) => &self.lists[*idx as usize],
        }
    }

    /// A new input. Inputs are never merged, not even when names are equal.
    pub fn input(&mut self, name: impl Into<Name>) -> NodeId {
        let input = InputId::new(self.inputs.len());
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(Node::Input(input));
        self.inputs.push((name.into(), id));
        self.mark_new(id);
        id
    }

    /// All inputs in the order in which they were made: name and node.
    #[must_use]
    pub fn inputs(&self) -> &[(Name, NodeId)] {
        &self.inputs
    }

    /// The number when `id` is one.
    #[must_use]
    pub fn as_const(&self, id: NodeId) -> Option<f64> {
        match self.nodes[id.index()] {
            Node::Const(c) => Some(c),
            _ => None,
        }
    }

    /// The node of the number `c`.
    pub fn constant(&mut self, c: f64) -> NodeId {
        let c = if c.is_nan() { f64::NAN } else { c };
        self.intern(Node::Const(c))
    }

    /// A call of a user's function; never simplified, merged with equal calls.
    ///
    /// # Panics
    /// When the function is registered with another number of arguments.
    pub fn external(&mut self, function: ExternalId, args: &[NodeId]) -> NodeId {
        if let Some(f) = self.externals.get(function) {
            assert_eq!(args.len(), f.arity(), "{} takes {} arguments", f.name(), f.arity());
        }
        self.with_list(args, |idx| Node::External(function, idx))
    }

    /// A node with a list of arguments; the list is kept only when the node is new.
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

    /// The node `op(args)` exactly as it stands, made once; commutative operators in either order.
    /// Simplification is [`Graph::apply`]'s.
    ///
    /// # Panics
    /// When the number of arguments is not the operator's arity.
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

    /// The node `op(args)` if it is there already; commutative operators in either order.
    #[must_use]
    pub fn existing(&self, op: Op, args: &[NodeId]) -> Option<NodeId> {
        let found = self.find(&Node::Apply(op, padded(args)));
        if found.is_none() && op.is_commutative() && args[0] != args[1] {
            return self.find(&Node::Apply(op, [args[1], args[0], args[1]]));
        }
        found
    }

    fn find(&self, node: &Node) -> Option<NodeId> {
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

/// Arguments in the three places of a node, the first repeated.
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
