//! The operands and blocks of an expression, to be changed in place.

use chainrule_ir::{Block, Expr, VarId};

/// Each operand replaced by `by(operand)`; sizes and blocks stay.
pub(crate) fn replace(expr: &mut Expr, by: impl Fn(VarId) -> VarId) {
    match expr {
        Expr::Real(_) | Expr::Bool(_) | Expr::Size(_) | Expr::Build { .. } | Expr::Sum { .. } => {}
        Expr::Op(_, args) | Expr::Array(args) | Expr::Tuple(args) => args.iter_mut().for_each(|arg| *arg = by(*arg)),
        Expr::ToReal(arg) | Expr::Component(arg, _) => *arg = by(*arg),
        Expr::Fold { init, .. } | Expr::While { init, .. } => *init = by(*init),
        Expr::If { condition, .. } => *condition = by(*condition),
        Expr::Get { array, index, .. } => {
            *array = by(*array);
            *index = by(*index);
        }
        Expr::Jvp { at, along, .. } => at.iter_mut().chain(along).for_each(|arg| *arg = by(*arg)),
    }
}

/// The blocks of `expr`.
pub(crate) fn blocks_mut(expr: &mut Expr) -> Vec<&mut Block> {
    match expr {
        Expr::Build { body, .. } | Expr::Fold { body, .. } | Expr::Sum { body, .. } | Expr::Jvp { body, .. } => {
            vec![body]
        }
        Expr::While { condition, body, .. } => vec![condition, body],
        Expr::If { then, otherwise, .. } => vec![then, otherwise],
        _ => Vec::new(),
    }
}
