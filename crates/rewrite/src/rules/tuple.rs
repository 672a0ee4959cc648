//! Rules for tuples and their components (figure 7d).

use super::get::element;
use super::{On, Rule};
use crate::rebuild::Rebuild;
use chainrule_ir::{Expr, Type, VarId};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "component",
        law: "fst (x, y) = x",
        when: "",
        algebraic: false,
        split: false,
        on: On::Component,
        apply: of_tuple,
    },
    Rule {
        name: "fuse-component",
        law: "fst (build n (fun i -> (f i, g i)))[j] = f j",
        when: "0 <= j < n is proved; f costs no more than a load; to any depth",
        algebraic: false,
        split: false,
        on: On::Component,
        apply: of_element,
    },
    Rule {
        name: "same-tuple",
        law: "(fst t, snd t) = t",
        when: "",
        algebraic: false,
        split: false,
        on: On::Tuple,
        apply: same,
    },
];

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
