//! Masked slopes: those of roots and exponentials that are infinite only where they are multiplied by zeros.
//!
//! In: the edges between active nodes, ascending by function. Out: the same edges with masked slopes:
//!
//! | function | assumption | masked slope |
//! | --- | --- | --- |
//! | `s = sqrt(u)` | `u = 0` | `maskedReciprocal(s) / 2`, which is 0 at 0 |
//! | `exp`, `expm1`, `sinh`, `cosh` | the value is infinite | `maskedOverflow(slope)`, which is 0 at infinity |
//!
//! A slope is masked if the assumption implies that all labels on the way from the inputs to the function, or all on
//! the way from the function to the results, have a zero among them: the norm of a vector, the logistic function. Then
//! it may be any finite number there. One mask serves all products with the slope, and these stay ordinary products,
//! which can be factored and cannot underflow because of a mask.
//!
//! Otherwise the slope of a root is masked at each product with a factor that may be zero. A root needs no mask if all
//! labels on the way to it and from it are known to be nonzero, as for `sqrt(1 - x*x)` alone.
//!
//! The implied values of nodes ([`Facts`]) are found backwards from `u = 0` (`x*x + y*y = 0` implies `x = 0`) and then
//! forwards (`x = 0` implies `sin x = 0` and `x*y = 0`). Unknown values are taken to be finite. Functions with a pole
//! among the implied values, as in `1/sqrt(u)`, are left out: the result is no number there, and the ordinary slope
//! shares the division.
//!
//! Linear in the nodes and the implied values, which are limited for each function.

use crate::linearise::Arc;
use chainrule_graph::{Graph, Node, NodeId, NodeSet, Origin};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum number of implied values of a function; with more of them its slope is left as it is.
const MAX_FACTS: usize = 10_000;

/// Maximum number of implied values of all functions; beyond it slopes are left as they are.
const MAX_WORK: usize = 4_000_000;

/// Maximum number of labels on the way to and from a root that are compared with zero; with more of them one may be.
const MAX_LABELS: usize = 64;

/// Maximum depth at which labels are evaluated, above the deepest formula of a partial derivative.
const MAX_DEPTH: usize = 12;

/// Functions with infinite slopes that meet zeros.
#[derive(Default)]
pub(crate) struct Masked {
    /// Functions with a masked slope, which is finite.
    pub slopes: NodeSet,
    /// Roots to mask at each product with a factor that may be zero.
    pub products: NodeSet,
}

/// Masks the slopes in `arcs`; returns their functions. Does nothing if there are neither roots nor exponentials.
pub(crate) fn mask(graph: &mut Graph, active: &NodeSet, arcs: &mut [Arc], results: &[NodeId]) -> Masked {
    let found = vanishing(graph, active, arcs, results);
    for (_, function, label) in arcs.iter_mut().filter(|arc| found.slopes.contains(arc.1)) {
        graph.make_for(graph.origin(*function));
        *label = match graph.node(*function) {
            Node::Apply(Op::Sqrt, _) => {
                let (half, inverse) = (graph.constant(0.5), graph.apply(Op::MaskedReciprocal, &[*function]));
                graph.mul(half, inverse)
            }
            Node::Apply(Op::Cosh, _) => {
                // Negative infinity.
                let positive = graph.apply(Op::MaskedOverflow, &[*label]);
                let negated = graph.neg(positive);
                let masked = graph.apply(Op::MaskedOverflow, &[negated]);
                graph.neg(masked)
            }
            _ => graph.apply(Op::MaskedOverflow, &[*label]),
        };
    }
    graph.make_for(Origin::Nowhere);
    found
}

/// Returns the functions whose slopes, or products with them, are to be masked.
fn vanishing(graph: &Graph, active: &NodeSet, arcs: &[Arc], results: &[NodeId]) -> Masked {
    let mut found = Masked::default();
    let assumed = |id: NodeId| match graph.node(id) {
        Node::Apply(Op::Sqrt, [arg, ..]) => Some((arg, 0.0)),
        Node::Apply(Op::Exp | Op::Expm1 | Op::Sinh | Op::Cosh, _) => Some((id, f64::INFINITY)),
        _ => None,
    };
    if !arcs.iter().any(|arc| assumed(arc.1).is_some()) {
        return found;
    }
    let net = Net::new(graph, active, arcs, results);
    let mut left = MAX_WORK;
    for (arg, function, _) in arcs {
        let Some((of, value)) = assumed(*function) else { continue };
        let Some(facts) = net.facts(of, value, &mut left) else { continue };
        if net.cotangent_is_zero(&facts, *function) || (value == 0.0 && net.tangent_is_zero(&facts, *arg)) {
            found.slopes.insert(*function);
        } else if value == 0.0 && net.may_meet_zero(&facts, *arg, *function) {
            found.products.insert(*function);
        }
    }
    found
}

