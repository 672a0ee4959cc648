//! Conflict splitting: vectorisation of loops whose iterations add to the same elements. Values are computed in lanes
//! and added piece by piece.
//!
//! In: a loop that is cut into blocks, and the buffers to whose elements its iterations add ([`Plan::scattered`]). Out:
//! one block, as a sequence of loops over its iterations.
//!
//! ```text
//! for i in 0..n                            for b in 0..n/8
//!   g = f(i)                                 for l in 0..8 at once
//!   d[i] = d[i] + g                            g = f(8 b + l); d[8 b + l] = d[8 b + l] + g; place[l] = g
//!   d[i + 1] = d[i + 1] - g                  for l in 0..8 at once
//!   e[at[i]] = e[at[i]] + g                    d[8 b + l + 1] = d[8 b + l + 1] - place[l]
//!                                            for l in 0..8
//!                                              e[at[8 b + l]] = e[at[8 b + l]] + place[l]
//! ```
//!
//! **Motion of additions.** Nothing else reads the updated buffers, so an iteration may add after all its computations,
//! up to the next loop in which it adds. Loops that contain additions are kept around such pieces (their trip counts
//! are the same for all iterations); all other loops stay whole.
//!
//! **Values that a piece needs from an earlier one** are recomputed if they are integers, constants or loads from
//! memory that is not written. Otherwise they are saved, one element for each lane, as are values carried by loops
//! around pieces.
//!
//! **One element that all iterations add to** is updated once: the sums of the lanes are reduced first.
//!
//! **Several blocks** go through the pieces together, as loops over blocks. Elements that were just written are then
//! not read immediately, which would defeat store forwarding.
//!
//! **The order of additions** changes, as with sums, so the caller must allow it. The result is an ordinary kernel,
//! with the same bits however its loops run.

mod supply;
mod write;

pub(super) use write::{Apart, Round};

use super::Plan;
use crate::kernel::{BufferId, Carried, Class, Instr, Reg, Stmt};
use crate::rebuild::is_nothing;
use chainrule_base::{Arena, Poly};
use std::collections::{BTreeMap, BTreeSet};

/// A part of an iteration.
enum Piece {
    /// Code for all iterations of the block, in lanes or in sequence.
    Run { body: Vec<Stmt>, at_once: bool },
    /// A loop with the same trip count for all iterations.
    Around { index: Reg, count: Poly<Reg>, carried: Vec<Carried>, body: Vec<Piece> },
    /// Adds the sums that such loops carried to the sums over all iterations.
    Sums,
    /// Update of an element that all iterations add to.
    Total(Addition),
}

/// Update of an element: load, addition, store.
struct Addition {
    buffer: BufferId,
    at: Poly<Reg>,
    /// Old value.
    before: Reg,
    /// Code that computes the summand.
    code: Vec<Instr>,
    /// New value so far.
    after: Reg,
    is_done: bool,
}

impl Addition {
    /// Returns its instructions.
    fn instrs(self) -> Vec<Instr> {
        let Self { buffer, at, before, mut code, after, .. } = self;
        code.insert(0, Instr::Load { dst: before, buffer, at: at.clone() });
        code.push(Instr::Store { buffer, at, value: after });
        code
    }
}

/// Splits an iteration into pieces.
struct Splitter<'p> {
    plan: &'p Plan,
    index: Reg,
    /// Integers that differ between lanes.
    varying: BTreeSet<Reg>,
    /// Those that are polynomials over the index and uniform integers.
    steps: BTreeMap<Reg, Poly<Reg>>,
}

impl<'p> Splitter<'p> {
    fn new(plan: &'p Plan, index: Reg) -> Self {
        Self { plan, index, varying: BTreeSet::from([index]), steps: BTreeMap::new() }
    }

    /// Returns an address with integers replaced by polynomials over the index where possible.
    fn resolved(&self, at: &Poly<Reg>) -> Poly<Reg> {
        match at.vars().iter().any(|r| self.steps.contains_key(r)) {
            true => at.substitute(|r| self.steps.get(&r).cloned().unwrap_or_else(|| Poly::var(r))),
            false => at.clone(),
        }
    }

