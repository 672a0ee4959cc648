//! Rules for elements of arrays (figure 7c).

use super::mask::{MAX_COPIED, as_mask, condition_in, mask};
use super::one_hot::{is_added_to_state, is_checked};
use super::solve::asks_for_index;
use super::{On, Rule};
use crate::cost;
use crate::rebuild::{Env, Rebuild, Slice};
use crate::walk;
use chainrule_ir::{Block, Expr, Size, Type, VarId};
use chainrule_ops::{Op, Semantics};
use smallvec::{SmallVec, smallvec};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "prove-index",
        law: "a[i] = a[i], unchecked",
        when: "0 <= i < length a by the ranges of what i is made of",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Get,
        apply: prove,
    },
    Rule {
        name: "get-array",
        law: "[e0, e1, ...][k] = ek",
        when: "k is a literal in range",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Get,
        apply: of_array,
    },
    Rule {
        name: "fuse",
        law: "(build n f)[i] = f i",
        when: "0 <= i < n is proved; f costs no more than a load, or all uses together no more than the array",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Get,
        apply: of_build,
    },
    Rule {
        name: "fuse-rows",
        law: "(build n (fun i -> build m (fun j -> f i j)))[i][j] = f i j",
        when: "as fuse, for f; to any depth",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Get,
        apply: of_rows,
    },
    Rule {
        name: "get-one-hot",
        law: "(oneHot k x)[i] = [i == k] x; 0[i] = 0",
        when: "both indices are in range",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Get,
        apply: of_one_hot,
    },
    Rule {
        name: "get-plus",
        law: "(a + b)[i] = a[i] + b[i]",
        when: "i is in range; one-hot arrays are not added to the state of a loop, or i is no index of a loop and theirs are proved",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Get,
        apply: of_plus,
    },
    Rule {
        name: "get-mask",
        law: "([c] a)[i] = [c] a[i]",
        when: "i is in range; a is known outside of the branch, a row that is read there, or one-hot and either made without long loops or for one index, or as fuse",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Get,
        apply: of_mask,
    },
    Rule {
        name: "get-if",
        law: "(if c then [x0, x1, ...] else [y0, y1, ...])[k] = if c then xk else yk",
        when: "k is a literal in range; either may be zero; neither element takes more than 64 statements",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Get,
        apply: of_branch,
    },
];

fn of_one_hot(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let &Expr::Get { array, index, proved: true } = expr else { return None };
    match *rb.def(array)? {
        Expr::Zero => Some(rb.zero(ty)),
        Expr::OneHot { index: hot, value, proved: true } => {
            let condition = rb.op(Op::Eq, &[index, hot]);
            Some(mask(rb, condition, ty, |_| value))
        }
        _ => None,
    }
}

fn of_plus(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let &Expr::Get { array, index, proved: true } = expr else { return None };
    let Expr::Plus(a, b) = *rb.def(array)? else { return None };
    let is_read_at_once = rb.is_index(index) || [a, b].into_iter().any(|term| is_checked(rb, term));
    if is_read_at_once && is_added_to_state(rb, [a, b]) {
        return None;
    }
    let (a, b) = (rb.get(a, index), rb.get(b, index));
    Some(rb.plus(a, b))
}

fn of_mask(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let &Expr::Get { array, index, proved: true } = expr else { return None };
    let found = as_mask(rb, array)?;
    let then = found.then();
    let vanishes = match rb.bound_in(then, then.result) {
        // What it is made of is computed for each element: a loop for each would be another factor, unless the mask is
        // for one element.
        Some(Expr::OneHot { .. }) => {
            asks_for_index(rb, found.condition)
                || kept_cost(rb, then, &needed(rb, &[then], then.result)[0]) < cost::LARGE
        }
        // The element is computed in place of the array.
        Some(Expr::Build { body, .. }) => {
            let kept = needed(rb, &[then, body], body.result);
            let around = kept_cost(rb, then, &kept[0]);
            let cost = around + kept_cost(rb, body, &kept[1]);
            is_cheap(rb, cost, &[then, body], body.result) || (around <= CHEAP && rb.is_planned(array))
        }
        _ => is_read(then),
    };
    if !vanishes {
        return None;
    }
    let bound = rb.bound_in(then, then.result);
    Some(mask(rb, found.condition, ty, |rb| match bound {
        Some(Expr::Build { index: at, body, .. }) => {
            let kept = needed(rb, &[then, body], body.result);
            let mut env = Env::copying(&[(*at, index)]);
            rb.inline_kept(then, &kept[0], &mut env);
            rb.inline(body, body.result, &mut env)
        }
        _ => {
            let array = rb.inline(then, then.result, &mut Env::copying(&[]));
            rb.get(array, index)
        }
    }))
}

