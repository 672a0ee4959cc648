//! Splitting of a function that branches on its sizes into two functions, which are optimised separately.
//!
//! In: a function whose body is an `if` with a condition on sizes and integer arguments, such as a Jacobian whose mode
//! only depends on sizes. Out: two functions, one for each branch, and afterwards their join.
//!
//! The cost of a program is a single number, by which the optimiser accepts a program or rejects it. The number of an
//! `if` is that of the costlier branch, which would decide for the other one too.

use crate::live;
use crate::report::Report;
use chainrule_ir::{Block, Builder, Expr, Function, Renaming, Stmt, Type};

/// Returns the function if the condition holds, and if it does not.
pub(crate) fn split(function: &Function) -> Option<[Function; 2]> {
    let (last, before) = function.body.stmts.split_last()?;
    let Expr::If { then, otherwise, .. } = &last.expr else { return None };
    let is_whole =
        last.var == function.body.result && matches!(function.ty(last.var), Type::Array(..) | Type::Tuple(..));
    let of_sizes = |stmt: &Stmt| {
        let integers = |var| *function.ty(var) != Type::Double;
        matches!(stmt.expr, Expr::Size(_) | Expr::Op(..) | Expr::Bool(_))
            && stmt.expr.operands().into_iter().all(integers)
    };
    if !is_whole || !before.iter().all(of_sizes) {
        return None;
    }
    let branch = |block: &Block| {
        let stmts = before.iter().chain(&block.stmts).cloned().collect();
        // The condition only remains for other uses of its parts.
        live::swept(Function { body: Block { stmts, result: block.result }, ..function.clone() })
    };
    Some([branch(then), branch(otherwise)])
}

/// Returns `function`, which was [`split`], with its optimised branches.
pub(crate) fn joined(function: &Function, branches: [&Function; 2]) -> Function {
    let mut out = Builder::rewriting(function);
    let Some((Stmt { expr: Expr::If { condition, .. }, span, .. }, before)) = function.body.stmts.split_last() else {
        return function.clone();
    };
    before.iter().for_each(|stmt| out.push(stmt.clone()));
    let [then, otherwise] = branches.map(|branch| {
        let known = |f: &Function| f.sizes.iter().chain(&f.params).copied().collect::<Vec<_>>();
        let mut renaming: Renaming = known(branch).into_iter().zip(known(function)).collect();
        out.block(|out| out.inline_from(&branch.vars, &branch.body, &mut renaming))
    });
    out.set_span(*span);
    let result = out.compute(Expr::If { condition: *condition, then, otherwise });
    out.finish(result)
}

/// Joins two reports; costs are those of the costlier branch.
pub(crate) fn both([then, otherwise]: [Report; 2]) -> Report {
    let dearer = |a: f64, b: f64| 1.0 + a.max(b);
    let stop = if then.after < otherwise.after { otherwise.stop } else { then.stop };
    let mut both = Report {
        before: dearer(then.before, otherwise.before),
        after: dearer(then.after, otherwise.after),
        stop,
        work: then.work + otherwise.work,
        ..then
    };
    for (name, times) in otherwise.applied {
        match both.applied.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += times,
            None => both.applied.push((name, times)),
        }
    }
    both.places.extend(otherwise.places);
    both.passes.extend(otherwise.passes);
    both
}
