//! The scalar graph: hash-consed expressions over the operators of `chainrule-ops`.
//!
//! A [`Graph`] only grows; a node's arguments always have smaller ids than the node, so ascending id
//! order is a topological order, and every traversal is a loop, never a recursion.

mod graph;

pub use graph::{ExternalId, Graph, InputId, Node, NodeId, Semantics};
