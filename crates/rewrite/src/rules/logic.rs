//! Rules for comparisons and connectives.

use super::{On, Rule};
use crate::rebuild::Rebuild;
use chainrule_ir::{Expr, Type, VarId};
use chainrule_ops::{Op, Semantics};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "compare-integers",
        law: "a < b, a <= b, a == b = true or false",
        when: "a and b are integers whose ranges decide",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Lt, Op::Le, Op::Eq]),
        apply: compare,
    },
    Rule {
        name: "connectives",
        law: "true && x = x; false && x = false; x && x = x; true || x = true; x && y = x; x || y = y; not (not x) = x",
        when: "of two others, x and y are comparisons of integers or their opposites, and y follows from x",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Not, Op::And, Op::Or]),
        apply: connectives,
    },
    Rule {
        name: "select",
        law: "select true x y = x; select c x x = x",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Select]),
        apply: select,
    },
    Rule {
        name: "select-extreme",
        law: "select (x < y) y x = max x y; select (x < y) x y = min y x",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Select]),
        apply: select_extreme,
    },
];

fn compare(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let truth = comparison(rb, expr).and_then(|comparison| decided(rb, comparison))?;
    Some(rb.bool(truth))
}

/// Returns the operator and the operands of a comparison of integers.
fn comparison(rb: &Rebuild<'_>, expr: &Expr) -> Option<(Op, [VarId; 2])> {
    let Expr::Op(op @ (Op::Lt | Op::Le | Op::Eq), args) = expr else { return None };
    let &[x, y] = args.as_slice() else { return None };
    (*rb.ty(x) == Type::Int).then_some((*op, [x, y]))
}

/// Returns the truth of a comparison of integers, if their ranges decide.
fn decided(rb: &Rebuild<'_>, (op, [x, y]): (Op, [VarId; 2])) -> Option<bool> {
    let (a, b) = (rb.size_of(x), rb.size_of(y));
    match op {
        Op::Lt => rb.ranges.less(&a, &b),
        Op::Le => rb.ranges.less(&b, &a).map(|less| !less),
        _ => rb.ranges.equal(&a, &b),
    }
}

/// A comparison of integers, or its opposite.
struct Compared {
    comparison: (Op, [VarId; 2]),
    holds: bool,
}

fn compared(rb: &Rebuild<'_>, var: VarId) -> Option<Compared> {
    let def = rb.def(var)?;
    match &*def {
        Expr::Op(Op::Not, args) => {
            let inner = rb.def(*args.first()?)?;
            Some(Compared { comparison: comparison(rb, &inner)?, holds: false })
        }
        expr => Some(Compared { comparison: comparison(rb, expr)?, holds: true }),
    }
}

/// Returns whether `x` is true where `y` is; both are comparisons of integers, or opposites of some.
fn follows(rb: &mut Rebuild<'_>, x: VarId, y: VarId) -> bool {
    let (Some(wanted), Some(given)) = (compared(rb, x), compared(rb, y)) else { return false };
    let (op, args) = given.comparison;
    let n_assumed = rb.ranges.assumptions();
    rb.learned(op, &args, given.holds).iter().for_each(|size| rb.ranges.assume(size));
    let truth = decided(rb, wanted.comparison);
    rb.ranges.drop_assumptions(n_assumed);
    truth == Some(wanted.holds)
}

fn connectives(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::Op(op, args) = expr else { return None };
    match (op, args.as_slice()) {
        (Op::Not, [x]) => match rb.def(*x).as_deref() {
            Some(Expr::Op(Op::Not, inner)) => inner.first().copied(),
            _ => rb.truth(*x).map(|x| rb.bool(!x)),
        },
        (Op::And | Op::Or, [x, y]) => {
            // `neutral` leaves the other operand unchanged; its opposite decides.
            let neutral = *op == Op::And;
            let (a, b) = (rb.truth(*x), rb.truth(*y));
            if x == y || b == Some(neutral) {
                Some(*x)
            } else if a == Some(neutral) {
                Some(*y)
            } else if a == Some(!neutral) || b == Some(!neutral) {
                Some(rb.bool(!neutral))
            } else if follows(rb, *x, *y) {
                Some(if neutral { *y } else { *x })
            } else if follows(rb, *y, *x) {
                Some(if neutral { *x } else { *y })
            } else {
                None
            }
        }
        _ => None,
    }
}

fn select(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::Op(Op::Select, args) = expr else { return None };
    let &[c, x, y] = args.as_slice() else { return None };
    match rb.truth(c) {
        Some(true) => Some(x),
        Some(false) => Some(y),
        None => (x == y).then_some(x),
    }
}

/// The operators have these comparisons in their values, so zeros of both signs and NaN are decided alike. A loop can
/// reduce a maximum in lanes, and no selection.
fn select_extreme(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::Op(Op::Select, args) = expr else { return None };
    let &[c, then, otherwise] = args.as_slice() else { return None };
    let Some(Expr::Op(Op::Lt, compared)) = rb.def(c).as_deref().cloned() else { return None };
    let &[x, y] = compared.as_slice() else { return None };
    if [then, otherwise] == [y, x] {
        Some(rb.op(Op::Max, &[x, y]))
    } else if [then, otherwise] == [x, y] {
        Some(rb.op(Op::Min, &[y, x]))
    } else {
        None
    }
}
