//! Walks over expressions: mentioned variables, slices of blocks, versions of states.

use chainrule_ir::{Block, Expr, Function, Rows, Size, StateLoop, Stmt, Type, VarId};

/// Calls `see` for every variable that `expr` mentions: operands, those of its blocks, in sizes, binders.
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

/// Returns whether this is an unexpanded derivative, or a function with its own derivative: its content stays
/// unchanged.
pub(crate) fn is_opaque(expr: &Expr) -> bool {
    matches!(expr, Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_))
}

/// Maximum number of arrays between a state and a version of it, and of terms of a sum that are examined.
pub(crate) const MAX_VERSIONS: usize = 32;

/// Returns whether an array is the state of a loop, possibly with elements changed and arrays added. `sources` appends
/// [`sources_of`] the definition of a variable.
pub(crate) fn is_version(
    array: VarId,
    is_state: impl Fn(VarId) -> bool,
    sources: impl Fn(VarId, &mut Vec<VarId>),
) -> bool {
    let mut open = vec![array];
    for _ in 0..MAX_VERSIONS {
        let Some(var) = open.pop() else { return false };
        if is_state(var) {
            return true;
        }
        sources(var, &mut open);
    }
    false
}

/// Appends the arrays of which `expr` is a part, a sum, or a copy with elements changed; sparse arrays, by `is_sparse`,
/// may be added to its rows.
pub(crate) fn sources_of(expr: &Expr, is_sparse: &dyn Fn(VarId) -> bool, open: &mut Vec<VarId>) {
    match expr {
        Expr::Component(whole, _) => open.push(*whole),
        Expr::Plus(a, b) => open.extend([*a, *b]),
        expr => open.extend(expr.changed_array(Rows::Named, is_sparse)),
    }
}

/// Returns whether `block` has nested loops, or any loop if it `is_inside` one.
pub(crate) fn has_nested_loops(block: &Block) -> bool {
    block.stmts.iter().filter(|stmt| !stmt.expr.is_leaf()).any(|stmt| {
        let found = if is_counted_loop(&stmt.expr) { has_loops } else { has_nested_loops };
        stmt.expr.blocks().into_iter().any(found)
    })
}

/// Returns the numbers of folds in the body of `function` that carry an array: those in no other one of them, and those
/// in one.
pub(crate) fn array_folds(function: &Function) -> [usize; 2] {
    fn carries_array(ty: &Type) -> bool {
        match ty {
            Type::Array(..) => true,
            Type::Tuple(fields, _) => fields.iter().any(carries_array),
            Type::Double | Type::Int | Type::Bool => false,
        }
    }
    // Recursive on nesting.
    fn visit(function: &Function, block: &Block, place: usize, found: &mut [usize; 2]) {
        for stmt in block.stmts.iter().filter(|stmt| !stmt.expr.is_leaf()) {
            let carries = matches!(stmt.expr, Expr::Fold(_)) && carries_array(function.ty(stmt.var));
            found[place] += usize::from(carries);
            let inside = if carries { 1 } else { place };
            stmt.expr.blocks().into_iter().for_each(|block| visit(function, block, inside, found));
        }
    }
    let mut found = [0; 2];
    visit(function, &function.body, 0, &mut found);
    found
}

fn has_loops(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| is_or_has_loop(&stmt.expr))
}

/// Returns whether `expr` is a counted loop, or has one in a block.
pub(crate) fn is_or_has_loop(expr: &Expr) -> bool {
    !expr.is_leaf() && (is_counted_loop(expr) || expr.blocks().into_iter().any(has_loops))
}

/// Returns whether a loop in `block` may have more than `few` iterations.
pub(crate) fn has_long_loops(block: &Block, few: i64) -> bool {
    let is_long = |expr: &Expr| iterations(expr).is_some_and(|count| count.as_constant().is_none_or(|n| n > few));
    block
        .stmts
        .iter()
        .filter(|stmt| !stmt.expr.is_leaf())
        .any(|stmt| is_long(&stmt.expr) || stmt.expr.blocks().into_iter().any(|block| has_long_loops(block, few)))
}

fn is_counted_loop(expr: &Expr) -> bool {
    iterations(expr).is_some()
}

/// Returns the number of iterations of a counted loop.
fn iterations(expr: &Expr) -> Option<&Size> {
    match expr {
        Expr::Build { size: count, .. }
        | Expr::Sum { count, .. }
        | Expr::Fold(StateLoop { count, .. })
        | Expr::Loop(StateLoop { count, .. }) => Some(count),
        _ => None,
    }
}

/// Returns the number of statements of `block`, including those of nested blocks.
pub(crate) fn statements(block: &Block) -> i64 {
    let one = |stmt: &Stmt| match stmt.expr.is_leaf() {
        true => 1,
        false => 1 + stmt.expr.blocks().into_iter().map(statements).sum::<i64>(),
    };
    block.stmts.iter().map(one).sum()
}

/// Returns whether `block` uses `tuple` other than by reading a field of it.
pub(crate) fn uses_whole(block: &Block, tuple: VarId) -> bool {
    block.result == tuple
        || block.stmts.iter().any(|stmt| {
            let direct = !matches!(stmt.expr, Expr::Component(..)) && stmt.expr.operands().contains(&tuple);
            direct || stmt.expr.blocks().into_iter().any(|block| uses_whole(block, tuple))
        })
}
