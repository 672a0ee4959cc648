//! Duplication of one-hot arrays and of zeros: a copy for each sum that uses it, right before that sum.
//!
//! In: a function. Out: the function with a one-hot array duplicated for each sum that uses it, also for sums in
//! inner loops, and for each branch or loop whose result it is, or a field of it. Zeros are written where they are
//! used instead of copied there. A one-hot array with a single use is offered its destination (`offers`), and then
//! adds to one element instead of making an array. The adjoint of `x[i] - x[i + 1]`, for example, is added to both
//! rows; without duplication as a row of zeros and one number.

use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Function, Stmt, Var, VarId};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Returns `function` with these arrays duplicated. Linear, except that an array of arrays is made as often as it is
/// used. Recurses on the nesting of blocks.
pub(super) fn apart(function: &Function) -> Cow<'_, Function> {
    let mut hot = BTreeMap::new();
    find(&function.body, &mut hot);
    if !hot.is_empty() {
        // Arrays with other uses stay.
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

/// Finds the zeros, and the one-hot arrays whose index needs no check; a check stays in its position.
fn find(block: &Block, hot: &mut BTreeMap<VarId, Stmt>) {
    for stmt in &block.stmts {
        if let Expr::OneHot { proved: true, .. } | Expr::Zero = stmt.expr {
            hot.insert(stmt.var, stmt.clone());
        }
        stmt.expr.blocks().into_iter().for_each(|block| find(block, hot));
    }
}

/// Counts the uses of each variable by sums, one-hot arrays of arrays, results of blocks and their fields.
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
    let mut tuples = vec![block.result];
    for stmt in block.stmts.iter().rev() {
        if let Expr::Tuple(fields) = &stmt.expr
            && tuples.contains(&stmt.var)
        {
            fields.iter().for_each(|field| *sums.entry(*field).or_default() += 1);
            tuples.extend(fields);
        }
    }
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

/// Returns the variable to use in place of `var`: a new copy, appended to `done`, if it is duplicated.
fn own(var: VarId, hot: &BTreeMap<VarId, Stmt>, vars: &mut Arena<VarId, Var>, done: &mut Vec<Stmt>) -> VarId {
    let Some(array) = hot.get(&var) else { return var };
    let copy = vars.push(vars[var].clone());
    put(Stmt { var: copy, ..array.clone() }, hot, vars, done);
    copy
}

/// Appends `stmt` after copies of the arrays that it uses.
fn put(mut stmt: Stmt, hot: &BTreeMap<VarId, Stmt>, vars: &mut Arena<VarId, Var>, done: &mut Vec<Stmt>) {
    let mut own = |var: &mut VarId| *var = own(*var, hot, vars, done);
    match &mut stmt.expr {
        Expr::Plus(a, b) => [a, b].into_iter().for_each(own),
        Expr::OneHot { value, .. } => own(value),
        Expr::Tuple(fields) => fields.iter_mut().for_each(own),
        _ => {}
    }
    done.push(stmt);
}
