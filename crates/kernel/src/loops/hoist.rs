//! Integers that are the same in all iterations are computed before the loop, and those of branches before the branch, so
//! that they may go on. Only such as cannot fail, since a loop without iterations must not fail, and are not dear.

use crate::kernel::{Carried, Instr, Kernel, Order, Reg, SizeSource, Stmt};
use crate::rebuild::{Pass, Rounds, rebuild};
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;

/// Moves integers of `kernel` out of the counted loops in which they stay the same, where each is then computed once. Linear
/// in its size but for the depth of loops and branches.
pub fn hoist(kernel: &mut Kernel) {
    if !super::has_control(kernel) {
        return;
    }
    let extents =
        kernel.sizes.iter().filter(|s| matches!(s.source, SizeSource::Extent { .. })).map(|s| s.reg).collect();
    let n = kernel.regs.len();
    let mut pass = Hoist { depth: 0, of: vec![0; n], constants: vec![None; n], extents, orders: Vec::new() };
    kernel.body = rebuild(std::mem::take(&mut kernel.body), &mut pass);
    super::fold::fold(kernel);
}

struct Hoist {
    /// How many loops and branches are open.
    depth: u32,
    /// In how many a register is defined.
    of: Vec<u32>,
    constants: Vec<Option<i64>>,
    /// Sizes that are never negative.
    extents: Vec<Reg>,
    /// Of the counted loops that are open.
    orders: Vec<Order>,
}

impl Hoist {
    /// Whether an instruction cannot fail, has no effect, and is worth a place of its own.
    fn may_move(&self, instr: &Instr) -> bool {
        match instr {
            Instr::Int { value, .. } => value.as_constant().is_some() || self.is_small(value),
            Instr::IntOp { op: Op::Min | Op::Max | Op::Lt | Op::Le | Op::Eq, .. } => true,
            Instr::IntOp { op: Op::Quot | Op::Mod, args, .. } => {
                self.constants[args[1].index()].is_some_and(|by| by > 0 && by.count_ones() == 1)
            }
            _ => false,
        }
    }

    /// Whether it is a register, or an extent with something taken from it.
    fn is_small(&self, value: &Poly<Reg>) -> bool {
        let (constant, rest) = (value.terms().find(|(m, _)| m.is_empty()).map_or(0, |(_, c)| c), value);
        let rest = rest.sub(&Poly::constant(constant));
        rest.as_var().is_some_and(|r| constant == 0 || (constant < 0 && self.extents.contains(&r)))
    }

    /// Moves what may move and is the same out of `body`, which closes.
    fn take(&mut self, body: &mut Vec<Stmt>, before: &mut Vec<Instr>) {
        for stmt in body.iter_mut() {
            let Stmt::Straight(code) = stmt else { continue };
            code.retain(|instr| {
                let moves = self.may_move(instr) && self.is_same(instr);
                if moves {
                    if let Some(dst) = instr.dst() {
                        self.of[dst.index()] = self.depth - 1;
                    }
                    before.push(instr.clone());
                }
                !moves
            });
        }
        body.retain(|stmt| !matches!(stmt, Stmt::Straight(code) if code.is_empty()));
    }

    fn is_same(&self, instr: &Instr) -> bool {
        let mut same = true;
        instr.for_each_use(|r| same &= self.of[r.index()] < self.depth);
        same
    }
}

impl Pass for Hoist {
    fn code(&mut self, code: Vec<Instr>) -> Vec<Instr> {
        for instr in &code {
            let Some(dst) = instr.dst() else { continue };
            self.of[dst.index()] = self.depth;
            if let Instr::Int { value, .. } = instr {
                self.constants[dst.index()] = value.as_constant();
            }
        }
        code
    }

    fn open_for(&mut self, index: Reg, _count: &mut Poly<Reg>, carried: &mut [Carried], order: Order) -> Rounds {
        self.depth += 1;
        self.orders.push(order);
        carried.iter().map(|c| c.var).chain([index]).for_each(|r| self.of[r.index()] = self.depth);
        Rounds::Loop
    }

    fn close_for(
        &mut self,
        _index: Reg,
        carried: &mut Vec<Carried>,
        body: &mut Vec<Stmt>,
        before: &mut Vec<Instr>,
    ) -> bool {
        // What threads run has its integers for itself.
        let stays = self.orders.pop() == Some(Order::Parts);
        if !stays {
            self.take(body, before);
        }
        self.depth -= 1;
        carried.iter().for_each(|c| self.of[c.var.index()] = self.depth);
        true
    }

    fn open_while(&mut self, _limit: &mut Poly<Reg>, carried: &mut [Carried]) {
        self.depth += 1;
        carried.iter().for_each(|c| self.of[c.var.index()] = self.depth);
    }

    fn close_while(&mut self, carried: &mut [Carried]) {
        self.depth -= 1;
        carried.iter().for_each(|c| self.of[c.var.index()] = self.depth);
    }

    fn open_if(&mut self, _condition: &mut Reg) -> Option<bool> {
        self.depth += 1;
        None
    }

    fn close_if(
        &mut self,
        _condition: Reg,
        choices: &mut Vec<crate::Choice>,
        arms: [&mut Vec<Stmt>; 2],
        before: &mut Vec<Instr>,
    ) -> bool {
        arms.into_iter().for_each(|arm| self.take(arm, before));
        self.depth -= 1;
        choices.iter().for_each(|c| self.of[c.var.index()] = self.depth);
        true
    }
}
