//! Integers that loops load from memory, and only serve as truth values, or are compared with constants: lanes have
//! them as doubles.
//!
//! ```text
//! r2 = int 3
//! for i in 0..n                  for i in 0..n
//!   r1 = load k[i]                 r3 = load k[i]
//!                                  r4 = real r3
//!                                  r5 = 0.0
//!                                  r6 = eq r4, r5
//!                                  r1 = not r6
//!   y = select r1, a, b            y = select r1, a, b
//!                                  r8 = 3.0
//!   r7 = int lt r1, r2             r7 = lt r4, r8
//! ```
//!
//! So do indices that are compared in a loop with loops, if that only selects one of two constants ([`selections`]).
//!
//! Integers of lanes are in general registers, a word of the frame for each lane, and only serve as indices and as
//! numbers. Masks of missing data, of padded sequences and of attention are such arrays, and so are labels. Rounding an
//! integer to a double keeps its order with all integers below 2^53 in magnitude. An integer that also serves otherwise
//! stays as it is.

use crate::events::{Event, events};
use crate::kernel::{Class, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Bound on the magnitude of constants that rounded integers are compared with.
const MAX_CONSTANT: i64 = 1 << f64::MANTISSA_DIGITS;

/// Compares loaded truth values with 0, and other loaded integers and some indices as doubles. Linear in the size of
/// `kernel`, times the logarithm of the number of loads.
pub(crate) fn compare_loaded(kernel: &mut Kernel) {
    let selections = selections(&events(&kernel.body));
    let constants = constants(kernel);
    let loaded = loaded(kernel, &constants);
    if loaded.is_empty() && selections.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let regs = &mut kernel.regs;
    let mut reals: BTreeMap<Reg, Reg> = BTreeMap::new();
    each_statement(&mut body, |stmt, done| {
        let Stmt::Straight(code) = stmt else { return done.push(stmt) };
        let mut compared = Vec::with_capacity(code.len());
        for instr in code {
            match instr {
                Instr::Load { dst, buffer, at } if loaded.contains_key(&dst) => {
                    let (number, real) = (regs.push(Class::Int), regs.push(Class::Real));
                    reals.insert(dst, real);
                    compared.push(Instr::Load { dst: number, buffer, at });
                    compared.push(Instr::ToReal { dst: real, src: number });
                    if loaded[&dst] {
                        let (zero, is_zero) = (regs.push(Class::Real), regs.push(Class::Int));
                        compared.push(Instr::Const { dst: zero, value: 0.0 });
                        compared.push(Instr::Op { dst: is_zero, op: Op::Eq, args: [real, zero, real] });
                        compared.push(Instr::Op { dst, op: Op::Not, args: [is_zero; 3] });
                    }
                }
                Instr::IntOp { dst, op, args: [a, b, _], .. }
                    if selections.contains(&dst) || [a, b].iter().any(|r| reals.contains_key(r)) =>
                {
                    let [x, y] = [a, b].map(|src| {
                        reals.get(&src).copied().unwrap_or_else(|| {
                            let dst = regs.push(Class::Real);
                            compared.push(match constants.get(&src) {
                                Some(n) => Instr::Const { dst, value: *n as f64 },
                                None => Instr::ToReal { dst, src },
                            });
                            dst
                        })
                    });
                    compared.push(Instr::Op { dst, op, args: [x, y, x] });
                }
                instr => compared.push(instr),
            }
        }
        done.push(Stmt::Straight(compared));
    });
    kernel.body = body;
}

/// Returns the comparisons of indices that only select one of two constants, and cost less than the pieces of a loop:
/// of two indices in loops that contain loops, whose pieces are no rectangles any more (a product of matrices less the
/// identity), and of an index with a loaded integer (the classes of rows), whose pieces differ from row to row. Where a
/// constant decides about another value, the pieces are simpler than the loop.
pub(crate) fn selections(events: &[Event<'_>]) -> BTreeSet<Reg> {
    let (mut constants, mut selecting, mut others) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut chosen: BTreeMap<Reg, Reg> = BTreeMap::new();
    for event in events {
        match event {
            Event::Instr(Instr::Const { dst, .. }) => _ = constants.insert(*dst),
            Event::Instr(Instr::Op { dst, op: Op::Select, args: [condition, a, b] })
                if [a, b].iter().all(|r| constants.contains(r)) =>
            {
                selecting.insert(*condition);
                chosen.insert(*dst, *condition);
            }
            Event::Instr(Instr::Op { op: Op::Eq, args: [a, b, _], .. }) => {
                others.extend([a, b].into_iter().filter_map(|r| chosen.get(r)).chain([a, b]));
            }
            event => event.for_each_use(|r| _ = others.insert(r)),
        }
    }
    selecting.retain(|r| !others.contains(r));
    if selecting.is_empty() {
        return selecting;
    }
    // For each open loop its index, its comparisons of indices, and whether it contains a loop.
    let mut found = BTreeSet::new();
    let mut open: Vec<(Reg, Vec<Reg>, bool)> = Vec::new();
    // Integers that loops load.
    let mut loaded = BTreeSet::new();
    for event in events {
        match event {
            Event::For { index, .. } => {
                open.iter_mut().for_each(|(_, _, has_loops)| *has_loops = true);
                open.push((*index, Vec::new(), false));
            }
            Event::EndFor { .. } => {
                let Some((_, compared, true)) = open.pop() else { continue };
                found.extend(compared);
            }
            Event::Instr(Instr::Load { dst, .. }) if !open.is_empty() => _ = loaded.insert(*dst),
            Event::Instr(Instr::IntOp { dst, op: Op::Eq | Op::Lt | Op::Le, args: [a, b, _], .. })
                if selecting.contains(dst) =>
            {
                let is_index = |r: &Reg| open.iter().any(|(index, ..)| index == r);
                if [(a, b), (b, a)].iter().any(|(x, y)| is_index(x) && loaded.contains(*y)) {
                    found.insert(*dst);
                } else if is_index(a) && is_index(b) {
                    open.last_mut().into_iter().for_each(|(_, compared, _)| compared.push(*dst));
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the integers that are constants below [`MAX_CONSTANT`].
fn constants(kernel: &Kernel) -> BTreeMap<Reg, i64> {
    let constant = |event: &Event<'_>| match event {
        Event::Instr(Instr::Int { dst, value }) => {
            value.as_constant().filter(|n| n.unsigned_abs() < MAX_CONSTANT as u64).map(|n| (*dst, n))
        }
        _ => None,
    };
    events(&kernel.body).iter().filter_map(constant).collect()
}

/// Returns the integers loaded at an address that varies in a loop in sequence, and only used as truth values or in
/// comparisons with `constants`; each with whether it is a truth value. None decides about checks of indices: lanes
/// branch there, which they do on integers that are the same for all.
fn loaded(kernel: &Kernel, constants: &BTreeMap<Reg, i64>) -> BTreeMap<Reg, bool> {
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
        return BTreeMap::new();
    }
    let mut decides: BTreeMap<Reg, bool> = BTreeMap::new();
    let guards = guards(&all);
    for event in &all {
        let (used, is_truth): (&[Reg], bool) = match event {
            Event::Instr(Instr::Op { op: Op::And | Op::Or, args: [a, b, _], .. }) => (&[*a, *b], true),
            Event::Instr(Instr::Op { op: Op::Not | Op::Select, args: [a, ..], .. }) => (std::slice::from_ref(a), true),
            Event::If { condition } => (std::slice::from_ref(condition), true),
            Event::Instr(Instr::IntOp { op: Op::Eq | Op::Lt | Op::Le, dst, args: [a, b, _], .. })
                if !guards.contains(dst)
                    && [(a, b), (b, a)].iter().any(|(x, y)| found.contains(x) && constants.contains_key(y)) =>
            {
                (&[*a, *b], false)
            }
            event => {
                event.for_each_use(|r| {
                    found.remove(&r);
                });
                continue;
            }
        };
        for r in used.iter().filter(|r| found.contains(r)) {
            *decides.entry(*r).or_insert(false) |= is_truth;
        }
    }
    decides.retain(|r, _| found.contains(r) && !guards.contains(r));
    decides
}

/// Returns the conditions of branches in which indices are checked.
fn guards(all: &[Event<'_>]) -> BTreeSet<Reg> {
    let mut guards = BTreeSet::new();
    let mut open: Vec<Reg> = Vec::new();
    for event in all {
        match event {
            Event::If { condition } => open.push(*condition),
            Event::EndIf { .. } => drop(open.pop()),
            Event::Instr(Instr::CheckIndex { .. }) => guards.extend(open.iter().copied()),
            _ => {}
        }
    }
    guards
}
