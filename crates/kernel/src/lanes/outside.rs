//! Transposed copies outside of loops over blocks of rows.
//!
//! ```text
//! for b in 0..(n + 31)/32                    if 32 <= min 32 n
//!   r = min 32 (n - 32 b)                      t = transpose x
//!   if 32 <= r                               for b in 0..(n + 31)/32
//!     t = transpose x                          r = min 32 (n - 32 b)
//!     .. t ..                                  if that condition
//!   else                                         .. t ..
//!     .. x ..                                  else
//!                                                .. x ..
//! ```
//!
//! A copy is made once if the loop does not change what it copies. The condition of the first iteration then decides
//! for all, which changes no result. It is the one that holds whenever another does: it compares numbers that do not
//! grow with the index, or the loop is one of chunks, of which the first has the most iterations.

use super::products::written;
use super::reads_directly;
use super::rewrite::{Copier, Copies, Cutter, defined_in, straight_code};
use crate::events::walk;
use crate::kernel::{BufferId, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Moves the copies into the buffers `made` out of loops around their conditions. Linear in `body` for each level of
/// loops that a copy leaves.
pub(super) fn move_copies(kernel: &mut Kernel, body: &mut Vec<Stmt>, made: &BTreeSet<BufferId>) {
    let mut goes_on = true;
    while std::mem::take(&mut goes_on) {
        each_statement(body, |mut stmt, done| {
            if let Stmt::For { index, count, order, carried, body } = &mut stmt {
                let places: Vec<usize> = (0..body.len()).filter(|at| n_copies(&body[*at], made) > 0).collect();
                if places.is_empty() {
                    done.push(stmt);
                    return;
                }
                let mut inside = defined_in(body);
                inside.extend(carried.iter().map(|c| c.var).chain([*index]));
                let the = Around { index: *index, count, order: *order, inside };
                for at in places {
                    let before = moved(kernel, &the, body, at, made);
                    goes_on |= !before.is_empty();
                    done.extend(before);
                }
            }
            done.push(stmt);
        });
    }
}

/// A loop around a copy.
struct Around<'a> {
    index: Reg,
    count: &'a Poly<Reg>,
    order: Order,
    /// Registers that an iteration defines.
    inside: BTreeSet<Reg>,
}

/// Removes the copies in statement `at` of `body`, the body of `the` loop, if they need not be repeated, and returns
/// the statements that make them before the loop.
fn moved(kernel: &mut Kernel, the: &Around<'_>, body: &mut [Stmt], at: usize, made: &BTreeSet<BufferId>) -> Vec<Stmt> {
    let n_copies = n_copies(&body[at], made);
    let written = written(body);
    let (before, rest) = body.split_at_mut(at);
    let Some(Stmt::If { condition, then, .. }) = rest.first_mut() else { return Vec::new() };
    let mut wanted = BTreeSet::from([*condition]);
    let Some(code) = straight_code(before, &mut wanted) else { return Vec::new() };
    let is_total = |instr: &Instr| {
        matches!(
            instr,
            Instr::Int { .. } | Instr::IntOp { op: Op::Min | Op::Max | Op::Lt, .. } | Instr::Op { op: Op::And, .. }
        )
    };
    let defined: BTreeSet<Reg> = code.iter().filter_map(Instr::dst).chain([the.index]).collect();
    let is_known = |r: &Reg| defined.contains(r) || !the.inside.contains(r);
    let is_first = the.order == Order::Parts || first_is_enough(&code, the, *condition, Growth::Never);
    if !code.iter().all(is_total) || !wanted.iter().all(is_known) || !is_first {
        return Vec::new();
    }
    let stays = |stmt: &Stmt| {
        let own = defined_in(std::slice::from_ref(stmt));
        let uses_inside = walk(std::slice::from_ref(stmt)).any(|event| {
            let mut found = false;
            event.for_each_use(|r| found |= the.inside.contains(&r) && !own.contains(&r));
            found
        });
        uses_inside || copied(stmt).is_none_or(|(from, _)| written.contains(&from))
    };
    if then[..n_copies].iter().any(stays) {
        return Vec::new();
    }
    let copies: Vec<Stmt> = then.drain(..n_copies).collect();
    let (zero, buffers) = (kernel.regs.push(Class::Int), BTreeMap::new());
    let (map, by) = (BTreeMap::from([(the.index, zero)]), Poly::zero());
    let regs = &mut kernel.regs;
    let mut copier = Copier { regs, map, index: the.index, by, fresh: true, lane: None, buffers: &buffers };
    let reads_index = code.iter().any(|instr| reads_directly(instr, the.index));
    let first = reads_index.then_some(Instr::Int { dst: zero, value: Poly::zero() });
    let mut code: Vec<Instr> = first.into_iter().chain(code.iter().map(|instr| copier.instr(instr))).collect();
    let mut decided = copier.of(*condition);
    // Without an iteration, the elements to copy need not be there.
    if the.count.as_constant().is_none() {
        let mut cutter = Cutter::new(kernel);
        let has_first = cutter.is_some(the.count, &mut code);
        let both = cutter.int();
        code.push(Instr::Op { dst: both, op: Op::And, args: [decided, has_first, decided] });
        decided = both;
    }
    for stmt in before {
        if let Stmt::Straight(code) = stmt {
            for instr in code.iter_mut().filter(|instr| instr.dst() == Some(*condition)) {
                *instr = Instr::Op { dst: *condition, op: Op::And, args: [decided; 3] };
            }
        }
    }
    let made = Stmt::If { condition: decided, then: copies, otherwise: Vec::new(), choices: Vec::new() };
    vec![Stmt::Straight(code), made]
}

/// Returns the code of a straight-line statement; none for another one.
pub(super) fn straight(stmt: &Stmt) -> &[Instr] {
    match stmt {
        Stmt::Straight(code) => code,
        _ => &[],
    }
}

/// Returns the number of copies into the buffers `made` with which the first side of a branch begins.
fn n_copies(stmt: &Stmt, made: &BTreeSet<BufferId>) -> usize {
    let is_copy = |stmt: &&Stmt| copied(stmt).is_some_and(|(_, to)| made.contains(&to));
    match stmt {
        Stmt::If { then, .. } => then.iter().take_while(is_copy).count(),
        _ => 0,
    }
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

/// Returns whether `r` is computed by `code`, or outside of the loop, and changes with its index at most as `growth`
/// says.
// Recursive on the operands, of which each precedes its user.
fn first_is_enough(code: &[Instr], the: &Around<'_>, r: Reg, growth: Growth) -> bool {
    if !the.inside.contains(&r) {
        return true;
    }
    let Some(at) = code.iter().position(|instr| instr.dst() == Some(r)) else { return false };
    let of = |r: &Reg, growth: Growth| first_is_enough(&code[..at], the, *r, growth);
    match &code[at] {
        Instr::Const { .. } => true,
        Instr::Int { value, .. } => match value.as_var() {
            Some(same) if same != the.index => of(&same, growth),
            _ => {
                let Some((slope, rest)) = value.split_linear(the.index) else { return false };
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
