//! Analysis of a graph before lowering, and the state of each node during it.
//!
//! In: a graph. Out: [`Seen`], computed in one walk over its nodes.

use chainrule_base::{Arena, Id, large};
use chainrule_graph::{Graph, InputId, Node, NodeId};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;

/// State of a node, in 16 bytes, since passes over a large graph take as long as fetching it does. The state also holds
/// the content of most kinds of nodes, so that computing them fetches nothing else.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// Register of the value as a number, or [`NONE`]. Before the node is computed: the start of its list of
    /// [`stores`](super::code::Code::note_store) if it is an output, or of its list of sums if it is a product that may
    /// be fused (see [`fuse`](super::fuse)).
    pub(super) real: u32,
    pub(super) flags: u8,
    /// Operator and arguments of a [`State::BINARY`] node; bits of a constant ([`State::as_const`]); number of an input
    /// ([`State::as_input`]).
    pub(super) op: Op,
    pub(super) args: [NodeId; 2],
}

const _: () = assert!(size_of::<State>() == 16);

/// Marker for no register, no list, no node.
pub(super) const NONE: u32 = u32::MAX;

impl State {
    /// A needed node uses it.
    pub(super) const NEEDED: u8 = 1;
    /// Its arguments are being computed.
    pub(super) const OPEN: u8 = 2;
    /// It is computed.
    pub(super) const DONE: u8 = 4;
    /// It is an element of an output.
    pub(super) const STORED: u8 = 8;
    /// It is an operator of two numbers, whose result is a number.
    pub(super) const BINARY: u8 = 16;
    /// It must not be fused: it has a use that is no sum, or fusion is off.
    pub(super) const KEPT: u8 = 32;
    /// It is a sum, and takes a product.
    pub(super) const TAKES: u8 = 64;
    /// It is a product fused into all its sums; in place of a register it has its own node number.
    pub(super) const FUSED: u8 = 128;

    /// Tags in place of the operator, for nodes that are not binary: constants, inputs, others.
    const CONSTANT: Op = Op::Add;
    const INPUT: Op = Op::Sub;
    pub(super) const OTHER: Op = Op::Sin;

    #[inline]
    fn input(input: InputId) -> Self {
        Self { real: NONE, flags: 0, op: Self::INPUT, args: [NodeId::new(input.index()); 2] }
    }

    #[inline]
    fn other() -> Self {
        Self { real: NONE, flags: 0, op: Self::OTHER, args: [NodeId::new(0); 2] }
    }

    #[inline]
    fn constant(value: f64) -> Self {
        let bits = value.to_bits();
        let halves = [bits & u64::from(u32::MAX), bits >> 32];
        Self { real: NONE, flags: 0, op: Self::CONSTANT, args: halves.map(|half| NodeId::new(half as usize)) }
    }

    /// Returns the value of a constant, without access to the node itself.
    #[inline]
    pub(super) fn as_const(self) -> Option<f64> {
        let [low, high] = self.args.map(|half| half.index() as u64);
        (!self.is(Self::BINARY) && self.op == Self::CONSTANT).then(|| f64::from_bits(low | high << 32))
    }

    /// Returns the index of an input.
    #[inline]
    pub(super) fn as_input(self) -> Option<usize> {
        (!self.is(Self::BINARY) & (self.op == Self::INPUT)).then(|| self.args[0].index())
    }

    #[inline]
    pub(super) fn is(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Analysis of a graph before lowering.
pub(super) struct Seen {
    pub(super) state: Arena<NodeId, State>,
    /// See [`Lowering::need`](super::Lowering).
    pub(super) need: Arena<NodeId, u16>,
    /// All sines and cosines with their arguments.
    pub(super) trigonometric: Vec<(NodeId, NodeId)>,
}

/// Analyses each node once. The registers that a node needs are counted as if the graph were a tree: with arguments in
/// order of decreasing need, k registers are held while the k-th is computed.
#[inline(never)]
pub(super) fn look(graph: &Graph, fuse: bool) -> Seen {
    let flags = if fuse { State::BINARY } else { State::BINARY | State::KEPT };
    let mut need = large::with_capacity(graph.len());
    need.resize(graph.len(), 0u16);
    let mut trigonometric = Vec::new();
    let mut needs: Vec<u16> = Vec::new();
    let mut state = large::with_capacity(graph.len());
    state.extend((0..graph.len()).map(|i| {
        let id = NodeId::new(i);
        let (op, [a, b]) = match graph.node(id) {
            Node::Apply(op, [a, b, _]) if op.is_numeric() & (op.arity() == 2) => (op, [a, b]),
            Node::Const(value) => return State::constant(value),
            Node::Input(input) => return State::input(input),
            Node::Apply(op, [a, ..]) if op.arity() == 1 => {
                if matches!(op, Op::Sin | Op::Cos) {
                    trigonometric.push((id, a));
                }
                need[i] = need[a.index()].max(1);
                return State::other();
            }
            _ => {
                needs.clear();
                needs.extend(graph.args(id).iter().map(|arg| need[arg.index()]));
                needs.sort_unstable_by(|a, b| b.cmp(a));
                let waiting = needs.iter().zip(0u16..).map(|(need, held)| need.saturating_add(held));
                need[i] = waiting.max().map_or(0, |most| most.max(1));
                return State::other();
            }
        };
        let (x, y) = (need[a.index()], need[b.index()]);
        // The argument that needs more comes first and holds one register while the other is computed.
        need[i] = x.max(y).saturating_add(u16::from(x == y));
        State { real: NONE, flags, op, args: [a, b] }
    }));
    Seen { state: state.into_iter().collect(), need: need.into_iter().collect(), trigonometric }
}

/// Returns pairs of these sines and cosines with the same argument, each with the previous one.
pub(super) fn pairs(trigonometric: &[(NodeId, NodeId)]) -> Vec<(NodeId, NodeId)> {
    let mut first: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    let mut pairs = Vec::new();
    for (id, argument) in trigonometric {
        if let Some(partner) = first.insert(*argument, *id) {
            pairs.push((partner, *id));
        }
    }
    pairs
}

/// Prefetched blocks of a large graph's states and needs. A walk from a node to its arguments soon visits most
/// neighbouring nodes, in an order that the hardware cannot prefetch.
pub(super) struct Fetched {
    /// Whether each [`BLOCK`](Self::BLOCK) of nodes is still to be fetched; empty if all are in a cache.
    waiting: Vec<bool>,
}

impl Fetched {
    /// Nodes fetched together.
    const BLOCK: usize = 256;

    /// Number of nodes from which on the states do not stay in the second-level cache between passes.
    const FAR: usize = 1 << 16;

    /// Returns the state for a graph of `n_nodes` nodes, nothing fetched.
    pub(super) fn none(n_nodes: usize) -> Self {
        let n_blocks = if n_nodes < Self::FAR { 0 } else { n_nodes.div_ceil(Self::BLOCK) };
        Self { waiting: vec![true; n_blocks] }
    }

    /// Fetches the block of `id`, unless it is fetched already.
    #[inline]
    pub(super) fn fetch(&mut self, id: NodeId, state: &[State], need: &[u16]) {
        let block = id.index() / Self::BLOCK;
        if let Some(waiting) = self.waiting.get_mut(block)
            && std::mem::take(waiting)
        {
            let first = block * Self::BLOCK;
            let nodes = first..state.len().min(first + Self::BLOCK);
            large::fetch(&state[nodes.clone()]);
            large::fetch(&need[nodes]);
        }
    }
}
