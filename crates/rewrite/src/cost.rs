//! What a program costs: a polynomial in sizes, and one number that orders programs.
//!
//! An operator costs its weight in the operator table, an element that is read or written 1, a step of a
//! loop 1; a branch costs the dearer side. Sizes that are not known are taken for large
//! ([`LARGE`]); a loop whose count depends on an index is taken to run as often as that index is large.
//!
//! | construct | cost |
//! | --- | --- |
//! | literal, size, tuple, component | 0 |
//! | operator | its weight |
//! | `get` of a number, conversion | 1 |
//! | `get` of a row | 0 |
//! | `build n f` | n * (f + 1 + words of an element) |
//! | `sum n f` | n * (f + 1 + words of a term that is not made in place) + words of the sum |
//! | `ifold`, `while` | steps * (body + 1) |
//! | `if` | 1 + the dearer branch |
//! | `loop` | count * (body + 1) + words of the sum, which is added in place |
//! | `zero`, one-hot array | 0, 1: they are added in place |
//! | sum of two arrays | their words |
//! | a derivative | 3 times its body |

use chainrule_ir::{Block, Expr, Function, Size, Type, VarId};
use chainrule_ops as ops;

/// What a size that is not known is taken for.
pub const LARGE: f64 = 1000.0;

/// How often a `while` is taken to step.
const WHILE_STEPS: f64 = 100.0;

/// `size` as a number, unknown variables taken for [`LARGE`]; not negative.
pub(crate) fn estimate(size: &Size) -> f64 {
    let terms = size.terms().map(|(monomial, c)| monomial.iter().fold(c as f64, |product, _| product * LARGE));
    terms.sum::<f64>().max(0.0)
}

/// How many numbers a value of type `ty` holds.
pub(crate) fn words(ty: &Type) -> f64 {
    match ty {
        Type::Double | Type::Int | Type::Bool => 1.0,
        Type::Array(size, element) => estimate(size) * words(element),
        Type::Tuple(fields, _) => fields.iter().map(words).sum(),
    }
}

/// The cost of one evaluation of `function`.
#[must_use]
pub fn function(function: &Function) -> f64 {
    let ty = |var| function.ty(var);
    block(&function.body, &ty)
}

/// The cost of one evaluation of `block`; `ty` gives the types of variables.
pub(crate) fn block<'a>(block: &Block, ty: &impl Fn(VarId) -> &'a Type) -> f64 {
    within(block, ty, false)
}

/// The cost of one evaluation of `expr`.
pub(crate) fn expr<'a>(expr: &Expr, ty: &impl Fn(VarId) -> &'a Type) -> f64 {
    alone(expr, ty, false)
}

// `summed`: whether this is in the body of a sum, so that sums in it are added in place.
fn within<'a>(block: &Block, ty: &impl Fn(VarId) -> &'a Type, summed: bool) -> f64 {
    block.stmts.iter().map(|stmt| alone(&stmt.expr, ty, summed)).sum()
}

fn alone<'a>(expr: &Expr, ty: &impl Fn(VarId) -> &'a Type, summed: bool) -> f64 {
    let of = |body: &Block| within(body, ty, false);
    let of_sum = |body: &Block| within(body, ty, true);
    let started = |ty: &Type| if summed { 0.0 } else { words(ty) };
    // What a row costs to copy when it is only passed on, it does not cost when it is made in place.
    let stored = |body: &Block| words(ty(body.result)).min(if made_in(body) { 1.0 } else { f64::INFINITY });
    match expr {
        Expr::Real(_) | Expr::Bool(_) | Expr::Size(_) | Expr::Tuple(_) | Expr::Component(..) => 0.0,
        // Nothing where it is added in place.
        Expr::Zero => 0.0,
        // An array in it is made where it is wanted.
        Expr::OneHot { value, .. } => f64::from(u8::from(*ty(*value) == Type::Double)),
        Expr::Plus(a, _) => words(ty(*a)),
        Expr::Op(op, _) => f64::from(ops::Op::row(*op).weight),
        Expr::ToReal(_) => 1.0,
        // A row is a view; only its elements are loaded.
        Expr::Get { array, .. } => match ty(*array) {
            Type::Array(_, element) if matches!(**element, Type::Array(..)) => 0.0,
            _ => 1.0,
        },
        Expr::Array(elements) => elements.len() as f64,
        Expr::Build { size, body, .. } => estimate(size) * (of(body) + 1.0 + stored(body)),
        Expr::Sum { count, body, .. } => {
            estimate(count) * (of_sum(body) + 1.0 + added(body, body.result, ty)) + started(ty(body.result))
        }
        Expr::Fold { count, body, .. } => estimate(count) * (of(body) + 1.0),
        Expr::Loop { count, body, .. } => {
            let term = match ty(body.result) {
                Type::Tuple(parts, _) => parts.last().map_or(0.0, started),
                _ => 0.0,
            };
            estimate(count) * (of_sum(body) + 1.0) + term
        }
        Expr::While { condition, body, .. } => WHILE_STEPS * (of(condition) + of(body) + 1.0),
        Expr::If { then, otherwise, .. } => 1.0 + within(then, ty, summed).max(within(otherwise, ty, summed)),
        Expr::Jvp { body, .. } | Expr::Vjp { body, .. } => 3.0 * of(body),
    }
}

// What adding the result of `block` to a sum costs: what is sparse is added where it is not zero, what a loop makes
// while it is made.
fn added<'a>(block: &Block, var: VarId, ty: &impl Fn(VarId) -> &'a Type) -> f64 {
    match crate::walk::bound_in(block, var) {
        Some(Expr::Tuple(fields)) => fields.iter().map(|field| added(block, *field, ty)).sum(),
        Some(
            Expr::OneHot { .. }
            | Expr::Build { .. }
            | Expr::Sum { .. }
            | Expr::Loop { .. }
            | Expr::Zero
            | Expr::Component(..),
        ) => 0.0,
        Some(Expr::If { .. } | Expr::Plus(..)) if *ty(var) != Type::Double => 1.0,
        _ => words(ty(var)),
    }
}

// Whether the result of `block` is an array that a statement of it makes.
fn made_in(block: &Block) -> bool {
    crate::walk::bound_in(block, block.result).is_some_and(|expr| matches!(expr, Expr::Build { .. }))
}
