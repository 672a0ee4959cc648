//! Rules that start from a product or a quotient.
//!
//! Both split factors in the same order: masks, which become outermost; coefficients, whose product comes next; then
//! the cores, between which only cancellation applies.

use crate::graph::{Graph, Node, NodeId};
use chainrule_ops::Op;

impl Graph {
    /// Simplifies `a * b`.
    pub(super) fn product(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let ((mask_a, a), (mask_b, b)) = (self.unmask(a), self.unmask(b));
        let value = match (self.as_const(a), self.as_const(b)) {
            (Some(x), Some(y)) => self.constant(x * y),
            (Some(c), None) => self.times_constant(b, c),
            (None, Some(c)) => self.times_constant(a, c),
            (None, None) => self.product_of_expressions(Op::Mul, a, b),
        };
        let value = self.remask(mask_b, value);
        self.remask(mask_a, value)
    }

    /// Simplifies `a * b` where a zero of `a` masks `b`, and with a strong `op` a zero of `b` masks `a`.
    pub(super) fn strong_product(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        let ((mask_a, a), (mask_b, b)) = (self.unmask(a), self.unmask(b));
        let algebraic = self.is_algebraic();
        let value = match (self.as_const(a), self.as_const(b)) {
            (Some(x), Some(y)) => self.constant(op.value(&[x, y])),
            (Some(0.0), None) => self.constant(0.0),
            (None, Some(0.0)) if op == Op::StrongMul => self.constant(0.0),
            (Some(c), None) if op == Op::MaskedMul || (algebraic && c.is_finite()) => self.times_constant(b, c),
            (None, Some(c)) if algebraic && c.is_finite() => self.times_constant(a, c),
            (None, None) if algebraic => self.product_of_expressions(op, a, b),
            // The sign of a zero is lost, so none is moved out.
            _ => self.raw(op, &[a, b]),
        };
        let value = self.remask(mask_b, value);
        self.remask(mask_a, value)
    }

    /// Simplifies `a / b`.
    pub(super) fn quotient(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let (mask, a) = self.unmask(a);
        let value = match (self.as_const(a), self.as_const(b)) {
            (Some(x), Some(y)) => self.constant(x / y),
            (None, Some(c)) => self.over_constant(a, c),
            (Some(0.0), None) if self.is_algebraic() => self.constant(0.0),
            _ => self.quotient_of_expressions(a, b),
        };
        self.remask(mask, value)
    }

    /// Simplifies `c * x`; `x` is not a mask, or its masks do not matter.
    pub(super) fn times_constant(&mut self, x: NodeId, c: f64) -> NodeId {
        if self.is_algebraic() {
            return self.scale(c, x);
        }
        if let Some(v) = self.as_const(x) {
            return self.constant(c * v);
        }
        if c == 1.0 {
            return x;
        }
        if let Some(y) = self.as_unary(Op::Neg, x) {
            // -(c*y) is (-c)*y: rounding is symmetric.
            return if c == -1.0 { y } else { self.raw_times(-c, y) };
        }
        if c != -1.0 {
            return self.raw_times(c, x);
        }
        match self.as_with_constant(Op::Mul, x) {
            Some((d, y)) => self.raw_times(-d, y),
            None => self.raw(Op::Neg, &[x]),
        }
    }

    /// Simplifies `c * x`, algebraic: combines coefficients, finds masks and existing negations.
    pub(super) fn scale(&mut self, c: f64, x: NodeId) -> NodeId {
        let (mask, x) = self.unmask(x);
        let value = self.scale_unmasked(c, x);
        self.remask(mask, value)
    }

    fn scale_unmasked(&mut self, mut c: f64, mut x: NodeId) -> NodeId {
        if let Some(v) = self.as_const(x) {
            return self.constant(c * v);
        }
        // A core has its own coefficient only if combining the two would have left the normal numbers, so this ends
        // after a few rounds.
        while c.is_normal() {
            let (d, core) = self.split(x);
            if d == 1.0 || !(c * d).is_normal() {
                break;
            }
            (c, x) = (c * d, core);
        }
        if c == 0.0 {
            return self.constant(0.0);
        }
        if c == 1.0 {
            return x;
        }
        if c != -1.0 {
            return self.raw_times(c, x);
        }
        match self.as_pair(Op::Sub, x).and_then(|(a, b)| self.existing(Op::Sub, &[b, a])) {
            Some(opposite) => opposite,
            None => self.raw(Op::Neg, &[x]),
        }
    }

