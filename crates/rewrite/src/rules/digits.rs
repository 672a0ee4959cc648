//! Sums that put the terms of one loop into an array of several dimensions: the indices are the digits of that of the
//! loop, as in the derivative of an array that is reshaped. Each element has one term.

use super::get::MAX_DIMENSIONS;
use super::sum::{Parts, parts};
use super::{On, Rule};
use crate::rebuild::Rebuild;
use chainrule_ir::{Expr, Size, Type, VarId};
use chainrule_ops::{Op, Semantics};
use smallvec::SmallVec;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "sum-of-digits",
    law: "sum (n * m) (fun k -> oneHot (div k m) (oneHot (mod k m) (f k))) = build n (fun i -> build m (fun j -> f (m * i + j)))",
    when: "n and m are the sizes of the array; in any order, and for more of them",
    holds_under: Semantics::Algebraic,
    split: false,
    on: On::Sum,
    apply: digits,
}];

/// Digit of the index of a loop: its quotient by a size, then its remainder by another one, if that is not the most
/// significant digit.
struct Digit {
    quotient: Size,
    remainder: Option<Size>,
}

fn digits(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let sum = parts(expr)?;
    let (mut found, mut value, mut ty) = (SmallVec::<[(Digit, &Size); MAX_DIMENSIONS]>::new(), sum.body.result, ty);
    while let (Some(&Expr::OneHot { index, value: inner, .. }), Type::Array(size, element)) =
        (rb.bound_in(sum.body, value), ty)
        && found.len() < MAX_DIMENSIONS
        && let Some(digit) = digit(rb, &sum, index)
    {
        found.push((digit, size));
        (value, ty) = (inner, element);
    }
    if found.len() < 2 || matches!(rb.bound_in(sum.body, value), Some(Expr::OneHot { .. })) {
        return None;
    }
    // From the least significant one, each is worth the sizes of those before, and all together the count.
    let (mut worth, mut left) = (Size::constant(1), (0..found.len()).collect::<SmallVec<[usize; MAX_DIMENSIONS]>>());
    while !left.is_empty() {
        let is_next = |at: &usize| {
            let (digit, size) = &found[*at];
            let is_whole = digit.remainder.as_ref().map_or(left.len() == 1, |remainder| remainder == *size);
            is_whole && digit.quotient == worth
        };
        let next = left.iter().position(is_next)?;
        worth = worth.mul(found[left.remove(next)].1);
    }
    (worth == *sum.count).then(|| written(rb, &sum, &found, value, Size::zero()))
}

/// Returns the digit that the integer `index` of the body of `sum` is.
fn digit(rb: &Rebuild<'_>, sum: &Parts<'_>, index: VarId) -> Option<Digit> {
    let made_by = |var: VarId, wanted: Op| match rb.bound_in(sum.body, var) {
        Some(Expr::Op(op, args)) if *op == wanted && args.len() == 2 => {
            let by = rb.size_of(args[1]);
            rb.is_outside(&by, sum.body, &[sum.index]).then_some((args[0], by))
        }
        _ => None,
    };
    let (mut of, remainder) = match made_by(index, Op::Mod) {
        Some((of, by)) => (of, Some(by)),
        None => (index, None),
    };
    let mut quotient = Size::constant(1);
    while of != sum.index {
        let (dividend, by) = made_by(of, Op::Quot)?;
        quotient = quotient.mul(&by);
        of = dividend;
    }
    Some(Digit { quotient, remainder })
}

/// Writes the builds over `digits`, outermost first, of the terms of `sum`; those around have given `index`.
// Recursive on the dimensions.
fn written(rb: &mut Rebuild<'_>, sum: &Parts<'_>, digits: &[(Digit, &Size)], value: VarId, index: Size) -> VarId {
    let Some(((digit, size), inner)) = digits.split_first() else {
        let index = rb.int(index);
        return rb.inline(sum.body, value, &mut sum.at(index));
    };
    rb.build((*size).clone(), |rb, i| written(rb, sum, inner, value, index.add(&digit.quotient.mul(&Size::var(i)))))
}