fn of_branch(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let &Expr::Get { array, index, .. } = expr else { return None };
    let def = rb.def(array)?;
    let Expr::If { condition, then, otherwise } = &*def else { return None };
    let of = |rb: &Rebuild<'_>, branch: &Block| -> Option<Option<(VarId, Slice)>> {
        let outside = rb.def(branch.result);
        let element = match rb.bound_in(branch, branch.result).or(outside.as_deref())? {
            Expr::Array(elements) => chosen(rb, elements, index)?,
            Expr::Zero => return Some(None),
            _ => return None,
        };
        let kept = rb.slice(branch, &[element]);
        (kept.stmts(branch).count() <= MAX_COPIED).then_some(Some((element, kept)))
    };
    let (x, y) = (of(rb, then)?, of(rb, otherwise)?);
    // Of two zeros nothing says that the index is in range.
    if x.is_none() && y.is_none() {
        return None;
    }
    let write = |rb: &mut Rebuild<'_>, branch: &Block, element: Option<(VarId, Slice)>| match element {
        Some((element, kept)) => {
            let mut env = Env::copying(&[]);
            rb.inline_kept(branch, &kept, &mut env);
            env.get(element)
        }
        None => rb.zero(ty),
    };
    Some(rb.if_(*condition, ty, |rb| write(rb, then, x), |rb| write(rb, otherwise, y)))
}

/// Returns whether the result of `block` is only read: known outside, or a row of an array that is.
pub(super) fn is_read(block: &Block) -> bool {
    block.stmts.iter().all(|stmt| matches!(stmt.expr, Expr::Get { proved: true, .. }))
}

/// Maximum cost of an element that is computed at each use.
const CHEAP: f64 = 1.0;
/// As [`CHEAP`], for a mask, which is likely to vanish.
const CHEAP_MASK: f64 = 4.0;
/// Additional cost permitted for a component: the tuple is not made.
const COMPONENT: f64 = 1.0;
/// Maximum number of dimensions.
pub(super) const MAX_DIMENSIONS: usize = 8;

/// Returns whether `value`, a variable of one of the `bodies` that costs `cost`, is recomputed at its uses.
pub(super) fn is_cheap(rb: &Rebuild<'_>, cost: f64, bodies: &[&Block], value: VarId) -> bool {
    cost <= CHEAP || (cost <= CHEAP_MASK && bodies.iter().any(|body| condition_in(rb, body, value).is_some()))
}

fn prove(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let &Expr::Get { array, index, proved: false } = expr else { return None };
    let Type::Array(size, _) = rb.ty(array) else { return None };
    let proved = rb.in_range(index, size);
    proved.then(|| rb.emit(Expr::Get { array, index, proved }, ty.clone()))
}

fn of_array(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let Expr::Get { array, index, .. } = expr else { return None };
    let def = rb.def(*array)?;
    let Expr::Array(elements) = &*def else { return None };
    chosen(rb, elements, *index)
}

/// Returns the element at `index`, if that is known.
fn chosen(rb: &Rebuild<'_>, elements: &[VarId], index: VarId) -> Option<VarId> {
    let index = rb.size_of(index);
    if let ([one], true) = (elements, rb.ranges.in_range(&index, &Size::constant(1))) {
        return Some(*one);
    }
    elements.get(usize::try_from(index.as_constant()?).ok()?).copied()
}

fn of_build(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    let &Expr::Get { array, index, proved: true } = expr else { return None };
    let def = rb.def(array)?;
    let Expr::Build { index: bound, body, .. } = &*def else { return None };
    if !is_cheap(rb, rb.element_cost(array), &[body], body.result) && !rb.is_planned(array) {
        return None;
    }
    Some(rb.inline(body, body.result, &mut Env::copying(&[(*bound, index)])))
}

fn of_rows(rb: &mut Rebuild<'_>, expr: &Expr, _: &Type) -> Option<VarId> {
    element(rb, expr, None)
}

