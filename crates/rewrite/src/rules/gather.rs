//! Rules that convert scatters to gathers: sums of one-hot arrays whose index is a shift of the loop index that wraps
//! around, is clamped, or is in range everywhere, or where a condition holds.
//!
//! Each element of such a sum has one term, except at the borders. So the array is a `build` that reads, which can be
//! fused with its users, instead of memory that every iteration adds to.

use super::mask::{Guard, mask, write_guarded};
use super::solve::in_range;
use super::sum::{Parts, parts};
use super::{On, Rule};
use crate::cost;
use crate::rebuild::{Env, Rebuild};
use crate::walk;
use chainrule_ir::{Block, Expr, Size, Type, VarId};
use chainrule_ops::{Op, Semantics};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "sum-of-rotated",
        law: "sum n (fun i -> oneHot (mod (i + k) n) (f i)) = build n (fun j -> f (mod (j - k) n))",
        when: "k does not depend on i; strictly: plus 0, for the sign of a zero",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: rotated,
    },
    Rule {
        name: "sum-of-clamped",
        law: "sum n (fun i -> oneHot (max l (i + k)) (f i)) = build m (fun j -> [j == l] (sum (l - k) f) + [l <= j < n + k] f (j - k)); \
              min, and both, likewise",
        when: "l and k do not depend on i",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Sum,
        apply: clamped,
    },
    Rule {
        name: "sum-of-guarded",
        law: "sum n (fun i -> [c] oneHot (i + k) (f i)) = build m (fun j -> [k <= j < n + k && c] f (j - k))",
        when: "k does not depend on i; where c holds, i + k is in range; without a condition: m - n is a constant of at most n, and f i not sparse",
        holds_under: Semantics::Strict,
        split: false,
        on: On::Sum,
        apply: guarded,
    },
    Rule {
        name: "sum-of-guarded-sums",
        law: "sum n (fun i -> [c] (oneHot (i + k) (f i) + oneHot (i + l) (g i))) = build m (fun j -> \
              [k <= j < n + k && c] f (j - k) + [l <= j < n + l && c] g (j - l))",
        when: "as sum-of-guarded, for each of the arrays",
        holds_under: Semantics::Algebraic,
        split: false,
        on: On::Sum,
        apply: guarded_sums,
    },
];

/// Maximum number of one-hot arrays of a term.
const MAX_ARRAYS: usize = 8;

/// Returns the difference between the integer `var` of the body of `sum` and the loop index, if it is invariant and `j`
/// minus it fits into 64 bits for every index `j`.
fn shift(rb: &Rebuild<'_>, sum: &Parts<'_>, var: VarId) -> Option<Size> {
    let (slope, rest) = rb.size_of(var).split_linear(sum.index)?;
    let fits = slope.as_constant() == Some(1) && rb.ranges.can_be_subtracted(&rest);
    (fits && rb.is_outside(&rest, sum.body, &[sum.index])).then_some(rest)
}

/// Returns the integer `var` of the body of `sum`, if it is invariant.
fn same(rb: &Rebuild<'_>, sum: &Parts<'_>, var: VarId) -> Option<Size> {
    let size = rb.size_of(var);
    rb.is_outside(&size, sum.body, &[sum.index]).then_some(size)
}

/// Returns the operator that computes the integer `var` of the body of `sum`.
fn made_by(rb: &Rebuild<'_>, sum: &Parts<'_>, var: VarId) -> Option<(Op, [VarId; 2])> {
    match rb.bound_in(sum.body, var)? {
        Expr::Op(op, args) => Some((*op, [*args.first()?, *args.get(1)?])),
        _ => None,
    }
}

/// Returns index and value of the one-hot array that every iteration adds, and whether the index was proved to be in
/// range.
fn one_hot(rb: &Rebuild<'_>, sum: &Parts<'_>) -> Option<(VarId, VarId, bool)> {
    match rb.bound_in(sum.body, sum.body.result) {
        Some(&Expr::OneHot { index, value, proved }) => Some((index, value, proved)),
        _ => None,
    }
}

