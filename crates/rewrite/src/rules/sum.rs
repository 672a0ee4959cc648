//! Rules for `sum`.

use super::mask::{Guard, condition_in, condition_of_result, is_zero, mask, write_guarded};
use super::number::is_number;
use super::op::doubles;
use super::solve::{in_range, solve};
use super::{On, Rule};
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Block, Expr, Size, Type, VarId};
use chainrule_ops::{Op, Semantics};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "sum-of-none",
        law: "sum 0 f = 0; sum n (fun i -> 0) = 0",
        when: "",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: none,
    },
    Rule {
        name: "sum-of-mask",
        law: "sum n (fun i -> [i == e] f i) = [0 <= e < n] (f e)",
        when: "e does not depend on i; strictly: plus 0, for the sign of a zero",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: pick,
    },
    Rule {
        name: "sum-in-mask",
        law: "sum n (fun i -> [c] f i) = [c] (sum n f)",
        when: "c does not depend on i",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: into_mask,
    },
    Rule {
        name: "sum-in-guard",
        law: "sum n (fun i -> [c && d i] f i) = [c] (sum n (fun i -> [d i] f i)); if c || d i then 0 else f i likewise",
        when: "c does not depend on i; the terms are arrays, whose indices c may prove",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: into_guard,
    },
    Rule {
        name: "unroll-sum",
        law: "sum 2 f = 0 + f 0 + f 1",
        when: "the count is a small literal, and f is short, and no element at i that loops make; a larger literal where i is \
               an exponent in f",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: unroll,
    },
    Rule {
        name: "sum-of-constant",
        law: "sum n (fun i -> x) = n * x",
        when: "x does not depend on i; n >= 1, or n >= 0 and x is a number wherever the program is",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Sum,
        apply: constant,
    },
    Rule {
        name: "sum-of-sum",
        law: "sum n (fun i -> f i + [i == e] g i) = sum n f + sum n (fun i -> [i == e] g i)",
        when: "e does not depend on i: the second loop vanishes",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Sum,
        apply: apart,
    },
];

/// Maximum number of iterations of an unrolled loop ...
const UNROLL_STEPS: i64 = 4;
/// ... and of statements of all iterations.
const UNROLL_STATEMENTS: i64 = 64;
/// The same for loops whose index is an exponent: powers become products.
const UNROLL_POWERS: i64 = 16;
const UNROLL_STATEMENTS_OF_POWERS: i64 = 256;

pub(super) struct Parts<'e> {
    pub(super) count: &'e Size,
    pub(super) index: VarId,
    pub(super) body: &'e Block,
}

pub(super) fn parts(expr: &Expr) -> Option<Parts<'_>> {
    match expr {
        Expr::Sum { count, index, body } => Some(Parts { count, index: *index, body }),
        _ => None,
    }
}

/// Returns the parts of a sum of numbers.
pub(super) fn of_numbers<'e>(expr: &'e Expr, ty: &Type) -> Option<Parts<'e>> {
    if *ty == Type::Double { parts(expr) } else { None }
}

impl Parts<'_> {
    /// Returns the renaming for the index `index`.
    pub(super) fn at(&self, index: VarId) -> Env<'static> {
        Env::copying(&[(self.index, index)])
    }

    /// Writes the sum of `term`, a variable of the body or from outside.
    pub(super) fn sum(&self, rb: &mut Rebuild<'_>, term: VarId) -> VarId {
        rb.sum(self.count.clone(), |rb, i| rb.inline(self.body, term, &mut self.at(i)))
    }

    /// Returns whether there is an iteration.
    pub(super) fn runs(&self, rb: &Rebuild<'_>) -> bool {
        rb.ranges.not_negative(&self.count.sub(&Size::constant(1)))
    }

    /// Returns whether `var` is invariant.
    pub(super) fn is_constant(&self, rb: &Rebuild<'_>, var: VarId) -> bool {
        var != self.index && rb.bound_in(self.body, var).is_none()
    }
}

fn none(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let none = rb.ranges.not_negative(&sum.count.neg());
    (none || is_zero(rb, sum.body.result)).then(|| rb.zero(ty))
}

fn pick(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let condition = condition_of_result(rb, sum.body)?;
    let found = solve(rb, sum.body, &[sum.index], sum.index, condition)?;
    let inside = in_range(rb, &found, sum.count);
    let term = mask(rb, inside, ty, |rb| {
        let at = rb.int(found.clone());
        rb.inline(sum.body, sum.body.result, &mut sum.at(at))
    });
    let zero = rb.zero(ty);
    Some(rb.plus(zero, term))
}

fn into_mask(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let condition = condition_in(rb, sum.body, sum.body.result)?;
    if !sum.is_constant(rb, condition) {
        return None;
    }
    // The condition is known inside, so the mask is its content.
    Some(mask(rb, condition, ty, |rb| sum.sum(rb, sum.body.result)))
}

