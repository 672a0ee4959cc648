//! Rows of a loop's state, named before the step makes anything.
//!
//! In: a function. Out: the same function; in the bodies of loops, reads of rows of the state stand right behind what
//! they are made of. A row that is read after the next state was begun can then be saved before that
//! ([`in_place`](super::in_place)). Naming a row takes no time, and such reads do not fail.

use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Function, StateLoop, Type, Var, VarId, WhileLoop};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Returns `function` with these reads in front. Linear, but for a logarithm. Recurses on the nesting of blocks.
pub(super) fn rows(function: &Function) -> Cow<'_, Function> {
    if !is_any_late(&function.body, &function.vars) {
        return Cow::Borrowed(function);
    }
    let mut function = function.clone();
    let Function { body, vars, .. } = &mut function;
    write(body, vars);
    Cow::Owned(function)
}

fn is_any_late(block: &Block, vars: &Arena<VarId, Var>) -> bool {
    block.stmts.iter().any(|stmt| {
        let is_late = match &stmt.expr {
            Expr::Fold(StateLoop { state, body, .. })
            | Expr::Loop(StateLoop { state, body, .. })
            | Expr::While(WhileLoop { state, body, .. }) => order(*state, body, vars).is_some(),
            _ => false,
        };
        is_late || stmt.expr.blocks().into_iter().any(|block| is_any_late(block, vars))
    })
}

fn write(block: &mut Block, vars: &Arena<VarId, Var>) {
    for stmt in &mut block.stmts {
        if let Expr::Fold(StateLoop { state, body, .. })
        | Expr::Loop(StateLoop { state, body, .. })
        | Expr::While(WhileLoop { state, body, .. }) = &mut stmt.expr
            && let Some(order) = order(*state, body, vars)
        {
            body.stmts = order.iter().map(|idx| body.stmts[*idx].clone()).collect();
        }
        stmt.expr.blocks_mut().into_iter().for_each(|block| write(block, vars));
    }
}

/// Returns the order of the statements of a body, if it is another one.
fn order(state: VarId, body: &Block, vars: &Arena<VarId, Var>) -> Option<Vec<usize>> {
    // The state and its parts; for each variable of the body, the statement behind which it stands.
    let mut parts = BTreeSet::from([state]);
    let mut behind: BTreeMap<VarId, usize> = BTreeMap::new();
    let mut keys = Vec::with_capacity(body.stmts.len());
    for (idx, stmt) in (1..).zip(&body.stmts) {
        let is_part = match &stmt.expr {
            Expr::Component(tuple, _) => parts.contains(tuple),
            Expr::Get { array, proved, .. } => {
                *proved && parts.contains(array) && matches!(vars[stmt.var].ty, Type::Array(..))
            }
            _ => false,
        };
        let mut key = (idx, false);
        if is_part {
            parts.insert(stmt.var);
            key = (0, true);
            stmt.expr.for_each_operand(&mut |var| key.0 = key.0.max(behind.get(&var).copied().unwrap_or(0)));
        }
        behind.insert(stmt.var, key.0);
        keys.push(key);
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|idx| keys[*idx]);
    (!order.is_sorted()).then_some(order)
}