    fn varies(&self, poly: &Poly<Reg>) -> bool {
        poly.vars().iter().any(|r| self.varying.contains(r))
    }

    /// Records the integers of `body` that differ between lanes. Recurses on the bounded nesting of loops that are cut.
    fn learn(&mut self, classes: &Arena<Reg, Class>, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Straight(code) => {
                    for instr in code {
                        let Some(dst) = instr.dst().filter(|dst| classes[*dst] == Class::Int) else { continue };
                        let mut differs = false;
                        instr.for_each_use(|r| differs |= classes[r] == Class::Real || self.varying.contains(&r));
                        if differs {
                            self.varying.insert(dst);
                            if let Instr::Int { value, .. } = instr {
                                let value = self.resolved(value);
                                self.steps.insert(dst, value);
                            }
                        }
                    }
                }
                Stmt::For { body, .. } => self.learn(classes, body),
                Stmt::If { then, otherwise, .. } => {
                    self.learn(classes, then);
                    self.learn(classes, otherwise);
                }
                Stmt::Copy { .. } | Stmt::While { .. } => {}
            }
        }
    }

    /// Returns whether different iterations have different elements at `at`.
    fn is_own(&self, at: &Poly<Reg>) -> bool {
        at.split_linear(self.index)
            .is_some_and(|(slope, rest)| slope.as_constant().is_some_and(|slope| slope != 0) && !self.varies(&rest))
    }

    /// Returns whether iterations update elements in `stmt`. Recurses on the bounded nesting of loops that are cut.
    fn adds(&self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Straight(code) => code.iter().any(|instr| self.is_addition(instr)),
            Stmt::For { body, .. } => body.iter().any(|stmt| self.adds(stmt)),
            _ => false,
        }
    }

    fn is_addition(&self, instr: &Instr) -> bool {
        matches!(instr, Instr::Load { buffer, .. } | Instr::Store { buffer, .. } if self.plan.scattered.contains(buffer))
    }

    /// Returns the pieces of `body`. Recurses on the bounded nesting of loops that are cut.
    fn split(&self, body: &[Stmt]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut plain: Vec<Stmt> = Vec::new();
        let mut additions: Vec<Addition> = Vec::new();
        for stmt in body {
            match stmt {
                Stmt::For { index, count, carried, body, .. } if self.adds(stmt) => {
                    self.add(std::mem::take(&mut plain), std::mem::take(&mut additions), &mut pieces);
                    let (count, carried, body) = (count.clone(), carried.clone(), self.split(body));
                    pieces.push(Piece::Around { index: *index, count, carried, body });
                }
                Stmt::Straight(code) => {
                    let rest = code.iter().filter(|instr| !self.collect(instr, &mut additions));
                    plain.push(Stmt::Straight(rest.cloned().collect()));
                }
                stmt => plain.push(stmt.clone()),
            }
        }
        self.add(plain, additions, &mut pieces);
        pieces
    }

    /// Adds `instr` to the update that it belongs to; returns whether there is one.
    fn collect(&self, instr: &Instr, additions: &mut Vec<Addition>) -> bool {
        let mut open = additions.iter_mut().rev().filter(|addition| !addition.is_done);
        match instr {
            Instr::Load { dst, buffer, at } if self.is_addition(instr) => {
                let (before, after, code) = (*dst, *dst, Vec::new());
                additions.push(Addition {
                    buffer: *buffer,
                    at: self.resolved(at),
                    before,
                    code,
                    after,
                    is_done: false,
                });
                true
            }
            Instr::Store { value, .. } if self.is_addition(instr) => {
                open.find(|addition| addition.after == *value).is_some_and(|addition| {
                    addition.is_done = true;
                    true
                })
            }
            Instr::Op { dst, op, args } => {
                open.find(|addition| args[..op.arity()].contains(&addition.after)).is_some_and(|addition| {
                    addition.code.push(instr.clone());
                    addition.after = *dst;
                    true
                })
            }
            _ => false,
        }
    }

    /// Emits the computations of iterations and then their updates: updates of distinct elements in lanes, one for each
    /// buffer; updates of a common element; all others in sequence.
    fn add(&self, mut plain: Vec<Stmt>, additions: Vec<Addition>, pieces: &mut Vec<Piece>) {
        // Groups of updates with distinct buffers.
        let mut at_once: Vec<(BTreeMap<_, _>, Vec<Instr>)> = Vec::new();
        let mut in_order: Vec<Instr> = Vec::new();
        let mut totals = Vec::new();
        for addition in additions {
            let (buffer, at) = (addition.buffer, addition.at.clone());
            if !self.varies(&at) {
                totals.push(Piece::Total(addition));
                continue;
            }
            if !self.is_own(&at) {
                in_order.extend(addition.instrs());
                continue;
            }
            let fitting =
                at_once.iter_mut().find(|(elements, _)| elements.get(&buffer).is_none_or(|other| *other == at));
            if let Some((elements, code)) = fitting {
                elements.insert(buffer, at);
                code.extend(addition.instrs());
            } else {
                at_once.push((BTreeMap::from([(buffer, at)]), addition.instrs()));
            }
        }
        let mut runs = at_once.into_iter().map(|(_, code)| code);
        plain.extend(runs.next().map(Stmt::Straight));
        let others = runs.map(|code| Piece::Run { body: vec![Stmt::Straight(code)], at_once: true });
        plain.retain(|stmt| !is_nothing(stmt));
        pieces.extend((!plain.is_empty()).then_some(Piece::Run { body: plain, at_once: true }));
        pieces.extend(others);
        pieces.extend(totals);
        if !in_order.is_empty() {
            pieces.push(Piece::Run { body: vec![Stmt::Straight(in_order)], at_once: false });
        }
    }
}

