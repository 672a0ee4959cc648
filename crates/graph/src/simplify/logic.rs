//! Rules that start from a comparison, a connective, a choice, a minimum or a maximum.

use crate::graph::{Graph, Node, NodeId};
use chainrule_ops::{Op, Type};
use smallvec::{SmallVec, smallvec};

/// Maximum number of parts of a condition that are compared with those of another.
const MAX_CONJUNCTS: usize = 8;

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
        // Where the inner condition is true, the outer one is not.
        if let Node::Apply(Op::Select, [inner, _, y]) = self.node(q)
            && y == p
            && self.exclude(condition, inner)
        {
            return q;
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

    /// Returns whether two conditions are never true together, because parts of them are opposites.
    fn exclude(&self, a: NodeId, b: NodeId) -> bool {
        let (a, b) = (self.conjuncts(a), self.conjuncts(b));
        a.iter()
            .any(|x| b.iter().any(|y| self.as_unary(Op::Not, *x) == Some(*y) || self.as_unary(Op::Not, *y) == Some(*x)))
    }

    /// Returns conditions that are all true if `condition` is: at most [`MAX_CONJUNCTS`] of them.
    fn conjuncts(&self, condition: NodeId) -> SmallVec<[NodeId; MAX_CONJUNCTS]> {
        let mut found: SmallVec<[NodeId; MAX_CONJUNCTS]> = smallvec![condition];
        let mut at = 0;
        while at < found.len() {
            match self.as_pair(Op::And, found[at]) {
                Some((a, b)) if found.len() < MAX_CONJUNCTS => {
                    found[at] = a;
                    found.push(b);
                }
                _ => at += 1,
            }
        }
        found
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