/// Values that follow from an assumption.
type Facts = FxHashMap<NodeId, f64>;

/// The graph with its uses and edges in both directions.
struct Net<'a> {
    graph: &'a Graph,
    active: &'a NodeSet,
    /// Ascending by function.
    arcs: &'a [Arc],
    /// Edges, ascending by argument.
    out_arcs: Vec<Arc>,
    /// The function.
    reachable: NodeSet,
    /// (argument, user), ascending.
    uses: Vec<(NodeId, NodeId)>,
    /// Nodes that are nowhere negative.
    nonnegative: NodeSet,
    results: NodeSet,
}

impl<'a> Net<'a> {
    fn new(graph: &'a Graph, active: &'a NodeSet, arcs: &'a [Arc], results: &[NodeId]) -> Self {
        let reachable = graph.reachable(results);
        let mut out_arcs = arcs.to_vec();
        out_arcs.sort_unstable();
        let mut uses: Vec<(NodeId, NodeId)> =
            reachable.iter().flat_map(|id| graph.args(id).iter().map(move |arg| (*arg, id))).collect();
        uses.sort_unstable();
        uses.dedup();
        let mut nonnegative = NodeSet::default();
        for id in reachable.iter() {
            if is_nonnegative(graph, id, &nonnegative) {
                nonnegative.insert(id);
            }
        }
        let results = results.iter().copied().collect();
        Self { graph, active, arcs, out_arcs, reachable, uses, nonnegative, results }
    }

    /// Returns the implied values of `of = value`; `None` if it is impossible, an active node is no number, or there
    /// are too many. Only an infinite `value` may imply infinite ones.
    fn facts(&self, of: NodeId, value: f64, left: &mut usize) -> Option<Facts> {
        let most = MAX_FACTS.min(*left);
        let mut facts = Facts::default();
        let (mut zeros, mut known) = (Vec::new(), Vec::new());
        if value == 0.0 {
            zeros.push(of);
        } else {
            facts.insert(of, value);
            known.push(of);
        }
        while let Some(id) = zeros.pop() {
            if self.is_never_zero(id) {
                return None;
            }
            if self.graph.as_const(id).is_none() && facts.insert(id, 0.0).is_none() {
                known.push(id);
                self.push_zero_args(id, &mut zeros);
            }
            *left = left.saturating_sub(1);
            if known.len() > most {
                return None;
            }
        }
        // Ascending, so that all arguments of a node are known before it.
        let mut users: BinaryHeap<Reverse<NodeId>> = known.iter().flat_map(|id| self.users(*id)).map(Reverse).collect();
        while let Some(Reverse(user)) = users.pop() {
            if facts.contains_key(&user) {
                continue;
            }
            *left = left.saturating_sub(1);
            let Some(implied) = self.implied(&facts, user, |facts, arg| self.known(facts, arg)) else { continue };
            let is_pole = implied.is_nan() || (value == 0.0 && implied.is_infinite());
            if (is_pole && self.active.contains(user)) || facts.len() > most {
                return None;
            }
            facts.insert(user, implied);
            users.extend(self.users(user).map(Reverse));
        }
        Some(facts)
    }

    fn users(&self, of: NodeId) -> impl Iterator<Item = NodeId> {
        let first = self.uses.partition_point(|(arg, _)| *arg < of);
        self.uses[first..].iter().take_while(move |(arg, _)| *arg == of).map(|(_, user)| *user)
    }

    /// Adds the arguments of `id` that are 0 if `id` is 0.
    fn push_zero_args(&self, id: NodeId, zeros: &mut Vec<NodeId>) {
        let Node::Apply(op, [a, b, _]) = self.graph.node(id) else { return };
        let (const_a, const_b) = (self.graph.as_const(a), self.graph.as_const(b));
        match op {
            Op::Mul if a == b || const_b.is_some() => zeros.push(a),
            Op::Mul if const_a.is_some() => zeros.push(b),
            Op::Neg | Op::Abs | Op::Sqrt | Op::Cbrt | Op::Sign | Op::Sinh | Op::Tanh | Op::Asinh | Op::Atanh => {
                zeros.push(a);
            }
            Op::Asin | Op::Atan | Op::Expm1 | Op::Log1p | Op::Erf | Op::Div | Op::Rescale => zeros.push(a),
            Op::Pow if const_b.is_some_and(|b| b > 0.0) => zeros.push(a),
            Op::Hypot => zeros.extend([a, b]),
            Op::Add | Op::Max if self.nonnegative.contains(a) && self.nonnegative.contains(b) => zeros.extend([a, b]),
            _ => {}
        }
    }

