//! Rules for the general loop: what is one of its special cases becomes it.

use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Expr, Type, VarId};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "same-state",
        law: "loop (fun s i -> (s, f s i, g s i)) z n = loop (fun () i -> ((), f z i, g z i)) () n, with z for the last state",
        when: "or, of a state that is a tuple, for the fields that never change",
        algebraic: false,
        split: false,
        on: On::Loop,
        apply: same_state,
    },
    Rule {
        name: "split-loop",
        law: "loop f s n = (ifold (next f) s n, build n (element f), sum n (term f))",
        when: "elements and terms do not depend on the state; n >= 0",
        algebraic: false,
        split: true,
        on: On::Loop,
        apply: split,
    },
];

fn same_state(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Loop { count, index, state, init, body }, Type::Tuple(types, _)) = (expr, ty) else { return None };
    let Some(Expr::Tuple(parts)) = walk::bound_in(body, body.result) else { return None };
    let &[next, element, term] = parts.as_slice() else { return None };
    let fields: &[Type] = match &types[0] {
        Type::Tuple(fields, _) if next != *state => fields,
        _ => &[],
    };
    // The fields that change, and what they become.
    let mut changing: Vec<(usize, VarId)> = Vec::new();
    if next != *state {
        let Some(Expr::Tuple(next)) = walk::bound_in(body, next) else { return None };
        let taken = |k: usize, var: VarId| walk::bound_in(body, var) == Some(&Expr::Component(*state, k));
        changing = next.iter().copied().enumerate().filter(|(k, var)| !taken(*k, *var)).collect();
        if changing.len() == fields.len() {
            return None;
        }
    } else if matches!(&types[0], Type::Tuple(fields, _) if fields.is_empty()) {
        return None;
    }
    // The state with the fields `narrow` in place of those that change.
    let whole = |rb: &mut Rebuild<'_>, narrow: VarId| {
        if next == *state {
            return *init;
        }
        let mut parts: Vec<VarId> = (0..fields.len()).map(|k| rb.compute(Expr::Component(*init, k))).collect();
        for (at, (k, _)) in changing.iter().enumerate() {
            parts[*k] = rb.compute(Expr::Component(narrow, at));
        }
        rb.tuple(parts, &types[0])
    };
    let start = changing.iter().map(|(k, _)| rb.compute(Expr::Component(*init, *k))).collect();
    let start = rb.compute(Expr::Tuple(start));
    let found = rb.general(count.clone(), start, |rb, narrow, i| {
        let full = whole(rb, narrow);
        let mut env = Env::copying(&[(*state, full), (*index, i)]);
        let next = changing.iter().map(|(_, var)| rb.inline(body, *var, &mut env)).collect();
        let next = rb.compute(Expr::Tuple(next));
        let (element, term) = (rb.inline(body, element, &mut env), rb.inline(body, term, &mut env));
        rb.compute(Expr::Tuple(vec![next, element, term]))
    });
    let narrow = rb.compute(Expr::Component(found, 0));
    let last = whole(rb, narrow);
    let (array, sum) = (rb.compute(Expr::Component(found, 1)), rb.compute(Expr::Component(found, 2)));
    Some(rb.tuple(vec![last, array, sum], ty))
}

fn split(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Loop { count, index, state, init, body }, Type::Tuple(..)) = (expr, ty) else { return None };
    let Some(Expr::Tuple(parts)) = walk::bound_in(body, body.result) else { return None };
    let &[next, element, term] = parts.as_slice() else { return None };
    let depends = |part: VarId| walk::slice_mentions(body, part, *state);
    let trivial = |rb: &Rebuild<'_>, part: VarId| matches!(rb.ty(part), Type::Tuple(fields, _) if fields.is_empty());
    if depends(element) || depends(term) || !rb.ranges.not_negative(count) {
        return None;
    }
    let last = if trivial(rb, *init) {
        *init
    } else {
        rb.fold(count.clone(), *init, |rb, now, i| {
            rb.inline(body, next, &mut Env::copying(&[(*state, now), (*index, i)]))
        })
    };
    let array = rb.build(count.clone(), |rb, i| rb.inline(body, element, &mut Env::copying(&[(*index, i)])));
    let sum = rb.sum(count.clone(), |rb, i| rb.inline(body, term, &mut Env::copying(&[(*index, i)])));
    Some(rb.tuple(vec![last, array, sum], ty))
}
