//! Rules that start from a sum, a difference or a negation.

use crate::graph::{Graph, NodeId};
use chainrule_ops::Op;

impl Graph {
    /// Simplifies `a + b`.
    pub(super) fn sum(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some(c) = self.as_const(a) {
            return self.plus_constant(b, c);
        }
        if let Some(c) = self.as_const(b) {
            return self.plus_constant(a, c);
        }
        if let Some(merged) = self.sum_of_masks(Op::Add, a, b) {
            return merged;
        }
        if self.is_algebraic() {
            let ((ca, xa), (cb, xb)) = (self.split(a), self.split(b));
            return self.combination(ca, xa, cb, xb);
        }
        if a == b {
            return self.times_constant(a, 2.0);
        }
        if let Some(y) = self.as_unary(Op::Neg, b) {
            return self.raw(Op::Sub, &[a, y]);
        }
        if let Some(y) = self.as_unary(Op::Neg, a) {
            return self.raw(Op::Sub, &[b, y]);
        }
        self.raw(Op::Add, &[a, b])
    }

    /// Simplifies `a - b`.
    pub(super) fn difference(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some(c) = self.as_const(b) {
            return self.plus_constant(a, -c);
        }
        if let Some(c) = self.as_const(a) {
            return self.constant_minus(c, b);
        }
        if let Some(merged) = self.sum_of_masks(Op::Sub, a, b) {
            return merged;
        }
        if self.is_algebraic() {
            let ((ca, xa), (cb, xb)) = (self.split(a), self.split(b));
            return self.combination(ca, xa, -cb, xb);
        }
        match self.as_unary(Op::Neg, b) {
            Some(y) => self.sum(a, y),
            None => self.raw(Op::Sub, &[a, b]),
        }
    }

    /// Simplifies `-a`.
    pub(super) fn negation(&mut self, a: NodeId) -> NodeId {
        let (mask, a) = self.unmask(a);
        let value = self.times_constant(a, -1.0);
        self.remask(mask, value)
    }

    /// Simplifies `ca*xa + cb*xb`, cores and coefficients, algebraic.
    fn combination(&mut self, ca: f64, xa: NodeId, cb: f64, xb: NodeId) -> NodeId {
        if xa == xb && (ca + cb == 0.0 || (ca + cb).is_normal()) {
            return self.scale(ca + cb, xa);
        }
        if ca.abs() == cb.abs() && ca.abs() != 1.0 {
            let inner = if ca == cb { self.sum_of_terms(xa, xb) } else { self.difference_of_terms(xa, xb) };
            return self.scale(ca, inner);
        }
        let (ta, tb) = (self.scale(ca.abs(), xa), self.scale(cb.abs(), xb));
        match (ca > 0.0, cb > 0.0) {
            (true, true) => self.sum_of_terms(ta, tb),
            (true, false) => self.difference_of_terms(ta, tb),
            (false, true) => self.difference_of_terms(tb, ta),
            (false, false) => {
                let sum = self.sum_of_terms(ta, tb);
                self.scale(-1.0, sum)
            }
        }
    }

