//! Solving of conditions for an index: from `... && i == e && ...`, the `e`.

use crate::rebuild::Rebuild;
use chainrule_ir::{Block, Expr, Size, Type, VarId};
use chainrule_ops::Op;
use std::rc::Rc;

/// Maximum number of visited conjuncts.
pub(super) const MAX_CONJUNCTS: usize = 16;

/// Returns the expression of `var`, in scope or of a closed block.
fn def_in(rb: &Rebuild<'_>, block: Option<&Block>, var: VarId) -> Option<Rc<Expr>> {
    rb.def(var).or_else(|| rb.bound_in(block?, var).cloned().map(Rc::new))
}

/// Returns the conjuncts of `condition`.
fn conjuncts(rb: &Rebuild<'_>, block: Option<&Block>, condition: VarId) -> Vec<VarId> {
    let (mut todo, mut found) = (vec![condition], Vec::new());
    while let Some(next) = todo.pop() {
        match def_in(rb, block, next).as_deref() {
            Some(Expr::Op(Op::And, args)) if found.len() + todo.len() < MAX_CONJUNCTS => {
                todo.extend(args.iter().rev());
            }
            _ => found.push(next),
        }
    }
    found
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
    conjuncts(rb, Some(block), condition).into_iter().find_map(|conjunct| {
        let [x, y] = equated(rb, Some(block), conjunct)?;
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
    conjuncts(rb, None, condition).into_iter().any(|conjunct| equated(rb, None, conjunct).is_some())
}

/// Returns the integers that `condition` equates.
fn equated(rb: &Rebuild<'_>, block: Option<&Block>, condition: VarId) -> Option<[VarId; 2]> {
    let def = def_in(rb, block, condition)?;
    let Expr::Op(Op::Eq, args) = &*def else { return None };
    let &[x, y] = args.as_slice() else { return None };
    (*rb.ty(x) == Type::Int).then_some([x, y])
}

/// Writes `0 <= index < count`, as a truth value, with constant folding.
pub(super) fn in_range(rb: &mut Rebuild<'_>, index: &Size, count: &Size) -> VarId {
    let (zero, index, count) = (rb.int(Size::zero()), rb.int(index.clone()), rb.int(count.clone()));
    let (low, high) = (rb.op(Op::Le, &[zero, index]), rb.op(Op::Lt, &[index, count]));
    rb.op(Op::And, &[low, high])
}
