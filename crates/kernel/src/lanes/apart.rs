//! Blocks in which iterations add to elements that others add to as well: a block is taken apart, and what is computed at once is
//! added piece by piece.
//!
//! In: a loop that is cut into blocks, and the buffers to which its iterations add, each where it likes
//! ([`Plan::scattered`]). Out: one block, as loops over its iterations one after the other.
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
//! **What may move**: nothing else looks at what is added to, so an iteration may add after all that it computes, up to the next
//! loop in which it adds. Loops in which iterations add stand around such pieces (they are the same for all iterations); all
//! others stay whole.
//!
//! **What a piece needs of one before it** is computed again where that is an integer, a constant or read from memory that stays,
//! and kept in a place for each lane otherwise. So is what loops around pieces carry.
//!
//! **One element that all iterations add to** is added to once for all: the sums of lanes are put together first.
//!
//! **Several blocks** go from piece to piece together, as loops over blocks: where elements overlap, those that were just written
//! are not read at once, which processors are slow at.
//!
//! **In which order** elements are added to changes, as with sums: only who allows that gets it. It is an ordinary kernel, the same
//! bits however its loops are run.

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
    /// For all iterations of the block, at once or one after the other.
    Run { body: Vec<Stmt>, at_once: bool },
    /// A loop that is the same for all of them.
    Around { index: Reg, count: Poly<Reg>, carried: Vec<Carried>, body: Vec<Piece> },
    /// What such loops have carried of sums over all iterations, put to these.
    Sums,
    /// An element that all iterations add to.
    Total(Addition),
}

/// An element that is added to: read, added to, written.
struct Addition {
    buffer: BufferId,
    at: Poly<Reg>,
    /// What it was.
    before: Reg,
    /// What is added.
    code: Vec<Instr>,
    /// What it is, so far.
    after: Reg,
    is_done: bool,
}

impl Addition {
    /// All of it.
    fn instrs(self) -> Vec<Instr> {
        let Self { buffer, at, before, mut code, after, .. } = self;
        code.insert(0, Instr::Load { dst: before, buffer, at: at.clone() });
        code.push(Instr::Store { buffer, at, value: after });
        code
    }
}

/// Takes an iteration apart.
struct Splitter<'p> {
    plan: &'p Plan,
    index: Reg,
    /// Integers that differ from lane to lane.
    varying: BTreeSet<Reg>,
    /// Those of them that are polynomials of the index and of integers that do not.
    steps: BTreeMap<Reg, Poly<Reg>>,
}

impl<'p> Splitter<'p> {
    fn new(plan: &'p Plan, index: Reg) -> Self {
        Self { plan, index, varying: BTreeSet::from([index]), steps: BTreeMap::new() }
    }

    /// An address over the index, as far as it is a polynomial of it.
    fn resolved(&self, at: &Poly<Reg>) -> Poly<Reg> {
        match at.vars().iter().any(|r| self.steps.contains_key(r)) {
            true => at.substitute(|r| self.steps.get(&r).cloned().unwrap_or_else(|| Poly::var(r))),
            false => at.clone(),
        }
    }

    fn varies(&self, poly: &Poly<Reg>) -> bool {
        poly.vars().iter().any(|r| self.varying.contains(r))
    }

    /// Notes which integers of `body` differ. As deep as loops may nest that are cut.
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

    /// Whether no two iterations have the element at `at` in common.
    fn is_own(&self, at: &Poly<Reg>) -> bool {
        at.split_linear(self.index)
            .is_some_and(|(slope, rest)| slope.as_constant().is_some_and(|slope| slope != 0) && !self.varies(&rest))
    }

    /// Whether iterations add to elements in `stmt`. As deep as loops may nest that are cut.
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

    /// The pieces of `body`. As deep as loops may nest that are cut.
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

    /// Whether `instr` belongs to an addition, where it is put.
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

    /// What iterations compute, and what they add after it: elements of their own at once, one for each buffer, with what they
    /// compute or after it; elements of all of them; and the others one by one.
    fn add(&self, mut plain: Vec<Stmt>, additions: Vec<Addition>, pieces: &mut Vec<Piece>) {
        // With the element of each buffer.
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

/// Tells `see` the registers that `body` reads. As deep as loops may nest that are cut.
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
            Stmt::Copy { to, from, len } => [&to.1, &from.1, len].into_iter().for_each(|p| poly(p, see)),
            Stmt::While { .. } => {}
        }
    }
}

/// The registers that `body` defines for what follows it.
fn defined(body: &[Stmt]) -> impl Iterator<Item = Reg> + '_ {
    body.iter().flat_map(|stmt| match stmt {
        Stmt::Straight(code) => code.iter().filter_map(Instr::dst).collect(),
        stmt => stmt.results(),
    })
}

/// The buffers that `body` writes. As deep as loops may nest that are cut.
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
