//! Local partial derivatives of a node, as nodes: the labels of the linearised graph.

use crate::external::ExternalDerivative;
use crate::graph::{ExternalId, Graph, Node, NodeId};
use chainrule_base::{Diagnostic, Id};

/// Returns the partial derivative of `node` by its argument `idx`, with the other arguments constant.
///
/// # Errors
/// Fails if the node calls a user's function that has no derivative or a wrong one, or is an unexpanded derivative; a
/// bug if there is no such argument.
pub fn partial(graph: &mut Graph, node: NodeId, idx: usize) -> Result<NodeId, Diagnostic> {
    let args = graph.args(node).to_vec();
    if idx >= args.len() {
        return Err(Diagnostic::bug(format!("{node} has no argument {idx} to differentiate by")));
    }
    match graph.node(node) {
        Node::Apply(op, _) => Ok(chainrule_ops::partial(graph, op, idx, &args, &node)),
        Node::External(function, _) => external_partial(graph, function, idx, &args),
        Node::Derivative(_) => Err(Diagnostic::error(format!("{node} is a derivative that has not been made yet"))
            .with_help("resolve derivatives from the leaves up")),
        Node::Const(_) | Node::Input(_) => Err(Diagnostic::bug(format!("{node} has no arguments"))),
    }
}

fn external_partial(
    graph: &mut Graph,
    function: ExternalId,
    idx: usize,
    args: &[NodeId],
) -> Result<NodeId, Diagnostic> {
    let Some(f) = graph.external_function(function) else {
        return Err(Diagnostic::error(format!("the function {function} is not registered in this graph"))
            .with_help("register it with `Graph::register`"));
    };
    let (name, arity) = (f.name().clone(), f.arity());
    let wrong_number = |n: usize| {
        Diagnostic::error(format!("the derivative of `{name}` gives {n} partials for {arity} arguments"))
            .with_help("give one partial an argument, in their order")
    };
    match f.derivative().clone() {
        ExternalDerivative::None => Err(Diagnostic::error(format!("`{name}` has no derivative"))
            .with_reason("it is a user's function registered without one")
            .with_help("register it with its partial derivatives, as expressions or as functions")),
        ExternalDerivative::Expression(partials) => {
            let partials = partials(graph, args);
            if partials.len() != arity {
                return Err(wrong_number(partials.len()));
            }
            if partials[idx].index() >= graph.len() {
                return Err(Diagnostic::error(format!("the derivative of `{name}` gives a node of another graph"))
                    .with_help("make the partials in the graph that is given"));
            }
            Ok(partials[idx])
        }
        ExternalDerivative::Functions(partials) => {
            if partials.len() != arity {
                return Err(wrong_number(partials.len()));
            }
            match graph.external_function(partials[idx]) {
                Some(p) if p.arity() == arity => Ok(graph.external(partials[idx], args)),
                Some(p) => Err(Diagnostic::error(format!(
                    "`{}` is a partial derivative of `{name}` and must take the same {arity} arguments",
                    p.name()
                ))),
                None => Err(Diagnostic::error(format!("a partial derivative of `{name}` is not registered"))
                    .with_help("register it with `Graph::register` before the function itself")),
            }
        }
    }
}
