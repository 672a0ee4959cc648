//! Searches in columns: one for each iteration of a loop, which then runs in lanes.
//!
//! In: a loop whose iterations search for the step that decides a maximum, over elements that lie apart, as the
//! gradient of the largest elements of columns does, and then add to the element found: they run in sequence. Out: two
//! loops. The first one searches, with the step as a double, and runs in lanes. The second one does the rest.
//!
//! ```text
//! for j in 0..m                          for j in 0..m                               (in lanes)
//!   for i in 0..n, r = a, k = -1           for i in 0..n, r = a, k = -1.0
//!     if r < x[m i + j]                      if r < x[m i + j]
//!     r' = x[m i + j] | r                    r' = x[m i + j] | r
//!     k' = i | k                             k' = real i | k
//!   g[m k + j] = g[m k + j] + y            found[j] = k
//!                                        for j in 0..m, k = int found[j]
//!                                          g[m k + j] = g[m k + j] + y
//! ```
//!
//! **Values for the rest**: sums and searches of the first loop are kept, an element for each iteration; straight-line
//! code is repeated. The rest also carries what the loop does. What the first loop reads, no iteration writes, and
//! nothing in it can fail.
//!
//! Invariant: every number is computed by the same operations, so it keeps its bits.

use super::Plan;
use super::products::{accessed, written};
use super::rewrite::{Copier, Copies, Loop, is_wanted, used, want};
use super::sweep::is_pure;
use super::winner::{Exact, Search, carries_pairs, exact, search, where_in_lanes, with_real_winner};
use crate::events::{Event, walk};
use crate::kernel::{Carried, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Semantics;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of searches that leave a loop.
const MAX_SEARCHES: usize = 4;

/// Separates searches in columns from the loops of `kernel` where they then run in lanes.
pub(crate) fn search_columns(kernel: &mut Kernel, semantics: Semantics) {
    if !carries_pairs(kernel) {
        return;
    }
    // Each round takes the first search of a loop.
    for _ in 0..MAX_SEARCHES {
        let own = |_: &Kernel, chosen: &BTreeMap<Reg, Plan>| chosen.keys().copied().collect();
        if !where_in_lanes(kernel, semantics, separate_first, own) {
            break;
        }
    }
}

/// Separates the first searches of the loops with these indices; returns the indices of the loops that search by
/// those of the loops.
fn separate_first(kernel: &mut Kernel, is_chosen: &dyn Fn(Reg) -> bool) -> BTreeMap<Reg, Reg> {
    let mut body = std::mem::take(&mut kernel.body);
    let exact = exact(&body);
    let mut separated = BTreeMap::new();
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if is_chosen(index) => {
            let the = Loop { index, count, carried, body };
            match first_search(kernel, &the, &exact) {
                Some((at, search)) => {
                    separated.insert(index, separate(kernel, the, (at, &search), done));
                }
                None => done.push(the.in_order()),
            }
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
    separated
}

/// Returns the first search in the iterations of a loop, with its place, if it can leave the loop.
fn first_search(kernel: &Kernel, the: &Loop, exact: &Exact) -> Option<(usize, Search)> {
    let (at, search) = the.body.iter().enumerate().find_map(|(at, stmt)| Some((at, search(kernel, stmt, exact)?)))?;
    let (searching, rest) = the.body.split_at(at + 1);
    let is_counted = the.count.vars().iter().all(|r| kernel.is_extent(*r));
    let is_carried = |r: Reg| the.carried.iter().any(|c| c.var == r);
    let fits = is_counted
        && !searching.iter().flat_map(used).any(is_carried)
        && !rest.is_empty()
        && is_in_columns(&search, the.index)
        && searching[..at].iter().all(|stmt| computes_numbers(kernel, stmt))
        && is_harmless(&searching[at..])
        && accessed(searching).is_disjoint(&written(&the.body));
    fits.then_some((at, search))
}

/// Returns whether neighbouring iterations of the loop over `column` read neighbouring elements in a search, and its
/// steps do not.
fn is_in_columns(search: &Search, column: Reg) -> bool {
    let is_next = |at: &Poly<Reg>, index: Reg| {
        at.split_linear(index).is_some_and(|(slope, _)| matches!(slope.as_constant(), Some(1 | -1)))
    };
    let mut loads = walk(&search.the.body).filter_map(|event| match event {
        Event::Instr(Instr::Load { at, .. }) => Some(at),
        _ => None,
    });
    loads.any(|at| is_next(at, column) && !is_next(at, search.the.index))
}

/// Returns whether a statement before a search computes numbers, and nothing else.
fn computes_numbers(kernel: &Kernel, stmt: &Stmt) -> bool {
    let is_real = |c: &Carried| kernel.regs[c.var] == Class::Real;
    let is_alone = match stmt {
        Stmt::Straight(_) => true,
        Stmt::For { carried, order: Order::InOrder, .. } => carried.iter().all(is_real),
        _ => false,
    };
    is_alone && is_harmless(std::slice::from_ref(stmt))
}

/// Returns whether statements write nothing and cannot fail.
fn is_harmless(body: &[Stmt]) -> bool {
    walk(body).all(|event| match event {
        Event::Instr(instr) => is_pure(instr),
        Event::Copy { .. } | Event::While { .. } => false,
        _ => true,
    })
}

/// Emits a loop that searches and one that does the rest to `out`; returns the index of the first.
fn separate(kernel: &mut Kernel, mut the: Loop, (at, search): (usize, &Search), out: &mut Vec<Stmt>) -> Reg {
    let mut rest = std::mem::take(&mut the.body);
    let before: Vec<Stmt> = rest.drain(..=at).collect();
    let mut wanted: BTreeSet<Reg> = rest.iter().flat_map(used).chain(the.carried.iter().map(|c| c.next)).collect();
    for stmt in before.iter().rev() {
        if let Stmt::Straight(code) = stmt {
            want(code, &mut wanted);
        }
    }

    let index = kernel.regs.push(Class::Int);
    // Instructions other than addresses may read the index too.
    let (map, buffers) = (BTreeMap::from([(the.index, index)]), BTreeMap::new());
    let regs = &mut kernel.regs;
    let by = Poly::var(index);
    let mut copier = Copier { regs, map, index: the.index, by, fresh: true, lane: None, buffers: &buffers };
    let mut searching = copier.block(&before);
    let winner = copier.of(search.winner);
    let new = copier.map;
    let found = with_real_winner(kernel, winner, &mut searching);

    let mut kept = Vec::new();
    let mut keep = |kernel: &mut Kernel, value: Reg| {
        let buffer = kernel.memory(the.count.clone());
        kept.push(Instr::Store { buffer, at: Poly::var(index), value });
        buffer
    };
    let mut body = Vec::new();
    for stmt in before {
        match stmt {
            Stmt::Straight(mut code) => {
                code.retain(|instr| is_wanted(instr, &wanted));
                body.extend(code);
            }
            Stmt::For { carried, .. } => {
                for c in carried.iter().filter(|c| wanted.contains(&c.var)) {
                    if c.var == search.winner {
                        let (src, buffer) = (kernel.regs.push(Class::Real), keep(kernel, found));
                        body.push(Instr::Load { dst: src, buffer, at: Poly::var(the.index) });
                        body.push(Instr::ToInt { dst: c.var, src });
                    } else {
                        let buffer = keep(kernel, new[&c.var]);
                        body.push(Instr::Load { dst: c.var, buffer, at: Poly::var(the.index) });
                    }
                }
            }
            _ => {}
        }
    }
    searching.push(Stmt::Straight(kept));
    rest.insert(0, Stmt::Straight(body));
    let first = Loop { index, count: the.count.clone(), carried: Vec::new(), body: searching };
    out.extend([first.in_order(), Loop { body: rest, ..the }.in_order()]);
    index
}
