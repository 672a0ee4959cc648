//! Rules for extremes, quotients and remainders of integers.

use super::{On, Rule};
use crate::rebuild::Rebuild;
use chainrule_ir::{Expr, Size, Type, VarId};
use chainrule_ops::{Op, Semantics};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "known-extreme",
        law: "max a b = a; min a b = b",
        when: "a and b are integers; a >= b by their ranges",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Max, Op::Min]),
        apply: extreme,
    },
    Rule {
        name: "known-quotient",
        law: "div (q * d + r) d = q; mod (q * d + r) d = r",
        when: "0 <= r < d by their ranges, and no term of q and r is far below 0",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Quot, Op::Mod]),
        apply: quotient,
    },
];

/// Returns the operands of an operator on integers.
fn integers(expr: &Expr, ty: &Type) -> Option<(Op, VarId, VarId)> {
    match expr {
        Expr::Op(op, args) if *ty == Type::Int => Some((*op, *args.first()?, *args.get(1)?)),
        _ => None,
    }
}

fn extreme(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op, x, y) = integers(expr, ty)?;
    let (a, b) = (rb.size_of(x), rb.size_of(y));
    let is_least = if rb.ranges.not_negative(&b.sub(&a)) {
        true
    } else if rb.ranges.not_negative(&a.sub(&b)) {
        false
    } else {
        return None;
    };
    Some(if is_least == (op == Op::Min) { x } else { y })
}

/// Flat indices into arrays of other shapes: `mod (n * i + j) n` is `j`. Quotients round down, so that `q` may be
/// negative.
fn quotient(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op, x, divisor) = integers(expr, ty)?;
    let (a, d) = (rb.size_of(x), rb.size_of(divisor));
    let (q, r) = a.divide(&d)?;
    // A remainder by terms is between 0 and the divisor, or, counted from the end, between its opposite and 0.
    let (q, r) = [(q.clone(), r.clone()), (q.sub(&Size::constant(1)), r.add(&d))]
        .into_iter()
        .find(|(_, r)| rb.ranges.in_range(r, &d))?;
    let result = if op == Op::Mod { r } else { q };
    rb.ranges.can_be_subtracted(&result).then(|| rb.int(result))
}
