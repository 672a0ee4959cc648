//! Verifier of the invariants of [`Graph`].
//!
//! In: any graph and roots. Out: success, or one bug diagnostic for each broken invariant. Checked are the nodes below
//! the roots, and the tables that belong to all nodes:
//!
//! - roots and arguments exist, and arguments precede their users;
//! - numbers of arguments, with unused places repeating the first argument;
//! - a truth value is an argument only where the row of the operator takes one, and the reverse;
//! - each node is stored once, arguments of commutative operators in either order; NaN has one form;
//! - inputs, users' functions and composite operators are registered;
//! - memoised conditions of masks and origins belong to existing nodes.

use crate::graph::{Graph, Node, NodeId};
use chainrule_base::{Diagnostic, Id};
use chainrule_ops::{Op, Type};
use std::fmt::Display;

/// Maximum number of reported invariants.
const MAX_ERRORS: usize = 100;

/// Checks the invariants of the nodes below `roots`. Linear in the graph.
///
/// # Errors
/// One bug diagnostic for each of the first hundred broken invariants.
pub fn verify(graph: &Graph, roots: &[NodeId]) -> Result<(), Vec<Diagnostic>> {
    let mut verifier = Verifier { graph, types: types(graph), errors: Vec::new() };
    verifier.tables();
    let mut reached = vec![false; graph.len()];
    for root in roots {
        match reached.get_mut(root.index()) {
            Some(reached) => *reached = true,
            None => verifier.wrong(format_args!("the root {root} does not exist")),
        }
    }
    for id in graph.ids().rev() {
        if reached[id.index()] && verifier.node(id) {
            graph.args(id).iter().for_each(|arg| reached[arg.index()] = true);
        }
    }
    if verifier.errors.is_empty() { Ok(()) } else { Err(verifier.errors) }
}

/// Returns the types of all nodes; `None` for one that may be either: a constant 0 or 1, an input, and a choice of
/// them. A choice has the type of its branches.
fn types(graph: &Graph) -> Vec<Option<Type>> {
    let mut types: Vec<Option<Type>> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let of = |arg: NodeId| types.get(arg.index()).copied().flatten();
        types.push(match graph.node(id) {
            Node::Apply(Op::Select, [_, then, otherwise]) => of(then).or_else(|| of(otherwise)),
            Node::Apply(op, _) => Some(op.row().result),
            Node::Const(c) if c == 0.0 || c == 1.0 => None,
            // A truth value may be an argument of the function.
            Node::Input(_) => None,
            Node::Const(_) | Node::External(..) | Node::Derivative(_) => Some(Type::Num),
        });
    }
    types
}

struct Verifier<'g> {
    graph: &'g Graph,
    types: Vec<Option<Type>>,
    errors: Vec<Diagnostic>,
}

