//! Test whether the iterations of a loop can run in lanes: control flow must be uniform.
//!
//! In: the events of a loop's body. An integer is *uniform* (the same in all lanes), *steps* from lane to lane by a
//! known constant, as the index does, or is *varying*: loaded from memory for each lane, truncated from a real, or
//! computed from such integers. Reals may differ, and so may truth values that only scalar operators read. Loops and
//! branches depend on uniform integers, and inner loops carry only such. Addresses are linear in the index with uniform
//! slopes. Addresses of buffers that the loop only reads may also depend on integers that step or vary.
//!
//! The check of an index that steps by one, or varies, is done for all lanes together. If several checks fail, the
//! reported one may differ from that of sequential execution.

use crate::addresses::slope;
use crate::events::Event;
use crate::kernel::{BufferId, Class, Instr, Kernel, LANES, Reg};
use chainrule_base::{Id, Poly};
use chainrule_ops::Op;
use std::collections::BTreeSet;

/// Variation of a register between lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// An integer that increases by this from lane to lane.
    Step(i64),
    /// An arbitrary integer in each lane.
    Varying,
    /// A truth value of each lane.
    Truth,
}

/// Registers that differ between lanes, by index; all others are uniform integers, or reals.
#[derive(Debug)]
pub struct Lanes {
    of: super::Stamps<Lane>,
    set: Vec<Reg>,
    index: Reg,
    /// Buffers that the loop writes.
    written: BTreeSet<BufferId>,
    /// Buffers to which iterations add, in sequence if necessary.
    added: BTreeSet<BufferId>,
}

impl Lanes {
    /// Returns the analysis for kernels with `n_regs` registers.
    #[must_use]
    pub fn new(n_regs: usize) -> Self {
        let (written, added) = (BTreeSet::new(), BTreeSet::new());
        Self { of: vec![None; n_regs], set: Vec::new(), index: Reg::new(0), written, added }
    }

    /// Returns the variation of `r`.
    #[must_use]
    pub fn of(&self, r: Reg) -> Option<Lane> {
        super::get(&self.of, r)
    }

    fn learn(&mut self, r: Reg, lane: Lane) {
        self.of[r.index()] = Some(lane);
        self.set.push(r);
    }