    fn is_never_zero(&self, id: NodeId) -> bool {
        match self.graph.node(id) {
            Node::Const(c) => c != 0.0,
            Node::Apply(op, _) => matches!(op, Op::Exp | Op::Cosh | Op::Binade),
            _ => false,
        }
    }

    fn known(&self, facts: &Facts, id: NodeId) -> Option<f64> {
        self.graph.as_const(id).or_else(|| facts.get(&id).copied())
    }

    /// Returns the value of `id`, if the values of its arguments imply it.
    fn implied(&self, facts: &Facts, id: NodeId, value: impl Fn(&Facts, NodeId) -> Option<f64>) -> Option<f64> {
        let Node::Apply(op, _) = self.graph.node(id) else { return None };
        let args: Vec<Option<f64>> = self.graph.args(id).iter().map(|arg| value(facts, *arg)).collect();
        match (op, &args[..]) {
            (Op::Mul, [Some(0.0), None] | [None, Some(0.0)]) => Some(0.0),
            (Op::MaskedMul, [Some(0.0), None]) | (Op::StrongMul, [Some(0.0), None] | [None, Some(0.0)]) => Some(0.0),
            (Op::Div | Op::Rescale, [Some(0.0), None]) => Some(0.0),
            (Op::Div | Op::Rescale, [None, Some(0.0)]) => Some(f64::NAN),
            (Op::Div | Op::Rescale, [None, Some(b)]) if b.is_infinite() => Some(0.0),
            (Op::Add | Op::Sub, [Some(a), None]) if a.is_infinite() => Some(*a),
            (Op::Add, [None, Some(b)]) if b.is_infinite() => Some(*b),
            (Op::Sub, [None, Some(b)]) if b.is_infinite() => Some(-*b),
            // Of unknown sign; the value and the slope of a quotient by it are 0 all the same.
            (Op::Mul, [Some(a), None] | [None, Some(a)]) if a.is_infinite() => Some(*a),
            _ => Some(op.value(&args.into_iter().collect::<Option<Vec<f64>>>()?)),
        }
    }

    /// Returns the implied value of a label: a formula over nodes of the function.
    // Recursive on `depth`.
    fn label(&self, facts: &Facts, id: NodeId, depth: usize) -> Option<f64> {
        self.known(facts, id).or_else(|| {
            let depth = depth.checked_sub(1).filter(|_| !self.reachable.contains(id))?;
            self.implied(facts, id, |facts, arg| self.label(facts, arg, depth))
        })
    }

    fn is_zero(&self, facts: &Facts, label: NodeId) -> bool {
        self.label(facts, label, MAX_DEPTH) == Some(0.0)
    }

    /// Returns whether every path from an input to `id` has a label that is zero.
    fn tangent_is_zero(&self, facts: &Facts, id: NodeId) -> bool {
        self.every_path(facts, id, |id| Some(self.edges_in(id)).filter(|edges| !edges.is_empty()))
    }

    /// Returns whether every path from `id` to a result has a label that is zero.
    fn cotangent_is_zero(&self, facts: &Facts, id: NodeId) -> bool {
        self.every_path(facts, id, |id| Some(self.edges_out(id)).filter(|_| !self.results.contains(id)))
    }

    /// Returns the arguments of `id`, with the labels.
    fn edges_in(&self, id: NodeId) -> Vec<(NodeId, NodeId)> {
        let first = self.arcs.partition_point(|arc| arc.1 < id);
        self.arcs[first..].iter().take_while(|arc| arc.1 == id).map(|arc| (arc.0, arc.2)).collect()
    }

    /// Returns the functions of `id`, with the labels.
    fn edges_out(&self, id: NodeId) -> Vec<(NodeId, NodeId)> {
        let first = self.out_arcs.partition_point(|arc| arc.0 < id);
        self.out_arcs[first..].iter().take_while(|arc| arc.0 == id).map(|arc| (arc.1, arc.2)).collect()
    }

