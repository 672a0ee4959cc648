//! Rules for the general loop: what is one of its special cases becomes it.

use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Expr, Type, VarId};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "split-loop",
    law: "loop f s n = (ifold (next f) s n, build n (element f), sum n (term f))",
    when: "elements and terms do not depend on the state; n >= 0",
    algebraic: false,
    split: true,
    on: On::Loop,
    apply: split,
}];

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