/// Writes the array of `value`, a variable of the body, over all iterations.
fn values(rb: &mut Rebuild<'_>, sum: &Parts<'_>, value: VarId) -> VarId {
    rb.build(sum.count.clone(), |rb, i| rb.inline(sum.body, value, &mut sum.at(i)))
}

fn rotated(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (sum, Type::Array(size, element)) = (parts(expr)?, ty) else { return None };
    let (index, value, _) = one_hot(rb, &sum)?;
    let (Op::Mod, [dividend, divisor]) = made_by(rb, &sum, index)? else { return None };
    if sum.count != size || rb.size_of(divisor) != *size {
        return None;
    }
    let by = shift(rb, &sum, dividend)?;
    let values = values(rb, &sum, value);
    Some(rb.build(size.clone(), |rb, j| {
        let (from, n) = (rb.int(Size::var(j).sub(&by)), rb.int(size.clone()));
        let at = rb.op(Op::Mod, &[from, n]);
        let (zero, term) = (rb.zero(element), rb.get(values, at));
        rb.plus(zero, term)
    }))
}

/// An index that is a shift clamped between two borders.
struct Clamped {
    by: Size,
    low: Option<Size>,
    high: Option<Size>,
    /// Whether the lower border wins over the upper one.
    low_wins: bool,
}

impl Clamped {
    fn new(rb: &Rebuild<'_>, sum: &Parts<'_>, mut index: VarId) -> Option<Self> {
        let (mut low, mut high, mut low_wins) = (None, None, false);
        while let Some((op @ (Op::Min | Op::Max), [x, y])) = made_by(rb, sum, index) {
            let (border, inner) = match (same(rb, sum, x), same(rb, sum, y)) {
                (Some(border), None) => (border, y),
                (None, Some(border)) => (border, x),
                _ => return None,
            };
            let side = if op == Op::Max { &mut low } else { &mut high };
            if side.replace(border).is_some() {
                return None;
            }
            // The last one visited is the inner one.
            low_wins = op == Op::Min && low.is_some();
            index = inner;
        }
        if low.is_none() && high.is_none() {
            return None;
        }
        Some(Self { by: shift(rb, sum, index)?, low, high, low_wins })
    }

    /// Returns whether it is in range of an array of `size` elements in every iteration.
    fn is_in_range(&self, rb: &Rebuild<'_>, sum: &Parts<'_>, size: &Size) -> bool {
        let steps: Vec<VarId> = sum.count.as_var().into_iter().collect();
        let are_inside =
            [&self.low, &self.high].into_iter().flatten().all(|border| rb.ranges.in_range_where(border, size, &steps));
        let at = Size::var(sum.index).add(&self.by);
        are_inside
            && (self.low.is_some() || rb.ranges.not_negative(&at))
            && (self.high.is_some() || rb.ranges.not_negative(&size.sub(&at).sub(&Size::constant(1))))
    }
}

