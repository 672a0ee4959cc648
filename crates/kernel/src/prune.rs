//! Drops what is of no use: instructions whose register nobody reads, results of branches, branches and loops that do
//! nothing.
//!
//! One pass from the end to the start finds what is used, another drops the rest. What a loop carries counts as used. Checks
//! and stores stay. An operator that would fail goes with its result: what nobody needs is not computed.

use crate::events::{Event, events};
use crate::kernel::{Carried, Choice, Instr, Reg, Stmt};
use crate::rebuild::{Pass, rebuild};
use chainrule_base::{Arena, Poly};

/// Drops what is of no use in `body`; `n_regs` is how many registers the kernel has. Linear in its size; the stack does not
/// grow with its depth.
pub(crate) fn prune(body: &mut Vec<Stmt>, n_regs: usize) {
    let mut pass = Prune { used: used(body, n_regs) };
    *body = rebuild(std::mem::take(body), &mut pass);
}

fn used(body: &[Stmt], n_regs: usize) -> Arena<Reg, bool> {
    let mut used = Arena::filled(n_regs, false);
    let poly = |used: &mut Arena<Reg, bool>, poly: &Poly<Reg>| {
        poly.terms().flat_map(|(monomial, _)| monomial).for_each(|r| used[*r] = true);
    };
    let carried = |used: &mut Arena<Reg, bool>, carried: &[Carried]| {
        carried.iter().flat_map(|c| [c.next, c.init]).for_each(|r| used[r] = true);
    };
    for event in events(body).iter().rev() {
        match event {
            Event::Instr(instr) => {
                if instr.dst().is_none_or(|dst| used[dst]) {
                    instr.for_each_use(|r| used[r] = true);
                }
            }
            Event::Copy { to, from, len } => [&to.1, &from.1, *len].into_iter().for_each(|p| poly(&mut used, p)),
            Event::For { count, .. } => poly(&mut used, count),
            Event::While { limit, .. } => poly(&mut used, limit),
            Event::EndFor { carried: all, .. } | Event::EndWhile { carried: all } => carried(&mut used, all),
            Event::Test { holds: r, .. } | Event::If { condition: r } => used[*r] = true,
            Event::EndIf { choices } => {
                for c in choices.iter().filter(|c| used[c.var]).flat_map(|c| [c.then, c.otherwise]).collect::<Vec<_>>()
                {
                    used[c] = true;
                }
            }
            Event::Else { .. } => {}
        }
    }
    used
}

struct Prune {
    used: Arena<Reg, bool>,
}

impl Pass for Prune {
    fn code(&mut self, mut code: Vec<Instr>) -> Vec<Instr> {
        code.retain(|instr| instr.dst().is_none_or(|dst| self.used[dst]));
        code
    }

    fn close_for(
        &mut self,
        _index: Reg,
        carried: &mut Vec<Carried>,
        body: &mut Vec<Stmt>,
        _before: &mut Vec<Instr>,
    ) -> bool {
        !(body.is_empty() && carried.is_empty())
    }

    fn close_if(
        &mut self,
        _condition: Reg,
        choices: &mut Vec<Choice>,
        arms: [&mut Vec<Stmt>; 2],
        _before: &mut Vec<Instr>,
    ) -> bool {
        choices.retain(|choice| self.used[choice.var]);
        !(arms.iter().all(|arm| arm.is_empty()) && choices.is_empty())
    }
}
