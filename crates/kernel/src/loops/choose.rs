//! If-conversion of short branches: cheaper than an unpredictable branch, and possible in lanes.

use crate::choices::{is_harmless, select};
use crate::kernel::{Choice, Class, Instr, Kernel, Reg, Stmt};
use crate::ranges::Ranges;
use chainrule_ops::Op;

/// Maximum number of instructions of both sides.
const MAX_CODE: usize = 6;

/// Moves the code of both sides to `before` if it is cheap and cannot fail, and replaces the results by selects.
/// Ranges are those that hold outside of the branch. Returns whether a branch is left: one with an integer result,
/// which has no select. A select of its other results would only add latency.
pub(super) fn as_choice(
    kernel: &Kernel,
    ranges: &Ranges,
    condition: Reg,
    choices: &mut Vec<Choice>,
    arms: [&mut Vec<Stmt>; 2],
    before: &mut Vec<Instr>,
) -> bool {
    if choices.iter().any(|c| kernel.regs[c.var] != Class::Real) {
        return true;
    }
    let is_dear = |instr: &Instr| matches!(instr, Instr::Op { op, .. } if !is_one_instruction(*op));
    let is_cheap = |instr: &Instr| !is_dear(instr) && is_harmless(kernel, ranges, instr);
    let straight = |arm: &[Stmt]| match arm {
        [] => Some(0),
        [Stmt::Straight(code)] => code.iter().all(is_cheap).then_some(code.len()),
        _ => None,
    };
    let [then, otherwise] = arms;
    match (straight(then), straight(otherwise)) {
        (Some(a), Some(b)) if a + b <= MAX_CODE => {}
        _ => return true,
    }
    for stmt in then.drain(..).chain(otherwise.drain(..)) {
        if let Stmt::Straight(code) = stmt {
            before.extend(code);
        }
    }
    before.extend(choices.drain(..).map(|c| select(condition, &c)));
    false
}

/// Returns whether processors have an instruction for the operator.
fn is_one_instruction(op: Op) -> bool {
    use Op::{Abs, Add, And, Eq, Le, Lt, Max, Min, Mul, Neg, Not, Or, Select, Sub};
    matches!(op, Add | Sub | Mul | Neg | Abs | Min | Max | Lt | Le | Eq | And | Or | Not | Select)
}
