//! Rules for `build`.

use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Block, Expr, Type, VarId};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "same-array",
        law: "build n (fun i -> a[i]) = a",
        when: "a has n elements",
        algebraic: false,
        split: false,
        on: On::Build,
        apply: same,
    },
    Rule {
        name: "split-build",
        law: "build n (fun i -> (f i, g i)) = zip (build n f) (build n g)",
        when: "f and g share next to nothing",
        algebraic: false,
        split: true,
        on: On::Build,
        apply: split,
    },
];

/// What fields of an element share at most to be computed in loops of their own.
const SHARED: f64 = 8.0;

fn same(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let Expr::Build { index, body, .. } = expr else { return None };
    let Some(Expr::Get { array, index: at, .. }) = walk::bound_in(body, body.result) else { return None };
    // An array of that type has n elements: any index of the loop is in range.
    let fits = at == index && rb.ty(*array) == ty && walk::bound_in(body, *array).is_none();
    fits.then_some(*array)
}

/// Whether field `var` of an element is no more than an element of another array, or the same everywhere.
fn is_plain(body: &Block, index: VarId, var: VarId) -> bool {
    match walk::bound_in(body, var) {
        None => true,
        Some(Expr::Get { array, index: at, .. }) => *at == index && walk::bound_in(body, *array).is_none(),
        Some(_) => false,
    }
}

fn split(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (Expr::Build { size, index, body }, Type::Array(_, element)) = (expr, ty) else { return None };
    let Some(Expr::Tuple(fields)) = walk::bound_in(body, body.result) else { return None };
    if fields.is_empty() || fields.iter().all(|field| is_plain(body, *index, *field)) {
        return None;
    }
    let apart: f64 = fields.iter().map(|field| rb.slice_cost(body, *field)).sum();
    if apart - rb.slice_cost(body, body.result) > SHARED {
        return None;
    }
    let arrays: Vec<VarId> = (fields.iter())
        .map(|field| rb.build(size.clone(), |rb, i| rb.inline(body, *field, &mut Env::copying(&[(*index, i)]))))
        .collect();
    Some(rb.build(size.clone(), |rb, i| {
        let parts =
            arrays.iter().map(|array| rb.compute(Expr::Get { array: *array, index: i, proved: true })).collect();
        rb.tuple(parts, element)
    }))
}