/// Calls `see` with the registers that `body` reads. Recurses on the bounded nesting of loops that are cut.
fn uses(body: &[Stmt], see: &mut impl FnMut(Reg)) {
    let poly = |poly: &Poly<Reg>, see: &mut dyn FnMut(Reg)| poly.vars().into_iter().for_each(see);
    for stmt in body {
        match stmt {
            Stmt::Straight(code) => code.iter().for_each(|instr| instr.for_each_use(&mut *see)),
            Stmt::For { count, carried, body, .. } => {
                poly(count, see);
                carried.iter().for_each(|c| {
                    see(c.init);
                    see(c.next);
                });
                uses(body, see);
            }
            Stmt::If { condition, then, otherwise, choices } => {
                see(*condition);
                uses(then, see);
                uses(otherwise, see);
                choices.iter().for_each(|c| {
                    see(c.then);
                    see(c.otherwise);
                });
            }
            Stmt::Copy { to, from, len, .. } => [&to.1, &from.1, len].into_iter().for_each(|p| poly(p, see)),
            Stmt::While { .. } => {}
        }
    }
}

/// Returns the registers that `body` defines for later code.
fn defined(body: &[Stmt]) -> impl Iterator<Item = Reg> + '_ {
    body.iter().flat_map(|stmt| match stmt {
        Stmt::Straight(code) => code.iter().filter_map(Instr::dst).collect(),
        stmt => stmt.results(),
    })
}

/// Collects the buffers that `body` writes. Recurses on the bounded nesting of loops that are cut.
fn writes(body: &[Stmt], written: &mut BTreeSet<BufferId>) {
    for stmt in body {
        match stmt {
            Stmt::Straight(code) => written.extend(code.iter().filter_map(|instr| match instr {
                Instr::Store { buffer, .. } => Some(*buffer),
                _ => None,
            })),
            Stmt::Copy { to, .. } => {
                written.insert(to.0);
            }
            Stmt::For { body, .. } => writes(body, written),
            Stmt::If { then, otherwise, .. } => {
                writes(then, written);
                writes(otherwise, written);
            }
            Stmt::While { .. } => {}
        }
    }
}
