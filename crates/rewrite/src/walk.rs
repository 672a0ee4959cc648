//! Walking expressions: everything that is mentioned, slices of blocks.

use chainrule_ir::{Block, Expr, VarId};
use rustc_hash::FxHashSet;

/// Tells `see` every variable that `expr` mentions: operands, those of its blocks, in sizes, binders.
pub(crate) fn mentioned(expr: &Expr, see: &mut impl FnMut(VarId)) {
    expr.for_each_operand(see);
    expr.binders().into_iter().for_each(&mut *see);
    for block in expr.blocks() {
        mentioned_in(block, see);
    }
}

/// As [`mentioned`], for the statements and the result of a block.
pub(crate) fn mentioned_in(block: &Block, see: &mut impl FnMut(VarId)) {
    for stmt in &block.stmts {
        mentioned(&stmt.expr, see);
    }
    see(block.result);
}

/// Which statements of `block` the variables `wanted` need: the slice. Linear in the block.
pub(crate) fn slice(block: &Block, wanted: &[VarId]) -> Vec<bool> {
    let mut needed: FxHashSet<VarId> = wanted.iter().copied().collect();
    let mut kept = vec![false; block.stmts.len()];
    for (at, stmt) in block.stmts.iter().enumerate().rev() {
        if needed.contains(&stmt.var) {
            kept[at] = true;
            mentioned(&stmt.expr, &mut |v| {
                needed.insert(v);
            });
        }
    }
    kept
}

/// Whether the slice of `block` for `wanted` mentions `var`.
pub(crate) fn slice_mentions(block: &Block, wanted: VarId, var: VarId) -> bool {
    if wanted == var {
        return true;
    }
    let kept = slice(block, &[wanted]);
    let mut found = false;
    for (stmt, _) in block.stmts.iter().zip(kept).filter(|(_, kept)| *kept) {
        mentioned(&stmt.expr, &mut |v| found |= v == var);
    }
    found
}

/// The expression that `block` binds `var` to, if it binds it.
pub(crate) fn bound_in(block: &Block, var: VarId) -> Option<&Expr> {
    block.stmts.iter().rev().find(|stmt| stmt.var == var).map(|stmt| &stmt.expr)
}

/// How many statements `block` has, those of blocks in it included.
pub(crate) fn statements(block: &Block) -> i64 {
    block.stmts.iter().map(|stmt| 1 + stmt.expr.blocks().into_iter().map(statements).sum::<i64>()).sum()
}

/// Whether `block` uses `tuple` other than by taking a field of it.
pub(crate) fn uses_whole(block: &Block, tuple: VarId) -> bool {
    block.result == tuple
        || block.stmts.iter().any(|stmt| {
            let direct = !matches!(stmt.expr, Expr::Component(..)) && stmt.expr.operands().contains(&tuple);
            direct || stmt.expr.blocks().into_iter().any(|block| uses_whole(block, tuple))
        })
}
