//! What is done to kernels before they are compared: operators whose last places differ from library to library give way,
//! loops are made plain and cut for lanes.

use chainrule_kernel::{Instr, Kernel, Stmt, contract, hoist, streamline, vectorise};
use chainrule_ops::{CostClass, Op};

/// Whether the value may differ from one library to another.
#[must_use]
pub fn is_inexact(op: Op) -> bool {
    op.row().cost == CostClass::Call && op != Op::Sqrt
}

/// `kernel` with another operator in the place of each that [`is_inexact`], so that results can be
/// compared bit for bit.
#[must_use]
pub fn exact(kernel: &Kernel) -> Kernel {
    replace(kernel, |op| {
        is_inexact(op).then(|| match op.arity() {
            1 => [Op::Sqrt, Op::Abs, Op::Neg, Op::Floor][op as usize % 4],
            _ => [Op::Max, Op::Sub, Op::Div][op as usize % 3],
        })
    })
}

/// `kernel` with other operators on doubles, of as many arguments, where `other` says so.
#[must_use]
pub fn replace(kernel: &Kernel, other: impl Fn(Op) -> Option<Op>) -> Kernel {
    let mut kernel = kernel.clone();
    block(&mut kernel.body, &other);
    kernel
}

fn block(stmts: &mut [Stmt], other: &dyn Fn(Op) -> Option<Op>) {
    for stmt in stmts {
        match stmt {
            Stmt::Straight(instrs) => {
                for instr in instrs {
                    if let Instr::Op { op, .. } = instr {
                        *op = other(*op).unwrap_or(*op);
                    }
                }
            }
            Stmt::For { body, .. } => block(body, other),
            Stmt::While { condition, body, .. } => {
                block(condition, other);
                block(body, other);
            }
            Stmt::If { then, otherwise, .. } => {
                block(then, other);
                block(otherwise, other);
            }
            Stmt::Copy { .. } => {}
        }
    }
}

/// An [`exact`] kernel with products fused.
#[must_use]
pub fn fused(kernel: &Kernel) -> Kernel {
    let mut kernel = exact(kernel);
    contract(&mut kernel);
    kernel
}

/// A kernel with its loops made plain, as it is emitted as text.
#[must_use]
pub fn plain(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    streamline(&mut kernel);
    kernel
}

/// A kernel as it is compiled in the process: its loops made plain, cut for lanes where they can be, and hoisted from.
#[must_use]
pub fn at_once(kernel: &Kernel) -> Kernel {
    let mut kernel = plain(kernel);
    vectorise(&mut kernel, true);
    hoist(&mut kernel);
    kernel
}

/// An [`exact`] kernel made [`plain`].
#[must_use]
pub fn exact_plain(kernel: &Kernel) -> Kernel {
    plain(&exact(kernel))
}

/// An [`exact`] kernel [`at_once`].
#[must_use]
pub fn exact_at_once(kernel: &Kernel) -> Kernel {
    at_once(&exact(kernel))
}
