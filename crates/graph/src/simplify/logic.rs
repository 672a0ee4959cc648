//! Rules that start from a comparison, a connective, a choice, a minimum or a maximum.

use crate::graph::{Graph, Node, NodeId};
use chainrule_ops::{Op, Type};

impl Graph {
    /// Simplifies `a < b`, `a <= b` or `a == b`.
    pub(super) fn comparison(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        // `x == x` and `x <= x` are tests for NaN, in either semantics.
        if a == b && (op == Op::Lt || self.is_truth(a)) {
            return self.constant(op.value(&[0.0, 0.0]));
        }
        match (self.negated(a), self.negated(b)) {
            (Some(a), Some(b)) => self.raw(op, &[b, a]),
            _ => self.raw(op, &[a, b]),
        }
    }

    /// Returns the node of `-x` without an operation: the argument of a negation, or a constant.
    fn negated(&mut self, x: NodeId) -> Option<NodeId> {
        match self.as_const(x) {
            Some(c) => Some(self.constant(-c)),
            None => self.as_unary(Op::Neg, x),
        }
    }

    /// Simplifies `min(a, b)` or `max(a, b)`.
    pub(super) fn extremum(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        if a == b {
            return a;
        }
        if self.is_algebraic()
            && let (Some(x), Some(y)) = (self.negated(a), self.negated(b))
        {
            let mirrored = if op == Op::Min { Op::Max } else { Op::Min };
            let value = self.raw(mirrored, &[x, y]);
            return self.scale(-1.0, value);
        }
        self.raw(op, &[a, b])
    }

    /// Simplifies `not(a)`.
    pub(super) fn not(&mut self, a: NodeId) -> NodeId {
        match self.as_unary(Op::Not, a) {
            Some(x) if self.is_truth(x) => x,
            _ => self.raw(Op::Not, &[a]),
        }
    }

    /// Simplifies `a && b` or `a || b`.
    pub(super) fn connective(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        // The absorbing constant: false for and, true for or.
        let decisive = op == Op::Or;
        if self.as_unary(Op::Not, a) == Some(b) || self.as_unary(Op::Not, b) == Some(a) {
            return self.constant(f64::from(u8::from(decisive)));
        }
        for (x, y) in [(a, b), (b, a)] {
            match self.as_const(x) {
                Some(c) if (c != 0.0) == decisive => return self.constant(f64::from(u8::from(decisive))),
                Some(_) if self.is_truth(y) => return y,
                _ => {}
            }
        }
        if a == b && self.is_truth(a) {
            return a;
        }
        self.raw(op, &[a, b])
    }

    /// Simplifies `select(condition, p, q)`.
    pub(super) fn selection(&mut self, mut condition: NodeId, mut p: NodeId, mut q: NodeId) -> NodeId {
        while let Some(opposite) = self.as_unary(Op::Not, condition) {
            (condition, p, q) = (opposite, q, p);
        }
        if let Some(c) = self.as_const(condition) {
            return if c != 0.0 { p } else { q };
        }
        if let Node::Apply(Op::Select, [c, inner, _]) = self.node(p)
            && c == condition
        {
            p = inner;
        }
        if let Node::Apply(Op::Select, [c, _, inner]) = self.node(q)
            && c == condition
        {
            q = inner;
        }
        if self.is_algebraic() {
            (p, q) = (self.with_plain_zero(p), self.with_plain_zero(q));
        }
        if p == q {
            return p;
        }
        if let Some(flat) = self.mask_of_mask(condition, p, q) {
            return flat;
        }
        if self.is_algebraic() {
            let ((cp, xp), (cq, xq)) = (self.split(p), self.split(q));
            if cp == cq && cp != 1.0 {
                let choice = self.raw(Op::Select, &[condition, xp, xq]);
                return self.scale(cp, choice);
            }
        }
        self.raw(Op::Select, &[condition, p, q])
    }

    /// Returns the constant 0 for the constant -0.
    fn with_plain_zero(&mut self, x: NodeId) -> NodeId {
        if self.as_const(x) == Some(0.0) { self.constant(0.0) } else { x }
    }

    /// Returns whether the value of `x` is always 0 or 1.
    fn is_truth(&self, x: NodeId) -> bool {
        match self.node(x) {
            Node::Const(c) => c == 0.0 || c == 1.0,
            Node::Apply(op, _) => op.row().result == Type::Bool,
            _ => false,
        }
    }
}
