//! Conversion of a network back to a graph.
//!
//! In: a network and the graph of its leaves and opaque operations. Out: a new graph with the same inputs and functions
//! and only the nodes that the roots need.
//!
//! Sums start with a positive term, so that a sign survives only if every term is negative; terms with the same factor
//! are added before they are multiplied by it. A divisor that several cubes divide by is inverted once. Powers are
//! chains of squares, shared between powers of one literal.

use super::cube::{Cube, Literal};
use super::network::{Form, Network, Term, is_unit};
use crate::graph::{Graph, Node, NodeId};
use chainrule_base::{Arena, Id};
use chainrule_ops::Op;

/// Returns the graph of the network's roots, and the roots; `None` if a literal depends on itself. Linear in the
/// network.
pub(super) fn emit(network: &Network, source: &Graph) -> Option<(Graph, Vec<NodeId>)> {
    let (order, n_divided) = order(network)?;
    let mut out = Graph::new(source.semantics());
    out.externals = source.externals.clone();
    for (name, _) in source.inputs() {
        out.input(name.clone());
    }
    let nodes = Arena::filled(network.forms.len(), None);
    let mut emitter = Emitter { out, nodes, n_divided };
    for literal in order {
        let node = match &network.forms[literal] {
            Form::Leaf(id) => emitter.leaf(source, *id),
            Form::Opaque(id, args) => emitter.opaque(source, *id, args),
            Form::Sum(cubes) => emitter.sum(cubes),
        };
        emitter.nodes[literal] = Some(node);
    }
    let roots = network.roots.iter().map(|term| emitter.term(*term)).collect();
    Some((emitter.out, roots))
}

/// Visits the literals to which a form refers.
pub(super) fn arguments(form: &Form, mut see: impl FnMut(Literal)) {
    match form {
        Form::Leaf(_) => {}
        Form::Opaque(_, args) => args.iter().filter_map(|a| a.literal).for_each(see),
        Form::Sum(cubes) => cubes.iter().flat_map(|c| &c.powers).for_each(|(literal, _)| see(*literal)),
    }
}

/// Returns the literals that the roots need, arguments first, and the number of cubes that divide by each.
pub(super) fn order(network: &Network) -> Option<(Vec<Literal>, Arena<Literal, u32>)> {
    let mut cyclic = false;
    let mut order = Vec::new();
    let mut n_divided = Arena::filled(network.forms.len(), 0);
    // 0: not visited, 1: waiting for its arguments, 2: done.
    let mut states = Arena::filled(network.forms.len(), 0u8);
    let mut stack: Vec<Literal> = network.roots.iter().rev().filter_map(|t| t.literal).collect();
    while let Some(&literal) = stack.last() {
        match states[literal] {
            0 => {
                states[literal] = 1;
                let start = stack.len();
                arguments(&network.forms[literal], |argument| {
                    cyclic |= states[argument] == 1;
                    if states[argument] == 0 {
                        stack.push(argument);
                    }
                });
                stack[start..].reverse();
            }
            1 => {
                states[literal] = 2;
                order.push(literal);
                stack.pop();
                if let Form::Sum(cubes) = &network.forms[literal] {
                    for (divisor, _) in cubes.iter().flat_map(|c| &c.powers).filter(|p| p.1 < 0) {
                        n_divided[*divisor] += 1;
                    }
                }
            }
            _ => {
                stack.pop();
            }
        }
    }
    (!cyclic).then_some((order, n_divided))
}

/// Maximum power that is multiplied one by one: a larger one takes fewer products as a chain of squares.
const MOST_TURNS: u32 = 3;

struct Emitter {
    out: Graph,
    /// Node of each literal.
    nodes: Arena<Literal, Option<NodeId>>,
    /// Number of cubes that divide by each literal.
    n_divided: Arena<Literal, u32>,
}

impl Emitter {
    fn node(&mut self, literal: Literal) -> NodeId {
        // Arguments come first in the order, so that every used literal has its node.
        self.nodes[literal].unwrap_or_else(|| unreachable!("{literal} is used before it is made"))
    }

    fn leaf(&mut self, source: &Graph, id: NodeId) -> NodeId {
        match source.node(id) {
            Node::Input(input) => self.out.inputs()[input.index()].1,
            Node::Const(c) => self.out.constant(c),
            _ => unreachable!("{id} is neither an input nor a number"),
        }
    }

    fn opaque(&mut self, source: &Graph, id: NodeId, args: &[Term]) -> NodeId {
        let args: Vec<NodeId> = args.iter().map(|a| self.term(*a)).collect();
        match source.node(id) {
            Node::External(function, _) => self.out.external(function, &args),
            Node::Apply(op, _) => self.out.apply(op, &args),
            _ => unreachable!("{id} is no operation"),
        }
    }

    fn term(&mut self, term: Term) -> NodeId {
        match term.literal {
            None => self.out.constant(term.coef),
            Some(literal) => {
                let node = self.node(literal);
                self.scaled(term.coef, node)
            }
        }
    }

    fn scaled(&mut self, coef: f64, node: NodeId) -> NodeId {
        let coef = self.out.constant(coef);
        self.out.mul(coef, node)
    }

