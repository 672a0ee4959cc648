//! Transposed copies outside of loops over blocks of rows.
//!
//! ```text
//! for b in 0..(n + 31)/32                    if 32 <= min 32 n
//!   r = min 32 (n - 32 b)                      t = transpose x
//!   if 32 <= r                               for b in 0..(n + 31)/32
//!     t = transpose x                          r = min 32 (n - 32 b)
//!     .. t ..                                  if 32 <= r
//!   else                                         .. t ..
//!     .. x ..                                  else
//!                                                .. x ..
//! ```
//!
//! A copy is made once if the loop does not change what it copies, and if it is made in the first iteration whenever it
//! is made in a later one: its condition compares numbers that do not grow with the index.

use super::rewrite::{Copier, Copies, is_wanted, want};
use crate::events::{Event, walk};
use crate::kernel::{BufferId, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Moves the copies into the buffers `made` out of the loops directly around their conditions. Linear in `body`.
pub(super) fn move_copies(kernel: &mut Kernel, body: &mut Vec<Stmt>, made: &BTreeSet<BufferId>) {
    each_statement(body, |mut stmt, done| {
        if let Stmt::For { index, order: Order::InOrder, body, .. } = &mut stmt {
            for at in 0..body.len() {
                done.extend(moved(kernel, *index, body, at, made));
            }
        }
        done.push(stmt);
    });
}

/// Removes the copies in statement `at` of `body`, the body of a loop over `index`, if they need not be repeated, and
/// returns the statements that make them before the loop.
fn moved(kernel: &mut Kernel, index: Reg, body: &mut [Stmt], at: usize, made: &BTreeSet<BufferId>) -> Vec<Stmt> {
    let is_copy = |stmt: &Stmt| copied(stmt).is_some_and(|(_, to)| made.contains(&to));
    if !matches!(&body[at], Stmt::If { then, .. } if then.first().is_some_and(is_copy)) {
        return Vec::new();
    }
    let (mut inside, mut written) = (BTreeSet::from([index]), BTreeSet::new());
    walk(body).for_each(|event| {
        event.for_each_def(|r| {
            inside.insert(r);
        });
        match event {
            Event::Instr(Instr::Store { buffer, .. }) => _ = written.insert(*buffer),
            Event::Copy { to, .. } => _ = written.insert(to.0),
            _ => {}
        }
    });
    let (before, rest) = body.split_at_mut(at);
    let Some(Stmt::If { condition, then, .. }) = rest.first_mut() else { return Vec::new() };
    let computed: Vec<Instr> = before.iter().flat_map(straight).cloned().collect();
    if !first_is_enough(&computed, &inside, index, *condition, Growth::Never) {
        return Vec::new();
    }
    let n_copies = then.iter().take_while(|stmt| is_copy(stmt)).count();
    let stays = |stmt: &Stmt| {
        let own: BTreeSet<Reg> = defined(stmt);
        let uses_inside = walk(std::slice::from_ref(stmt)).any(|event| {
            let mut found = false;
            event.for_each_use(|r| found |= inside.contains(&r) && !own.contains(&r));
            found
        });
        uses_inside || copied(stmt).is_none_or(|(from, _)| written.contains(&from))
    };
    if then[..n_copies].iter().any(stays) {
        return Vec::new();
    }
    let copies: Vec<Stmt> = then.drain(..n_copies).collect();
    let (map, by, buffers) = (BTreeMap::new(), Poly::zero(), BTreeMap::new());
    let regs = &mut kernel.regs;
    let mut copier = Copier { regs, map, index, by, fresh: true, lane: None, buffers: &buffers };
    let first = copier.block(&[Stmt::Straight(needed(&computed, *condition))]);
    let condition = copier.of(*condition);
    let made = Stmt::If { condition, then: copies, otherwise: Vec::new(), choices: Vec::new() };
    first.into_iter().chain([made]).collect()
}

/// Returns the code of a straight-line statement; none for another one.
pub(super) fn straight(stmt: &Stmt) -> &[Instr] {
    match stmt {
        Stmt::Straight(code) => code,
        _ => &[],
    }
}

fn defined(stmt: &Stmt) -> BTreeSet<Reg> {
    let mut all = BTreeSet::new();
    walk(std::slice::from_ref(stmt)).for_each(|event| event.for_each_def(|r| _ = all.insert(r)));
    all
}

/// Returns the buffers from and to which a nest of two loops copies elements, and nothing else.
fn copied(stmt: &Stmt) -> Option<(BufferId, BufferId)> {
    let Stmt::For { body, carried, .. } = stmt else { return None };
    let [Stmt::For { body, carried: inner, .. }] = &body[..] else { return None };
    match &body[..] {
        [Stmt::Straight(code)] if carried.is_empty() && inner.is_empty() => match &code[..] {
            [Instr::Load { dst, buffer: from, .. }, Instr::Store { buffer: to, value, .. }] if dst == value => {
                Some((*from, *to))
            }
            _ => None,
        },
        _ => None,
    }
}

/// How a number or a condition may change with the index of the loop.
#[derive(Clone, Copy, PartialEq)]
enum Growth {
    /// It does not grow: a condition that holds held before.
    Never,
    /// It does not change.
    Constant,
}

/// Returns whether `r` is computed by `code`, or outside, and changes with `index` at most as `growth` says.
// Recursive on the operands, of which each precedes its user.
fn first_is_enough(code: &[Instr], inside: &BTreeSet<Reg>, index: Reg, r: Reg, growth: Growth) -> bool {
    if !inside.contains(&r) {
        return true;
    }
    let Some(at) = code.iter().position(|instr| instr.dst() == Some(r)) else { return false };
    let of = |r: &Reg, growth: Growth| first_is_enough(&code[..at], inside, index, *r, growth);
    match &code[at] {
        Instr::Const { .. } => true,
        Instr::Int { value, .. } => match value.as_var() {
            Some(same) if same != index => of(&same, growth),
            _ => {
                let Some((slope, rest)) = value.split_linear(index) else { return false };
                let falls =
                    slope.is_zero() || growth == Growth::Never && slope.as_constant().is_some_and(|slope| slope < 0);
                falls && rest.vars().iter().all(|r| of(r, Growth::Constant))
            }
        },
        Instr::IntOp { op: Op::Min, args: [a, b, _], .. } => of(a, growth) && of(b, growth),
        Instr::IntOp { op: Op::Lt, args: [a, b, _], .. } => of(a, Growth::Constant) && of(b, growth),
        Instr::Op { op: Op::And, args: [a, b, _], .. } => of(a, growth) && of(b, growth),
        _ => false,
    }
}

/// Returns the instructions of `code` that `r` needs, in order.
fn needed(code: &[Instr], r: Reg) -> Vec<Instr> {
    let mut wanted = BTreeSet::from([r]);
    want(code, &mut wanted);
    code.iter().filter(|instr| is_wanted(instr, &wanted)).cloned().collect()
}
