//! Truth values that loops load from memory: lanes have them as comparisons of doubles.
//!
//! ```text
//! for i in 0..n                  for i in 0..n
//!   r1 = load k[i]                 r2 = load k[i]
//!                                  r3 = real r2
//!                                  r4 = 0.0
//!                                  r5 = eq r3, r4
//!                                  r1 = not r5
//!   y = select r1, a, b            y = select r1, a, b
//! ```
//!
//! Integers of lanes are in general registers, a word of the frame for each lane, and only serve as indices and as
//! numbers. Masks of missing data, of padded sequences and of attention are such arrays. An integer that also serves
//! otherwise stays as it is.

use crate::events::{Event, events};
use crate::kernel::{Class, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_ops::Op;
use std::collections::BTreeSet;

/// Compares loaded truth values with 0. Linear in the size of `kernel`, times the logarithm of the number of loads.
pub(crate) fn compare_loaded(kernel: &mut Kernel) {
    let truths = truths(kernel);
    if truths.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let regs = &mut kernel.regs;
    each_statement(&mut body, |stmt, done| {
        let Stmt::Straight(code) = stmt else { return done.push(stmt) };
        let mut compared = Vec::with_capacity(code.len());
        for instr in code {
            let Instr::Load { dst, buffer, at } = instr else {
                compared.push(instr);
                continue;
            };
            if !truths.contains(&dst) {
                compared.push(Instr::Load { dst, buffer, at });
                continue;
            }
            let (number, is_zero) = (regs.push(Class::Int), regs.push(Class::Int));
            let (real, zero) = (regs.push(Class::Real), regs.push(Class::Real));
            compared.extend([
                Instr::Load { dst: number, buffer, at },
                Instr::ToReal { dst: real, src: number },
                Instr::Const { dst: zero, value: 0.0 },
                Instr::Op { dst: is_zero, op: Op::Eq, args: [real, zero, real] },
                Instr::Op { dst, op: Op::Not, args: [is_zero; 3] },
            ]);
        }
        done.push(Stmt::Straight(compared));
    });
    kernel.body = body;
}

/// Returns the integers loaded at an address that varies in a loop in sequence, and only used as truth values.
fn truths(kernel: &Kernel) -> BTreeSet<Reg> {
    let all = events(&kernel.body);
    let mut found = BTreeSet::new();
    let mut open: Vec<(Reg, Order)> = Vec::new();
    for event in &all {
        match event {
            Event::For { index, order, .. } => open.push((*index, *order)),
            Event::EndFor { .. } => drop(open.pop()),
            Event::Instr(Instr::Load { dst, at, .. }) if kernel.regs[*dst] == Class::Int => {
                let varies = |(index, order): &(Reg, Order)| *order == Order::InOrder && at.vars().contains(index);
                found.extend(open.iter().any(varies).then_some(*dst));
            }
            _ => {}
        }
    }
    if found.is_empty() {
        return found;
    }
    let mut decides: BTreeSet<Reg> = BTreeSet::new();
    for event in &all {
        let truth: &[Reg] = match event {
            Event::Instr(Instr::Op { op: Op::And | Op::Or, args: [a, b, _], .. }) => &[*a, *b],
            Event::Instr(Instr::Op { op: Op::Not | Op::Select, args: [a, ..], .. }) => std::slice::from_ref(a),
            Event::If { condition } => std::slice::from_ref(condition),
            event => {
                event.for_each_use(|r| {
                    found.remove(&r);
                });
                continue;
            }
        };
        decides.extend(truth.iter().filter(|r| found.contains(r)));
    }
    found.retain(|r| decides.contains(r));
    found
}
