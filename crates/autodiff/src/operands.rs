//! The operands of an expression, to be changed in place.

use chainrule_ir::{Expr, VarId};

/// Each operand replaced by `by(operand)`; sizes and blocks stay.
pub(crate) fn replace(expr: &mut Expr, by: impl Fn(VarId) -> VarId) {
    match expr {
        Expr::Real(_) | Expr::Bool(_) | Expr::Size(_) | Expr::Build { .. } | Expr::Sum { .. } | Expr::Zero => {}
        Expr::Op(_, args) | Expr::Array(args) | Expr::Tuple(args) => args.iter_mut().for_each(|arg| *arg = by(*arg)),
        Expr::ToReal(arg) | Expr::Component(arg, _) => *arg = by(*arg),
        Expr::Fold { init, .. } | Expr::Loop { init, .. } | Expr::While { init, .. } => *init = by(*init),
        Expr::If { condition, .. } => *condition = by(*condition),
        Expr::Get { array, index, .. } => {
            *array = by(*array);
            *index = by(*index);
        }
        Expr::OneHot { index, value, .. } => {
            *index = by(*index);
            *value = by(*value);
        }
        Expr::Plus(a, b) => {
            *a = by(*a);
            *b = by(*b);
        }
        Expr::Vjp { at, cotangent, .. } => at.iter_mut().chain([cotangent]).for_each(|arg| *arg = by(*arg)),
        Expr::Jvp { at, along, .. } => at.iter_mut().chain(along).for_each(|arg| *arg = by(*arg)),
    }
}
