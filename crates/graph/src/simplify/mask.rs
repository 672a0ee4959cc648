//! Masks: `select(c, p, 0)` and `select(c, 0, p)`, the labels of branches.
//!
//! DESIGN.md's law 9: a NaN in the branch not taken never reaches a value or a derivative. The partial of a choice by a
//! branch is `select(c, 1, 0)`, and the partials below it are infinite or NaN exactly if the branch is not taken:
//! `select(x > 0, 1, 0) * (1/x)`. So a mask that is off makes the whole product 0, for any values of the other factors,
//! in both semantics:
//!
//! | rule | |
//! | --- | --- |
//! | `select(c, p, 0) * r -> select(c, p*r, 0)`, likewise `/`, negation, constants | a masked-off value is +0 |
//! | `select(c, select(d, p, 0), 0) -> select(c && d, p, 0)` | exact; keeps masks one deep, so every rule is O(1) |
//! | `select(c, p, 0) + select(c, q, 0) -> select(c, p+q, 0)`, likewise `-` | exact |
//! | `select(c, p, 0) + select(c, 0, q) -> select(c, p, q)`, likewise `-` | algebraic (a zero's sign) |
//! | `(s + t) * r -> select(c \|\| d, (s+t)*r, 0)` for masks s, t by different conditions c, d | as the first |
//! | `select(e, s, q) * r -> select(not e \|\| c, select(e, s, q)*r, 0)` for a mask s by c | as the first |
//!
//! The last two are for cotangents of a node that several branches use. Such values are only recorded when they are
//! created; the condition under which one is not off is created at its first multiplication.
//!
//! In terms of values with an additional "off": a product is off if a factor is, a sum if both terms are, a choice if
//! the chosen branch is, and off is finally 0. `tests/masks.rs` compares with that.

use crate::graph::{Graph, Node, NodeId};
use chainrule_ops::Op;

/// Condition under which a masked value is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mask {
    condition: NodeId,
    /// Whether the value is on if the condition is true, or if it is false.
    on: bool,
}

impl Graph {
    /// Removes the mask of `x`, if it has one.
    pub(super) fn unmask(&self, x: NodeId) -> (Option<Mask>, NodeId) {
        if let Node::Apply(Op::Select, [condition, p, q]) = self.node(x) {
            if self.is_plain_zero(q) {
                return (Some(Mask { condition, on: true }), p);
            }
            if self.is_plain_zero(p) {
                return (Some(Mask { condition, on: false }), q);
            }
        }
        (None, x)
    }

    /// Adds a mask.
    pub(super) fn remask(&mut self, mask: Option<Mask>, value: NodeId) -> NodeId {
        let Some(mask) = mask else { return value };
        let zero = self.constant(0.0);
        if mask.on { self.selection(mask.condition, value, zero) } else { self.selection(mask.condition, zero, value) }
    }

    /// Returns the mask of the values, recorded by [`Self::note_mask`], from which `x` is computed.
    pub(super) fn guard(&mut self, x: NodeId) -> Option<Mask> {
        self.is_masked(x).then(|| Mask { condition: self.active_condition(x), on: true })
    }

    /// Simplifies `select(condition, p, q)` with 0 as one of the branches and a mask as the other.
    pub(super) fn mask_of_mask(&mut self, condition: NodeId, p: NodeId, q: NodeId) -> Option<NodeId> {
        let (on, branch) = match (self.is_plain_zero(p), self.is_plain_zero(q)) {
            (false, true) => (true, p),
            (true, false) => (false, q),
            _ => return None,
        };
        let (Some(inner), value) = self.unmask(branch) else { return None };
        let zero = self.constant(0.0);
        if !on && !inner.on {
            let off = self.connective(Op::Or, condition, inner.condition);
            return Some(self.selection(off, zero, value));
        }
        let (outer, inner) = (self.where_on(Mask { condition, on }), self.where_on(inner));
        let both = self.apply(Op::And, &[outer, inner]);
        Some(self.selection(both, value, zero))
    }

    /// Simplifies `a + b` or `a - b` for two masks with one condition.
    pub(super) fn sum_of_masks(&mut self, op: Op, a: NodeId, b: NodeId) -> Option<NodeId> {
        let ((Some(mask_a), p), (Some(mask_b), q)) = (self.unmask(a), self.unmask(b)) else { return None };
        if mask_a.condition != mask_b.condition {
            return None;
        }
        if mask_a.on == mask_b.on {
            let value = self.apply(op, &[p, q]);
            return Some(self.remask(Some(mask_a), value));
        }
        if self.semantics() != crate::Semantics::Algebraic {
            return None;
        }
        let q = if op == Op::Sub { self.negation(q) } else { q };
        let (p, q) = if mask_a.on { (p, q) } else { (q, p) };
        Some(self.selection(mask_a.condition, p, q))
    }

