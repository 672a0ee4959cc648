//! Rules for tuples and their components (figure 7d).

use super::get::element;
use super::{On, Rule};
use crate::rebuild::Rebuild;
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::Semantics;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "component",
        law: "fst (x, y) = x",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Component,
        apply: of_tuple,
    },
    Rule {
        name: "fuse-component",
        law: "fst (build n (fun i -> (f i, g i)))[j] = f j",
        when: "0 <= j < n is proved; f costs no more than a load; to any depth",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Component,
        apply: of_element,
    },
    Rule {
        name: "component-if",
        law: "fst (if c then (x, y) else (u, v)) = if c then x else u",
        when: "both tuples are known outside of the branches",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Component,
        apply: of_branches,
    },
    Rule {
        name: "same-tuple",
        law: "(fst t, snd t) = t",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Tuple,
        apply: same,
    },
];

/// Returns the flat tuple type of the leaves of `ty`, if it is a tuple with nested tuples.
pub(super) fn flattened(ty: &Type) -> Option<Type> {
    let Type::Tuple(fields, _) = ty else { return None };
    if !fields.iter().any(|field| matches!(field, Type::Tuple(..))) {
        return None;
    }
    let (mut todo, mut leaves): (Vec<&Type>, Vec<Type>) = (vec![ty], Vec::new());
    while let Some(ty) = todo.pop() {
        match ty {
            Type::Tuple(fields, _) => todo.extend(fields.iter().rev()),
            leaf => leaves.push(leaf.clone()),
        }
    }
    Some(Type::tuple(leaves))
}

/// Writes the flat tuple of the leaves of `value`, of the type returned by [`flattened`].
pub(super) fn flatten(rb: &mut Rebuild<'_>, value: VarId, flat: &Type) -> VarId {
    let (mut todo, mut leaves) = (vec![value], Vec::new());
    while let Some(value) = todo.pop() {
        match rb.ty(value) {
            Type::Tuple(fields, _) => {
                let n = fields.len();
                let parts: Vec<VarId> = (0..n).map(|k| rb.compute(Expr::Component(value, k))).collect();
                todo.extend(parts.into_iter().rev());
            }
            _ => leaves.push(value),
        }
    }
    rb.tuple(leaves, flat)
}

/// Writes the value of type `ty` with the leaves of `flat`. Only recursive on the nesting of types.
pub(super) fn nested(rb: &mut Rebuild<'_>, flat: VarId, ty: &Type, next: &mut usize) -> VarId {
    match ty {
        Type::Tuple(fields, _) => {
            let parts = fields.iter().map(|field| nested(rb, flat, field, next)).collect();
            rb.tuple(parts, ty)
        }
        _ => {
            *next += 1;
            rb.compute(Expr::Component(flat, *next - 1))
        }
    }
}

fn of_tuple(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::Component(tuple, k) = expr else { return None };
    match rb.def(*tuple).as_deref() {
        Some(Expr::Tuple(fields)) => fields.get(*k).copied(),
        _ => None,
    }
}

fn of_element(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::Component(tuple, k) = expr else { return None };
    let def = rb.def(*tuple)?;
    element(rb, &def, Some(*k))
}

fn of_branches(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::Component(tuple, k) = expr else { return None };
    let def = rb.def(*tuple)?;
    let Expr::If { condition, then, otherwise } = &*def else { return None };
    if !then.stmts.is_empty() || !otherwise.stmts.is_empty() {
        return None;
    }
    let field = |rb: &Rebuild<'_>, tuple: VarId| match rb.def(tuple).as_deref() {
        Some(Expr::Tuple(fields)) => fields.get(*k).copied(),
        _ => None,
    };
    let (x, u) = (field(rb, then.result)?, field(rb, otherwise.result)?);
    if x == u {
        return Some(x);
    }
    let branch = |result: VarId| Block { stmts: Vec::new(), result };
    Some(rb.compute(Expr::If { condition: *condition, then: branch(x), otherwise: branch(u) }))
}

fn same(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Tuple(fields) = expr else { return None };
    let mut whole = None;
    for (at, field) in fields.iter().enumerate() {
        match rb.def(*field).as_deref() {
            Some(Expr::Component(tuple, k)) if *k == at && whole.is_none_or(|whole| whole == *tuple) => {
                whole = Some(*tuple);
            }
            _ => return None,
        }
    }
    whole.filter(|whole| rb.ty(*whole) == ty)
}
