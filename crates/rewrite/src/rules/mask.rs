//! Masks: `if c then x else 0` and `select c x 0`, written `[c] x`. What multiplies a mask goes inside, where a sum over an index
//! that `c` compares finds it (`rules/sum.rs`): so the one-hot arrays of derivatives vanish.
//!
//! `0 * x` is not 0 for infinite `x`, so products are algebraic.

use super::op::doubles;
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::Op;
use std::rc::Rc;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "mask-product",
        law: "[c] x * y = [c] (x * y); [c] x / y = [c] (x / y); -[c] x = [c] (-x)",
        when: "",
        algebraic: true,
        split: false,
        on: On::Op(&[Op::Mul, Op::Div, Op::Neg]),
        apply: product,
    },
    Rule {
        name: "mask-sum",
        law: "[c] x + [c] y = [c] (x + y); [c] x - [c] y = [c] (x - y)",
        when: "",
        algebraic: false,
        split: false,
        on: On::Op(&[Op::Add, Op::Sub]),
        apply: sum,
    },
];

/// A mask.
pub(super) struct Mask {
    pub(super) condition: VarId,
    def: Rc<Expr>,
    /// Of a selection: the block of what is selected.
    selected: Block,
}

impl Mask {
    /// The block of its value.
    pub(super) fn then(&self) -> &Block {
        match &*self.def {
            Expr::If { then, .. } => then,
            _ => &self.selected,
        }
    }
}

/// The mask that `var`, a variable in scope, is.
pub(super) fn as_mask(rb: &Rebuild<'_>, var: VarId) -> Option<Mask> {
    let def = rb.def(var)?;
    let condition = condition_of(rb, &def)?;
    let result = if let Expr::Op(_, args) = &*def { args[1] } else { var };
    Some(Mask { condition, def, selected: Block { stmts: Vec::new(), result } })
}

/// The condition of the mask that `var`, a variable in scope or of the closed block `body`, is.
pub(super) fn condition_in(rb: &Rebuild<'_>, body: &Block, var: VarId) -> Option<VarId> {
    match rb.bound_in(body, var) {
        Some(expr) => condition_of(rb, expr),
        None => condition_of(rb, &*rb.def(var)?),
    }
}

fn condition_of(rb: &Rebuild<'_>, expr: &Expr) -> Option<VarId> {
    match expr {
        Expr::If { condition, otherwise, .. } if is_zero(rb, otherwise.result) => Some(*condition),
        Expr::Op(Op::Select, args) if is_zero(rb, args[2]) => Some(args[0]),
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
    let (at, found) = (0..candidates).find_map(|at| Some((at, as_mask(rb, args[at])?)))?;
    Some(mask(rb, found.condition, ty, |rb| {
        let mut args = args.to_vec();
        args[at] = copy(rb, found.then());
        rb.op(op, &args)
    }))
}

fn sum(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op @ (Op::Add | Op::Sub), &[x, y]) = doubles(expr, ty)? else { return None };
    let (x, y) = (as_mask(rb, x)?, as_mask(rb, y)?);
    if x.condition != y.condition {
        return None;
    }
    Some(mask(rb, x.condition, ty, |rb| {
        let (x, y) = (copy(rb, x.then()), copy(rb, y.then()));
        rb.op(op, &[x, y])
    }))
}
