//! Windows: parts of a graph that are optimised by themselves.
//!
//! In: a graph, roots, an order of its nodes, and what improves a part. Out: a graph with the same values.
//!
//! What helps at one place often harms at another, and a large graph has many places. So a large graph is
//! cut into windows, intervals of a topological order, and each is kept as it comes out if it weighs less.
//! An interval is convex: no path leaves it and comes back. So what a window is made of never depends on
//! what the window makes, and windows put together have no cycle. (Windows with few inputs and outputs are
//! what logic synthesis rewrites: Mishchenko, Chatterjee, Brayton, "DAG-aware AIG rewriting", 2006.)
//!
//! A node with a masked argument (`simplify/mask.rs`) is a window of its own, for what is masked is not seen
//! from inside.

use crate::graph::{Graph, Node, NodeId};
use chainrule_base::Id;
use chainrule_ops::CostClass;
use smallvec::SmallVec;

/// A part of a graph, as a graph whose inputs are what the part needs.
pub(super) struct Part {
    /// The part.
    pub graph: Graph,
    /// What is used outside it.
    pub roots: Vec<NodeId>,
    /// By input: whether its value has not been rounded.
    pub exact: Vec<bool>,
}

/// A topological order of a graph's nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// Depth first from the first root: what is below a node stands near it.
    DepthFirst,
    /// By the longest path from the leaves: what is alike stands near.
    Levels,
    /// By the longest path to the roots: values stand near their users.
    Heights,
}

/// The nodes below `roots` that have arguments, in this order.
fn ordered(graph: &Graph, roots: &[NodeId], order: Order) -> Vec<NodeId> {
    let reachable = graph.reachable(roots);
    let mut nodes: Vec<NodeId> =
        reachable.iter().filter(|id| !matches!(graph.node(*id), Node::Input(_) | Node::Const(_))).collect();
    match order {
        // The graph was extracted in this order.
        Order::DepthFirst => {}
        Order::Levels => {
            let levels = graph.levels(roots);
            nodes.sort_by_key(|id| levels[id.index()]);
        }
        Order::Heights => {
            let mut heights = vec![0u32; graph.len()];
            for id in reachable.iter().rev() {
                for arg in graph.args(id) {
                    heights[arg.index()] = heights[arg.index()].max(heights[id.index()] + 1);
                }
            }
            nodes.sort_by_key(|id| std::cmp::Reverse(heights[id.index()]));
        }
    }
    nodes
}

/// The graph with each window of `size` nodes replaced by what `improve` makes of it; the first window has
/// `first` nodes. Linear, but for `improve`.
pub(super) fn sweep(
    graph: &Graph,
    roots: &[NodeId],
    order: Order,
    (first, size): (usize, usize),
    mut improve: impl FnMut(Part) -> Option<(Graph, Vec<NodeId>)>,
) -> (Graph, Vec<NodeId>) {
    let nodes = ordered(graph, roots, order);
    let mut sweep = Sweep {
        graph,
        out: graph.extract(&[]).0,
        copies: vec![None; graph.len()],
        last_use: vec![0; graph.len()],
        inside: vec![None; graph.len()],
    };
    for ((_, old), (_, new)) in graph.inputs().iter().zip(sweep.out.inputs().to_vec()) {
        sweep.copies[old.index()] = Some(new);
    }
    for (place, id) in nodes.iter().enumerate() {
        for arg in graph.args(*id) {
            sweep.last_use[arg.index()] = place;
        }
    }
    for root in roots {
        sweep.last_use[root.index()] = usize::MAX;
    }
    let (mut start, mut limit) = (0, first.max(1));
    while start < nodes.len() {
        let free = |id: &&NodeId| !graph.is_masked(**id) && !graph.args(**id).iter().any(|a| graph.is_masked(*a));
        let n = nodes[start..].iter().take(limit).take_while(free).count().max(1);
        let window = &nodes[start..start + n];
        let outputs: Vec<NodeId> =
            window.iter().copied().filter(|id| sweep.last_use[id.index()] >= start + n).collect();
        let improved = if n > 1 {
            let (part, needed) = sweep.part(window, &outputs);
            improve(part).map(|(part, roots)| (part, roots, needed))
        } else {
            None
        };
        match improved {
            Some((part, roots, needed)) => sweep.place(&part, &roots, &needed, &outputs),
            None => sweep.copy(window),
        }
        (start, limit) = (start + n, size);
    }
    let roots = roots.iter().map(|r| sweep.copied(*r)).collect();
    (sweep.out, roots)
}

