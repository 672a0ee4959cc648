//! Walking expressions: everything that is mentioned, slices of blocks.

use chainrule_ir::{Block, Expr, Stmt, VarId};

/// Tells `see` every variable that `expr` mentions: operands, those of its blocks, in sizes, binders.
pub(crate) fn mentioned(expr: &Expr, see: &mut impl FnMut(VarId)) {
    expr.for_each_operand(see);
    if expr.is_leaf() {
        return;
    }
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

/// The expression that `block` binds `var` to, if it binds it.
pub(crate) fn bound_in(block: &Block, var: VarId) -> Option<&Expr> {
    block.stmts.iter().rev().find(|stmt| stmt.var == var).map(|stmt| &stmt.expr)
}

/// Whether this is a derivative that is not worked out, or a function with one of its own: what is in it stays as it stands.
pub(crate) fn is_opaque(expr: &Expr) -> bool {
    matches!(expr, Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_))
}

/// Whether a loop stands in another one in `block`, or a loop at all where that `is_inside` of one.
pub(crate) fn has_nested_loops(block: &Block, is_inside: bool) -> bool {
    block.stmts.iter().filter(|stmt| !stmt.expr.is_leaf()).any(|stmt| {
        let is_loop =
            matches!(stmt.expr, Expr::Build { .. } | Expr::Sum { .. } | Expr::Fold { .. } | Expr::Loop { .. });
        let inside = is_inside || is_loop;
        (is_loop && is_inside) || stmt.expr.blocks().into_iter().any(|block| has_nested_loops(block, inside))
    })
}

/// How many statements `block` has, those of blocks in it included.
pub(crate) fn statements(block: &Block) -> i64 {
    let one = |stmt: &Stmt| match stmt.expr.is_leaf() {
        true => 1,
        false => 1 + stmt.expr.blocks().into_iter().map(statements).sum::<i64>(),
    };
    block.stmts.iter().map(one).sum()
}

/// Whether `block` uses `tuple` other than by taking a field of it.
pub(crate) fn uses_whole(block: &Block, tuple: VarId) -> bool {
    block.result == tuple
        || block.stmts.iter().any(|stmt| {
            let direct = !matches!(stmt.expr, Expr::Component(..)) && stmt.expr.operands().contains(&tuple);
            direct || stmt.expr.blocks().into_iter().any(|block| uses_whole(block, tuple))
        })
}
