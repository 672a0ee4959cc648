//! Rules for scalar operators on numbers (figure 7a, with exact rules of IEEE 754 separate).

use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, Size, StateLoop, Type, VarId};
use chainrule_ops::{Op, Semantics, Type as OpType};
use smallvec::SmallVec;

pub(super) const RULES: &[Rule] = &[
    // First, because the sum itself has the only uses.
    Rule {
        name: "common-factor",
        law: "x * y + x * z = x * (y + z); y / x + z / x = (y + z) / x; for differences too",
        when: "nothing else uses the products, and they stand in the loop of the sum; when one-hot arrays have vanished and loops are merged",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Op(&[Op::Add, Op::Sub]),
        apply: common_factor,
    },
    Rule {
        name: "constants",
        law: "op of literals = its value",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::AnyOp,
        apply: constants,
    },
    Rule {
        name: "whole-number",
        law: "real of a literal = the number",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::ToReal,
        apply: whole_number,
    },
    Rule {
        name: "real-count",
        law: "real (ifold (fun s i -> s + (if c i then 1 else 0)) 0 n) = sum n (fun i -> if c i then 1 else 0)",
        when: "c does not depend on s; each of the two numbers is -1, 0 or 1: doubles add them exactly",
        holds_under: Semantics::Strict,
        split: false,
        on: On::ToReal,
        apply: count,
    },
    Rule {
        name: "neutral",
        law: "x * 1 = 1 * x = x / 1 = x ** 1 = x - 0 = x; x * -1 = -x; -(-x) = x; x + (-y) = x - y; x ** 0 = 1",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Neg, Op::Mul, Op::Div, Op::Pow, Op::Sub, Op::Add]),
        apply: neutral,
    },
    Rule {
        name: "zero",
        law: "x + 0 = x; x * 0 = 0 / x = x - x = 0; 0 - x = -x",
        when: "",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Op(&[Op::Add, Op::Sub, Op::Mul, Op::Div]),
        apply: zero,
    },
    Rule {
        name: "double",
        law: "x + x = 2 * x",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::Add]),
        apply: double,
    },
    Rule {
        name: "masked-constant",
        law: "maskedMul 0 x = strongMul 0 x = 0; maskedMul c x = c * x for another number c",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Op(&[Op::MaskedMul, Op::StrongMul]),
        apply: masked_constant,
    },
    Rule {
        name: "strong-product",
        law: "maskedMul x c = x * c for a finite number c; maskedMul (-x) y = maskedMul x (-y) = -(maskedMul x y); maskedMul x (c / x) = c; strongMul likewise",
        when: "",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Op(&[Op::MaskedMul, Op::StrongMul]),
        apply: strong_product,
    },
    Rule {
        name: "cancel",
        law: "x * (c / x) = c; x / x = 1",
        when: "where x is 0, the left side is no number",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Op(&[Op::Mul, Op::Div]),
        apply: cancel,
    },
    Rule {
        name: "reciprocal",
        law: "(1 / x) / x = (1 / x) * (1 / x)",
        when: "",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Op(&[Op::Div]),
        apply: reciprocal,
    },
    Rule {
        name: "power",
        law: "x ** 2 = x * x; x ** 0.5 = sqrt x; x ** -1 = 1 / x",
        when: "the exponent is a whole number from -8 to 8, 0.5, or half a negative number",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Op(&[Op::Pow]),
        apply: power,
    },
];

/// Returns the operator and its operands, if they are doubles.
pub(super) fn doubles<'e>(expr: &'e Expr, ty: &Type) -> Option<(Op, &'e [VarId])> {
    match expr {
        Expr::Op(op, args) if *ty == Type::Double => Some((*op, args)),
        _ => None,
    }
}

