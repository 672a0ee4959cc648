//! Windows: parts of a graph that are optimised separately.
//!
//! In: a graph, roots, an order of its nodes, and an optimiser of a part. Out: a graph with the same values.
//!
//! A change that helps in one part often harms in another, and a large graph has many parts. So a large graph is cut
//! into windows, intervals of a topological order, and each result is kept if it weighs less. An interval is convex: no
//! path leaves it and comes back. So the inputs of a window never depend on its outputs, and the combined windows have
//! no cycle. (Logic synthesis rewrites windows with few inputs and outputs: Mishchenko, Chatterjee, Brayton, "DAG-aware
//! AIG rewriting", 2006.)
//!
//! A node with a masked argument (`simplify/mask.rs`) is a separate window, because masks are not visible from inside.

use crate::graph::{Graph, Node, NodeId};
use chainrule_base::Id;
use chainrule_ops::CostClass;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Part of a graph, as a graph whose inputs are the values that the part needs.
pub(super) struct Part {
    /// Graph of the part.
    pub graph: Graph,
    /// Nodes that are used outside.
    pub roots: Vec<NodeId>,
    /// Whether the value of each input has not been rounded.
    pub exact: Vec<bool>,
}

/// Topological order of a graph's nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// Depth first from the first root: operands are near their users.
    DepthFirst,
    /// By the longest path from the leaves: similar nodes are near each other.
    Levels,
    /// By the longest path to the roots: values are near their users.
    Heights,
}

/// Returns the nodes below `roots` that have arguments, in this order.
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

/// Numbers of nodes of windows.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Number for the first window.
    pub first: usize,
    /// Number for each other window.
    pub rest: usize,
}

/// Result for a window.
pub(super) struct Look {
    /// The part and its roots, if that weighs less.
    pub better: Option<(Graph, Vec<NodeId>)>,
    /// Number of rounds.
    pub rounds: usize,
    /// Budget that they spent.
    pub spent: u64,
}

/// Number of rounds, and the remaining budget.
pub(super) struct Account<'a> {
    pub rounds: &'a mut usize,
    pub budget: &'a mut u64,
    /// Maximum number of threads for windows.
    pub n_threads: usize,
}

/// Minimum number of nodes for parallel windows.
const MANY: usize = 1000;

/// Returns the graph of `whole` with each window replaced by the result of `look`, which takes a part, a budget and its
/// tool. Linear, except for `look`.
///
/// Several threads process windows, each as if the whole budget were available. A window that spent more than its
/// predecessors leave is processed again with the actual budget: the result and the remaining budget are the same as in
/// sequential execution.
pub(super) fn sweep<Tool: Default + Send>(
    whole: &Part,
    order: Order,
    sizes: Sizes,
    account: &mut Account<'_>,
    tool: &mut Tool,
    look: impl Fn(Part, u64, &mut Tool) -> Look + Sync,
) -> (Graph, Vec<NodeId>) {
    let Part { graph, roots, .. } = whole;
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
    let mut windows: Vec<Window<'_>> = Vec::new();
    let (mut start, mut limit) = (0, sizes.first.max(1));
    while start < nodes.len() {
        let free = |id: &&NodeId| !graph.is_masked(**id) && !graph.args(**id).iter().any(|a| graph.is_masked(*a));
        let n = nodes[start..].iter().take(limit).take_while(free).count().max(1);
        let window = &nodes[start..start + n];
        let last_use = |id: &NodeId| sweep.last_use[id.index()];
        let outputs = window.iter().copied().filter(|id| last_use(id) >= start + n).collect();
        windows.push(Window { nodes: window, outputs, found: None });
        (start, limit) = (start + n, sizes.rest);
    }
    if nodes.len() >= MANY {
        sweep.look_at_once(&mut windows, account, tool, &look);
    }
    for Window { nodes, outputs, found } in windows {
        if nodes.len() == 1 {
            sweep.copy(nodes);
            continue;
        }
        let (found, needed) = match found {
            Some((found, needed)) if found.spent <= *account.budget => (found, needed),
            _ => {
                let (part, needed) = sweep.part(nodes, &outputs);
                (look(part, *account.budget, tool), needed)
            }
        };
        *account.rounds += found.rounds;
        *account.budget -= found.spent;
        match found.better {
            Some((part, roots)) => sweep.place(&part, &roots, &needed, &outputs),
            None => sweep.copy(nodes),
        }
    }
    let roots = roots.iter().map(|r| sweep.copied(*r)).collect();
    (sweep.out, roots)
}

/// Consecutive nodes in the order of a sweep.
struct Window<'a> {
    nodes: &'a [NodeId],
    /// Nodes that are used outside.
    outputs: Vec<NodeId>,
    /// Previous result, and the values of the inputs of its part.
    found: Option<(Look, Vec<NodeId>)>,
}

struct Sweep<'a> {
    graph: &'a Graph,
    out: Graph,
    /// Value of each node in the new graph.
    copies: Vec<Option<NodeId>>,
    /// Position of each node's last user.
    last_use: Vec<usize>,
    /// Value of each node in the part under construction, with the number of the part's first node.
    inside: Vec<Option<NodeId>>,
}

