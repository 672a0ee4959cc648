//! Drops scalar instructions whose register nobody uses: fields of records that are loaded and not
//! looked at, constants that became part of a polynomial.
//!
//! One pass from the end to the start. What a loop carries counts as used. Checks and stores stay.

use crate::kernel::{Instr, Reg, Stmt};
use chainrule_base::{Arena, Poly};

/// Drops what is of no use in `body`; `n_regs` is how many registers the kernel has.
pub(super) fn prune(body: &mut Vec<Stmt>, n_regs: usize) {
    block(body, &mut Arena::filled(n_regs, false));
}

fn uses(poly: &Poly<Reg>, used: &mut Arena<Reg, bool>) {
    poly.terms().flat_map(|(monomial, _)| monomial).for_each(|reg| used[*reg] = true);
}

fn block(stmts: &mut Vec<Stmt>, used: &mut Arena<Reg, bool>) {
    for stmt in stmts.iter_mut().rev() {
        match stmt {
            Stmt::Straight(instrs) => {
                let mut kept: Vec<Instr> = Vec::with_capacity(instrs.len());
                for instr in std::mem::take(instrs).into_iter().rev() {
                    if instr.dst().is_none_or(|dst| used[dst]) {
                        instr.for_each_use(|reg| used[reg] = true);
                        kept.push(instr);
                    }
                }
                kept.reverse();
                *instrs = kept;
            }
            Stmt::For { count, carried, body, .. } => {
                for c in carried.iter() {
                    used[c.next] = true;
                    used[c.init] = true;
                }
                block(body, used);
                uses(count, used);
            }
            Stmt::While { limit, carried, condition, holds, body, .. } => {
                for c in carried.iter() {
                    used[c.next] = true;
                    used[c.init] = true;
                }
                used[*holds] = true;
                block(body, used);
                block(condition, used);
                uses(limit, used);
            }
            Stmt::If { condition, then, otherwise, choices } => {
                choices.retain(|choice| used[choice.var]);
                for choice in choices.iter() {
                    used[choice.then] = true;
                    used[choice.otherwise] = true;
                }
                block(then, used);
                block(otherwise, used);
                used[*condition] = true;
            }
            Stmt::Copy { to, from, len } => {
                uses(&to.1, used);
                uses(&from.1, used);
                uses(len, used);
            }
        }
    }
    stmts.retain(|stmt| match stmt {
        Stmt::Straight(instrs) => !instrs.is_empty(),
        Stmt::If { then, otherwise, choices, .. } => !(then.is_empty() && otherwise.is_empty() && choices.is_empty()),
        Stmt::For { carried, body, .. } => !(carried.is_empty() && body.is_empty()),
        Stmt::While { .. } | Stmt::Copy { .. } => true,
    });
}