fn clamped(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    let (sum, Type::Array(size, element)) = (parts(expr)?, ty) else { return None };
    let (index, value, proved) = one_hot(rb, &sum)?;
    let found = Clamped::new(rb, &sum, index)?;
    if !proved && !found.is_in_range(rb, &sum, size) {
        return None;
    }
    let Clamped { by, low, high, low_wins } = found;
    let (zero, count) = (rb.int(Size::zero()), rb.int(sum.count.clone()));
    // The first index from which on the shift is at least `border`.
    let reaches = |rb: &mut Rebuild<'_>, border: &Size| {
        let at = rb.int(border.sub(&by));
        let at = rb.op(Op::Max, &[zero, at]);
        rb.op(Op::Min, &[at, count])
    };
    let one = Size::constant(1);
    let mut begin = low.as_ref().map_or(zero, |low| reaches(rb, low));
    let mut end = high.as_ref().map_or(count, |high| reaches(rb, &high.add(&one)));
    if low_wins {
        begin = rb.op(Op::Min, &[begin, end]);
    } else {
        end = rb.op(Op::Max, &[begin, end]);
    }
    let values = values(rb, &sum, value);
    let total = |rb: &mut Rebuild<'_>, from: Size, to: Size| {
        rb.sum(to.sub(&from), |rb, r| {
            let at = rb.int(from.add(&Size::var(r)));
            rb.get(values, at)
        })
    };
    let mut borders = Vec::new();
    if let Some(low) = &low {
        let all = total(rb, Size::zero(), rb.size_of(begin));
        borders.push((rb.int(low.clone()), all));
    }
    if let Some(high) = &high {
        let all = total(rb, rb.size_of(end), sum.count.clone());
        borders.push((rb.int(high.clone()), all));
    }
    // If the borders cross, indices at the inner one move to the outer one.
    if let [(low, _), (high, _)] = borders.as_mut_slice() {
        if low_wins {
            *high = rb.op(Op::Max, &[*low, *high]);
        } else {
            *low = rb.op(Op::Min, &[*low, *high]);
        }
    }
    Some(rb.build(size.clone(), |rb, j| {
        let from = Size::var(j).sub(&by);
        let mut inside = in_range(rb, &from, sum.count);
        if let Some(low) = &low {
            let low = rb.int(low.clone());
            let above = rb.op(Op::Le, &[low, j]);
            inside = rb.op(Op::And, &[inside, above]);
        }
        if let Some(high) = &high {
            let high = rb.int(high.clone());
            let below = rb.op(Op::Le, &[j, high]);
            inside = rb.op(Op::And, &[inside, below]);
        }
        let mut all = mask(rb, inside, element, |rb| {
            let from = rb.int(from.clone());
            rb.get(values, from)
        });
        for (border, total) in &borders {
            let here = rb.op(Op::Eq, &[j, *border]);
            let more = mask(rb, here, element, |_| *total);
            all = rb.plus(all, more);
        }
        all
    }))
}

/// A term that is a sum of one-hot arrays: everywhere, or where a guard holds, and otherwise zero.
struct Scattered<'e> {
    guard: Option<Guard<'e>>,
    arrays: Vec<OneHot>,
}

struct OneHot {
    index: VarId,
    value: VarId,
    proved: bool,
}

impl<'e> Scattered<'e> {
    fn new(rb: &Rebuild<'_>, sum: &Parts<'e>) -> Option<Self> {
        let guard = Guard::of_result(rb, sum.body);
        let block = guard.as_ref().map_or(sum.body, |guard| guard.block);
        let (mut open, mut arrays) = (vec![block.result], Vec::new());
        while let Some(array) = open.pop() {
            let room = open.len() + arrays.len() < MAX_ARRAYS;
            match *rb.bound_in(block, array)? {
                Expr::OneHot { index, value, proved } => arrays.push(OneHot { index, value, proved }),
                Expr::Plus(a, b) if room => open.extend([b, a]),
                _ => return None,
            }
        }
        Some(Self { guard, arrays })
    }

    /// Returns integers that are nonnegative if the guard holds.
    fn facts(&self, rb: &Rebuild<'_>, sum: &Parts<'_>) -> Vec<Size> {
        let Some(guard) = &self.guard else { return Vec::new() };
        let implied = rb.implied(Some(sum.body), guard.condition, guard.holds);
        let made = implied.into_iter().filter_map(|part| Some((part.made?, part.value)));
        made.flat_map(|((op, args), value)| rb.learned(op, &args, value)).collect()
    }

    /// Returns by how much each index exceeds that of the loop, if it is a shift and in range wherever it is used.
    fn shifts(&self, rb: &Rebuild<'_>, sum: &Parts<'_>, size: &Size) -> Option<Vec<Size>> {
        let facts = self.facts(rb, sum);
        let is_natural =
            |x: &Size| rb.ranges.not_negative(x) || facts.iter().any(|fact| rb.ranges.not_negative(&x.sub(fact)));
        let is_in_range = |index: &Size| is_natural(index) && is_natural(&size.sub(index).sub(&Size::constant(1)));
        let is_known = |by: &Size| self.guard.as_ref().is_none_or(|guard| rb.is_outside(by, guard.block, &[]));
        let shift = |array: &OneHot| {
            let by = shift(rb, sum, array.index).filter(is_known)?;
            (array.proved || is_in_range(&rb.size_of(array.index))).then_some(by)
        };
        self.arrays.iter().map(shift).collect()
    }