    fn raw_times(&mut self, c: f64, x: NodeId) -> NodeId {
        if c == 1.0 {
            return x;
        }
        let c = self.constant(c);
        self.raw(Op::Mul, &[c, x])
    }

    /// Returns coefficient and core if the semantics allows the coefficient to be moved: strict semantics moves signs
    /// only.
    fn movable(&self, x: NodeId) -> (f64, NodeId) {
        if self.is_algebraic() {
            return self.split(x);
        }
        self.as_unary(Op::Neg, x).map_or((1.0, x), |y| (-1.0, y))
    }

    /// Emits their product, by `op`.
    fn product_of_expressions(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        let ((mut ca, mut xa), (mut cb, mut xb)) = (self.movable(a), self.movable(b));
        if !(ca * cb).is_normal() {
            (ca, xa, cb, xb) = (1.0, a, 1.0, b);
        }
        let (guard_a, guard_b) = (self.guard(xa), self.guard(xb));
        let mut cores = self.cancelled(xa, xb);
        if cores.is_none() && self.is_algebraic() {
            cores = self.over_root(xa, xb).or_else(|| self.over_root(xb, xa)).or_else(|| self.square(xa, xb));
        }
        let cores = match cores {
            Some(cores) => cores,
            None if op == Op::Mul => self.raw(op, &[xa, xb]),
            None => self.strong_cores(op, xa, xb),
        };
        let value = self.times_constant(cores, ca * cb);
        let value = self.remask(guard_b, value);
        self.remask(guard_a, value)
    }

    fn product_of_cores(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.cancelled(a, b).unwrap_or_else(|| self.raw(Op::Mul, &[a, b]))
    }

    /// Simplifies `a * b` if a root or a division of one cancels the other.
    fn cancelled(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        if !self.is_algebraic() {
            return None;
        }
        let root = |x| self.as_unary(Op::Sqrt, x);
        if a == b
            && let Some(x) = root(a)
        {
            return Some(x);
        }
        let (p, q) = (self.as_pair(Op::Div, a), self.as_pair(Op::Div, b));
        for (quotient, other) in [(p, b), (q, a)] {
            let Some((p, r)) = quotient else { continue };
            if r == other {
                return Some(p);
            }
            if root(r) == Some(other) {
                return Some(self.product_of_numerators(p, r));
            }
        }
        // The reciprocal of the radicand costs a division unless the graph has it.
        if let (Some((p, r)), Some((q, s))) = (p, q)
            && r == s
            && let Some(x) = root(r)
        {
            let one = self.constant(1.0);
            let reciprocal = self.existing(Op::Div, &[one, x])?;
            let numerator = self.product_of_numerators(p, q);
            return Some(self.product_of_numerators(numerator, reciprocal));
        }
        None
    }

