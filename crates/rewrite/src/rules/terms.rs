//! Rules for sums of arrays and tuples: reverse mode makes them from reads.

use super::build::nest;
use super::sum::{Parts, parts};
use super::{On, Rule};
use crate::cost;
use crate::rebuild::{Env, Rebuild};
use crate::rules::mask::condition_in;
use crate::walk;
use chainrule_ir::{Block, Expr, Size, Type, VarId};
use chainrule_ops::Semantics;
use rustc_hash::FxHashMap;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "split-sum",
        law: "sum n (fun i -> (f i, g i)) = (sum n f, sum n g); sum n (fun i -> zip (f i) (g i)) = zip (sum n f) (sum n g)",
        when: "",
        holds_under: Semantics::Strict,
        split: true,
        on: On::Sum,
        apply: split,
    },
    Rule {
        name: "sum-of-literal",
        law: "sum n (fun i -> [f i, g i]) = [sum n f, sum n g]",
        when: "no loop is for several elements",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: of_literal,
    },
    Rule {
        name: "sum-of-plus",
        law: "sum n (fun i -> f i + g i) = sum n f + sum n g",
        when: "f or g is sparse, or an array that is made for it",
        holds_under: Semantics::Algebraic,
        split: true,
        on: On::Sum,
        apply: apart,
    },
    Rule {
        name: "sum-in-one-hot",
        law: "sum n (fun i -> oneHot e (f i)) = oneHot e (sum n f)",
        when: "e does not depend on i and was proved to be in range",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: same_place,
    },
    Rule {
        name: "sum-of-one-hot",
        law: "sum n (fun i -> oneHot i (f i)) = build n f; for n - 1 - i in place of i, backwards",
        when: "the array has n elements; strictly: plus 0, for the sign of a zero",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: own_place,
    },
    Rule {
        name: "sum-of-repeated",
        law: "sum n (fun i -> build m (fun j -> f i)) = build m (fun j -> s) where s = sum n f",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: repeated,
    },
    Rule {
        name: "interchange",
        law: "sum n (fun i -> build m (fun j -> f i j)) = build m (fun j -> sum n (fun i -> f i j)); for rows a[i] too",
        when: "what f takes from the outer loop alone costs next to nothing",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: interchange,
    },
];

/// Maximum cost of a value of an outer iteration that is recomputed in every inner one.
const REPEATED: f64 = 2.0;

fn split(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let Type::Tuple(fields, _) = ty else { return split_arrays(rb, &sum, ty) };
    let Some(Expr::Tuple(terms)) = rb.bound_in(sum.body, sum.body.result) else {
        // An invariant tuple, or one from outside.
        let whole = sum.body.result;
        let sums = (0..fields.len())
            .map(|k| {
                rb.sum(sum.count.clone(), |rb, i| {
                    let whole = rb.inline(sum.body, whole, &mut sum.at(i));
                    rb.compute(Expr::Component(whole, k))
                })
            })
            .collect();
        return Some(rb.tuple(sums, ty));
    };
    let sums = terms.iter().map(|term| sum.sum(rb, *term)).collect();
    Some(rb.tuple(sums, ty))
}

/// Splits a sum of arrays of tuples.
fn split_arrays(rb: &mut Rebuild<'_>, sum: &Parts<'_>, ty: &Type) -> Option<VarId> {
    let nest = nest(rb, rb.bound_in(sum.body, sum.body.result)?, ty)?;
    let arrays: Vec<VarId> = (nest.fields_outside(sum.body, ty)?.iter())
        .map(|field| rb.sum(sum.count.clone(), |rb, i| nest.array_in(rb, sum.body, *field, &mut sum.at(i))))
        .collect();
    Some(nest.zipped(rb, &arrays))
}

fn of_literal(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let Some(Expr::Array(terms)) = rb.bound_in(sum.body, sum.body.result) else { return None };
    if share_loops(sum.body, terms) {
        return None;
    }
    let sums = terms.iter().map(|term| sum.sum(rb, *term)).collect();
    Some(rb.emit(Expr::Array(sums), ty.clone()))
}

/// Returns whether several of `terms` are made from one loop of `block`.
fn share_loops(block: &Block, terms: &[VarId]) -> bool {
    // The first term that a variable is for, and whether there are others.
    let mut uses: FxHashMap<VarId, (usize, bool)> = FxHashMap::default();
    let used = |uses: &mut FxHashMap<VarId, (usize, bool)>, var: VarId, (by, is_shared): (usize, bool)| {
        let (first, several) = uses.entry(var).or_insert((by, is_shared));
        *several |= is_shared || *first != by;
    };
    terms.iter().enumerate().for_each(|(k, term)| used(&mut uses, *term, (k, false)));
    block.stmts.iter().rev().any(|stmt| {
        let Some(&by) = uses.get(&stmt.var).filter(|_| stmt.var != block.result) else { return false };
        walk::mentioned(&stmt.expr, &mut |var| used(&mut uses, var, by));
        by.1 && walk::is_or_has_loop(&stmt.expr)
    })
}

