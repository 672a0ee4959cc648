//! Dead code elimination.

use crate::{Block, Expr, Function, StateLoop, Type, Var, VarId};
use chainrule_base::{Arena, Id};
use chainrule_ops as ops;

/// Removes each unused statement that cannot fail, also inside blocks. Linear, except for unused loops, which are
/// visited once for each enclosing loop.
///
/// A statement that might fail stays, used or not: a checked index, integer arithmetic beyond polynomials, a `build`
/// whose size might be negative, a `while`. Only the overflow of an unused polynomial is not preserved.
pub fn remove_unused(function: &mut Function) {
    let n = function.vars.len();
    let mut marks = Marks { vars: &function.vars, used: vec![false; n], natural: vec![false; n] };
    for size in &function.sizes {
        set(&mut marks.natural, *size);
    }
    marks.block(&mut function.body);
}

struct Marks<'a> {
    vars: &'a Arena<VarId, Var>,
    used: Vec<bool>,
    // Size parameters and loop indices visited so far: nonnegative.
    natural: Vec<bool>,
}

impl Marks<'_> {
    // Backwards: every use is visited before its definition.
    fn block(&mut self, block: &mut Block) {
        set(&mut self.used, block.result);
        let mut kept = Vec::with_capacity(block.stmts.len());
        while let Some(mut stmt) = block.stmts.pop() {
            if !get(&self.used, stmt.var) && !self.may_fail(&stmt.expr) {
                continue;
            }
            for operand in stmt.expr.operands() {
                set(&mut self.used, operand);
            }
            self.see_index(&stmt.expr);
            for inner in stmt.expr.blocks_mut() {
                self.block(inner);
            }
            kept.push(stmt);
        }
        kept.reverse();
        block.stmts = kept;
    }

    fn see_index(&mut self, expr: &Expr) {
        if let Expr::Build { index, .. }
        | Expr::Sum { index, .. }
        | Expr::Fold(StateLoop { index, .. })
        | Expr::Loop(StateLoop { index, .. }) = expr
        {
            set(&mut self.natural, *index);
        }
    }

    // Returns whether computing `expr` may fail, judged locally.
    fn may_fail(&mut self, expr: &Expr) -> bool {
        let itself = match expr {
            Expr::Op(op, args) => {
                op.row().result == ops::Type::Num
                    && args.first().and_then(|v| self.vars.get(*v)).is_some_and(|v| v.ty == Type::Int)
            }
            Expr::Build { size, .. } | Expr::Loop(StateLoop { count: size, .. }) => {
                !size.terms().all(|(vars, c)| c >= 0 && vars.iter().all(|v| get(&self.natural, *v)))
            }
            Expr::While(_) => true,
            Expr::Get { proved, .. } | Expr::OneHot { proved, .. } => !proved,
            _ => false,
        };
        self.see_index(expr);
        itself || expr.blocks().into_iter().any(|b| b.stmts.iter().any(|s| self.may_fail(&s.expr)))
    }
}

fn get(marks: &[bool], var: VarId) -> bool {
    marks.get(var.index()).is_some_and(|mark| *mark)
}

fn set(marks: &mut [bool], var: VarId) {
    if let Some(mark) = marks.get_mut(var.index()) {
        *mark = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Size, verify};
    use chainrule_ops::Op;

    #[test]
    fn unused_statements_go_and_failing_statements_stay() {
        let mut b = Builder::new("f");
        let v = b.param("v", Type::array(Size::constant(2), Type::Double));
        let i = b.param("i", Type::Int);
        let two = b.real(2.0);
        let unused = b.op(Op::Mul, &[two, two]);
        b.tuple(&[unused, two]);
        b.build(Size::constant(3), |b, _| b.real(1.0));
        let checked = b.get(v, i);
        let sum = b.sum(Size::constant(3), |b, j| {
            b.to_real(j);
            b.op(Op::Sin, &[two])
        });
        let mut f = b.finish(sum);
        remove_unused(&mut f);
        assert_eq!(verify(&f), Ok(()));
        let vars: Vec<VarId> = f.body.stmts.iter().map(|s| s.var).collect();
        assert_eq!(vars, [two, checked, sum]);
        assert_eq!(f.body.stmts[2].expr.blocks()[0].stmts.len(), 1);
    }
}
