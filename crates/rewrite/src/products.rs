//! Sums that are the only users of their products: a common factor may be extracted.
//!
//! In: a function, and its dead statements. Out: the statements that add, or subtract, two products with a common
//! factor, or two quotients with a common divisor, that have no other use. `x * y + x * z` as `x * (y + z)` saves an
//! operation only if neither product has other uses. Linear in the function.

use crate::rebuild::Plan;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Function, VarId};
use chainrule_ops::Op;

struct Uses<'a, 'p> {
    plan: &'a Plan<'p>,
    /// Number of uses of each variable by live statements.
    times: Vec<u32>,
    /// Operator and operands of each product or quotient.
    products: Vec<Option<(Op, [VarId; 2])>>,
    /// Statements that add or subtract, with their operands.
    sums: Vec<(VarId, VarId, VarId)>,
}

/// Puts into `plan` the sums whose products have no other use.
pub(crate) fn analyse(function: &Function, plan: &mut Plan<'_>) {
    let n = function.vars.len();
    let mut uses = Uses { plan, times: vec![0; n], products: vec![None; n], sums: Vec::new() };
    uses.block(&function.body);
    let own = |var: VarId| uses.products[var.index()].filter(|_| uses.times[var.index()] == 1);
    let has_factor = |x: VarId, y: VarId| match (own(x), own(y)) {
        (Some((Op::Mul, x)), Some((Op::Mul, y))) => x.iter().any(|factor| y.contains(factor)),
        (Some((Op::Div, [_, x])), Some((Op::Div, [_, y]))) => x == y,
        _ => false,
    };
    let found: Vec<VarId> = uses.sums.iter().filter(|(_, x, y)| has_factor(*x, *y)).map(|(sum, ..)| *sum).collect();
    plan.factor.extend(found);
}

impl Uses<'_, '_> {
    fn block(&mut self, block: &Block) {
        self.times[block.result.index()] += 1;
        for stmt in block.stmts.iter().filter(|stmt| !self.plan.dead.contains(&stmt.var)) {
            stmt.expr.for_each_operand(&mut |var| self.times[var.index()] += 1);
            match &stmt.expr {
                Expr::Op(op @ (Op::Mul | Op::Div), args) => {
                    self.products[stmt.var.index()] = Some((*op, [args[0], args[1]]));
                }
                Expr::Op(Op::Add | Op::Sub, args) => self.sums.push((stmt.var, args[0], args[1])),
                _ => {}
            }
            if !stmt.expr.is_leaf() {
                stmt.expr.blocks().into_iter().for_each(|block| self.block(block));
            }
        }
    }
}
