//! Reference semantics of a graph: evaluation in any algebra, simple rather than fast; and operation counts.
//!
//! Every node is computed, including both branches of a selection; the row of `select` reads only one of them, so that
//! a NaN in the branch not taken has no effect.

use crate::graph::{Graph, Node, NodeId};
use chainrule_base::{Diagnostic, Id};
use chainrule_ops::{Algebra, Counts, F64};

/// Evaluates `roots`; input `i` of the graph has the value `inputs[i]`. Linear in the nodes below the roots.
///
/// # Errors
/// Fails if a root depends on an input without a value, on an unexpanded derivative, on a user's function that is not
/// registered or, in an algebra whose elements are not numbers, on any.
pub fn evaluate<A: Algebra>(
    graph: &Graph,
    algebra: &mut A,
    inputs: &[A::Value],
    roots: &[NodeId],
) -> Result<Vec<A::Value>, Diagnostic> {
    let mut values: Vec<Option<A::Value>> = vec![None; graph.len()];
    let mut args: Vec<A::Value> = Vec::new();
    for id in graph.reachable(roots).iter() {
        args.clear();
        // Arguments have smaller ids, and every reachable node gets a value or ends the loop.
        args.extend(graph.args(id).iter().filter_map(|a| values[a.index()].clone()));
        let value = match graph.node(id) {
            Node::Const(c) => algebra.constant(c),
            Node::Input(input) => inputs.get(input.index()).cloned().ok_or_else(|| missing_input(graph, id))?,
            Node::Apply(op, _) => algebra.apply(op, &args),
            Node::External(function, _) => {
                let function = graph.external_function(function).ok_or_else(|| unregistered(id))?;
                let numbers: Option<Vec<f64>> = args.iter().map(|a| algebra.to_f64(a)).collect();
                let numbers = numbers.ok_or_else(|| symbolic_call(function.name()))?;
                algebra.constant(function.value(&numbers))
            }
            Node::Derivative(_) => return Err(unresolved(id)),
        };
        values[id.index()] = Some(value);
    }
    roots
        .iter()
        .map(|r| values[r.index()].clone().ok_or_else(|| Diagnostic::bug(format!("{r} has no value"))))
        .collect()
}

impl Graph {
    /// Evaluates `roots` in doubles; input `i` has the value `inputs[i]`.
    ///
    /// # Errors
    /// As [`evaluate`].
    pub fn f64_at(&self, inputs: &[f64], roots: &[NodeId]) -> Result<Vec<f64>, Diagnostic> {
        evaluate(self, &mut F64, inputs, roots)
    }
}

/// Counts the operations of the nodes below `roots`, each once. A call of a user's function is a call with the weight
/// of a sine.
#[must_use]
pub fn counts(graph: &Graph, roots: &[NodeId]) -> Counts {
    node_counts(graph, graph.reachable(roots).iter())
}

/// Counts the operations of these nodes alone, without the nodes below them.
#[must_use]
pub fn node_counts(graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) -> Counts {
    let mut counts = Counts::default();
    for id in nodes {
        match graph.node(id) {
            Node::Apply(op, _) => counts.record(op),
            Node::External(..) => counts.record(chainrule_ops::Op::Sin),
            Node::Const(_) | Node::Input(_) | Node::Derivative(_) => {}
        }
    }
    counts
}

fn missing_input(graph: &Graph, id: NodeId) -> Diagnostic {
    let name = graph.inputs().iter().find(|(_, node)| *node == id).map_or("?", |(name, _)| name.as_str());
    Diagnostic::error(format!("no value for the input `{name}`"))
        .with_help(format!("give one value for each of the {} inputs, in their order", graph.inputs().len()))
}

fn unresolved(id: NodeId) -> Diagnostic {
    Diagnostic::error(format!("{id} is a derivative that has not been made yet"))
        .with_help("resolve derivatives before evaluation")
}

fn unregistered(id: NodeId) -> Diagnostic {
    Diagnostic::error(format!("{id} calls a function that is not registered in its graph"))
        .with_help("register it with `Graph::register`")
}

fn symbolic_call(name: &str) -> Diagnostic {
    Diagnostic::limitation(format!("`{name}` is a user's function and can be evaluated on numbers only"))
}
