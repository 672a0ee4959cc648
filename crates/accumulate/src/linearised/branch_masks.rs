//! Branch masks: a label inside an untaken branch is 0.
//!
//! A node is *live* if a root needs it. A root is always live. An argument is live if one of its users is; if that user
//! is a choice, only if the choice takes it. The label of an edge into a node that is not always live becomes
//! `select(live, label, 0)`. It is infinite or NaN only if the node is needed, and then the value is too.
//!
//! That does not suffice for a node that one root always needs and another root only behind a branch. There the mask of
//! the branch, `select(c, 1, 0)`, suffices: the scalar graph's product by a mask of 0 is 0, whatever the other factor
//! is (`simplify/mask.rs` there).
//!
//! In: the edges between active nodes, ascending by function. Out: the same edges with masked labels.

use crate::linearise::Arc;
use chainrule_base::Id;
use chainrule_graph::{Graph, Node, NodeId, NodeSet};
use chainrule_ops::Op;

/// Masks the labels of `arcs`. Linear; does nothing if there is no choice.
pub(crate) fn mask(graph: &mut Graph, active: &NodeSet, arcs: &mut [Arc], roots: &[NodeId]) {
    let is_choice = |id: NodeId| matches!(graph.node(id), Node::Apply(Op::Select, _));
    if !active.iter().any(is_choice) {
        return;
    }
    let always = graph.constant(1.0);
    let zero = graph.constant(0.0);
    let n = active.iter().next_back().map_or(0, |id| id.index() + 1);
    let mut live: Vec<Option<NodeId>> = vec![None; n];
    for root in roots.iter().filter(|r| active.contains(**r)) {
        live[root.index()] = Some(always);
    }
    // Users have larger ids than their arguments: a node's condition is complete before its edges are visited.
    for (arg, id, label) in arcs.iter_mut().rev() {
        let Some(condition) = live[id.index()] else { continue };
        let used = match graph.node(*id) {
            Node::Apply(Op::Select, [c, p, q]) if p != q => {
                let taken = if *arg == p { c } else { graph.apply(Op::Not, &[c]) };
                graph.apply(Op::And, &[condition, taken])
            }
            _ => condition,
        };
        live[arg.index()] = Some(match live[arg.index()] {
            None => used,
            Some(other) => graph.apply(Op::Or, &[other, used]),
        });
        if condition != always && !is_finite(graph, *label) {
            *label = graph.select(condition, *label, zero);
        }
    }
}

/// Returns whether a label is a number, or one of two numbers.
fn is_finite(graph: &Graph, label: NodeId) -> bool {
    let is_number = |id: NodeId| graph.as_const(id).is_some();
    match graph.node(label) {
        Node::Apply(Op::Select, [_, p, q]) => is_number(p) && is_number(q),
        _ => is_number(label),
    }
}
