//! Laziness of labels: a label inside a branch that is not taken is 0 (DESIGN.md, law 9).
//!
//! A node is *live* where a root needs it: a root always is; an argument is live where one of its users
//! is, and where that user is a choice, only where the choice takes it. The label of an edge into a
//! node that is not always live becomes `select(live, label, 0)`: it is infinite or NaN at most where
//! the node is needed, and there the value is as well.
//!
//! That alone would not do for a node that one root always needs and another one behind a branch
//! only. There the mask of the branch, `select(c, 1, 0)`, does it: the scalar graph's product by a mask
//! that is off is 0 whatever the other factor is (`simplify/mask.rs` there).
//!
//! In: the edges between active nodes, ascending by function. Out: the same with masked labels.

use crate::linearise::Arc;
use chainrule_base::Id;
use chainrule_graph::{Graph, Node, NodeId, NodeSet};
use chainrule_ops::Op;

/// Masks the labels of `arcs`. Linear; nothing is done where there is no choice.
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
    // Users have larger ids than their arguments: a node's condition is complete when its edges come.
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

/// Whether a label is a number, or one of two.
fn is_finite(graph: &Graph, label: NodeId) -> bool {
    let is_number = |id: NodeId| graph.as_const(id).is_some();
    match graph.node(label) {
        Node::Apply(Op::Select, [_, p, q]) => is_number(p) && is_number(q),
        _ => is_number(label),
    }
}