    /// Simplifies `a + b` for terms whose coefficients need no treatment, algebraic.
    fn sum_of_terms(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_pair(Op::Sub, a), self.as_pair(Op::Sub, b)) {
            (Some((x, y)), _) if y == b => x,
            (_, Some((x, y))) if y == a => x,
            _ => self.raw(Op::Add, &[a, b]),
        }
    }

    /// Simplifies `a - b` for terms whose coefficients need no treatment, algebraic.
    fn difference_of_terms(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if a == b {
            return self.constant(0.0);
        }
        // (x + b) - b, a - (a + x), (b - x) - b, a - (a - x)
        if let Some(x) = self.other_arg(Op::Add, a, b) {
            return x;
        }
        if let Some(x) = self.other_arg(Op::Add, b, a) {
            return self.scale(-1.0, x);
        }
        if let Some((_, x)) = self.as_pair(Op::Sub, a).filter(|(first, _)| *first == b) {
            return self.scale(-1.0, x);
        }
        if let Some((_, x)) = self.as_pair(Op::Sub, b).filter(|(first, _)| *first == a) {
            return x;
        }
        self.directed(Op::Sub, [a, b], Op::Sub, [b, a])
    }

    /// Returns `op(args)`, or the negation of `opposite`, whichever exists; the first if neither does.
    fn directed(&mut self, op: Op, args: [NodeId; 2], opposite_op: Op, opposite: [NodeId; 2]) -> NodeId {
        match self.existing(op, &args).is_none().then(|| self.existing(opposite_op, &opposite)).flatten() {
            Some(there) => self.raw(Op::Neg, &[there]),
            None => self.raw(op, &args),
        }
    }

    /// Simplifies `x + c`.
    fn plus_constant(&mut self, x: NodeId, c: f64) -> NodeId {
        if c == 0.0 && (c.is_sign_negative() || self.is_algebraic()) {
            return x;
        }
        if !self.is_algebraic() {
            if let Some(y) = self.as_unary(Op::Neg, x) {
                return self.constant_minus(c, y);
            }
            let c = self.constant(c);
            return self.raw(Op::Add, &[x, c]);
        }
        if let Some((d, y)) = self.as_with_constant(Op::Add, x)
            && (c + d).is_finite()
        {
            return self.core_plus_constant(y, c + d);
        }
        if let Some((d, y)) = self.as_constant_minus(x)
            && (c + d).is_finite()
        {
            return self.constant_minus_core(c + d, y);
        }
        match self.split(x) {
            (k, y) if k < 0.0 => {
                let y = self.scale(-k, y);
                self.constant_minus_core(c, y)
            }
            _ => self.core_plus_constant(x, c),
        }
    }

    /// Simplifies `c - x`.
    fn constant_minus(&mut self, c: f64, x: NodeId) -> NodeId {
        if c == 0.0 && (c.is_sign_negative() || self.is_algebraic()) {
            return self.negation(x);
        }
        if !self.is_algebraic() {
            if let Some(y) = self.as_unary(Op::Neg, x) {
                return self.plus_constant(y, c);
            }
            let c = self.constant(c);
            return self.raw(Op::Sub, &[c, x]);
        }
        if let Some((d, y)) = self.as_with_constant(Op::Add, x)
            && (c - d).is_finite()
        {
            return self.constant_minus_core(c - d, y);
        }
        if let Some((d, y)) = self.as_constant_minus(x)
            && (c - d).is_finite()
        {
            return self.core_plus_constant(y, c - d);
        }
        match self.split(x) {
            (k, y) if k < 0.0 => {
                let y = self.scale(-k, y);
                self.core_plus_constant(y, c)
            }
            _ => self.constant_minus_core(c, x),
        }
    }

    /// Simplifies `x + c` for an `x` whose sign and addends need no treatment, algebraic.
    fn core_plus_constant(&mut self, x: NodeId, c: f64) -> NodeId {
        if c == 0.0 {
            return x;
        }
        let (plus, minus) = (self.constant(c), self.constant(-c));
        self.directed(Op::Add, [x, plus], Op::Sub, [minus, x])
    }

    /// Simplifies `c - x` for an `x` whose sign and addends need no treatment, algebraic.
    fn constant_minus_core(&mut self, c: f64, x: NodeId) -> NodeId {
        if c == 0.0 {
            return self.scale(-1.0, x);
        }
        let (plus, minus) = (self.constant(c), self.constant(-c));
        self.directed(Op::Sub, [plus, x], Op::Add, [x, minus])
    }

    /// Returns `(c, y)` if `x` is `c - y`.
    fn as_constant_minus(&self, x: NodeId) -> Option<(f64, NodeId)> {
        let (c, y) = self.as_pair(Op::Sub, x)?;
        Some((self.as_const(c)?, y))
    }
}
