//! Rules for zeros and one-hot arrays.

use super::mask::{as_mask, is_zero, mask};
use super::solve::asks_for_index;
use super::{On, Rule};
use crate::cost;
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::Semantics;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "zero-parts",
        law: "0 = 0.0; 0 = (0, 0)",
        when: "by its type",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Zero,
        apply: parts,
    },
    Rule {
        name: "one-hot-zero",
        law: "oneHot i 0 = 0",
        when: "the index was proved",
        holds_under: Semantics::Strict,
        split: false,
        on: On::OneHot,
        apply: zero,
    },
    Rule {
        name: "one-hot-one",
        law: "oneHot i x = [x]; oneHot i (a[i]) = a",
        when: "the array has one element, and a too; the index was proved",
        holds_under: Semantics::Strict,
        split: false,
        on: On::OneHot,
        apply: one,
    },
    Rule {
        name: "one-hot-mask",
        law: "oneHot i ([c] x) = [c] (oneHot i x)",
        when: "the index was proved; a sum may vanish, for c asks for one index, or go into the mask, for its loop does not change c; \
               or x is a long row",
        holds_under: Semantics::Strict,
        split: false,
        on: On::OneHot,
        apply: masked,
    },
    Rule {
        name: "prove-one-hot",
        law: "oneHot i x = oneHot i x, unchecked",
        when: "0 <= i < n by the ranges of what i is made of",
        holds_under: Semantics::Strict,
        split: false,
        on: On::OneHot,
        apply: prove,
    },
];

fn one(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (&Expr::OneHot { value, proved: true, .. }, Type::Array(size, _)) = (expr, ty) else { return None };
    if size.as_constant() != Some(1) {
        return None;
    }
    match rb.def(value).as_deref() {
        Some(Expr::Get { array, proved: true, .. }) if rb.ty(*array) == ty => Some(*array),
        _ => Some(rb.emit(Expr::Array(vec![value]), ty.clone())),
    }
}

/// Maximum number of numbers of a short row. Adding a long row is a loop itself, whether it is matched in a branch or
/// not.
const MAX_NUMBERS: f64 = 64.0;

/// Maximum number of numbers of a row that is as good as a literal.
const FEW_NUMBERS: i64 = 16;

/// Returns whether an element of type `ty` is a long row.
pub(super) fn is_long(ty: &Type) -> bool {
    cost::words_of(ty) > MAX_NUMBERS
}

/// Returns whether sums match masks of this condition: one that selects an index vanishes, a sum with an invariant
/// condition moves inside.
pub(super) fn is_sought(rb: &Rebuild<'_>, condition: VarId) -> bool {
    asks_for_index(rb, condition) || rb.loops_since(condition) > 0
}

/// Returns whether one of `terms` is the state of a loop, possibly with elements changed, and the other one sparse:
/// that is added in the memory of the state, and takes no time for the whole array.
pub(super) fn is_added_to_state(rb: &Rebuild<'_>, [a, b]: [VarId; 2]) -> bool {
    (is_sparse(rb, b) && is_version(rb, a)) || (is_sparse(rb, a) && is_version(rb, b))
}

/// Returns whether an array is one-hot and an index of it is checked at run time, so that its elements are not known.
pub(super) fn is_checked(rb: &Rebuild<'_>, mut array: VarId) -> bool {
    while let Some(Expr::OneHot { value, proved, .. }) = rb.def(array).as_deref() {
        if !proved {
            return true;
        }
        array = *value;
    }
    false
}

/// Returns whether an array is the state of an open loop, or made of it by changing elements.
fn is_version(rb: &Rebuild<'_>, array: VarId) -> bool {
    let sources = |var: VarId, open: &mut Vec<VarId>| {
        if let Some(def) = rb.def(var) {
            walk::sources_of(&def, &|term| is_sparse(rb, term), open);
        }
    };
    walk::is_version(array, |var| rb.is_state(var), sources)
}

/// Returns whether an array has few elements that are not zero, or few in each row.
fn is_sparse(rb: &Rebuild<'_>, array: VarId) -> bool {
    match rb.def(array).as_deref() {
        Some(Expr::OneHot { .. }) => true,
        Some(Expr::If { then, otherwise, .. }) => ends_sparse(rb, then) && ends_sparse(rb, otherwise),
        Some(Expr::Sum { body, .. } | Expr::Build { body, .. }) => ends_sparse(rb, body),
        Some(Expr::Plus(a, b)) => are_sparse(rb, [*a, *b]),
        _ => false,
    }
}

/// Returns whether the result of a block is zero, one-hot, or nested builds of one-hot arrays. A one-hot array of few
/// numbers is as good as a literal, which takes the others of a sum as well.
// Recursive on nesting.
fn ends_sparse(rb: &Rebuild<'_>, block: &Block) -> bool {
    let made = rb.bound_in(block, block.result);
    match made {
        Some(Expr::OneHot { .. }) => {
            cost::size_of_words(rb.ty(block.result)).as_constant().is_none_or(|n| n > FEW_NUMBERS)
        }
        Some(Expr::Zero) => true,
        Some(Expr::Build { body, .. }) => ends_sparse(rb, body),
        _ => is_zero(rb, block.result),
    }
}

/// Returns whether all terms of a sum are sparse.
pub(super) fn are_sparse(rb: &Rebuild<'_>, terms: [VarId; 2]) -> bool {
    let mut open = terms.to_vec();
    for _ in 0..walk::MAX_VERSIONS {
        let Some(term) = open.pop() else { return true };
        match rb.def(term).as_deref() {
            Some(Expr::Plus(a, b)) => open.extend([*a, *b]),
            _ if is_sparse(rb, term) => {}
            _ => return false,
        }
    }
    false
}

fn parts(rb: &mut Rebuild<'_>, _: &Expr, ty: &Type) -> Option<VarId> {
    match ty {
        Type::Double => Some(rb.real(0.0)),
        Type::Tuple(fields, _) => {
            let parts = fields.iter().map(|field| rb.zero(field)).collect();
            Some(rb.tuple(parts, ty))
        }
        _ => None,
    }
}

fn zero(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let &Expr::OneHot { value, proved: true, .. } = expr else { return None };
    is_zero(rb, value).then(|| rb.zero(ty))
}

fn masked(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let &Expr::OneHot { index, value, proved: true } = expr else { return None };
    let found = as_mask(rb, value)?;
    if !is_long(rb.ty(value)) && !is_sought(rb, found.condition) {
        return None;
    }
    Some(mask(rb, found.condition, ty, |rb| {
        let value = rb.inline(found.then(), found.then().result, &mut Env::copying(&[]));
        rb.emit(Expr::OneHot { index, value, proved: true }, ty.clone())
    }))
}

fn prove(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let &Expr::OneHot { index, value, proved: false } = expr else { return None };
    let Type::Array(size, _) = ty else { return None };
    let proved = rb.in_range(index, size);
    proved.then(|| rb.emit(Expr::OneHot { index, value, proved }, ty.clone()))
}
