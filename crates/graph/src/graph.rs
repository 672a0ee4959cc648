//! Nodes, and the table that makes each node once.

use chainrule_base::{Id, Name, define_id};
use chainrule_ops::Op;
use hashbrown::HashTable;
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
    /// A call of a user's function; its arguments are `Graph::external_args` of this index.
    External(ExternalId, u32),
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
    inputs: Vec<(Name, NodeId)>,
    external_args: Vec<SmallVec<[NodeId; 4]>>,
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new(semantics: Semantics) -> Self {
        Self { semantics, ..Self::default() }
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
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes[id.index()]
    }

    /// All ids, ascending: a topological order, arguments first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }

    /// The arguments of `id`.
    #[must_use]
    pub fn args(&self, id: NodeId) -> &[NodeId] {
        match &self.nodes[id.index()] {
            Node::Const(_) | Node::Input(_) => &[],
            Node::Apply(op, args) => &args[..op.arity()],
            Node::External(_, idx) => &self.external_args[*idx as usize],
        }
    }

    /// A new input. Inputs are never merged, not even when names are equal.
    pub fn input(&mut self, name: impl Into<Name>) -> NodeId {
        let input = InputId::new(self.inputs.len());
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(Node::Input(input));
        self.inputs.push((name.into(), id));
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
    pub fn external(&mut self, function: ExternalId, args: &[NodeId]) -> NodeId {
        let idx = u32::try_from(self.external_args.len()).expect("fewer calls than ids");
        self.external_args.push(args.into());
        let id = self.intern(Node::External(function, idx));
        if id.index() + 1 != self.nodes.len() || !matches!(self.nodes[id.index()], Node::External(_, i) if i == idx) {
            self.external_args.pop();
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
        let mut padded = [args[0]; 3];
        padded[..args.len()].copy_from_slice(args);
        if op.is_commutative() && args[0] != args[1] {
            let swapped = [args[1], args[0], args[1]];
            if let Some(id) = self.find(&Node::Apply(op, swapped)) {
                return id;
            }
        }
        self.intern(Node::Apply(op, padded))
    }

    fn find(&self, node: &Node) -> Option<NodeId> {
        self.table.find(self.hash(node), |id| self.same(&self.nodes[id.index()], node)).copied()
    }

    fn intern(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.find(&node) {
            return id;
        }
        let hash = self.hash(&node);
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(node);
        let (nodes, external_args) = (&self.nodes, &self.external_args);
        self.table.insert_unique(hash, id, |id| hash_node(&nodes[id.index()], external_args));
        id
    }

    fn hash(&self, node: &Node) -> u64 {
        hash_node(node, &self.external_args)
    }

    fn same(&self, a: &Node, b: &Node) -> bool {
        match (a, b) {
            (Node::Const(x), Node::Const(y)) => x.to_bits() == y.to_bits(),
            (Node::Input(x), Node::Input(y)) => x == y,
            (Node::Apply(f, x), Node::Apply(g, y)) => f == g && x[..f.arity()] == y[..f.arity()],
            (Node::External(f, x), Node::External(g, y)) => {
                f == g && self.external_args[*x as usize] == self.external_args[*y as usize]
            }
            _ => false,
        }
    }
}

fn hash_node(node: &Node, external_args: &[SmallVec<[NodeId; 4]>]) -> u64 {
    let hasher = Hasher::default();
    match node {
        Node::Const(c) => hasher.hash_one((0u8, c.to_bits())),
        Node::Input(x) => hasher.hash_one((1u8, x)),
        Node::Apply(op, args) => hasher.hash_one((2u8, op, &args[..op.arity()])),
        Node::External(f, idx) => hasher.hash_one((3u8, f, &external_args[*idx as usize])),
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