impl Verifier<'_> {
    fn wrong(&mut self, reason: impl Display) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(Diagnostic::bug("a scalar graph is malformed").with_reason(reason.to_string()));
        }
    }

    fn tables(&mut self) {
        let (graph, n) = (self.graph, self.graph.len());
        for (number, (name, id)) in graph.inputs().iter().enumerate() {
            let is_input = |id: &NodeId| matches!(graph.node(*id), Node::Input(input) if input.index() == number);
            if id.index() >= n || !is_input(id) {
                self.wrong(format_args!("input {number}, `{name}`, is not node {id}"));
            }
        }
        if graph.masked.iter().chain(graph.active.keys()).chain(graph.active.values()).any(|id| id.index() >= n) {
            self.wrong("a mask or its condition does not exist");
        }
        if graph.origins.as_ref().is_some_and(|origins| origins.len() != n) {
            self.wrong(format_args!("{n} nodes have another number of origins"));
        }
    }

    /// Checks a node; returns whether its arguments exist.
    fn node(&mut self, id: NodeId) -> bool {
        let graph = self.graph;
        let node = graph.node(id);
        let Some(args) = graph.list(id) else {
            self.wrong(format_args!("{id} has no list of arguments"));
            return false;
        };
        if let Some(arg) = args.iter().find(|arg| **arg >= id) {
            self.wrong(format_args!("{id} precedes its argument {arg}"));
            return false;
        }
        match node {
            Node::Const(c) if c.is_nan() && c.to_bits() != f64::NAN.to_bits() => {
                self.wrong(format_args!("{id} is a NaN of another form"));
            }
            Node::Const(_) | Node::Derivative(_) => {}
            Node::Input(input) => {
                if graph.inputs().get(input.index()).is_none_or(|(_, of)| *of != id) {
                    self.wrong(format_args!("{id} is not registered as input {input}"));
                }
                return true;
            }
            Node::External(function, _) => match graph.external_function(function) {
                Some(f) if f.arity() != args.len() => {
                    self.wrong(format_args!("{id} calls {} with {} arguments", f.name(), args.len()));
                }
                Some(_) => {}
                None => self.wrong(format_args!("{id} calls {function}, which is not registered")),
            },
            Node::Apply(op, places) => self.operation(id, op, places),
        }
        if graph.find(&node) != Some(id) {
            self.wrong(format_args!("{id} is stored more than once"));
        }
        true
    }

    fn operation(&mut self, id: NodeId, op: Op, places: [NodeId; 3]) {
        let (graph, row) = (self.graph, op.row());
        let (args, unused) = places.split_at(op.arity());
        if unused.iter().any(|place| *place != places[0]) {
            self.wrong(format_args!("an unused place of {id} does not repeat the first argument"));
        }
        if op.has_steps() && !graph.has_steps() {
            self.wrong(format_args!("{id} is composite, but the graph has no composite operator"));
        }
        if op.is_commutative() && graph.existing(op, args) != Some(id) {
            self.wrong(format_args!("{id} exists with its arguments in the other order"));
        }
        let own = self.types.get(id.index()).copied().flatten();
        for (place, (arg, ty)) in args.iter().zip(row.args).enumerate() {
            // Branches of a choice have its own type.
            let wanted = if op == Op::Select && place > 0 { own } else { Some(*ty) };
            let given = self.types.get(arg.index()).copied().flatten();
            if let (Some(wanted), Some(given)) = (wanted, given)
                && wanted != given
            {
                self.wrong(format_args!("{id} = {} takes {arg}, which is no {wanted:?}", row.name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::verify;
    use crate::Semantics;
    use crate::graph::{Graph, Node, NodeId};
    use chainrule_base::Id;
    use chainrule_ops::Op;

    /// Returns `sin (x + y) * 2 + max x y`.
    fn valid() -> (Graph, Vec<NodeId>) {
        let mut g = Graph::new(Semantics::Algebraic);
        let (x, y) = (g.input("x"), g.input("y"));
        let (sum, two, most) = (g.raw(Op::Add, &[x, y]), g.constant(2.0), g.raw(Op::Max, &[x, y]));
        let sine = g.raw(Op::Sin, &[sum]);
        let product = g.raw(Op::Mul, &[sine, two]);
        let root = g.raw(Op::Add, &[product, most]);
        (g, vec![root])
    }

    #[test]
    fn a_broken_invariant_is_named() {
        let n = |idx| NodeId::new(idx);
        type Break = fn(&mut Vec<Node>, &mut Vec<NodeId>);
        let cases: [(Break, &str); 8] = [
            (|_, roots| roots.push(NodeId::new(77)), "the root n77 does not exist"),
            (
                |nodes, _| nodes[2] = Node::Apply(Op::Add, [NodeId::new(5), NodeId::new(0), NodeId::new(5)]),
                "n2 precedes its argument n5",
            ),
            (
                |nodes, _| nodes[5] = Node::Apply(Op::Sin, [NodeId::new(2), NodeId::new(0), NodeId::new(2)]),
                "an unused place of n5 does not repeat the first argument",
            ),
            (
                |nodes, _| nodes[4] = Node::Apply(Op::Add, [NodeId::new(1), NodeId::new(0), NodeId::new(1)]),
                "n4 exists with its arguments in the other order",
            ),
            (|nodes, _| nodes[4] = nodes[2], "n4 is stored more than once"),
            (|nodes, _| nodes[3] = Node::Const(-f64::NAN), "n3 is a NaN of another form"),
            (|nodes, _| nodes[1] = nodes[0], "input 1, `y`, is not node n1"),
            (
                |nodes, _| nodes[4] = Node::Apply(Op::Lt, [NodeId::new(0), NodeId::new(1), NodeId::new(0)]),
                "n7 = add takes n4, which is no Num",
            ),
        ];
        let (graph, roots) = valid();
        assert_eq!(verify(&graph, &roots), Ok(()), "{}", graph.listing(&roots));
        assert_eq!(graph.node(n(4)), Node::Apply(Op::Max, [n(0), n(1), n(0)]));
        for (change, reason) in cases {
            let (mut graph, mut roots) = valid();
            graph.with_nodes(|nodes| change(nodes, &mut roots));
            let errors = verify(&graph, &roots).expect_err(reason);
            let found: Vec<String> = errors.iter().filter_map(|error| error.reason.clone()).collect();
            assert!(found.iter().any(|found| found == reason), "{reason}: {found:?}");
        }
    }
}
