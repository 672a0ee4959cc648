//! Rules for the sum of two arrays or tuples.

use super::get::is_read;
use super::mask::{as_mask, is_zero, mask};
use super::one_hot::{are_sparse, is_added_to_state};
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Expr, Type, VarId};
use chainrule_ops::Semantics;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "plus-zero",
        law: "a + 0 = 0 + a = a",
        when: "",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Plus,
        apply: zero,
    },
    Rule {
        name: "plus-parts",
        law: "(a, b) + (c, d) = (a + c, b + d)",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Plus,
        apply: parts,
    },
    Rule {
        name: "plus-one-hot",
        law: "oneHot i x + oneHot i y = oneHot i (x + y)",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Plus,
        apply: one_hots,
    },
    Rule {
        name: "plus-literal",
        law: "oneHot 0 x + oneHot 1 y = [x, y]; [x, y] + oneHot 1 z = [x, y + z]; [x, y] + [u, v] = [x + u, y + v]",
        when: "literals: an array of at most 8 elements, and indices; of numbers, at least half are given, of rows, all are",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Plus,
        apply: literals,
    },
    Rule {
        name: "plus-mask",
        law: "[c] a + [c] b = [c] (a + b)",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Plus,
        apply: masks,
    },
    Rule {
        name: "plus-build",
        law: "a + b = build n (fun i -> a[i] + b[i])",
        when: "neither is sparse, or a sum that is added up in place; or one is a build and the other a masked one-hot array; \
               not for one-hot arrays that are added to the state of a loop, nor for two builds of one-hot arrays",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Plus,
        apply: build,
    },
];

/// Maximum number of elements of an array that is written as a literal.
const MAX_LITERAL: usize = 8;

fn operands(expr: &Expr) -> Option<(VarId, VarId)> {
    match expr {
        Expr::Plus(a, b) => Some((*a, *b)),
        _ => None,
    }
}

fn zero(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let (a, b) = operands(expr)?;
    if is_zero(rb, a) { Some(b) } else { is_zero(rb, b).then_some(a) }
}

fn parts(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let ((a, b), Type::Tuple(fields, _)) = (operands(expr)?, ty) else { return None };
    let parts = (0..fields.len())
        .map(|k| {
            let (a, b) = (rb.compute(Expr::Component(a, k)), rb.compute(Expr::Component(b, k)));
            rb.plus(a, b)
        })
        .collect();
    Some(rb.tuple(parts, ty))
}

fn one_hots(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (a, b) = operands(expr)?;
    let (Expr::OneHot { index, value: x, proved }, Expr::OneHot { index: j, value: y, proved: also }) =
        (&*rb.def(a)?, &*rb.def(b)?)
    else {
        return None;
    };
    if index != j {
        return None;
    }
    let value = rb.plus(*x, *y);
    Some(rb.emit(Expr::OneHot { index: *index, value, proved: *proved || *also }, ty.clone()))
}

fn literals(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let ((a, b), Type::Array(size, element)) = (operands(expr)?, ty) else { return None };
    let length = usize::try_from(size.as_constant()?).ok().filter(|n| *n <= MAX_LITERAL)?;
    // Of each element, its terms.
    let mut terms = vec![Vec::new(); length];
    let mut open = vec![b, a];
    let mut n_terms = 0;
    while let Some(array) = open.pop() {
        n_terms += 1;
        if n_terms > walk::MAX_VERSIONS {
            return None;
        }
        match &*rb.def(array)? {
            Expr::Plus(a, b) => open.extend([*b, *a]),
            Expr::Array(elements) => elements.iter().zip(&mut terms).for_each(|(x, terms)| terms.push(*x)),
            Expr::OneHot { index, value, .. } => {
                let index = usize::try_from(rb.size_of(*index).as_constant()?).ok()?;
                terms.get_mut(index)?.push(*value);
            }
            _ => return None,
        }
    }
    let n_given = terms.iter().filter(|terms| !terms.is_empty()).count();
    let is_given = if **element == Type::Double { 2 * n_given >= length } else { n_given == length };
    if !is_given {
        return None;
    }
    let sum = |terms: Vec<VarId>| terms.into_iter().reduce(|x, y| rb.plus(x, y)).unwrap_or_else(|| rb.zero(element));
    let elements = terms.into_iter().map(sum).collect();
    Some(rb.emit(Expr::Array(elements), ty.clone()))
}

fn masks(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (a, b) = operands(expr)?;
    let (a, b) = (as_mask(rb, a)?, as_mask(rb, b)?);
    (a.condition == b.condition).then(|| {
        mask(rb, a.condition, ty, |rb| {
            let mut copy = |block: &chainrule_ir::Block| rb.inline(block, block.result, &mut Env::copying(&[]));
            let (a, b) = (copy(a.then()), copy(b.then()));
            rb.plus(a, b)
        })
    })
}

fn build(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let ((a, b), Type::Array(size, _)) = (operands(expr)?, ty) else { return None };
    let pulled = |rb: &Rebuild<'_>, var: VarId| {
        matches!(rb.def(var).as_deref(), None | Some(Expr::Build { .. } | Expr::Get { .. } | Expr::Array(_)))
            || as_mask(rb, var).is_some_and(|mask| is_read(mask.then()))
    };
    // In place of an array that is zero except for one element, or altogether.
    let masked = |rb: &Rebuild<'_>, var: VarId| {
        as_mask(rb, var).is_some_and(|mask| {
            let then = mask.then();
            matches!(rb.bound_in(then, then.result), Some(Expr::OneHot { proved: true, .. }))
        })
    };
    let built = |rb: &Rebuild<'_>, var: VarId| matches!(rb.def(var).as_deref(), Some(Expr::Build { .. }));
    let joins = (pulled(rb, a) && pulled(rb, b)) || (built(rb, a) && masked(rb, b)) || (masked(rb, a) && built(rb, b));
    if !joins || is_added_to_state(rb, [a, b]) || are_sparse(rb, [a, b]) {
        return None;
    }
    Some(rb.build(size.clone(), |rb, i| {
        let (a, b) = (rb.get(a, i), rb.get(b, i));
        rb.plus(a, b)
    }))
}