/// Returns a part of the condition of the terms that is invariant, and the value without which all terms are zero.
fn guard(rb: &Rebuild<'_>, sum: &Parts<'_>) -> Option<(VarId, bool)> {
    let Guard { condition, holds, .. } = Guard::of_result(rb, sum.body)?;
    let implied = rb.implied(Some(sum.body), condition, holds);
    implied.into_iter().find(|part| sum.is_constant(rb, part.var)).map(|part| (part.var, part.value))
}

fn into_guard(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (sum, Type::Array(..)) = (parts(expr)?, ty) else { return None };
    let (condition, holds) = guard(rb, &sum)?;
    // It is known inside, so the terms lose it.
    Some(write_guarded(rb, condition, holds, ty, |rb| sum.sum(rb, sum.body.result)))
}

fn unroll(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let count = sum.count.as_constant()?;
    // An array that one nest of loops makes is better than the sum of its elements, each from a nest.
    let makes_elements = || count > 1 && has_place(rb, sum.body, sum.index);
    if !is_short(count, sum.index, sum.body) || walk::has_long_loops(sum.body, UNROLL_STEPS) && makes_elements() {
        return None;
    }
    let mut total = rb.zero(ty);
    for i in 0..count {
        let i = rb.int(Size::constant(i));
        let term = rb.inline(sum.body, sum.body.result, &mut sum.at(i));
        total = rb.plus(total, term);
    }
    Some(total)
}

/// Returns whether the result of `block`, or of the sums that are its result, is an element at the place `index` of an
/// array.
fn has_place(rb: &Rebuild<'_>, mut block: &Block, index: VarId) -> bool {
    while let Some(Expr::Sum { body, .. }) = rb.bound_in(block, block.result) {
        block = body;
    }
    let is_at_place =
        |var: VarId| matches!(rb.bound_in(block, var), Some(Expr::OneHot { index: place, .. }) if *place == index);
    match rb.bound_in(block, block.result) {
        Some(Expr::Tuple(fields)) => fields.iter().any(|field| is_at_place(*field)),
        _ => is_at_place(block.result),
    }
}

/// Writes `count` as a double, if it is not negative.
fn real_count(rb: &mut Rebuild<'_>, count: &Size) -> Option<VarId> {
    if let Some(count) = count.as_constant() {
        return (count >= 0).then(|| rb.real(count as f64));
    }
    if !rb.ranges.not_negative(count) {
        return None;
    }
    let count = rb.int(count.clone());
    Some(rb.compute(Expr::ToReal(count)))
}

fn constant(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = of_numbers(expr, ty)?;
    if !sum.is_constant(rb, sum.body.result) {
        return None;
    }
    if !sum.runs(rb) && !is_number(rb, sum.body.result) {
        return None;
    }
    let count = real_count(rb, sum.count)?;
    Some(rb.op(Op::Mul, &[count, sum.body.result]))
}

fn apart(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = of_numbers(expr, ty)?;
    let (op @ (Op::Add | Op::Sub), &[x, y]) = doubles(rb.bound_in(sum.body, sum.body.result)?, ty)? else {
        return None;
    };
    let vanishes = |rb: &Rebuild<'_>, var: VarId| {
        condition_in(rb, sum.body, var).is_some_and(|c| solve(rb, sum.body, &[sum.index], sum.index, c).is_some())
    };
    if !vanishes(rb, x) && !vanishes(rb, y) {
        return None;
    }
    let (x, y) = (sum.sum(rb, x), sum.sum(rb, y));
    Some(rb.op(op, &[x, y]))
}

/// Returns whether `count` iterations of `block`, the body of a loop with this index, are few and short enough to be
/// unrolled.
pub(super) fn is_short(count: i64, index: VarId, block: &Block) -> bool {
    let statements = || count * walk::statements(block);
    count <= 1
        || (count <= UNROLL_STEPS && statements() <= UNROLL_STATEMENTS)
        || (count <= UNROLL_POWERS
            && statements() <= UNROLL_STATEMENTS_OF_POWERS
            && is_exponent(block, index, &mut Vec::new()))
}

/// Returns whether a power in `block` has `index` as its exponent, or a sum with it. `exponents` collects those
/// of the statements so far.
fn is_exponent(block: &Block, index: VarId, exponents: &mut Vec<VarId>) -> bool {
    block.stmts.iter().any(|stmt| {
        match &stmt.expr {
            Expr::ToReal(x) if *x == index => exponents.push(stmt.var),
            Expr::Op(Op::Pow, args) if exponents.contains(&args[1]) => return true,
            Expr::Op(Op::Add | Op::Sub, args) if args.iter().any(|x| exponents.contains(x)) => exponents.push(stmt.var),
            _ => {}
        }
        stmt.expr.blocks().into_iter().any(|block| is_exponent(block, index, exponents))
    })
}
