//! Changes of kernels before comparisons: operators whose last digits differ between libraries are replaced, loops are
//! canonicalised and vectorised.

use chainrule_kernel::{Instr, Kernel, Stmt, contract, hoist, streamline, vectorise};
use chainrule_ops::{CostClass, Op, Semantics};

/// Returns whether the value may differ between libraries.
#[must_use]
pub fn is_inexact(op: Op) -> bool {
    op.row().cost == CostClass::Call && op != Op::Sqrt
}

/// Returns `kernel` with another operator in place of each [inexact](is_inexact) one, so that results can be compared
/// bit for bit.
#[must_use]
pub fn exact(kernel: &Kernel) -> Kernel {
    replace(kernel, |op| {
        is_inexact(op).then(|| match op.arity() {
            1 => [Op::Sqrt, Op::Abs, Op::Neg, Op::Floor][op as usize % 4],
            _ => [Op::Max, Op::Sub, Op::Div][op as usize % 3],
        })
    })
}

/// Returns `kernel` with the operators on doubles that `other` returns, of the same arity.
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

/// Returns an [`exact`] kernel with fused products.
#[must_use]
pub fn fused(kernel: &Kernel) -> Kernel {
    let mut kernel = exact(kernel);
    contract(&mut kernel);
    kernel
}

/// Returns a kernel with canonicalised loops, as it is emitted as text.
#[must_use]
pub fn plain(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    streamline(&mut kernel);
    kernel
}

/// Returns a kernel as it is compiled in the process: with canonicalised loops, vectorised where possible, and with
/// hoisting.
#[must_use]
pub fn at_once(kernel: &Kernel) -> Kernel {
    let mut kernel = plain(kernel);
    vectorise(&mut kernel, Semantics::Algebraic);
    hoist(&mut kernel);
    kernel
}

/// Returns an [`exact`] kernel after [`plain`].
#[must_use]
pub fn exact_plain(kernel: &Kernel) -> Kernel {
    plain(&exact(kernel))
}

/// Returns an [`exact`] kernel after [`at_once`].
#[must_use]
pub fn exact_at_once(kernel: &Kernel) -> Kernel {
    at_once(&exact(kernel))
}
