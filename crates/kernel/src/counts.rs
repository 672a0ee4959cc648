//! How many operations a kernel does, by reading it.
//!
//! Operations on doubles and calls of users' functions count; integers, addresses, loads and stores do
//! not. A user's function is a call that weighs as much as a sine, as in a scalar graph.

use crate::kernel::{Instr, Kernel, Reg, Stmt};
use chainrule_base::{Arena, Poly};
use chainrule_ops::{Counts, Op};

/// The operations of `kernel` where the sizes (in the order of [`Kernel::sizes`]) have these values:
/// exact for a kernel without branches and loops that depend on data. Of a branch the side that weighs
/// more counts; a `while`, and a loop whose length depends on data, count as one iteration.
///
/// Linear in the kernel, but for loops whose inner loops' lengths depend on their index: those are
/// walked through.
///
/// # Panics
/// When there are fewer values than sizes.
#[must_use]
pub fn counts(kernel: &Kernel, sizes: &[i64]) -> Counts {
    let mut counter = Counter { known: Arena::filled(kernel.regs.len(), None) };
    for (idx, size) in kernel.sizes.iter().enumerate() {
        counter.known[size.reg] = Some(sizes[idx]);
    }
    counter.block(&kernel.body)
}

struct Counter {
    /// The values of registers that do not depend on data.
    known: Arena<Reg, Option<i64>>,
}

impl Counter {
    fn value(&self, poly: &Poly<Reg>) -> Option<i64> {
        if poly.terms().any(|(monomial, _)| monomial.iter().any(|reg| self.known[*reg].is_none())) {
            return None;
        }
        poly.eval(|reg| self.known[reg].unwrap_or(0))
    }

    fn block(&mut self, stmts: &[Stmt]) -> Counts {
        let mut counts = Counts::default();
        for stmt in stmts {
            match stmt {
                Stmt::Straight(instrs) => instrs.iter().for_each(|instr| self.instr(instr, &mut counts)),
                Stmt::For { index, count, body, .. } => match self.value(count) {
                    Some(n) if depends(body, &mut vec![*index]) => {
                        for i in 0..n {
                            self.known[*index] = Some(i);
                            counts += self.block(body);
                        }
                        self.known[*index] = None;
                    }
                    n => counts += times(self.block(body), n.unwrap_or(1)),
                },
                Stmt::While { condition, body, .. } => {
                    counts += self.block(condition);
                    counts += self.block(body);
                }
                Stmt::If { then, otherwise, .. } => {
                    let (then, otherwise) = (self.block(then), self.block(otherwise));
                    counts += if then.weight >= otherwise.weight { then } else { otherwise };
                }
                Stmt::Copy { .. } => {}
            }
        }
        counts
    }

    fn instr(&mut self, instr: &Instr, counts: &mut Counts) {
        match instr {
            Instr::Op { op, .. } => counts.record(*op),
            Instr::External { .. } => counts.record(Op::Sin),
            Instr::Int { dst, value } => self.known[*dst] = self.value(value),
            _ => {}
        }
    }
}

fn times(counts: Counts, n: i64) -> Counts {
    let n = u64::try_from(n).unwrap_or(0);
    let by = |count: u64| count.saturating_mul(n);
    Counts {
        add: by(counts.add),
        mul: by(counts.mul),
        div: by(counts.div),
        neg: by(counts.neg),
        call: by(counts.call),
        logic: by(counts.logic),
        weight: by(counts.weight),
    }
}

/// Whether a loop in `stmts` has a length over `regs`, to which what is computed from them is added.
fn depends(stmts: &[Stmt], regs: &mut Vec<Reg>) -> bool {
    let over = |poly: &Poly<Reg>, regs: &[Reg]| poly.terms().any(|(m, _)| m.iter().any(|reg| regs.contains(reg)));
    stmts.iter().any(|stmt| match stmt {
        Stmt::Straight(instrs) => {
            for instr in instrs {
                if let Instr::Int { dst, value } = instr
                    && over(value, regs)
                {
                    regs.push(*dst);
                }
            }
            false
        }
        Stmt::For { count, body, .. } => over(count, regs) || depends(body, regs),
        Stmt::While { condition, body, .. } => depends(condition, regs) || depends(body, regs),
        Stmt::If { then, otherwise, .. } => depends(then, regs) || depends(otherwise, regs),
        Stmt::Copy { .. } => false,
    })
}
