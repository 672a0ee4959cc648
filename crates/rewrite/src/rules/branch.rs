//! Rules for `if` (figure 7f). That `if true then x else y` is `x`, and that in `x` its condition is true, the
//! engine knows (`rebuild`). Branches are lazy: what stands in one is not moved out.

use super::tuple::{flatten, flattened, nested};
use super::{On, Rule};
use crate::key::Key;
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::Op;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "if-same",
        law: "if c then x else x = x",
        when: "",
        algebraic: false,
        split: false,
        on: On::If,
        apply: same,
    },
    Rule {
        name: "if-not",
        law: "if not c then x else y = if c then y else x",
        when: "the other way round is no mask",
        algebraic: false,
        split: false,
        on: On::If,
        apply: swapped,
    },
    Rule {
        name: "if-truth",
        law: "if c then true else false = c; if c then x else false = c && x; if c then true else x = c || x",
        when: "x is known outside of the branch",
        algebraic: false,
        split: false,
        on: On::If,
        apply: truth,
    },
    Rule {
        name: "if-select",
        law: "if c then x else y = select c x y",
        when: "x and y are doubles known outside of the branches",
        algebraic: false,
        split: false,
        on: On::If,
        apply: selected,
    },
    Rule {
        name: "flat-if",
        law: "if c then ((x, y), z) else ((u, v), w) = ((a, b), d) where (a, b, d) = if c then (x, y, z) else (u, v, w)",
        when: "the value is a tuple with tuples in it; then each field by itself can be dead",
        algebraic: false,
        split: false,
        on: On::If,
        apply: flat,
    },
];

fn flat(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    let leaves = flattened(ty)?;
    let branch = |rb: &mut Rebuild<'_>, block: &Block| {
        let value = rb.inline(block, block.result, &mut Env::copying(&[]));
        flatten(rb, value, &leaves)
    };
    let flat = rb.if_(*condition, &leaves, |rb| branch(rb, then), |rb| branch(rb, otherwise));
    Some(nested(rb, flat, ty, &mut 0))
}

fn selected(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    let known = *ty == Type::Double && then.stmts.is_empty() && otherwise.stmts.is_empty();
    known.then(|| rb.op(Op::Select, &[*condition, then.result, otherwise.result]))
}

fn same(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { then, otherwise, .. } = expr else { return None };
    let key: Key = rb.keys.block(&rb.vars, then, ty).into();
    if *rb.keys.block(&rb.vars, otherwise, ty) != *key {
        return None;
    }
    Some(rb.inline(then, then.result, &mut Env::copying(&[])))
}

fn swapped(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    let def = rb.def(*condition)?;
    let Expr::Op(Op::Not, args) = &*def else { return None };
    if super::mask::is_zero(rb, otherwise.result) {
        return None;
    }
    let condition = *args.first()?;
    Some(rb.if_(
        condition,
        ty,
        |rb| rb.inline(otherwise, otherwise.result, &mut Env::copying(&[])),
        |rb| rb.inline(then, then.result, &mut Env::copying(&[])),
    ))
}

fn truth(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::If { condition, then, otherwise } = expr else { return None };
    if *ty != Type::Bool {
        return None;
    }
    let outside = |block: &chainrule_ir::Block| block.stmts.is_empty();
    match (rb.truth(then.result), rb.truth(otherwise.result)) {
        (Some(true), Some(false)) => Some(*condition),
        (Some(false), Some(true)) => Some(rb.op(Op::Not, &[*condition])),
        (None, Some(false)) if outside(then) => Some(rb.op(Op::And, &[*condition, then.result])),
        (Some(true), None) if outside(otherwise) => Some(rb.op(Op::Or, &[*condition, otherwise.result])),
        _ => None,
    }
}
