//! Rules for elements of arrays (figure 7c).

use super::mask::as_mask;
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use chainrule_ir::{Expr, Type, VarId};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "prove-index",
        law: "a[i] = a[i], unchecked",
        when: "0 <= i < length a by the ranges of what i is made of",
        algebraic: false,
        split: false,
        on: On::Get,
        apply: prove,
    },
    Rule {
        name: "get-array",
        law: "[e0, e1, ...][k] = ek",
        when: "k is a literal in range",
        algebraic: false,
        split: false,
        on: On::Get,
        apply: of_array,
    },
    Rule {
        name: "fuse",
        law: "(build n f)[i] = f i",
        when: "0 <= i < n is proved; f costs no more than a load, or all uses together no more than the array",
        algebraic: false,
        split: false,
        on: On::Get,
        apply: of_build,
    },
];

/// What an element costs at most that is computed wherever it is used.
const CHEAP: f64 = 1.0;
/// As [`CHEAP`], for a mask, which is likely to vanish.
const CHEAP_MASK: f64 = 4.0;

fn prove(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let &Expr::Get { array, index, proved: false } = expr else { return None };
    let Type::Array(size, _) = rb.ty(array) else { return None };
    let proved = rb.ranges.in_range(&rb.size_of(index), size);
    proved.then(|| rb.emit(Expr::Get { array, index, proved }, ty.clone()))
}

fn of_array(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::Get { array, index, .. } = expr else { return None };
    let def = rb.def(*array)?;
    let Expr::Array(elements) = &*def else { return None };
    let index = usize::try_from(rb.size_of(*index).as_constant()?).ok()?;
    elements.get(index).copied()
}

fn of_build(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let &Expr::Get { array, index, proved: true } = expr else { return None };
    let def = rb.def(array)?;
    let Expr::Build { index: bound, body, .. } = &*def else { return None };
    let cost = rb.element_cost(array);
    let cheap = cost <= CHEAP || (cost <= CHEAP_MASK && as_mask(rb, body.result).is_some());
    if !cheap && !rb.is_planned(array) {
        return None;
    }
    Some(rb.inline(body, body.result, &mut Env::copying(&[(*bound, index)])))
}