    /// Returns whether it gives most elements of the array, and not a few that are better added in memory.
    fn fills(&self, rb: &Rebuild<'_>, sum: &Parts<'_>, size: &Size) -> bool {
        let are_most =
            size.sub(sum.count).as_constant().is_some() && 2.0 * cost::estimate(sum.count) >= cost::estimate(size);
        self.guard.is_some() || (are_most && self.arrays.iter().all(|array| is_dense(rb, sum.body, array.value)))
    }

    /// Writes the values of `array`, one of its arrays with elements of type `element`, in all iterations.
    fn values(&self, rb: &mut Rebuild<'_>, sum: &Parts<'_>, array: &OneHot, element: &Type) -> VarId {
        rb.build(sum.count.clone(), |rb, i| {
            let mut env: Env<'static> = sum.at(i);
            let Some(Guard { condition, holds, block }) = self.guard else {
                return rb.inline(sum.body, array.value, &mut env);
            };
            let kept = super::get::needed(rb, &[sum.body, block], array.value);
            let condition = rb.inline(sum.body, condition, &mut env);
            rb.inline_kept(sum.body, &kept[0], &mut env);
            write_guarded(rb, condition, holds, element, |rb| rb.inline(block, array.value, &mut env))
        })
    }
}

/// Returns whether `value`, a variable of `block` or from outside, is a number, is read, or is made of such. `false` if
/// that takes many steps to find.
fn is_dense(rb: &Rebuild<'_>, block: &Block, value: VarId) -> bool {
    let mut open = vec![(block, value)];
    for _ in 0..walk::MAX_VERSIONS {
        let Some((block, value)) = open.pop() else { return true };
        if *rb.ty(value) == Type::Double {
            continue;
        }
        match rb.bound_in(block, value) {
            None | Some(Expr::Get { .. } | Expr::Zero) => {}
            Some(Expr::Build { body, .. }) => open.push((body, body.result)),
            Some(Expr::If { then, otherwise, .. }) => open.extend([(then, then.result), (otherwise, otherwise.result)]),
            Some(Expr::Plus(a, b)) => open.extend([(block, *a), (block, *b)]),
            _ => return false,
        }
    }
    false
}

fn guarded(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    gathered(rb, expr, ty, |n_arrays| n_arrays == 1)
}

fn guarded_sums(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type) -> Option<VarId> {
    gathered(rb, expr, ty, |n_arrays| n_arrays > 1)
}

fn gathered(rb: &mut Rebuild<'_>, expr: &Expr, ty: &Type, is_wanted: impl Fn(usize) -> bool) -> Option<VarId> {
    let (sum, Type::Array(size, element)) = (parts(expr)?, ty) else { return None };
    let term = Scattered::new(rb, &sum).filter(|term| is_wanted(term.arrays.len()) && term.fills(rb, &sum, size))?;
    let shifts = term.shifts(rb, &sum, size)?;
    let one = |rb: &mut Rebuild<'_>, (array, by): (&OneHot, Size)| {
        let values = term.values(rb, &sum, array, element);
        rb.build(size.clone(), |rb, j| {
            let from = Size::var(j).sub(&by);
            let inside = in_range(rb, &from, sum.count);
            let term = mask(rb, inside, element, |rb| {
                let from = rb.int(from.clone());
                rb.get(values, from)
            });
            let zero = rb.zero(element);
            rb.plus(zero, term)
        })
    };
    let arrays: Vec<VarId> = term.arrays.iter().zip(shifts).map(|found| one(rb, found)).collect();
    arrays.into_iter().reduce(|a, b| rb.plus(a, b))
}
