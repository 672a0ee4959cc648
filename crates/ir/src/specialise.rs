//! Specialisation of a function for given values of its sizes and integer arguments.
//!
//! In: a function, and numbers for some of its size parameters and `Int` parameters. Out: the function without those
//! parameters, with the numbers in its types and loops.

use crate::{Block, Expr, Function, Size, Stmt, VarId};
use chainrule_base::Arena;

/// Returns `function` with each of `known`, a size parameter or an `Int` parameter, replaced by its number.
/// Requirements stay, and have the numbers in them. Linear.
#[must_use]
pub fn specialise(function: &Function, known: &[(VarId, i64)]) -> Function {
    let mut values: Arena<VarId, Option<i64>> = Arena::filled(function.vars.len(), None);
    for (var, value) in known {
        values[*var] = Some(*value);
    }
    let size = |size: &Size| -> Size {
        match size.vars().iter().any(|v| values[*v].is_some()) {
            true => size.substitute(|v| values[v].map_or_else(|| Size::var(v), Size::constant)),
            false => size.clone(),
        }
    };
    let mut made = with_sizes(function, &size);
    // Operands still refer to the variables, which become constants of the body.
    let constants = known.iter().map(|(var, value)| {
        made.vars[*var].value = Some(Size::constant(*value));
        Stmt { var: *var, expr: Expr::Size(Size::constant(*value)), span: None }
    });
    made.body.stmts = constants.chain(std::mem::take(&mut made.body.stmts)).collect();
    made.sizes.retain(|var| values[*var].is_none());
    made.params.retain(|var| values[*var].is_none());
    made
}

/// Returns `function` with `size` applied to all sizes, requirements included. Linear.
pub(crate) fn with_sizes(function: &Function, size: &impl Fn(&Size) -> Size) -> Function {
    let mut made = function.clone();
    for var in made.vars.as_mut_slice() {
        var.ty = var.ty.map_sizes(&mut |s| size(s));
        var.value = var.value.as_ref().map(size);
    }
    for requirement in &mut made.requires {
        requirement.size = size(&requirement.size);
    }
    substitute(&mut made.body, size);
    made
}

// Recursive on the nesting of blocks.
fn substitute(block: &mut Block, size: &impl Fn(&Size) -> Size) {
    for stmt in &mut block.stmts {
        stmt.expr.map_operands(&|var| var, size);
        stmt.expr.blocks_mut().into_iter().for_each(|block| substitute(block, size));
    }
}
