//! Rules for the general loop: special cases become the special loops.

use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Block, Expr, StateLoop, Type, VarId};
use chainrule_ops::Semantics;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "same-state",
        law: "loop (fun s i -> (s, f s i, g s i)) z n = loop (fun () i -> ((), f z i, g z i)) () n, with z for the last state",
        when: "or, of a state that is a tuple, for the fields that never change: they are passed on, or a step makes of a literal the same literal",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Loop,
        apply: same_state,
    },
    Rule {
        name: "same-elements",
        law: "loop (fun s i -> (f s i, a[i], g s i)) z n = loop (fun s i -> (f s i, (), g s i)) z n, with a for the array",
        when: "a has n elements, and is known outside",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Loop,
        apply: same_elements,
    },
    Rule {
        name: "plain-loop",
        law: "loop (fun () i -> ((), (), g i)) () n = ((), build n (), sum n g); of elements or states alone, a build or a fold",
        when: "n >= 0",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Loop,
        apply: plain,
    },
    Rule {
        name: "split-loop",
        law: "loop f s n = (ifold (next f) s n, build n (element f), sum n (term f))",
        when: "elements and terms do not depend on the state; n >= 0",
        holds_under: Semantics::Strict,
        split: true,
        on: On::Loop,
        apply: split,
    },
];

fn same_state(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Loop(steps), Type::Tuple(types, _)) = (expr, ty) else { return None };
    let StateLoop { count, index, state, init, body } = steps;
    let [next, element, term] = parts_of_step(rb, body)?;
    let fields: &[Type] = match &types[0] {
        Type::Tuple(fields, _) => fields,
        _ => &[],
    };
    let same = next == *state || stays(rb, steps, *init, next, *init);
    // The fields that change, and their next values.
    let mut changing: Vec<(usize, VarId)> = Vec::new();
    if !same {
        let Some(Expr::Tuple(next)) = rb.bound_in(body, next) else { return None };
        for (k, var) in next.iter().copied().enumerate() {
            let passed_on = rb.bound_in(body, var) == Some(&Expr::Component(*state, k));
            if !passed_on && !field_stays(rb, steps, k, var) {
                changing.push((k, var));
            }
        }
        if changing.len() == fields.len() {
            return None;
        }
    } else if matches!(&types[0], Type::Tuple(fields, _) if fields.is_empty()) {
        return None;
    }
    // The state with the fields `narrow` in place of those that change.
    let whole = |rb: &mut Rebuild<'_>, narrow: VarId| {
        if same {
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

fn same_elements(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Loop(StateLoop { count, index, state, init, body }), Type::Tuple(types, _)) = (expr, ty) else {
        return None;
    };
    let [next, element, term] = parts_of_step(rb, body)?;
    let Some(&Expr::Get { array, index: at, proved: true }) = rb.bound_in(body, element) else { return None };
    let is_outside = array != *state && rb.bound_in(body, array).is_none();
    if at != *index || !is_outside || *rb.ty(array) != types[1] {
        return None;
    }
    let found = rb.general(count.clone(), *init, |rb, now, i| {
        let mut env = Env::copying(&[(*state, now), (*index, i)]);
        let (next, term) = (rb.inline(body, next, &mut env), rb.inline(body, term, &mut env));
        let nothing = rb.tuple(Vec::new(), &Type::tuple(Vec::new()));
        rb.compute(Expr::Tuple(vec![next, nothing, term]))
    });
    let [last, sum] = [0, 2].map(|k| rb.compute(Expr::Component(found, k)));
    Some(rb.tuple(vec![last, array, sum], ty))
}

/// Returns whether an iteration of `steps` from the state `full` maps the literal `init` to itself in `next`: then this
/// part of the state is constant.
fn stays(rb: &mut Rebuild<'_>, steps: &StateLoop, init: VarId, next: VarId, full: VarId) -> bool {
    let StateLoop { count, index, state, body, .. } = steps;
    if rb.real_of(init).is_none() || rb.bound_in(body, next).is_none() {
        return false;
    }
    let (_, step) = rb.loop_(count, |rb, i| rb.inline(body, next, &mut Env::copying(&[(*state, full), (*index, i)])));
    step.result == init
}

/// As [`stays`], for field `k` of a state with next value `next`, whatever the others are.
fn field_stays(rb: &mut Rebuild<'_>, steps: &StateLoop, k: usize, next: VarId) -> bool {
    let StateLoop { state, init, body, .. } = steps;
    let field = rb.compute(Expr::Component(*init, k));
    if rb.real_of(field).is_none() {
        return false;
    }
    // Other fields read by the iteration are unknown: then it is another state.
    let looks = body.stmts.iter().any(|stmt| {
        let other = matches!(stmt.expr, Expr::Component(of, other) if of == *state && other != k);
        other && rb.slice_mentions(body, &[next], stmt.var)
    });
    !looks && stays(rb, steps, field, next, *init)
}

/// Returns the parts of an iteration's result: the next state, the element, the term.
fn parts_of_step(rb: &Rebuild<'_>, body: &Block) -> Option<[VarId; 3]> {
    // The triple may be invariant, and outside.
    let triple = rb.def(body.result);
    let Some(Expr::Tuple(parts)) = triple.as_deref().or(rb.bound_in(body, body.result)) else { return None };
    parts.as_slice().try_into().ok()
}

/// Returns whether `var` has no content.
fn is_unit(rb: &Rebuild<'_>, var: VarId) -> bool {
    matches!(rb.ty(var), Type::Tuple(fields, _) if fields.is_empty())
}

fn plain(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Loop(StateLoop { body, .. }) = expr else { return None };
    let parts = parts_of_step(rb, body)?;
    let n_made = parts.iter().filter(|part| !is_unit(rb, **part)).count();
    if n_made > 1 { None } else { split(rb, expr, ty) }
}

fn split(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Loop(StateLoop { count, index, state, init, body }), Type::Tuple(..)) = (expr, ty) else { return None };
    let [next, element, term] = parts_of_step(rb, body)?;
    let depends = |rb: &Rebuild<'_>, part: VarId| rb.slice_mentions(body, &[part], *state);
    let is_stateless = is_unit(rb, *init);
    if (!is_stateless && (depends(rb, element) || depends(rb, term))) || !rb.ranges.not_negative(count) {
        return None;
    }
    let last = if is_stateless {
        *init
    } else {
        rb.fold(count.clone(), *init, |rb, now, i| {
            rb.inline(body, next, &mut Env::copying(&[(*state, now), (*index, i)]))
        })
    };
    // If the state has no content, nothing of them mentions it.
    let at = |i: VarId| Env::copying(&[(*state, *init), (*index, i)]);
    let array = rb.build(count.clone(), |rb, i| rb.inline(body, element, &mut at(i)));
    let sum = rb.sum(count.clone(), |rb, i| rb.inline(body, term, &mut at(i)));
    Some(rb.tuple(vec![last, array, sum], ty))
}