    /// Records whether the new node `id` is 0 if all masks of its operands are off.
    pub(crate) fn note_mask(&mut self, id: NodeId) {
        let masked = match self.node(id) {
            Node::Apply(Op::Add | Op::Sub, [a, b, _]) => self.is_masked(a) && self.is_masked(b),
            Node::Apply(Op::Neg, [a, ..]) => self.is_masked(a),
            Node::Apply(Op::Mul, [a, b, _]) => {
                self.is_finite_const(a) && self.is_masked(b) || self.is_finite_const(b) && self.is_masked(a)
            }
            Node::Apply(Op::Div, [a, b, _]) => {
                self.is_finite_const(b) && self.as_const(b) != Some(0.0) && self.is_masked(a)
            }
            Node::Apply(Op::Select, [_, p, q]) => {
                self.unmask(id).0.is_none() && (self.is_masked(p) || self.is_masked(q))
            }
            _ => false,
        };
        if masked {
            self.masked.insert(id);
        }
    }

    pub(crate) fn is_masked(&self, x: NodeId) -> bool {
        match self.node(x) {
            Node::Apply(..) => self.unmask(x).0.is_some() || self.masked.contains(&x),
            _ => false,
        }
    }

    fn is_plain_zero(&self, x: NodeId) -> bool {
        self.as_const(x).is_some_and(|c| c.to_bits() == 0)
    }

    fn is_finite_const(&self, x: NodeId) -> bool {
        self.as_const(x).is_some_and(f64::is_finite)
    }

    fn where_on(&mut self, mask: Mask) -> NodeId {
        if mask.on { mask.condition } else { self.apply(Op::Not, &[mask.condition]) }
    }

    /// Returns the condition that one of the masks below `x` is on. Each node is visited once, so this is O(1)
    /// amortised.
    fn active_condition(&mut self, x: NodeId) -> NodeId {
        let mut stack = vec![x];
        while let Some(&top) = stack.last() {
            if self.active.contains_key(&top) {
                stack.pop();
                continue;
            }
            if let (Some(mask), inner) = self.unmask(top) {
                // A masked value may be a sum of masks itself, which is off if all of them are.
                if self.is_masked(inner) && !self.active.contains_key(&inner) {
                    stack.push(inner);
                    continue;
                }
                let outer = self.where_on(mask);
                let condition = match self.active.get(&inner).copied() {
                    Some(inner) => self.apply(Op::And, &[outer, inner]),
                    None => outer,
                };
                self.active.insert(top, condition);
                continue;
            }
            let parts: Vec<NodeId> = self.args(top).iter().copied().filter(|a| self.is_masked(*a)).collect();
            let waiting: Vec<NodeId> = parts.iter().copied().filter(|a| !self.active.contains_key(a)).collect();
            if !waiting.is_empty() {
                stack.extend(waiting);
                continue;
            }
            let condition = match self.node(top) {
                Node::Apply(Op::Select, [c, p, q]) => {
                    let always = self.constant(1.0);
                    let on_p = self.active.get(&p).copied().unwrap_or(always);
                    let on_q = self.active.get(&q).copied().unwrap_or(always);
                    self.choice_of_conditions(c, on_p, on_q)
                }
                _ => parts[1..].iter().fold(self.active[&parts[0]], |condition, part| {
                    let other = self.active[part];
                    self.apply(Op::Or, &[condition, other])
                }),
            };
            self.active.insert(top, condition);
        }
        self.active[&x]
    }

    /// Returns `c && p || not(c) && q`, with at most one of p and q the constant 1.
    fn choice_of_conditions(&mut self, c: NodeId, p: NodeId, q: NodeId) -> NodeId {
        let not_c = self.apply(Op::Not, &[c]);
        if self.as_const(q).is_some() {
            return self.apply(Op::Or, &[not_c, p]);
        }
        if self.as_const(p).is_some() {
            return self.apply(Op::Or, &[c, q]);
        }
        let (first, second) = (self.apply(Op::And, &[c, p]), self.apply(Op::And, &[not_c, q]));
        self.apply(Op::Or, &[first, second])
    }
}