fn common_factor(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op @ (Op::Add | Op::Sub), &[a, b]) = doubles(expr, ty)? else { return None };
    if !rb.is_only_use(a, b) {
        return None;
    }
    let (a, b) = (rb.def(a)?, rb.def(b)?);
    match (&*a, &*b) {
        (Expr::Op(Op::Mul, a), Expr::Op(Op::Mul, b)) => {
            let (&[a0, a1], &[b0, b1]) = (&a[..], &b[..]) else { return None };
            let sides = [(a0, a1, b0, b1), (a0, a1, b1, b0), (a1, a0, b0, b1), (a1, a0, b1, b0)];
            let (factor, y, _, z) = sides.into_iter().find(|(left, _, right, _)| left == right)?;
            let sum = rb.op(op, &[y, z]);
            Some(rb.op(Op::Mul, &[factor, sum]))
        }
        (Expr::Op(Op::Div, a), Expr::Op(Op::Div, b)) if a[1] == b[1] => {
            let sum = rb.op(op, &[a[0], b[0]]);
            Some(rb.op(Op::Div, &[sum, a[1]]))
        }
        _ => None,
    }
}

fn constants(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Op(op, args) = expr else { return None };
    let row = op.row();
    if args.first().is_some_and(|arg| *rb.ty(*arg) == Type::Int) {
        let known: Option<SmallVec<[i64; 4]>> = args.iter().map(|arg| rb.size_of(*arg).as_constant()).collect();
        let value = row.int?(&known?)?;
        return Some(if *ty == Type::Bool { rb.bool(value != 0) } else { rb.int(Size::constant(value)) });
    }
    let known: Option<SmallVec<[f64; 4]>> = (args.iter().zip(row.args))
        .map(|(arg, kind)| match kind {
            OpType::Num => rb.real_of(*arg),
            OpType::Bool => rb.truth(*arg).map(|truth| f64::from(u8::from(truth))),
        })
        .collect();
    let value = op.value(&known?);
    Some(if *ty == Type::Bool { rb.bool(value != 0.0) } else { rb.real(value) })
}

fn whole_number(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::ToReal(int) = expr else { return None };
    let value = rb.size_of(*int).as_constant()?;
    Some(rb.real(value as f64))
}

/// Lanes add doubles, and no integers. No loop has 2^53 iterations.
fn count(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::ToReal(int) = expr else { return None };
    let def = rb.def(*int)?;
    let Expr::Fold(StateLoop { count, index, state, init, body }) = &*def else { return None };
    if *rb.ty(*int) != Type::Int || rb.size_of(*init).as_constant() != Some(0) {
        return None;
    }
    let term = rb.size_of(body.result).sub(&Size::var(*state)).as_var()?;
    let Expr::If { condition, then, otherwise } = rb.bound_in(body, term)? else { return None };
    let number = |branch: &Block| rb.size_of(branch.result).as_constant().filter(|c| (-1..=1).contains(c));
    let (then, otherwise) = (number(then)? as f64, number(otherwise)? as f64);
    if rb.slice_mentions(body, &[*condition], *state) {
        return None;
    }
    Some(rb.sum(count.clone(), |rb, i| {
        let condition = rb.inline(body, *condition, &mut Env::copying(&[(*index, i)]));
        rb.if_(condition, ty, |rb| rb.real(then), |rb| rb.real(otherwise))
    }))
}

fn masked_constant(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op, &[x, y]) = doubles(expr, ty)? else { return None };
    let (a, b) = (rb.real_of(x), rb.real_of(y));
    if a == Some(0.0) || (op == Op::StrongMul && b == Some(0.0)) {
        return Some(rb.real(0.0));
    }
    (op == Op::MaskedMul && a.is_some()).then(|| rb.op(Op::Mul, &[x, y]))
}

fn strong_product(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op, &[x, y]) = doubles(expr, ty)? else { return None };
    if [x, y].iter().any(|x| rb.real_of(*x).is_some_and(f64::is_finite)) {
        return Some(rb.op(Op::Mul, &[x, y]));
    }
    for negative in [0, 1] {
        let mut args = [x, y];
        if let Some(value) = negated(rb, args[negative]) {
            args[negative] = value;
            let product = rb.op(op, &args);
            return Some(rb.op(Op::Neg, &[product]));
        }
    }
    cancel(rb, expr, ty)
}