/// Returns the element read by `expr`, or a component of it, computed in place of its arrays, if that is cheap. Follows
/// any number of `get`s.
pub(super) fn element(rb: &mut Rebuild<'_>, expr: &Expr, component: Option<usize>) -> Option<VarId> {
    // Down to the array whose rows are read.
    let &Expr::Get { array: mut base, index, proved: true } = expr else { return None };
    let mut indices: SmallVec<[VarId; MAX_DIMENSIONS]> = smallvec![index];
    let mut def = rb.def(base)?;
    while indices.len() < MAX_DIMENSIONS
        && let Expr::Get { array, index, proved: true } = *def
    {
        indices.push(index);
        base = array;
        def = rb.def(base)?;
    }
    // `fuse` and `get-array` decide about a single index.
    if !matches!(*def, Expr::Build { .. } | Expr::Array(_)) || (indices.len() == 1 && component.is_none()) {
        return None;
    }
    indices.reverse();
    // Up again, through as many loops as there are indices; the last may be of an array literal.
    let mut levels: Vec<(VarId, &Block)> = Vec::new();
    let mut build: &Expr = &def;
    let mut written = None;
    for (at, index) in indices.iter().enumerate() {
        match build {
            Expr::Build { index, body, .. } => {
                levels.push((*index, body));
                if at + 1 < indices.len() {
                    build = rb.bound_in(body, body.result)?;
                }
            }
            Expr::Array(elements) if at + 1 == indices.len() && component.is_none() => {
                written = Some(chosen(rb, elements, *index)?);
            }
            _ => return None,
        }
    }
    let (_, last) = levels.last()?;
    let wanted = match (component, written) {
        (_, Some(written)) => written,
        (None, None) => last.result,
        (Some(k), None) => match rb.bound_in(last, last.result) {
            Some(Expr::Tuple(fields)) => *fields.get(k)?,
            _ => return None,
        },
    };
    let bodies: SmallVec<[&Block; MAX_DIMENSIONS]> = levels.iter().map(|(_, body)| *body).collect();
    let extra = if component.is_some() { COMPONENT } else { 0.0 };
    let is_wanted = |rb: &mut Rebuild<'_>| indices.len() > 1 && component.is_none() && rb.is_planned(base);
    let is_dear = costs_more(rb, &bodies, wanted, CHEAP_MASK + extra);
    if is_dear && !is_wanted(rb) {
        return None;
    }
    let kept = needed(rb, &bodies, wanted);
    let cost: f64 = bodies.iter().zip(&kept).map(|(body, kept)| kept_cost(rb, body, kept)).sum();
    if !is_dear && !is_cheap(rb, cost - extra, &bodies, wanted) && !is_wanted(rb) {
        return None;
    }
    let mut env = Env::copying(&[]);
    for (((bound, body), kept), index) in levels.iter().zip(&kept).zip(&indices) {
        env.insert(*bound, *index);
        rb.inline_kept(body, kept, &mut env);
    }
    Some(env.get(wanted))
}

/// Maximum number of statements visited to find that a value is costly.
const MAX_LOOKED_AT: usize = 16;

/// Returns whether a few of the statements that `wanted` needs of `bodies` already cost more than `limit`.
fn costs_more(rb: &Rebuild<'_>, bodies: &[&Block], wanted: VarId, limit: f64) -> bool {
    let mut seen: SmallVec<[VarId; MAX_LOOKED_AT]> = smallvec![wanted];
    let (mut at, mut cost) = (0, 0.0);
    while at < seen.len().min(MAX_LOOKED_AT) {
        if let Some(expr) = bodies.iter().find_map(|body| rb.bound_in(body, seen[at])) {
            cost += rb.expr_cost(expr);
            if cost > limit {
                return true;
            }
            expr.for_each_operand(&mut |var| {
                if !seen.contains(&var) {
                    seen.push(var);
                }
            });
        }
        at += 1;
    }
    false
}

/// Returns, for nested blocks, the statements of each that `wanted`, a variable of the last, needs, without the loops
/// that contain the blocks.
pub(super) fn needed(rb: &Rebuild<'_>, bodies: &[&Block], wanted: VarId) -> Vec<Slice> {
    let mut wanted = vec![wanted];
    let mut all = Vec::new();
    for body in bodies.iter().rev() {
        let kept = rb.slice(body, &wanted);
        for stmt in kept.stmts(body) {
            walk::mentioned(&stmt.expr, &mut |v| wanted.push(v));
        }
        all.push(kept);
    }
    all.reverse();
    all
}

/// Returns the cost of the statements `kept` of `block`.
pub(super) fn kept_cost(rb: &Rebuild<'_>, block: &Block, kept: &Slice) -> f64 {
    kept.stmts(block).map(|stmt| rb.expr_cost(&stmt.expr)).sum()
}