    /// Returns whether a label on the way from an input to `arg`, or from `function` to a result, may be zero.
    fn may_meet_zero(&self, facts: &Facts, arg: NodeId, function: NodeId) -> bool {
        let nonzero = self.nonzero(arg);
        let is_nonzero =
            |label| self.label(facts, label, MAX_DEPTH).map_or_else(|| self.is_multiple(label, &nonzero), |v| v != 0.0);
        !self.all_edges(arg, |id| self.edges_in(id), is_nonzero)
            || !self.all_edges(function, |id| self.edges_out(id), is_nonzero)
    }

    /// Returns nodes that are not zero if `arg` is 0: `x` if `1 - x*x` is 0.
    fn nonzero(&self, arg: NodeId) -> NodeSet {
        let mut nonzero = NodeSet::default();
        let Node::Apply(Op::Add | Op::Sub, [a, b, _]) = self.graph.node(arg) else { return nonzero };
        let mut stack = match (self.graph.as_const(a), self.graph.as_const(b)) {
            (Some(c), None) if c != 0.0 => vec![b],
            (None, Some(c)) if c != 0.0 => vec![a],
            _ => return nonzero,
        };
        while let Some(id) = stack.pop() {
            if nonzero.insert(id)
                && let Node::Apply(Op::Mul | Op::Neg, _) = self.graph.node(id)
            {
                stack.extend(self.graph.args(id));
            }
        }
        nonzero
    }

    /// Returns whether `label` is a product of constants and of nodes in `nonzero`.
    fn is_multiple(&self, label: NodeId, nonzero: &NodeSet) -> bool {
        let mut stack = vec![label];
        for _ in 0..MAX_DEPTH {
            let Some(id) = stack.pop() else { return true };
            match self.graph.node(id) {
                _ if nonzero.contains(id) => {}
                Node::Const(c) if c != 0.0 => {}
                Node::Apply(Op::Mul | Op::Neg, _) => stack.extend(self.graph.args(id)),
                _ => return false,
            }
        }
        false
    }

    /// Returns whether the labels of all edges (node, label) from `start` satisfy `test`.
    fn all_edges(
        &self,
        start: NodeId,
        edges: impl Fn(NodeId) -> Vec<(NodeId, NodeId)>,
        test: impl Fn(NodeId) -> bool,
    ) -> bool {
        let (mut stack, mut seen) = (vec![start], NodeSet::default());
        let mut steps = 0;
        while let Some(id) = stack.pop() {
            for (next, label) in edges(id) {
                steps += 1;
                if steps > MAX_LABELS || !test(label) {
                    return false;
                }
                if seen.insert(next) {
                    stack.push(next);
                }
            }
        }
        true
    }

    /// Searches from `start` along edges (node, label), which are `None` at the end of a path. A zero before an
    /// infinite value, as in `log(1 + exp x)`, does not count: there a slope is lost.
    fn every_path(
        &self,
        facts: &Facts,
        start: NodeId,
        edges: impl Fn(NodeId) -> Option<Vec<(NodeId, NodeId)>>,
    ) -> bool {
        let (mut stack, mut seen) = (vec![start], NodeSet::default());
        let mut steps = 0;
        while let Some(id) = stack.pop() {
            let Some(edges) = edges(id) else { return false };
            steps += edges.len();
            // Far from the root nothing is implied.
            if steps > 64 + 8 * facts.len() {
                return false;
            }
            for (next, label) in edges {
                let ends = self.is_zero(facts, label) && !facts.get(&next).is_some_and(|value| value.is_infinite());
                if !ends && seen.insert(next) {
                    stack.push(next);
                }
            }
        }
        true
    }
}

/// Returns whether `id` is nowhere negative, from those of its arguments that are.
fn is_nonnegative(graph: &Graph, id: NodeId, known: &NodeSet) -> bool {
    match graph.node(id) {
        Node::Const(c) => c >= 0.0,
        Node::Apply(op, [a, b, c]) => match op {
            Op::Abs | Op::Sqrt | Op::Exp | Op::Cosh | Op::Hypot | Op::Binade | Op::Gaussian | Op::SechSquare => true,
            Op::Mul if a == b => true,
            Op::Add | Op::Mul | Op::Div | Op::Rescale | Op::Min => known.contains(a) && known.contains(b),
            Op::Max => known.contains(a) || known.contains(b),
            Op::Pow => known.contains(a) || graph.as_const(b).is_some_and(|b| b % 2.0 == 0.0),
            Op::Select => known.contains(b) && known.contains(c),
            _ => false,
        },
        _ => false,
    }
}
