//! Rules that start from a function of one or two numbers: symmetry, repetition, inverses.

use crate::graph::{Graph, Node, NodeId};
use chainrule_ops::Op;

/// Effect of a sign change of the argument on a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parity {
    /// The value stays.
    Even,
    /// The value changes sign too.
    Odd,
}

/// Returns the parity of a function of one number. A test determines the symmetric rows of the operator table by their
/// values and compares.
pub(crate) fn parity(op: Op) -> Option<Parity> {
    match op {
        Op::Cos | Op::Cosh | Op::Abs => Some(Parity::Even),
        Op::OneMinusSquare | Op::SechSquare | Op::Gaussian | Op::Lorentzian | Op::Binade => Some(Parity::Even),
        Op::Sin | Op::Tan | Op::Asin | Op::Atan | Op::Sinh | Op::Tanh | Op::Asinh | Op::Atanh => Some(Parity::Odd),
        Op::Erf | Op::Cbrt | Op::Sign | Op::Neg | Op::LorentzianMoment | Op::MaskedReciprocal => Some(Parity::Odd),
        _ => None,
    }
}

impl Graph {
    /// Applies a function of one number.
    pub(super) fn function(&mut self, op: Op, x: NodeId) -> NodeId {
        if repeats(op, self.node(x)) {
            return x;
        }
        if op == Op::Abs
            && let Some(y) = self.as_unary(Op::Neg, x)
        {
            return self.function(Op::Abs, y);
        }
        if !self.is_algebraic() {
            return self.raw(op, &[x]);
        }
        let (c, core) = self.split(x);
        match (op, self.node(core)) {
            (Op::Abs, _) if c != 1.0 => {
                let size = self.raw_function(Op::Abs, core);
                self.scale(c.abs(), size)
            }
            (Op::Sign, _) if c != 1.0 => {
                let sign = self.raw_function(Op::Sign, core);
                self.scale(c.signum(), sign)
            }
            (Op::Sqrt, Node::Apply(Op::Mul, [a, b, _])) if c == 1.0 && a == b => self.raw_function(Op::Abs, a),
            (Op::Exp, Node::Apply(Op::Log, [a, ..])) | (Op::Log, Node::Apply(Op::Exp, [a, ..])) if c == 1.0 => a,
            _ if c < 0.0 && parity(op).is_some() => {
                let positive = self.scale(-c, core);
                let value = self.raw(op, &[positive]);
                if parity(op) == Some(Parity::Odd) { self.scale(-1.0, value) } else { value }
            }
            _ => self.raw(op, &[x]),
        }
    }

    fn raw_function(&mut self, op: Op, x: NodeId) -> NodeId {
        if repeats(op, self.node(x)) { x } else { self.raw(op, &[x]) }
    }

    /// Applies a function of two numbers that has no file of its own.
    pub(super) fn function_of_two(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        match op {
            Op::Hypot => {
                let (a, b) = (self.without_sign(a), self.without_sign(b));
                self.raw(op, &[a, b])
            }
            Op::Polygamma if self.as_const(a) == Some(0.0) => self.raw(Op::Digamma, &[b]),
            _ => self.raw(op, &[a, b]),
        }
    }

    /// Returns `x` or `-x`, whichever has a positive coefficient; for even functions. Exact for a negation, so strict
    /// semantics removes it.
    fn without_sign(&mut self, x: NodeId) -> NodeId {
        match self.split(x) {
            (-1.0, core) if self.as_unary(Op::Neg, x).is_some() => core,
            (c, core) if c < 0.0 && self.is_algebraic() => self.scale(-c, core),
            _ => x,
        }
    }
}

/// Returns whether `op` is the identity on its argument, because the argument is already such a value.
fn repeats(op: Op, argument: Node) -> bool {
    let Node::Apply(inner, _) = argument else { return false };
    match op {
        Op::Abs | Op::Sign => inner == op,
        Op::Floor | Op::Ceil => matches!(inner, Op::Floor | Op::Ceil),
        _ => false,
    }
}