struct Sweep<'a> {
    graph: &'a Graph,
    out: Graph,
    /// By node: its value in the new graph.
    copies: Vec<Option<NodeId>>,
    /// By node: the place of its last user.
    last_use: Vec<usize>,
    /// By node: its value in the part that is being made, with the number of the part's first node.
    inside: Vec<Option<NodeId>>,
}

impl Sweep<'_> {
    fn copied(&mut self, id: NodeId) -> NodeId {
        match (self.copies[id.index()], self.graph.node(id)) {
            (Some(copy), _) => copy,
            (None, Node::Const(c)) => self.out.constant(c),
            // All that a window needs comes before it in the order.
            (None, _) => unreachable!("{id} is used before it is made"),
        }
    }

    fn copy(&mut self, window: &[NodeId]) {
        for id in window {
            let args: SmallVec<[NodeId; 4]> = self.graph.args(*id).iter().map(|a| self.copied(*a)).collect();
            let copy = remade(self.graph, &mut self.out, *id, &args);
            self.copies[id.index()] = Some(copy);
        }
    }

    /// The window as a graph, and what its inputs stand for.
    fn part(&mut self, window: &[NodeId], outputs: &[NodeId]) -> (Part, Vec<NodeId>) {
        let mut part = Graph::new(self.graph.semantics());
        part.externals = self.graph.externals.clone();
        let mut needed: Vec<NodeId> = Vec::new();
        for id in window {
            let mut args: SmallVec<[NodeId; 4]> = SmallVec::new();
            for arg in self.graph.args(*id) {
                let value = match (self.inside[arg.index()], self.graph.node(*arg)) {
                    (Some(value), _) => value,
                    (None, Node::Const(c)) => part.constant(c),
                    (None, _) => {
                        let input = part.input("");
                        self.inside[arg.index()] = Some(input);
                        needed.push(*arg);
                        input
                    }
                };
                args.push(value);
            }
            self.inside[id.index()] = Some(remade(self.graph, &mut part, *id, &args));
        }
        let roots = outputs.iter().filter_map(|id| self.inside[id.index()]).collect();
        for id in window.iter().chain(&needed) {
            self.inside[id.index()] = None;
        }
        let exact = needed.iter().map(|id| is_exact(self.graph, *id)).collect();
        (Part { graph: part, roots, exact }, needed)
    }

    /// Takes over what was made of a window.
    fn place(&mut self, part: &Graph, roots: &[NodeId], needed: &[NodeId], outputs: &[NodeId]) {
        let mut copies: Vec<Option<NodeId>> = vec![None; part.len()];
        for id in part.reachable(roots).iter() {
            let args: SmallVec<[NodeId; 4]> = part.args(id).iter().filter_map(|a| copies[a.index()]).collect();
            copies[id.index()] = Some(match part.node(id) {
                Node::Input(input) => self.copied(needed[input.index()]),
                _ => remade(part, &mut self.out, id, &args),
            });
        }
        for (output, root) in outputs.iter().zip(roots) {
            self.copies[output.index()] = copies[root.index()];
        }
    }
}

/// Whether a value has not been rounded.
fn is_exact(graph: &Graph, id: NodeId) -> bool {
    match graph.node(id) {
        Node::Input(_) | Node::Const(_) => true,
        Node::Apply(op, _) => op.row().cost == CostClass::Logic,
        Node::External(..) | Node::Derivative(_) => false,
    }
}

/// The node `id` of `graph`, exactly as it stands, in another graph with the same functions.
pub(super) fn remade(graph: &Graph, out: &mut Graph, id: NodeId, args: &[NodeId]) -> NodeId {
    match graph.node(id) {
        Node::Const(c) => out.constant(c),
        Node::Apply(op, _) => out.raw(op, args),
        Node::External(function, _) => out.external(function, args),
        Node::Input(_) | Node::Derivative(_) => unreachable!("{id} is no operation"),
    }
}
