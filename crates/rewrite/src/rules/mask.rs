//! Masks: `if c then x else 0` and `select c x 0`, written `[c] x`. What multiplies a mask goes inside, where a sum over an index
//! that `c` compares finds it (`rules/sum.rs`): so the one-hot arrays of derivatives vanish.
//!
//! `0 * x` is not 0 for infinite `x`, so products are algebraic.

use super::op::doubles;
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::Op;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "mask-product",
        law: "[c] x * y = [c] (x * y); [c] x / y = [c] (x / y); -[c] x = [c] (-x)",
        when: "",
        algebraic: true,
        split: false,
        on: On::Op,
        apply: product,
    },
    Rule {
        name: "mask-sum",
        law: "[c] x + [c] y = [c] (x + y); [c] x - [c] y = [c] (x - y)",
        when: "",
        algebraic: false,
        split: false,
        on: On::Op,
        apply: sum,
    },
];

/// A mask's condition and its block.
pub(super) fn as_mask(rb: &Rebuild<'_>, var: VarId) -> Option<(VarId, Block)> {
    match rb.def(var).as_deref() {
        Some(Expr::If { condition, then, otherwise }) if is_zero(rb, otherwise.result) => {
            Some((*condition, then.clone()))
        }
        Some(Expr::Op(Op::Select, args)) if is_zero(rb, args[2]) => {
            Some((args[0], Block { stmts: Vec::new(), result: args[1] }))
        }
        _ => None,
    }
}

/// Whether `var` is zero by structure; strictly, not minus zero.
pub(super) fn is_zero(rb: &Rebuild<'_>, var: VarId) -> bool {
    match rb.real_of(var) {
        Some(value) => value == 0.0 && (value.is_sign_positive() || !rb.settings.strict),
        None => matches!(rb.def(var).as_deref(), Some(Expr::Zero)),
    }
}

/// `[condition] then`, of type `ty`.
pub(super) fn mask(
    rb: &mut Rebuild<'_>,
    condition: VarId,
    ty: &Type,
    then: impl FnOnce(&mut Rebuild<'_>) -> VarId,
) -> VarId {
    rb.if_(condition, ty, then, |rb| rb.zero(ty))
}

fn copy(rb: &mut Rebuild<'_>, block: &Block) -> VarId {
    rb.inline(block, block.result, &mut Env::copying(&[]))
}

fn product(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op, args) = doubles(expr, ty)?;
    if !matches!(op, Op::Mul | Op::Div | Op::Neg) {
        return None;
    }
    let candidates = if op == Op::Mul { args.len() } else { 1 };
    let at = (0..candidates).find(|at| as_mask(rb, args[*at]).is_some())?;
    let (condition, then) = as_mask(rb, args[at])?;
    Some(mask(rb, condition, ty, |rb| {
        let mut args = args.to_vec();
        args[at] = copy(rb, &then);
        rb.op(op, &args)
    }))
}

fn sum(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op @ (Op::Add | Op::Sub), &[x, y]) = doubles(expr, ty)? else { return None };
    let ((c, x), (d, y)) = (as_mask(rb, x)?, as_mask(rb, y)?);
    if c != d {
        return None;
    }
    Some(mask(rb, c, ty, |rb| {
        let (x, y) = (copy(rb, &x), copy(rb, &y));
        rb.op(op, &[x, y])
    }))
}