    /// Returns whether the loop over `index` with these events can run in lanes, once branches on `choosable`
    /// conditions are if-converted. Linear in the body.
    #[must_use]
    pub fn fits(&mut self, kernel: &Kernel, index: Reg, body: &[Event<'_>], choosable: &BTreeSet<Reg>) -> bool {
        self.fits_but(kernel, index, body, choosable, BTreeSet::new())
    }

    /// Returns whether the loop can run in lanes like [`Self::fits`], with arbitrary updates of the buffers `added`.
    pub(super) fn fits_but(
        &mut self,
        kernel: &Kernel,
        index: Reg,
        body: &[Event<'_>],
        choosable: &BTreeSet<Reg>,
        added: BTreeSet<BufferId>,
    ) -> bool {
        self.added = added;
        self.set.drain(..).for_each(|r| self.of[r.index()] = None);
        self.index = index;
        self.learn(index, Lane::Step(1));
        self.written.clear();
        self.written.extend(body.iter().filter_map(|event| match event {
            Event::Instr(Instr::Store { buffer, .. }) => Some(*buffer),
            Event::Copy { to, .. } => Some(to.0),
            _ => None,
        }));
        // Whether the open branches are if-converted.
        let mut open = Vec::new();
        body.iter().all(|event| match event {
            Event::If { condition } => {
                let is_choice = choosable.contains(condition);
                open.push(is_choice);
                is_choice || self.event(kernel, event)
            }
            Event::EndIf { choices } if open.pop() == Some(true) => {
                let integers = choices.iter().filter(|c| kernel.regs[c.var] != Class::Real);
                integers.for_each(|c| self.learn(c.var, Lane::Varying));
                true
            }
            event => self.event(kernel, event),
        })
    }

    fn event(&mut self, kernel: &Kernel, event: &Event<'_>) -> bool {
        let real = |r: Reg| kernel.regs[r] == Class::Real;
        match event {
            Event::Instr(instr) => self.instr(kernel, instr),
            Event::Copy { to, from, len, .. } => {
                kernel.buffers[to.0].class == Class::Real
                    && self.is_uniform(len)
                    && self.is_address(&to.1)
                    && self.is_address(&from.1)
            }
            // A carried integer is uniform; this is checked at the end.
            Event::For { count, carried, .. } => {
                self.is_uniform(count) && carried.iter().all(|c| real(c.var) || self.of(c.init).is_none())
            }
            Event::EndFor { carried, .. } => carried.iter().all(|c| real(c.var) || self.of(c.next).is_none()),
            Event::Else { .. } => true,
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
                // The last lane's distance from the first is part of an instruction.
                let fits = |step: &i64| step.checked_mul(LANES).is_some_and(|all| i32::try_from(all).is_ok());
                let step = step.and_then(|(slope, _)| slope.as_constant()).filter(fits);
                self.learn(*dst, step.map_or(Lane::Varying, Lane::Step));
                self.has_integers(value)
            }
            Instr::Op { dst, op, args } => {
                if op.gives_truth() {
                    self.learn(*dst, Lane::Truth);
                }
                args[..op.arity()].iter().all(|r| matches!(self.of(*r), None | Some(Lane::Truth)))
            }
            Instr::IntOp { dst, op, args, .. } => {
                let args = &args[..op.arity()];
                if args.iter().all(|r| self.of(*r).is_none()) {
                    return true;
                }
                self.learn(*dst, Lane::Varying);
                is_of_each_lane(*op) && args.iter().all(|r| self.of(*r) != Some(Lane::Truth))
            }
            Instr::ToReal { .. } => true,
            Instr::ToInt { dst, .. } => {
                self.learn(*dst, Lane::Varying);
                true
            }
            Instr::Load { buffer, at, .. } if kernel.buffers[*buffer].class == Class::Real => {
                let stays = self.added.contains(buffer) || !self.written.contains(buffer);
                self.is_address(at) || (stays && self.is_found(at))
            }
            Instr::Load { dst, buffer, at } => {
                let is_found = self.is_varying(at) && !self.written.contains(buffer);
                if !self.is_uniform(at) {
                    self.learn(*dst, Lane::Varying);
                }
                self.is_address(at) || is_found
            }
            Instr::Store { buffer, at, .. } => {
                kernel.buffers[*buffer].class == Class::Real
                    && (self.is_address(at) || (self.added.contains(buffer) && self.is_found(at)))
            }
            Instr::CheckIndex { index, len, .. } => {
                self.is_uniform(len) && matches!(self.of(*index), None | Some(Lane::Step(1 | -1) | Lane::Varying))
            }
        }
    }

    /// Returns whether lanes can gather their elements at this address.
    fn is_found(&self, at: &Poly<Reg>) -> bool {
        self.is_varying(at) || self.slope(at).is_some()
    }

    /// Returns whether the variables are integers of all lanes, or of each.
    fn has_integers(&self, poly: &Poly<Reg>) -> bool {
        poly.vars().into_iter().all(|r| self.of(r) != Some(Lane::Truth))
    }

    fn is_uniform(&self, poly: &Poly<Reg>) -> bool {
        poly.terms().flat_map(|(m, _)| m).all(|r| self.of(*r).is_none())
    }

    /// Returns whether the polynomial is linear in the index and otherwise uniform.
    fn is_address(&self, poly: &Poly<Reg>) -> bool {
        poly.terms().all(|(monomial, _)| {
            monomial.iter().filter(|r| **r == self.index).count() <= 1
                && monomial.iter().all(|r| *r == self.index || self.of(*r).is_none())
        })
    }

    /// Returns the distance between the elements of neighbouring lanes, if the address is linear in integers that step
    /// and otherwise uniform.
    #[must_use]
    pub fn slope(&self, at: &Poly<Reg>) -> Option<Poly<Reg>> {
        let mut known = at.vars().into_iter().map(|r| self.of(r));
        let is_known = known.all(|lane| matches!(lane, None | Some(Lane::Step(_))));
        let step = |r: Reg| match self.of(r) {
            Some(Lane::Step(step)) => Some(step),
            _ => None,
        };
        is_known.then(|| slope(at, step)).flatten()
    }

    /// Returns whether an address depends on varying integers.
    #[must_use]
    pub fn is_varying(&self, poly: &Poly<Reg>) -> bool {
        self.has_integers(poly) && poly.vars().into_iter().any(|r| self.of(r) == Some(Lane::Varying))
    }
}

/// Returns whether lanes compute the integer form of `op` one by one.
fn is_of_each_lane(op: Op) -> bool {
    matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Quot | Op::Mod | Op::Min | Op::Max)
}
