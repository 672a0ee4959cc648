//! Masks: `if c then x else 0` and `select c x 0`, written `[c] x`. Factors of a mask move inside, where a sum over an
//! index that `c` compares finds it (`rules/sum.rs`): so the one-hot arrays of derivatives vanish.
//!
//! `0 * x` is not 0 for infinite `x`, so products are algebraic.
//!
//! A factor that moves inside a mask is copied with all its statements, so a chain of products and sums is not masked
//! as a whole: beyond [`MAX_COPIED`] statements they stay outside, and [`condition_of_result`] looks through them to
//! find whether a loop's value vanishes.

use super::op::doubles;
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use std::rc::Rc;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "mask-product",
        law: "[c] x * y = [c] (x * y), strong products likewise; [c] x / y = [c] (x / y); -[c] x = [c] (-x)",
        when: "x has no more than 64 statements",
        algebraic: true,
        split: false,
        on: On::Op(&[Op::Mul, Op::MaskedMul, Op::StrongMul, Op::Div, Op::Neg]),
        apply: product,
    },
    Rule {
        name: "mask-sum",
        law: "[c] x + [c] y = [c] (x + y); [c] x - [c] y = [c] (x - y)",
        when: "x and y have no more than 64 statements each",
        algebraic: false,
        split: false,
        on: On::Op(&[Op::Add, Op::Sub]),
        apply: sum,
    },
];

/// Maximum number of statements of a mask that is copied into its user.
const MAX_COPIED: usize = 64;

/// A mask.
pub(super) struct Mask {
    pub(super) condition: VarId,
    def: Rc<Expr>,
    /// For a selection: the block of the selected value.
    selected: Block,
}

impl Mask {
    fn is_small(&self) -> bool {
        self.then().stmts.len() <= MAX_COPIED
    }

    /// Returns the block of its value.
    pub(super) fn then(&self) -> &Block {
        match &*self.def {
            Expr::If { then, .. } => then,
            _ => &self.selected,
        }
    }
}

/// Returns `var`, a variable in scope, as a mask.
pub(super) fn as_mask(rb: &Rebuild<'_>, var: VarId) -> Option<Mask> {
    let def = rb.def(var)?;
    let condition = condition_of(rb, &def)?;
    let result = if let Expr::Op(_, args) = &*def { args[1] } else { var };
    Some(Mask { condition, def, selected: Block { stmts: Vec::new(), result } })
}

/// Returns the condition of the mask `var`, a variable in scope or of the closed block `body`.
pub(super) fn condition_in(rb: &Rebuild<'_>, body: &Block, var: VarId) -> Option<VarId> {
    match rb.bound_in(body, var) {
        Some(expr) => condition_of(rb, expr),
        None => condition_of(rb, &*rb.def(var)?),
    }
}

/// Returns a condition that must hold unless the result of the closed block `body` is zero: the result is a mask, or
/// made of masks that are too large to be moved. Linear in the block.
pub(super) fn condition_of_result(rb: &Rebuild<'_>, body: &Block) -> Option<VarId> {
    let is_made = |expr: &Expr| {
        matches!(expr, Expr::Op(Op::Mul | Op::MaskedMul | Op::StrongMul | Op::Div | Op::Neg | Op::Add | Op::Sub, _))
    };
    if rb.settings.strict || !rb.bound_in(body, body.result).is_some_and(is_made) {
        return condition_in(rb, body, body.result);
    }
    let mut conditions: FxHashMap<VarId, VarId> = FxHashMap::default();
    for stmt in &body.stmts {
        let of = |var: &VarId| conditions.get(var).copied();
        let found = match &stmt.expr {
            Expr::Op(Op::Mul | Op::MaskedMul | Op::StrongMul, args) => of(&args[0]).or_else(|| of(&args[1])),
            Expr::Op(Op::Div | Op::Neg, args) => of(&args[0]),
            Expr::Op(Op::Add | Op::Sub, args) => of(&args[0]).filter(|condition| of(&args[1]) == Some(*condition)),
            expr => condition_of(rb, expr),
        };
        conditions.extend(found.map(|condition| (stmt.var, condition)));
    }
    conditions.get(&body.result).copied()
}

fn condition_of(rb: &Rebuild<'_>, expr: &Expr) -> Option<VarId> {
    match expr {
        Expr::If { condition, otherwise, .. } if is_zero(rb, otherwise.result) => Some(*condition),
        Expr::Op(Op::Select, args) if is_zero(rb, args[2]) => Some(args[0]),
        _ => None,
    }
}

/// Returns whether `var` is structurally zero; in strict mode, not negative zero.
pub(super) fn is_zero(rb: &Rebuild<'_>, var: VarId) -> bool {
    match rb.real_of(var) {
        Some(value) => value == 0.0 && (value.is_sign_positive() || !rb.settings.strict),
        None => matches!(rb.def(var).as_deref(), Some(Expr::Zero)),
    }
}

/// Writes `[condition] then`, of type `ty`.
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
    let candidates = match op {
        Op::Mul | Op::MaskedMul | Op::StrongMul => 2,
        Op::Div | Op::Neg => 1,
        _ => return None,
    };
    let (at, found) = (0..candidates).find_map(|at| Some((at, as_mask(rb, args[at]).filter(Mask::is_small)?)))?;
    Some(mask(rb, found.condition, ty, |rb| {
        let mut args = args.to_vec();
        args[at] = copy(rb, found.then());
        rb.op(op, &args)
    }))
}

fn sum(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (op @ (Op::Add | Op::Sub), &[x, y]) = doubles(expr, ty)? else { return None };
    let (x, y) = (as_mask(rb, x)?, as_mask(rb, y)?);
    if x.condition != y.condition || !x.is_small() || !y.is_small() {
        return None;
    }
    Some(mask(rb, x.condition, ty, |rb| {
        let (x, y) = (copy(rb, x.then()), copy(rb, y.then()));
        rb.op(op, &[x, y])
    }))
}
