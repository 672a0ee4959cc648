//! Functions written in Rust: expressions by operator overloading, vectors, small matrices.
//!
//! An [`Expr`] is a node of a graph that its expressions share. Expressions of different graphs (created on different
//! threads, for example) can be combined: the right one is copied into the graph of the left one.

mod derivative;
mod expr;
mod scope;
mod tensor;
mod user;

pub use derivative::{d, time_derivative};
pub use expr::{Cond, Expr, IntoExpr, select};
pub use scope::{Scope, matrix, var, vars};
pub use tensor::{Matrix, Tensor, Vector};
pub use user::UserFunction;

use chainrule_base::{Id, Name};
use chainrule_graph::{Graph, Node, NodeId};

/// Returns the name of an input; `None` for any other node.
pub(crate) fn input_name(graph: &Graph, id: NodeId) -> Option<Name> {
    match graph.node(id) {
        Node::Input(input) => graph.inputs().get(input.index()).map(|(name, _)| name.clone()),
        _ => None,
    }
}
