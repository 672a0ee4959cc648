//! Simplification at construction: D*'s section 2.1 and DESIGN.md's "Scalar graph".
//!
//! In: an operator and nodes of the graph. Out: a node with the same value, often an existing one. Nodes are never
//! rewritten afterwards, so a construction costs O(1) (amortised for sums of masks).
//!
//! # The normal form
//! An expression is a *coefficient* times a *core*. The coefficient is a number: 1 is omitted, -1 is a negation, any
//! other is a multiplication by a constant. It is moved out of products, quotients, odd and even functions, so that
//! expressions which differ by a constant factor share their core. In a sum, a negative coefficient becomes a
//! subtraction; a negative sum has its sign outside. A difference takes the direction in which it was first created;
//! the other one is its negation. `x - c` is `x + (-c)`, `c/x` is `c*(1/x)`, `x/c` is `(1/c)*x`. A *mask* `select(c, p,
//! 0)` is outermost in its product (`mask.rs`).
//!
//! # The rules
//! Strict: the rule is exact in IEEE 754 for every value, NaN, infinities and signed zeros included
//! (all NaN counted as one), so it holds in both semantics. Others hold only for [`Semantics::Algebraic`].
//!
//! | from | rule | strict |
//! | --- | --- | --- |
//! | any | constants are folded by the operator's row | yes |
//! | `+` | `x + -0 -> x` | yes; `x + 0` is 0 for x = -0 |
//! | | `x + 0 -> x` | no |
//! | | `x + (-y) -> x - y`, `(-x) + y -> y - x` | yes: that is how IEEE defines subtraction |
//! | | `x + x -> 2*x` | yes: both are exact but for overflow |
//! | | `a*x + b*x -> (a+b)*x`, `c*x + c*y -> c*(x+y)`, `(-x) + (-y) -> -(x+y)` | no |
//! | | `(x - y) + y -> x`, `(x + c) + d -> x + (c+d)`, `(c - x) + d -> (c+d) - x` | no |
//! | `-` | `x - 0 -> x`, `-0 - x -> -x` | yes; not `x - -0`, not `0 - x` |
//! | | `x - c -> x + (-c)`, `x - (-y) -> x + y` | yes |
//! | | `x - x -> 0`, `b - a -> -(a - b)`, `(x + y) - y -> x` | no: infinities, zeros' signs |
//! | | `x - (x - y) -> y`, `c - (x + d) -> (c-d) - x` | no |
//! | `*` | `x*1 -> x`, `x*-1 -> -x`, `(-x)*y -> -(x*y)`, `(-x)*c -> (-c)*x` | yes: rounding is symmetric |
//! | | `x*0 -> 0`, `c*(d*x) -> (c*d)*x`, `(c*x)*(d*y) -> (c*d)*(x*y)` | no |
//! | | `sqrt(x)*sqrt(x) -> x`, `(x/y)*y -> x`, `x*(1/sqrt(x)) -> sqrt(x)` | no |
//! | | `(x*sqrt(y))*(x*sqrt(y)) -> (x*x)*y`, `sqrt(x)*maskedReciprocal(sqrt(x)) -> 1` | no |
//! | masked `*` | `0*x -> 0`, an ordinary product where the first factor is another number | yes |
//! | masked, strong `*` | coefficients as above; ordinary if a factor is a number or cancels | no: zeros' signs |
//! | `/` | `x/1 -> x`, `x/-1 -> -x`, `(-x)/y -> -(x/y)`, `x/(-y) -> -(x/y)` | yes |
//! | | `x/c -> (1/c)*x` | where c is a power of two: then both round the same number |
//! | | `0/x -> 0`, `x/x -> 1`, `c/x -> c*(1/x)`, `(c*x)/(d*y) -> (c/d)*(x/y)` | no |
//! | | `(x*y)/y -> x`, `x/(x*y) -> 1/y`, `1/(x/y) -> y/x`, `x/(1/y) -> x*y` | no |
//! | | `x/sqrt(x) -> sqrt(x)`, `(x*y)/sqrt(x) -> y*sqrt(x)` | no |
//! | neg | `-(-x) -> x`, `-(c*x) -> (-c)*x` | yes |
//! | `**` | `x**0 -> 1`, `x**1 -> x`, `1**x -> 1` | yes: so IEEE 754 and C define pow |
//! | | `x**n` by multiplications up to n = 8, `x**-n -> 1/x**n` | no: pow rounds otherwise |
//! | | `x**0.5 -> sqrt(x)`, `x**-1.5 -> 1/(x*sqrt(x))` and so on | no |
//! | odd and even functions | `sin(-x) -> -sin(x)`, `cos(-x) -> cos(x)`, ... | no: libraries need not be symmetric |
//! | functions | `abs(-x) -> abs(x)`, `abs(abs(x)) -> abs(x)`, `floor(floor(x)) -> floor(x)`, `sign(sign(x))` | yes |
//! | | `abs(c*x) -> abs(c)*abs(x)`, `sign(c*x) -> +-sign(x)`, `sqrt(x*x) -> abs(x)` | no |
//! | | `exp(log(x)) -> x`, `log(exp(x)) -> x` | no |
//! | | `polygamma(0, x) -> digamma(x)` | yes: one definition |
//! | min, max | `min(x, x) -> x` | yes |
//! | | `min(-x, -y) -> -max(x, y)` | no: signs of zeros |
//! | `<`, `<=`, `==` | `x < x -> false`, `-x < -y -> y < x`, `-x < c -> -c < x` | yes |
//! | | `x <= x -> true`, `x == x -> true` for truth values; numbers may be NaN | yes |
//! | not, and, or | `not(not(x)) -> x` for truth values, constants, `x && x`, `x && not(x)` | yes |
//! | select | constant condition, equal branches, negated condition, nested selection by one condition | yes |
//! | | `select(c, k*x, k*y) -> k*select(c, x, y)` | no |
//! | masks | see `mask.rs` | defined so |
//!
//! Constants are combined only if the result is a normal number, so that construction causes no overflow or underflow
//! that the computation would not have.

