//! Derivatives of high order by one input, by Taylor arithmetic.
//!
//! In: nodes, an input and an order. Out: the derivatives of that order. Every node `w` below them gets its Taylor
//! coefficients `w[0] = w, w[1], ...` by the input:
//!
//! | node | coefficient |
//! | --- | --- |
//! | `a + b` | `a[k] + b[k]` |
//! | `a * b` | the sum of `a[j] * b[k - j]` over `j` from 0 |
//! | `a / b` | `(a[k] - sum of b[j] * w[k - j]) / b` over `j` from 1 |
//! | any other | `1/k` times the sum of `j * a[j] * p[k - j]` over `j` from 1 and arguments `a`, with partial `p` |
//!
//! The partials are nodes with coefficients of their own, up to an order less. Those of most operators are made of each
//! other, as sine and cosine are, so that the length is quadratic in the order. Repeated differentiation is
//! exponential.

use crate::graph::{Graph, Node, NodeId};
use crate::partials::partial;
use chainrule_base::{Diagnostic, Id};
use chainrule_ops::{Op, Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// Returns the derivatives of `of` by the input `by`, of an order above 0.
///
/// # Errors
/// Fails if a node has no partial derivative; see [`partial`].
pub fn derivatives_of_order(
    graph: &mut Graph,
    of: &[NodeId],
    by: NodeId,
    order: usize,
) -> Result<Vec<NodeId>, Diagnostic> {
    let mut taylor = Taylor { graph, by, partials: FxHashMap::default(), coefs: FxHashMap::default() };
    let levels = taylor.levels(of, order)?;
    for (k, level) in (1..).zip(levels.iter().rev()) {
        for node in level {
            let coef = taylor.next(*node, k);
            taylor.coefs.entry(*node).or_default().push(coef);
        }
    }
    // Up to order 22 exact.
    let factorial = (1..=order).fold(1.0, |product, k| product * k as f64);
    let factorial = taylor.graph.constant(factorial);
    Ok(of
        .iter()
        .map(|node| match taylor.coef(*node, order) {
            Some(coef) => taylor.graph.apply(Op::Mul, &[factorial, coef]),
            None => taylor.graph.constant(0.0),
        })
        .collect())
}

struct Taylor<'a> {
    graph: &'a mut Graph,
    by: NodeId,
    /// Partial of a node by an argument.
    partials: FxHashMap<(NodeId, usize), NodeId>,
    /// Coefficients of a node from the first one on; none of nodes that do not depend on the input.
    coefs: FxHashMap<NodeId, Vec<NodeId>>,
}

/// Returns whether coefficients are computed without partials.
fn is_arithmetic(op: Op) -> bool {
    matches!(op, Op::Add | Op::Sub | Op::Neg | Op::Mul | Op::Div)
}

impl Taylor<'_> {
    /// Returns the nodes that need a coefficient of the order, of one less, and so on; each list is ascending, and
    /// contains the previous one.
    fn levels(&mut self, of: &[NodeId], order: usize) -> Result<Vec<Vec<NodeId>>, Diagnostic> {
        let mut roots = of.to_vec();
        let mut levels = Vec::with_capacity(order);
        for _ in 0..order {
            let below = self.graph.reachable(&roots);
            let mut varying: FxHashSet<NodeId> = FxHashSet::default();
            let mut level = Vec::new();
            for node in below.iter() {
                let gives_truth = self.op(node).is_some_and(Op::gives_truth);
                let varies = node == self.by || self.graph.args(node).iter().any(|arg| varying.contains(arg));
                if varies && !gives_truth {
                    varying.insert(node);
                    level.push(node);
                }
            }
            for node in &level {
                let op = self.op(*node);
                if op.is_some_and(is_arithmetic) {
                    continue;
                }
                for (idx, arg) in self.graph.args(*node).to_vec().into_iter().enumerate() {
                    if op.is_none_or(|op| op.row().args[idx] == Type::Num) && varying.contains(&arg) {
                        let found = partial(self.graph, *node, idx)?;
                        self.partials.insert((*node, idx), found);
                        roots.push(found);
                    }
                }
            }
            roots.sort_unstable_by_key(|node| node.index());
            roots.dedup();
            levels.push(level);
        }
        Ok(levels)
    }

    /// Returns the operator of a node; `None` for inputs, and for functions of the user.
    fn op(&self, node: NodeId) -> Option<Op> {
        match self.graph.node(node) {
            Node::Apply(op, _) => Some(op),
            _ => None,
        }
    }

    /// Returns a coefficient, if it is not 0.
    fn coef(&self, node: NodeId, k: usize) -> Option<NodeId> {
        if k == 0 {
            return Some(node);
        }
        let coef = *self.coefs.get(&node)?.get(k - 1)?;
        (self.graph.as_const(coef) != Some(0.0)).then_some(coef)
    }

    /// Returns coefficient `k` of a node whose lower coefficients are known, as are those of its arguments.
    fn next(&mut self, node: NodeId, k: usize) -> NodeId {
        if node == self.by {
            return self.graph.constant(if k == 1 { 1.0 } else { 0.0 });
        }
        let args = self.graph.args(node).to_vec();
        let op = self.op(node);
        let mut terms = Vec::new();
        match op {
            Some(Op::Add) => terms.extend(args.iter().filter_map(|arg| self.coef(*arg, k))),
            Some(Op::Sub | Op::Neg) => {
                let (plus, minus) =
                    if op == Some(Op::Sub) { (self.coef(args[0], k), args[1]) } else { (None, args[0]) };
                terms.extend(plus);
                let minus = self.coef(minus, k);
                terms.extend(minus.map(|minus| self.graph.apply(Op::Neg, &[minus])));
            }
            Some(Op::Mul) => {
                for j in 0..=k {
                    let pair = self.coef(args[0], j).zip(self.coef(args[1], k - j));
                    terms.extend(pair.map(|(a, b)| self.graph.apply(Op::Mul, &[a, b])));
                }
            }
            Some(Op::Div) => {
                terms.extend(self.coef(args[0], k));
                for j in 1..=k {
                    let pair = self.coef(args[1], j).zip(self.coef(node, k - j));
                    let product = pair.map(|(b, w)| self.graph.apply(Op::Mul, &[b, w]));
                    terms.extend(product.map(|product| self.graph.apply(Op::Neg, &[product])));
                }
                let sum = self.sum(&terms);
                return self.graph.apply(Op::Div, &[sum, args[1]]);
            }
            _ => {
                for (idx, arg) in args.iter().enumerate() {
                    let Some(partial) = self.partials.get(&(node, idx)).copied() else { continue };
                    for j in 1..=k {
                        let Some((a, p)) = self.coef(*arg, j).zip(self.coef(partial, k - j)) else { continue };
                        let share = self.graph.constant(j as f64 / k as f64);
                        let product = self.graph.apply(Op::Mul, &[a, p]);
                        terms.push(self.graph.apply(Op::Mul, &[share, product]));
                    }
                }
            }
        }
        self.sum(&terms)
    }

    fn sum(&mut self, terms: &[NodeId]) -> NodeId {
        let sum = terms.iter().copied().reduce(|a, b| self.graph.apply(Op::Add, &[a, b]));
        sum.unwrap_or_else(|| self.graph.constant(0.0))
    }
}
