//! One-hot arrays where they are added: one for each sum that takes it, right before it.
//!
//! In: a function. Out: the same with one-hot arrays that several sums take, or those in loops that they stand around, made for each.
//! What makes a one-hot array is told where it is wanted (`offers`), and then adds to one element and makes nothing; but only if
//! nobody else sees it. The adjoint of `x[i] - x[i + 1]` is added to both rows: without this, as a row of zeros and one number.

use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Function, Stmt, Var, VarId};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// `function` with one-hot arrays apart. Linear, but for arrays of arrays: each is made as often as it is taken. Recursive, as
/// deep as blocks nest.
pub(super) fn apart(function: &Function) -> Cow<'_, Function> {
    let mut hot = BTreeMap::new();
    find(&function.body, &mut hot);
    if !hot.is_empty() {
        // Those that something else sees as well stay as they are.
        let (mut uses, mut sums) = (BTreeMap::new(), BTreeMap::new());
        let mut see = |var| *uses.entry(var).or_insert(0usize) += 1;
        function.body.for_each_use(&mut see);
        count(&function.body, &mut sums);
        hot.retain(|var, _| uses.contains_key(var) && uses.get(var) == sums.get(var));
    }
    if hot.is_empty() {
        return Cow::Borrowed(function);
    }
    let mut function = function.clone();
    let Function { body, vars, .. } = &mut function;
    write(body, &hot, vars);
    Cow::Owned(function)
}

/// The one-hot arrays whose index need not be tested: a test stays where it is.
fn find(block: &Block, hot: &mut BTreeMap<VarId, Stmt>) {
    for stmt in &block.stmts {
        if let Expr::OneHot { proved: true, .. } = stmt.expr {
            hot.insert(stmt.var, stmt.clone());
        }
        stmt.expr.blocks().into_iter().for_each(|block| find(block, hot));
    }
}

/// How often sums, one-hot arrays of arrays and results of blocks take each variable.
fn count(block: &Block, sums: &mut BTreeMap<VarId, usize>) {
    for stmt in &block.stmts {
        match stmt.expr {
            Expr::Plus(a, b) => [a, b].into_iter().for_each(|var| *sums.entry(var).or_default() += 1),
            Expr::OneHot { value, .. } => *sums.entry(value).or_default() += 1,
            _ => {}
        }
        stmt.expr.blocks().into_iter().for_each(|block| count(block, sums));
    }
    *sums.entry(block.result).or_default() += 1;
}

fn write(block: &mut Block, hot: &BTreeMap<VarId, Stmt>, vars: &mut Arena<VarId, Var>) {
    let mut done = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts) {
        if !hot.contains_key(&stmt.var) {
            stmt.expr.blocks_mut().into_iter().for_each(|block| write(block, hot, vars));
            put(stmt, hot, vars, &mut done);
        }
    }
    block.result = own(block.result, hot, vars, &mut done);
    block.stmts = done;
}

/// What stands for `var`: if it is a one-hot array, one of its own, behind what is done.
fn own(var: VarId, hot: &BTreeMap<VarId, Stmt>, vars: &mut Arena<VarId, Var>, done: &mut Vec<Stmt>) -> VarId {
    let Some(array) = hot.get(&var) else { return var };
    let copy = vars.push(vars[var].clone());
    put(Stmt { var: copy, ..array.clone() }, hot, vars, done);
    copy
}

/// Puts `stmt` behind what it takes of one-hot arrays.
fn put(mut stmt: Stmt, hot: &BTreeMap<VarId, Stmt>, vars: &mut Arena<VarId, Var>, done: &mut Vec<Stmt>) {
    let mut own = |var: &mut VarId| *var = own(*var, hot, vars, done);
    match &mut stmt.expr {
        Expr::Plus(a, b) => [a, b].into_iter().for_each(own),
        Expr::OneHot { value, .. } => own(value),
        _ => {}
    }
    done.push(stmt);
}
