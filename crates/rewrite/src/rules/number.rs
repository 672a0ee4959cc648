//! Finiteness: values that are neither infinite nor NaN if all numbers that the program computes are not.
//!
//! A value moved out of a loop that does not run may be infinite or NaN: times an empty sum, which is 0, it would not
//! be 0.

use crate::rebuild::Rebuild;
use chainrule_ir::{Block, Expr, Type, VarId};
use chainrule_ops::Op;

/// Maximum number of visited definitions.
const MAX_LOOKED_AT: usize = 64;

/// Returns whether `var`, a variable in scope, is computed from finite numbers.
pub(super) fn is_number(rb: &Rebuild<'_>, var: VarId) -> bool {
    let mut todo = vec![var];
    for _ in 0..MAX_LOOKED_AT {
        let Some(next) = todo.pop() else { return true };
        // A parameter, an index, a state, or a statement of a visited block.
        let Some(def) = rb.def(next) else { continue };
        let mut blocks: Vec<&Block> = Vec::new();
        if !is_made_of(rb, next, &def, &mut todo, &mut blocks) {
            return false;
        }
        while let Some(block) = blocks.pop() {
            for stmt in &block.stmts {
                if todo.len() > MAX_LOOKED_AT || !is_made_of(rb, stmt.var, &stmt.expr, &mut todo, &mut blocks) {
                    return false;
                }
            }
            todo.push(block.result);
        }
    }
    false
}

/// Returns whether `expr` is finite if the variables added to `todo` and the statements of `blocks` are.
fn is_made_of<'e>(
    rb: &Rebuild<'_>,
    var: VarId,
    expr: &'e Expr,
    todo: &mut Vec<VarId>,
    blocks: &mut Vec<&'e Block>,
) -> bool {
    match expr {
        Expr::Real(value) => return value.is_finite(),
        Expr::ToReal(_) | Expr::Zero => {}
        _ if matches!(rb.ty(var), Type::Int | Type::Bool) => {}
        Expr::Op(op, args) if is_defined_everywhere(*op) => {
            todo.extend(args.iter().filter(|arg| *rb.ty(**arg) == Type::Double));
        }
        Expr::Get { array, .. } => todo.push(*array),
        Expr::Build { body, .. } | Expr::Sum { body, .. } => blocks.push(body),
        Expr::If { then, otherwise, .. } => blocks.extend([then, otherwise]),
        _ => return false,
    }
    true
}

/// Returns whether `op` has a finite value for all finite operands, except for overflow.
fn is_defined_everywhere(op: Op) -> bool {
    let samples = [-2.0, -0.5, 0.0, 1.0];
    let row = op.row();
    match row.args.len() {
        1 => samples.iter().all(|x| (row.value)(&[*x]).is_finite()),
        2 => samples.iter().all(|x| samples.iter().all(|y| (row.value)(&[*x, *y]).is_finite())),
        _ => op == Op::Select,
    }
}