fn apart(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let Some(&Expr::Plus(a, b)) = rb.bound_in(sum.body, sum.body.result) else { return None };
    let made = |var: VarId| {
        matches!(
            rb.bound_in(sum.body, var),
            Some(Expr::OneHot { .. } | Expr::Build { .. } | Expr::Sum { .. } | Expr::If { .. } | Expr::Plus(..))
        )
    };
    if !made(a) && !made(b) {
        return None;
    }
    let (a, b) = (sum.sum(rb, a), sum.sum(rb, b));
    Some(rb.plus(a, b))
}

/// Returns index and value of the one-hot array that every iteration adds.
fn one_hot(rb: &Rebuild<'_>, sum: &Parts<'_>) -> Option<(VarId, VarId)> {
    match rb.bound_in(sum.body, sum.body.result) {
        Some(&Expr::OneHot { index, value, proved: true }) => Some((index, value)),
        _ => None,
    }
}

fn same_place(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let (index, value) = one_hot(rb, &sum)?;
    // If no iteration runs, nothing has proved the index.
    let Type::Array(size, _) = ty else { return None };
    if !sum.is_constant(rb, index) || !(sum.runs(rb) || rb.ranges.in_range(&rb.size_of(index), size)) {
        return None;
    }
    let value = sum.sum(rb, value);
    Some(rb.emit(Expr::OneHot { index, value, proved: true }, ty.clone()))
}

fn own_place(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (sum, Type::Array(size, element)) = (parts(expr)?, ty) else { return None };
    let (index, value) = one_hot(rb, &sum)?;
    let index = rb.size_of(index);
    let forwards = Size::var(sum.index);
    let backwards = size.sub(&forwards).sub(&Size::constant(1));
    if sum.count != size || (index != forwards && index != backwards) {
        return None;
    }
    Some(rb.build(size.clone(), |rb, k| {
        let i = if index == forwards { k } else { rb.int(size.sub(&Size::var(k)).sub(&Size::constant(1))) };
        let term = rb.inline(sum.body, value, &mut sum.at(i));
        let zero = rb.zero(element);
        rb.plus(zero, term)
    }))
}

fn repeated(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (sum, Type::Array(size, _)) = (parts(expr)?, ty) else { return None };
    let Some(Expr::Build { index, body, .. }) = rb.bound_in(sum.body, sum.body.result) else { return None };
    let (inner, element) = (*index, body.result);
    if element == inner || rb.bound_in(body, element).is_some() {
        return None;
    }
    let total = rb.sum(sum.count.clone(), |rb, i| rb.inline(sum.body, element, &mut sum.at(i)));
    Some(rb.build(size.clone(), |_, _| total))
}

fn interchange(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (sum, Type::Array(..)) = (parts(expr)?, ty) else { return None };
    if condition_in(rb, sum.body, sum.body.result).is_some() {
        return None;
    }
    let def = rb.bound_in(sum.body, sum.body.result)?;
    if let (Expr::Get { .. }, Type::Array(size, _)) = (def, ty) {
        let row = sum.body.result;
        let kept = rb.slice(sum.body, &[row]);
        if super::get::kept_cost(rb, sum.body, &kept) > REPEATED {
            return None;
        }
        return Some(rb.build(size.clone(), |rb, j| {
            rb.sum(sum.count.clone(), |rb, i| {
                let row = rb.inline(sum.body, row, &mut sum.at(i));
                rb.get(row, j)
            })
        }));
    }
    let Expr::Build { size, index: inner, body } = def else { return None };
    let bodies = [sum.body, body];
    let kept = super::get::needed(rb, &bodies, body.result);
    if super::get::kept_cost(rb, sum.body, &kept[0]) > REPEATED || cost::estimate(size) <= 0.0 {
        return None;
    }
    Some(rb.build(size.clone(), |rb, j| {
        rb.sum(sum.count.clone(), |rb, i| {
            let mut env = Env::copying(&[(sum.index, i), (*inner, j)]);
            rb.inline_kept(sum.body, &kept[0], &mut env);
            rb.inline(body, body.result, &mut env)
        })
    }))
}