    /// Returns `a * b`, with no rule but that for 1.
    fn product_of_numerators(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_const(a), self.as_const(b)) {
            (Some(1.0), _) => b,
            (_, Some(1.0)) => a,
            _ => self.raw(Op::Mul, &[a, b]),
        }
    }

    /// Simplifies `x * (1 / root)`, algebraic, for a square root that is a factor of `x`, or whose argument is.
    fn over_root(&mut self, x: NodeId, inverse: NodeId) -> Option<NodeId> {
        match self.node(inverse) {
            Node::Apply(Op::Div, [one, root, _]) if self.as_const(one) == Some(1.0) => self.divided_by_root(x, root),
            // A division undone leaves nothing to mask.
            Node::Apply(Op::MaskedReciprocal, [root, ..]) if x == root => Some(self.constant(1.0)),
            Node::Apply(Op::MaskedReciprocal, [root, ..]) => {
                self.other_arg(Op::Mul, x, root).or_else(|| self.divided_by_root(x, root))
            }
            _ => None,
        }
    }

    /// Simplifies `x / root`, algebraic, if the argument of the square root is a factor of `x`.
    fn divided_by_root(&mut self, x: NodeId, root: NodeId) -> Option<NodeId> {
        let square = self.as_unary(Op::Sqrt, root)?;
        if x == square {
            return Some(root);
        }
        let rest = self.other_arg(Op::Mul, x, square)?;
        Some(self.product_of_cores(rest, root))
    }

    /// Simplifies `a * b`, algebraic, if both are the same multiple of a square root: its square, which has slopes
    /// where the root has none.
    fn square(&mut self, a: NodeId, b: NodeId) -> Option<NodeId> {
        let (x, y) = self.as_pair(Op::Mul, a).filter(|_| a == b)?;
        let (factor, square) = match (self.as_unary(Op::Sqrt, x), self.as_unary(Op::Sqrt, y)) {
            (None, Some(square)) => (x, square),
            (Some(square), None) => (y, square),
            _ => return None,
        };
        let factor = self.product_of_cores(factor, factor);
        Some(self.product_of_cores(factor, square))
    }

    /// Returns the strong product of cores. A division that a factor of the other core undoes leaves nothing to hide.
    fn strong_cores(&mut self, op: Op, a: NodeId, b: NodeId) -> NodeId {
        if self.is_algebraic() {
            for (product, quotient) in [(a, b), (b, a)] {
                if let Some((x, y)) = self.as_pair(Op::Div, quotient)
                    && let Some(rest) = self.without_factor(product, y, MAX_FACTORS)
                {
                    return self.product(rest, x);
                }
            }
        }
        self.raw(op, &[a, b])
    }

    /// `x` divided by its factor `y`; `None` if it is none of the first `most`.
    // Recursive on `most`.
    fn without_factor(&mut self, x: NodeId, y: NodeId, most: usize) -> Option<NodeId> {
        if x == y {
            return Some(self.constant(1.0));
        }
        let (p, q) = self.as_pair(Op::Mul, x).filter(|_| most > 0)?;
        if let Some(p) = self.without_factor(p, y, most / 2) {
            return Some(self.product(p, q));
        }
        let q = self.without_factor(q, y, most / 2)?;
        Some(self.product(p, q))
    }

    fn over_constant(&mut self, x: NodeId, c: f64) -> NodeId {
        if self.is_algebraic() {
            let (k, core) = self.split(x);
            if c.is_normal() && (k / c).is_normal() {
                return self.scale(k / c, core);
            }
        } else if is_power_of_two(c) && c.recip().is_normal() {
            return self.times_constant(x, c.recip());
        }
        let (sign, x) = if self.is_algebraic() { (1.0, x) } else { self.movable(x) };
        let c = self.constant(sign * c);
        self.raw(Op::Div, &[x, c])
    }

    /// Simplifies `a / b` for a `b` that is not a constant.
    fn quotient_of_expressions(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let (cb, xb) = self.movable(b);
        let (ca, xa) = match self.as_const(a) {
            Some(c) if self.is_algebraic() && (c / cb).is_normal() => (c, self.constant(1.0)),
            Some(c) => {
                // Strict: c/(-y) is (-c)/y.
                let (sign, y) = if self.is_algebraic() { (1.0, b) } else { (cb, xb) };
                let c = self.constant(c * sign);
                return self.raw(Op::Div, &[c, y]);
            }
            None => self.movable(a),
        };
        if !(ca / cb).is_normal() {
            return self.raw(Op::Div, &[a, b]);
        }
        let guard = self.guard(xa);
        let cores = self.quotient_of_cores(xa, xb);
        let value = self.times_constant(cores, ca / cb);
        self.remask(guard, value)
    }

    fn quotient_of_cores(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if !self.is_algebraic() {
            return self.raw(Op::Div, &[a, b]);
        }
        if a == b {
            return self.constant(1.0);
        }
        if self.as_unary(Op::Sqrt, b) == Some(a) {
            return b;
        }
        if self.as_unary(Op::Sqrt, a) == Some(b) {
            let one = self.constant(1.0);
            return self.raw(Op::Div, &[one, a]);
        }
        if let Some(x) = self.other_arg(Op::Mul, a, b) {
            return x;
        }
        if let Some(value) = self.divided_by_root(a, b) {
            return value;
        }
        if let Some(y) = self.other_arg(Op::Mul, b, a) {
            let one = self.constant(1.0);
            return self.raw(Op::Div, &[one, y]);
        }
        if let Some((p, q)) = self.as_pair(Op::Div, b) {
            // a / (p/q), where one of a and p is 1
            if self.as_const(p) == Some(1.0) {
                return if self.as_const(a) == Some(1.0) { q } else { self.product_of_cores(a, q) };
            }
            if self.as_const(a) == Some(1.0) {
                return self.raw(Op::Div, &[q, p]);
            }
        }
        self.raw(Op::Div, &[a, b])
    }
}

/// Maximum number of factors of a product that may cancel a division in a strong product.
const MAX_FACTORS: usize = 8;

fn is_power_of_two(c: f64) -> bool {
    const MANTISSA: u64 = (1 << 52) - 1;
    c.is_normal() && c.to_bits() & MANTISSA == 0
}
