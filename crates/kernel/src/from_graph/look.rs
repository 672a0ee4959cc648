//! What is known of a graph before anything is computed, and of each node while it is.
//!
//! In: a graph. Out: [`Seen`], found in one walk over its nodes.

use chainrule_base::{Arena, Id, large};
use chainrule_graph::{Graph, InputId, Node, NodeId};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;

/// What is known of a node, in 16 bytes: the passes over a large graph take as long as fetching it does. What most nodes
/// are stands in it too, so that computing them fetches nothing else.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// The register of its value as a number, or [`NONE`]; before it is computed its first place in the list of
    /// [`stores`](super::code::Code::note_store), if it is stored, or the first sum that reads it, if it is a product that may be
    /// fused (see [`fuse`](super::fuse)).
    pub(super) real: u32,
    pub(super) flags: u8,
    /// The operator and the arguments of a [`State::BINARY`] node; the bits of a constant ([`State::as_const`]); the number of
    /// an input ([`State::as_input`]).
    pub(super) op: Op,
    pub(super) args: [NodeId; 2],
}

const _: () = assert!(size_of::<State>() == 16);

/// No register, no place, no node.
pub(super) const NONE: u32 = u32::MAX;

impl State {
    /// What an output needs reads it.
    pub(super) const NEEDED: u8 = 1;
    /// Its arguments are being computed.
    pub(super) const OPEN: u8 = 2;
    /// It was computed.
    pub(super) const DONE: u8 = 4;
    /// It is an element of an output.
    pub(super) const STORED: u8 = 8;
    /// It is an operator of two numbers, whose result is a number.
    pub(super) const BINARY: u8 = 16;
    /// It is read by something that is no sum, or nothing is fused.
    pub(super) const KEPT: u8 = 32;
    /// It is a sum, and takes a product.
    pub(super) const TAKES: u8 = 64;
    /// It is a product that went into all sums that read it; in place of a register it has its own number.
    pub(super) const FUSED: u8 = 128;

    /// In place of the operator of a node that is no operator of two numbers: of constants, of inputs, and of the others.
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

    /// The number when it is one, so that nobody has to wait for the node itself.
    #[inline]
    pub(super) fn as_const(self) -> Option<f64> {
        let [low, high] = self.args.map(|half| half.index() as u64);
        (!self.is(Self::BINARY) && self.op == Self::CONSTANT).then(|| f64::from_bits(low | high << 32))
    }

    /// The index of the input when it is one.
    #[inline]
    pub(super) fn as_input(self) -> Option<usize> {
        (!self.is(Self::BINARY) & (self.op == Self::INPUT)).then(|| self.args[0].index())
    }

    #[inline]
    pub(super) fn is(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// What is known of a graph before anything is computed.
pub(super) struct Seen {
    pub(super) state: Arena<NodeId, State>,
    /// See [`Lowering::need`](super::Lowering).
    pub(super) need: Arena<NodeId, u16>,
    /// All sines and cosines with their arguments.
    pub(super) trigonometric: Vec<(NodeId, NodeId)>,
}

/// Looks at each node once. How many registers its tree needs is counted as if the graph were a tree: with arguments in the
/// order of falling need, the k-th waits while k registers are held.
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
        // The one that needs more comes first and holds one register while the other one is computed.
        need[i] = x.max(y).saturating_add(u16::from(x == y));
        State { real: NONE, flags, op, args: [a, b] }
    }));
    Seen { state: state.into_iter().collect(), need: need.into_iter().collect(), trigonometric }
}

/// Those of these sines and cosines that have one argument: each with the one before.
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

/// Which parts of a large graph's states and needs have been fetched. A walk from a node to its arguments comes to most of the
/// nodes beside it soon, in an order of its own, in which it would wait for each line of memory by itself.
pub(super) struct Fetched {
    /// For each [`BLOCK`](Self::BLOCK) of nodes whether it has to be; empty where all is in a cache.
    waiting: Vec<bool>,
}

impl Fetched {
    /// So many nodes are fetched together.
    const BLOCK: usize = 256;

    /// Of graphs of so many nodes the states do not stay in a processor's second cache from one pass to the next.
    const FAR: usize = 1 << 16;

    /// Of a graph of so many nodes nothing has been fetched.
    pub(super) fn none(n_nodes: usize) -> Self {
        let n_blocks = if n_nodes < Self::FAR { 0 } else { n_nodes.div_ceil(Self::BLOCK) };
        Self { waiting: vec![true; n_blocks] }
    }

    /// Fetches what stands beside `id`, unless that has been done.
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
