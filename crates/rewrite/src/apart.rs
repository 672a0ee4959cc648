//! A function that chooses by its sizes is optimised as two.
//!
//! In: a function that is an `if` under a condition of sizes and integer arguments, with nothing around it, as Jacobians are
//! whose way only sizes decide. Out: two functions, one for each branch, and the one that they are together again.
//!
//! What a program costs is one number, by which the optimiser takes a program or leaves it: of an `if` that of the dearer
//! branch, which would decide for the other one too.

use crate::live;
use crate::report::Report;
use chainrule_ir::{Block, Builder, Expr, Function, Renaming, Stmt, Type};

/// The function where the condition holds, and where it does not.
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
        // The condition is there only for what else is made of its parts.
        live::swept(Function { body: Block { stmts, result: block.result }, ..function.clone() })
    };
    Some([branch(then), branch(otherwise)])
}

/// `function`, which was [`split`], with what has become of its branches.
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

/// What was done with both; costs are those of the dearer one.
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