/// Returns the operand of `var`, if it is a negation.
fn negated(rb: &Rebuild<'_>, var: VarId) -> Option<VarId> {
    match rb.def(var).as_deref() {
        Some(Expr::Op(Op::Neg, args)) => args.first().copied(),
        _ => None,
    }
}

fn neutral(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op, args) = doubles(expr, ty)?;
    if let (Op::Neg, [x]) = (op, args) {
        return negated(rb, *x);
    }
    let &[x, y] = args else { return None };
    let (a, b) = (rb.real_of(x), rb.real_of(y));
    match op {
        Op::Mul if b == Some(1.0) => Some(x),
        Op::Mul if a == Some(1.0) => Some(y),
        Op::Mul | Op::Div if b == Some(-1.0) => Some(rb.op(Op::Neg, &[x])),
        Op::Mul if a == Some(-1.0) => Some(rb.op(Op::Neg, &[y])),
        Op::Div | Op::Pow if b == Some(1.0) => Some(x),
        Op::Pow if b == Some(0.0) => Some(rb.real(1.0)),
        // Not x - -0.0, which is 0.0 for x = -0.0.
        Op::Sub if b.is_some_and(|b| b == 0.0 && b.is_sign_positive()) => Some(x),
        // Not x + 0.0.
        Op::Add if b.is_some_and(|b| b == 0.0 && b.is_sign_negative()) => Some(x),
        Op::Add if a.is_some_and(|a| a == 0.0 && a.is_sign_negative()) => Some(y),
        Op::Sub => negated(rb, y).map(|y| rb.op(Op::Add, &[x, y])),
        Op::Add => match (negated(rb, x), negated(rb, y)) {
            (_, Some(y)) => Some(rb.op(Op::Sub, &[x, y])),
            (Some(x), None) => Some(rb.op(Op::Sub, &[y, x])),
            (None, None) => None,
        },
        _ => None,
    }
}

fn zero(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op, args) = doubles(expr, ty)?;
    let &[x, y] = args else { return None };
    let (a, b) = (rb.real_of(x) == Some(0.0), rb.real_of(y) == Some(0.0));
    match op {
        Op::Add | Op::Sub if b => Some(x),
        Op::Add if a => Some(y),
        Op::Sub if a => Some(rb.op(Op::Neg, &[y])),
        Op::Mul if a || b => Some(rb.real(0.0)),
        Op::Div if a => Some(rb.real(0.0)),
        Op::Sub if x == y => Some(rb.real(0.0)),
        _ => None,
    }
}

fn double(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Op::Add, &[x, y]) = doubles(expr, ty)? else { return None };
    if x != y {
        return None;
    }
    let two = rb.real(2.0);
    Some(rb.op(Op::Mul, &[two, x]))
}

fn cancel(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op @ (Op::Mul | Op::Div | Op::MaskedMul | Op::StrongMul), &[x, y]) = doubles(expr, ty)? else { return None };
    if op == Op::Div {
        return (x == y).then(|| rb.real(1.0));
    }
    let over = |rb: &Rebuild<'_>, quotient: VarId, divisor: VarId| match rb.def(quotient).as_deref() {
        Some(Expr::Op(Op::Div, args)) if args[1] == divisor => Some(args[0]),
        _ => None,
    };
    over(rb, x, y).or_else(|| over(rb, y, x))
}

fn reciprocal(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Op::Div, &[x, y]) = doubles(expr, ty)? else { return None };
    match rb.def(x).as_deref() {
        Some(Expr::Op(Op::Div, args)) if args[1] == y && rb.real_of(args[0]) == Some(1.0) => {
            Some(rb.op(Op::Mul, &[x, x]))
        }
        _ => None,
    }
}

fn power(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Op::Pow, &[base, exponent]) = doubles(expr, ty)? else { return None };
    let exponent = rb.real_of(exponent)?;
    chainrule_ops::power(rb, &base, exponent)
}