    fn sum(&mut self, cubes: &[Cube]) -> NodeId {
        // Groups of terms with one factor: the factor, the added terms, the subtracted terms.
        let mut groups: Vec<(f64, Vec<NodeId>, Vec<NodeId>)> = Vec::new();
        let (mut plus, mut minus) = (Vec::new(), Vec::new());
        // If no term is added, a number or a factor takes the sign.
        let mut negative = cubes.iter().all(|c| c.coef < 0.0);
        for cube in cubes {
            if cube.powers.is_empty() {
                let coef = if std::mem::take(&mut negative) || cube.coef > 0.0 { cube.coef } else { -cube.coef };
                let number = self.out.constant(coef);
                if coef == cube.coef {
                    plus.push(number);
                } else {
                    minus.push(number);
                }
                continue;
            }
            let factor = cube.coef.abs();
            let node = self.product(cube);
            let idx = groups.iter().position(|g| g.0 == factor).unwrap_or_else(|| {
                groups.push((factor, Vec::new(), Vec::new()));
                groups.len() - 1
            });
            let side = if cube.coef > 0.0 { &mut groups[idx].1 } else { &mut groups[idx].2 };
            side.push(node);
        }
        for (factor, added, subtracted) in groups {
            if is_unit(factor) {
                plus.extend(added);
                minus.extend(subtracted);
            } else {
                let below = added.is_empty();
                let value = if below { self.total(&subtracted, &[]) } else { self.total(&added, &subtracted) };
                let turned = below && std::mem::take(&mut negative);
                let value = self.scaled(if turned { -factor } else { factor }, value);
                if below && !turned { minus.push(value) } else { plus.push(value) }
            }
        }
        if plus.is_empty() && minus.is_empty() {
            return self.out.constant(0.0);
        }
        if plus.is_empty() {
            let value = self.total(&minus, &[]);
            return self.out.neg(value);
        }
        self.total(&plus, &minus)
    }

    /// Emits the sum of `plus`, at least one, minus that of `minus`.
    fn total(&mut self, plus: &[NodeId], minus: &[NodeId]) -> NodeId {
        let sum = plus[1..].iter().fold(plus[0], |sum, x| self.made(Op::Add, sum, *x));
        minus.iter().fold(sum, |sum, x| self.made(Op::Sub, sum, *x))
    }

    /// Emits `op(a, b)`, simplified; but keeps a product with a number, for others may use it too.
    fn made(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        let is_multiple = |x: NodeId| match self.out.node(x) {
            Node::Apply(Op::Mul, [y, z, _]) => self.out.as_const(y).or(self.out.as_const(z)).is_some(),
            _ => false,
        };
        let is_number = [a, b].iter().any(|x| self.out.as_const(*x).is_some());
        if a != b && !is_number && (is_multiple(a) || is_multiple(b)) {
            return self.out.raw(op, &[a, b]);
        }
        self.out.apply(op, &[a, b])
    }

    /// Emits a cube without its coefficient. Factors and reciprocals alternate: of `a * r * r` for `a / b**2`, `r * r`
    /// may over- or underflow although the product does not.
    fn product(&mut self, cube: &Cube) -> NodeId {
        let takes_turns = |e: i32| cube.powers.iter().any(|p| (p.1 < 0) != (e < 0)) && e.unsigned_abs() <= MOST_TURNS;
        let (mut factors, mut reciprocals, mut below) = (Vec::new(), Vec::new(), None);
        for (literal, e) in &cube.powers {
            let mut base = self.node(*literal);
            let divides = *e == -1 && self.n_divided[*literal] == 1;
            if *e < 0 && !divides {
                let one = self.out.constant(1.0);
                base = self.out.div(one, base);
            }
            if divides {
                below = Some(below.map_or(base, |product| self.made(Op::Mul, product, base)));
                continue;
            }
            let turns = if takes_turns(*e) { e.unsigned_abs() } else { 1 };
            let factor = self.power(base, e.unsigned_abs() / turns);
            let side = if *e < 0 { &mut reciprocals } else { &mut factors };
            side.extend(std::iter::repeat_n(factor, turns as usize));
        }
        let mut above = None;
        for i in 0..factors.len().max(reciprocals.len()) {
            for factor in [factors.get(i), reciprocals.get(i)].into_iter().flatten() {
                above = Some(above.map_or(*factor, |product| self.made(Op::Mul, product, *factor)));
            }
        }
        match (above, below) {
            (None, None) => self.out.constant(1.0),
            (Some(product), None) => product,
            (above, Some(divisor)) => {
                let above = above.unwrap_or_else(|| self.out.constant(1.0));
                self.out.apply(Op::Div, &[above, divisor])
            }
        }
    }

    fn power(&mut self, base: NodeId, e: u32) -> NodeId {
        let mut power = base;
        for bit in (0..e.ilog2()).rev() {
            power = self.out.raw(Op::Mul, &[power, power]);
            if e >> bit & 1 == 1 {
                power = self.made(Op::Mul, power, base);
            }
        }
        power
    }
}
