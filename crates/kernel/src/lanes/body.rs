//! Whether the iterations of a loop can run in lanes: control is the same in all of them.
//!
//! In: the events of a loop's body. An integer is *uniform*, the same in all lanes, or *steps* from lane to lane by a known
//! constant, as the index does. Reals differ as they like, and so do truth values that only scalar operators read.
//! Loops and branches go by uniform integers; addresses are linear in the index with uniform slopes.
//!
//! A check of an index that steps by one is done for all lanes at once. Where several checks fail, which is told may
//! differ from running one iteration after the other.

use crate::events::Event;
use crate::kernel::{Class, Instr, Kernel, Reg};
use chainrule_base::{Id, Poly};

/// What is known of a register that is defined in the loop, or of its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// An integer that grows by this from lane to lane.
    Step(i64),
    /// A truth value in each lane.
    Truth,
}

/// Registers that differ from lane to lane, by index; others are uniform integers, or reals.
#[derive(Debug)]
pub struct Lanes {
    of: super::Stamps<Lane>,
    set: Vec<Reg>,
    index: Reg,
}

impl Lanes {
    /// For kernels with `n_regs` registers.
    #[must_use]
    pub fn new(n_regs: usize) -> Self {
        Self { of: vec![None; n_regs], set: Vec::new(), index: Reg::new(0) }
    }

    /// How `r` differs.
    #[must_use]
    pub fn of(&self, r: Reg) -> Option<Lane> {
        super::get(&self.of, r)
    }

    fn learn(&mut self, r: Reg, lane: Lane) {
        self.of[r.index()] = Some(lane);
        self.set.push(r);
    }

    /// Whether the loop over `index` with these events of its body can run in lanes. Linear in the body.
    #[must_use]
    pub fn fits(&mut self, kernel: &Kernel, index: Reg, body: &[Event<'_>]) -> bool {
        self.set.drain(..).for_each(|r| self.of[r.index()] = None);
        self.index = index;
        self.learn(index, Lane::Step(1));
        body.iter().all(|event| self.event(kernel, event))
    }

    fn event(&mut self, kernel: &Kernel, event: &Event<'_>) -> bool {
        let real = |r: Reg| kernel.regs[r] == Class::Real;
        match event {
            Event::Instr(instr) => self.instr(kernel, instr),
            Event::Copy { to, from, len } => {
                kernel.buffers[to.0].class == Class::Real
                    && self.is_uniform(len)
                    && self.is_address(&to.1)
                    && self.is_address(&from.1)
            }
            Event::For { count, carried, .. } => self.is_uniform(count) && carried.iter().all(|c| real(c.var)),
            Event::EndFor { .. } | Event::Else { .. } => true,
            Event::If { condition } => self.of(*condition).is_none(),
            Event::EndIf { choices } => choices.iter().all(|c| real(c.var)),
            Event::While { .. } | Event::Test { .. } | Event::EndWhile { .. } => false,
        }
    }

    fn instr(&mut self, kernel: &Kernel, instr: &Instr) -> bool {
        match instr {
            Instr::Const { .. } | Instr::MulAdd { .. } | Instr::External { .. } => true,
            Instr::Int { dst, value } => {
                if self.is_uniform(value) {
                    return true;
                }
                let step = self.is_address(value).then(|| value.split_linear(self.index)).flatten();
                let Some(step) = step.and_then(|(slope, _)| slope.as_constant()) else { return false };
                self.learn(*dst, Lane::Step(step));
                i32::try_from(step).is_ok()
            }
            Instr::Op { dst, op, args } => {
                if op.gives_truth() {
                    self.learn(*dst, Lane::Truth);
                }
                args[..op.arity()].iter().all(|r| !matches!(self.of(*r), Some(Lane::Step(_))))
            }
            Instr::IntOp { op, args, .. } => args[..op.arity()].iter().all(|r| self.of(*r).is_none()),
            Instr::ToReal { .. } => true,
            Instr::Load { buffer, at, .. } => match kernel.buffers[*buffer].class {
                Class::Real => self.is_address(at),
                Class::Int => self.is_uniform(at),
            },
            Instr::Store { buffer, at, .. } => kernel.buffers[*buffer].class == Class::Real && self.is_address(at),
            Instr::CheckIndex { index, len, .. } => {
                self.is_uniform(len) && matches!(self.of(*index), None | Some(Lane::Step(1 | -1)))
            }
        }
    }

    fn is_uniform(&self, poly: &Poly<Reg>) -> bool {
        poly.terms().flat_map(|(m, _)| m).all(|r| self.of(*r).is_none())
    }

    /// Whether it is linear in the index, and all else in it is uniform.
    fn is_address(&self, poly: &Poly<Reg>) -> bool {
        poly.terms().all(|(monomial, _)| {
            monomial.iter().filter(|r| **r == self.index).count() <= 1
                && monomial.iter().all(|r| *r == self.index || self.of(*r).is_none())
        })
    }
}