mod function;
mod logic;
mod mask;
mod power;
mod product;
mod sum;

#[cfg(test)]
mod tests;

pub(crate) use function::{Parity, parity};

use crate::Semantics;
use crate::graph::{Graph, Node, NodeId};
use chainrule_ops::{Algebra, Op};
use smallvec::SmallVec;

impl Graph {
    /// Returns the node of `op` applied to `args`, simplified.
    ///
    /// # Panics
    /// Panics if the number of arguments is not the operator's arity.
    pub fn apply(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        assert_eq!(args.len(), op.arity(), "{op:?} takes {} arguments", op.arity());
        if let Some(folded) = self.fold(op, args) {
            return folded;
        }
        match (op, args) {
            (Op::Add, &[a, b]) => self.sum(a, b),
            (Op::Sub, &[a, b]) => self.difference(a, b),
            (Op::Mul, &[a, b]) => self.product(a, b),
            (Op::MaskedMul | Op::StrongMul, &[a, b]) => self.strong_product(op, a, b),
            (Op::Div, &[a, b]) => self.quotient(a, b),
            (Op::Neg, &[a]) => self.negation(a),
            (Op::Pow, &[a, b]) => self.power(a, b),
            (Op::Select, &[c, p, q]) => self.selection(c, p, q),
            (Op::Not, &[a]) => self.not(a),
            (Op::And | Op::Or, &[a, b]) => self.connective(op, a, b),
            (Op::Lt | Op::Le | Op::Eq, &[a, b]) => self.comparison(op, a, b),
            (Op::Min | Op::Max, &[a, b]) => self.extremum(op, a, b),
            (_, &[a]) => self.function(op, a),
            (_, &[a, b]) => self.function_of_two(op, a, b),
            _ => self.raw(op, args),
        }
    }

    /// Folds `op` of constants to a constant.
    fn fold(&mut self, op: Op, args: &[NodeId]) -> Option<NodeId> {
        let values: Option<SmallVec<[f64; 3]>> = args.iter().map(|a| self.as_const(*a)).collect();
        Some(self.constant(op.value(&values?)))
    }

    fn is_algebraic(&self) -> bool {
        self.semantics() == Semantics::Algebraic
    }

    /// Returns the arguments of `id` if it is an application of `op`, of arity two.
    fn as_pair(&self, op: Op, id: NodeId) -> Option<(NodeId, NodeId)> {
        match self.node(id) {
            Node::Apply(found, [a, b, _]) if found == op => Some((a, b)),
            _ => None,
        }
    }

    /// Returns the argument of `id` if it is an application of `op`, of arity one.
    fn as_unary(&self, op: Op, id: NodeId) -> Option<NodeId> {
        match self.node(id) {
            Node::Apply(found, [a, ..]) if found == op => Some(a),
            _ => None,
        }
    }

    /// Returns the other argument of a node of `op` that has `arg` among its two arguments.
    fn other_arg(&self, op: Op, id: NodeId, arg: NodeId) -> Option<NodeId> {
        match self.as_pair(op, id)? {
            (a, b) if b == arg => Some(a),
            (a, b) if a == arg => Some(b),
            _ => None,
        }
    }

    /// Returns the constant and the other argument of a node of the commutative `op` with a constant argument.
    fn as_with_constant(&self, op: Op, id: NodeId) -> Option<(f64, NodeId)> {
        let (a, b) = self.as_pair(op, id)?;
        match (self.as_const(a), self.as_const(b)) {
            (Some(c), None) => Some((c, b)),
            (None, Some(c)) => Some((c, a)),
            _ => None,
        }
    }

    /// Returns coefficient and core of `id`; a coefficient that is not a normal number stays in the core.
    fn split(&self, id: NodeId) -> (f64, NodeId) {
        if let Some(core) = self.as_unary(Op::Neg, id) {
            return (-1.0, core);
        }
        match self.as_with_constant(Op::Mul, id) {
            Some((c, core)) if c.is_normal() => (c, core),
            _ => (1.0, id),
        }
    }

    /// Returns `a + b`.
    pub fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.apply(Op::Add, &[a, b])
    }

    /// Returns `a - b`.
    pub fn sub(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.apply(Op::Sub, &[a, b])
    }

    /// Returns `a * b`.
    pub fn mul(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.apply(Op::Mul, &[a, b])
    }

    /// Returns `a / b`.
    pub fn div(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.apply(Op::Div, &[a, b])
    }

    /// Returns `-a`.
    pub fn neg(&mut self, a: NodeId) -> NodeId {
        self.apply(Op::Neg, &[a])
    }

    /// Returns `a ** b`.
    pub fn pow(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.apply(Op::Pow, &[a, b])
    }

    /// Returns `p` if `condition` is true, else `q`.
    pub fn select(&mut self, condition: NodeId, p: NodeId, q: NodeId) -> NodeId {
        self.apply(Op::Select, &[condition, p, q])
    }
}

/// Operators are applied with simplification.
impl Algebra for Graph {
    type Value = NodeId;
    fn constant(&mut self, c: f64) -> NodeId {
        Graph::constant(self, c)
    }
    fn apply(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        Graph::apply(self, op, args)
    }
}
