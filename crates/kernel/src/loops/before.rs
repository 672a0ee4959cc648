//! Placement of comparisons: a comparison used only by a branch is moved right before it, so that backends use the
//! flags.

use crate::kernel::{Instr, Kernel, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_ops::Op;

/// Moves the comparisons of `kernel` down. Linear in its size.
pub(crate) fn move_comparisons(kernel: &mut Kernel) {
    each_statement(&mut kernel.body, |stmt, done| {
        if let (Stmt::If { condition, .. }, Some(Stmt::Straight(code))) = (&stmt, done.last_mut()) {
            move_down(code, *condition);
        }
        done.push(stmt);
    });
}

fn move_down(code: &mut Vec<Instr>, condition: Reg) {
    let Some(at) = code.iter().rposition(|instr| instr.dst() == Some(condition)) else { return };
    let (Instr::Op { op, .. } | Instr::IntOp { op, .. }) = &code[at] else { return };
    let mut is_read = false;
    code[at + 1..].iter().for_each(|instr| instr.for_each_use(|r| is_read |= r == condition));
    if matches!(op, Op::Lt | Op::Le | Op::Eq) && !is_read {
        let comparison = code.remove(at);
        code.push(comparison);
    }
}