impl Sweep<'_> {
    /// Processes windows on several threads, as long as they have not spent the budget together.
    fn look_at_once<Tool: Default + Send>(
        &mut self,
        windows: &mut [Window<'_>],
        account: &Account<'_>,
        tool: &mut Tool,
        look: &(impl Fn(Part, u64, &mut Tool) -> Look + Sync),
    ) {
        if account.n_threads == 1 {
            return;
        }
        let budget = *account.budget;
        let mut parts = Vec::new();
        for Window { nodes, outputs, found } in windows.iter_mut().filter(|w| w.nodes.len() > 1) {
            parts.push((found, self.part(nodes, outputs)));
        }
        let n_threads = account.n_threads.min(parts.len());
        let (queue, spent) = (Mutex::new(parts.into_iter()), AtomicU64::new(0));
        let work = |tool: &mut Tool| {
            while spent.load(Relaxed) < budget {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((found, (part, needed))) = next else { break };
                let new = look(part, budget, tool);
                spent.fetch_add(new.spent, Relaxed);
                *found = Some((new, needed));
            }
        };
        if n_threads > 1 {
            std::thread::scope(|scope| {
                for _ in 1..n_threads {
                    scope.spawn(|| work(&mut Tool::default()));
                }
                work(tool);
            });
        }
    }

    fn copied(&mut self, id: NodeId) -> NodeId {
        match (self.copies[id.index()], self.graph.node(id)) {
            (Some(copy), _) => copy,
            (None, Node::Const(c)) => self.out.constant(c),
            // All inputs of a window come before it in the order.
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

    /// Returns the window as a graph, and the values of its inputs.
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

    /// Adds the result of a window.
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

/// Returns whether a value has not been rounded.
fn is_exact(graph: &Graph, id: NodeId) -> bool {
    match graph.node(id) {
        Node::Input(_) | Node::Const(_) => true,
        Node::Apply(op, _) => op.row().cost == CostClass::Logic,
        Node::External(..) | Node::Derivative(_) => false,
    }
}

/// Copies the node `id` of `graph` without simplification to another graph with the same functions.
pub(super) fn remade(graph: &Graph, out: &mut Graph, id: NodeId, args: &[NodeId]) -> NodeId {
    match graph.node(id) {
        Node::Const(c) => out.constant(c),
        Node::Apply(op, _) => out.raw(op, args),
        Node::External(function, _) => out.external(function, args),
        Node::Input(_) | Node::Derivative(_) => unreachable!("{id} is no operation"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Semantics;
    use chainrule_ops::Op;

    /// Checks that the cost of the windows and the remaining budget do not depend on parallelism.
    #[test]
    fn windows_at_once_account_as_windows_in_turn() {
        let mut g = Graph::new(Semantics::Algebraic);
        let (x, y) = (g.input("x"), g.input("y"));
        let (mut a, mut b) = (x, y);
        for i in 0..4 * MANY {
            let op = if i % 3 == 0 { Op::Mul } else { Op::Add };
            (a, b) = (b, g.raw(op, &[a, b]));
        }
        let roots = [a, b];
        let n_nodes = ordered(&g, &roots, Order::DepthFirst).len() as u64;
        // Three rounds per window, as long as the budget allows one.
        let look = |part: Part, budget: u64, _: &mut ()| {
            let (n, mut left, mut rounds) = (part.graph.len() as u64, budget, 0);
            while rounds < 3 && left >= n {
                (left, rounds) = (left - n, rounds + 1);
            }
            if rounds < 3 {
                left = 0;
            }
            // The same again weighs no less, but shows that windows are inserted correctly.
            Look { better: (rounds == 3).then_some((part.graph, part.roots)), rounds, spent: budget - left }
        };
        let whole = Part { graph: g.clone(), roots: roots.to_vec(), exact: Vec::new() };
        for budget in [0, 1, n_nodes, 2 * n_nodes, 2 * n_nodes + 12_345, 100 * n_nodes] {
            let mut expected = (0, budget);
            in_turn(&g, &roots, &mut expected, &look);
            let (mut rounds, mut left) = (0, budget);
            let mut account = Account { rounds: &mut rounds, budget: &mut left, n_threads: 3 };
            let sizes = Sizes { first: 100, rest: 300 };
            let (out, new) = sweep(&whole, Order::DepthFirst, sizes, &mut account, &mut (), look);
            assert_eq!((rounds, left), expected, "of {budget}");
            assert_eq!(out.f64_at(&[0.1, 0.2], &new).unwrap(), g.f64_at(&[0.1, 0.2], &roots).unwrap());
        }
    }

    /// Windows of at most `MANY` nodes at a time are processed sequentially.
    fn in_turn(
        graph: &Graph,
        roots: &[NodeId],
        account: &mut (usize, u64),
        look: &impl Fn(Part, u64, &mut ()) -> Look,
    ) {
        let nodes = ordered(graph, roots, Order::DepthFirst);
        let mut inside = Sweep {
            graph,
            out: graph.extract(&[]).0,
            copies: vec![None; graph.len()],
            last_use: vec![0; graph.len()],
            inside: vec![None; graph.len()],
        };
        let (first, others) = nodes.split_at(100);
        for window in std::iter::once(first).chain(others.chunks(300)).filter(|window| window.len() > 1) {
            let (part, _) = inside.part(window, &window[window.len() - 1..]);
            let look = look(part, account.1, &mut ());
            *account = (account.0 + look.rounds, account.1 - look.spent);
        }
    }
}
