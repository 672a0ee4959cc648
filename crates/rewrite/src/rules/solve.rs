//! Solving of conditions for an index: from `... && i == e && ...`, the `e`.

use crate::rebuild::Rebuild;
use chainrule_ir::{Block, Size, Type, VarId};
use chainrule_ops::Op;

/// Returns the pairs of integers that are equal where `condition` holds, in order. Definitions are in scope or in the
/// closed block `block`.
fn equated(rb: &Rebuild<'_>, block: Option<&Block>, condition: VarId) -> impl Iterator<Item = [VarId; 2]> {
    rb.implied(block, condition, true).into_iter().rev().filter_map(|part| match part.made {
        Some((Op::Eq, args)) if part.value && *rb.ty(args[0]) == Type::Int => Some([args[0], args[1]]),
        _ => None,
    })
}

/// Returns the only value of `index` for which `condition` can hold, over variables bound outside `block`, the loop's
/// body, and not among its `binders`.
pub(super) fn solve(
    rb: &Rebuild<'_>,
    block: &Block,
    binders: &[VarId],
    index: VarId,
    condition: VarId,
) -> Option<Size> {
    equated(rb, Some(block), condition).find_map(|[x, y]| {
        let (slope, rest) = rb.size_of(x).sub(&rb.size_of(y)).split_linear(index)?;
        let solution = match slope.as_constant() {
            Some(1) => rest.neg(),
            Some(-1) => rest,
            _ => return None,
        };
        rb.is_outside(&solution, block, binders).then_some(solution)
    })
}

/// Returns whether `condition`, in scope, determines an index.
pub(super) fn asks_for_index(rb: &Rebuild<'_>, condition: VarId) -> bool {
    equated(rb, None, condition).next().is_some()
}

/// Writes `0 <= index < count`, as a truth value, with constant folding.
pub(super) fn in_range(rb: &mut Rebuild<'_>, index: &Size, count: &Size) -> VarId {
    let (zero, index, count) = (rb.int(Size::zero()), rb.int(index.clone()), rb.int(count.clone()));
    let (low, high) = (rb.op(Op::Le, &[zero, index]), rb.op(Op::Lt, &[index, count]));
    rb.op(Op::And, &[low, high])
}
