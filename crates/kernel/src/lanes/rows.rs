//! Loop distribution over blocks of rows: what rows compute between the loops along them runs in lanes.
//!
//! ```text
//! for i in 0..n                            for b in 0..n/8, i = 8 b + l
//!   for j in 0..m, s = 0                     for l in 0..8
//!     s = s + a[i][j] * w[j]                   for j in 0..m, s = 0
//!   r = exp(s)                                   s = s + a[i][j] * w[j]
//!   for j in 0..m                              staged[l] = s
//!     y[j] = y[j] + r * a[i][j]              for l in 0..8                 (in lanes)
//!                                              staged[l] = exp(staged[l])
//!                                            for l in 0..8
//!                                              for j in 0..m
//!                                                y[j] = y[j] + staged[l] * a[i][j]
//! ```
//!
//! Loops along long rows have lanes in the row, so that what a row computes from its sum runs once for each row,
//! without lanes. Eight rows share it, and are still in the first cache when the last loop reads them again.
//!
//! **Pieces** of an iteration are its straight-line code with costly operators, and what stands between. Numbers that a
//! later piece uses are staged; constants, indices and elements that nothing writes are computed again.
//!
//! **Conditions**: iterations are independent but for additions, and additions to one buffer, a sum, a buffer of each
//! row's own, and all checks of indices are in one piece each. Rows that are left over come first, whole.
//!
//! Invariants: every number is computed by the same operations. Additions keep their order, but sums that run in lanes.

use super::recurrences::is_costly;
use super::rewrite::{Copier, Copies, Cutter, Loop, defined_in, used};
use super::{Plan, Plans, plans};
use crate::events::{Event, walk};
use crate::kernel::{BufferId, Carried, Class, Instr, Kernel, LANES, Order, Reg, Stmt};
use crate::lanes::products::written;
use crate::prune::prune;
use crate::rebuild::{each_loop, each_statement};
use chainrule_base::Poly;
use chainrule_ops::Semantics;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum trip count, where it is known.
const FEWEST: i64 = 16;

/// Maximum part of the estimated time of a row that is left.
const WORTH: f64 = 0.95;

/// Maximum number of staged numbers.
const MAX_STAGED: usize = 8;

/// Maximum number of events of a loop that is distributed.
const MAX_EVENTS: usize = 120;

/// Distributes loops over rows in `kernel` between whose loops costly work stands. Linear in its size for each level
/// of loops.
pub(crate) fn distribute_rows(kernel: &mut Kernel, semantics: Semantics) {
    if candidates(kernel).is_empty() {
        return;
    }
    let plans = plans(kernel, semantics);
    let worth = worth(kernel, &plans, semantics);
    if !worth.is_empty() {
        write(kernel, &plans.legal, |index| worth.contains(&index));
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}

/// Returns the loops over rows that may be distributed.
fn candidates(kernel: &Kernel) -> BTreeSet<Reg> {
    let mut rows = BTreeSet::new();
    each_loop(&kernel.body, |stmt| {
        rows.extend(index_of_rows(stmt));
        false
    });
    rows
}

/// Returns the loops over rows that are to be distributed in a kernel with these plans: their other pieces then run
/// along rows, not in lanes of several rows.
pub(super) fn worth(kernel: &Kernel, of_kernel: &Plans, semantics: Semantics) -> BTreeSet<Reg> {
    let mut rows = candidates(kernel);
    let Plans { chosen, legal, times: before, .. } = of_kernel;
    each_loop(&kernel.body, |stmt| {
        let Stmt::For { index, body, .. } = stmt else { return false };
        if chosen.contains_key(index) && !rows.contains(index) {
            walk(body).for_each(|event| event.for_each_def(|r| _ = rows.remove(&r)));
        }
        false
    });
    if rows.is_empty() {
        return rows;
    }
    let mut near = kernel.clone();
    let written = write(&mut near, legal, |index| rows.contains(&index));
    if written.is_empty() {
        return BTreeSet::new();
    }
    let Plans { chosen, times: after, .. } = plans(&near, semantics);
    let is_worth = |index: Reg, Written { block, pieces, .. }: &Written| {
        let time = |times: &BTreeMap<Reg, f64>, r: Reg| times.get(&r).copied().unwrap_or(f64::INFINITY);
        pieces.iter().all(|(own, is_costly)| chosen.contains_key(own) == *is_costly)
            && time(&after, *block) <= WORTH * LANES as f64 * time(before, index)
    };
    written.into_iter().filter(|(index, written)| is_worth(*index, written)).map(|(index, _)| index).collect()
}

/// Distributes loops that are `wanted`, if their plans allow it. Returns the new loops, by the index of the old one.
fn write(kernel: &mut Kernel, plans: &BTreeMap<Reg, Plan>, wanted: impl Fn(Reg) -> bool) -> BTreeMap<Reg, Written> {
    let mut body = std::mem::take(&mut kernel.body);
    let mut written = BTreeMap::new();
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body }
            if wanted(index) && !written.contains_key(&index) =>
        {
            let the = Loop { index, count, carried, body };
            match plans.get(&index).and_then(|plan| Pieces::of(kernel, &the, plan)) {
                Some(pieces) => {
                    written.insert(index, write_pieces(&mut Cutter::new(kernel), &the, &pieces, done));
                }
                None => done.push(the.in_order()),
            }
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
    written
}

/// Returns the index of a loop whose iterations have costly straight-line code beside loops, but no such loop inside.
fn index_of_rows(stmt: &Stmt) -> Option<Reg> {
    let Stmt::For { index, count, order: Order::InOrder, body, .. } = stmt else { return None };
    let is_short = count.as_constant().is_some_and(|n| n < FEWEST);
    let has_loops = body.iter().any(|stmt| matches!(stmt, Stmt::For { .. }));
    let mut is_around = false;
    each_loop(body, |inner| {
        is_around |= index_of_rows(inner).is_some();
        true
    });
    (!is_short && !is_around && has_loops && body.iter().any(is_costly_code) && walk(body).count() <= MAX_EVENTS)
        .then_some(*index)
}

/// Returns whether a statement is straight-line code with a costly operator.
fn is_costly_code(stmt: &Stmt) -> bool {
    let is_costly = |instr: &Instr| matches!(instr, Instr::Op { op, .. } if is_costly(*op));
    matches!(stmt, Stmt::Straight(code) if code.iter().any(is_costly))
}

/// A part of an iteration.
#[derive(Default)]
struct Piece {
    body: Vec<Stmt>,
    /// Code of earlier pieces that it repeats.
    again: Vec<Instr>,
    /// Staged numbers that it reads, and those that it computes.
    reads: Vec<Reg>,
    makes: Vec<Reg>,
    /// Sums, by their position.
    sums: Vec<usize>,
}

/// The parts of an iteration, in order.
struct Pieces {
    all: Vec<Piece>,
    /// Numbers that pass from one to another.
    staged: Vec<Reg>,
}

impl Pieces {
    /// Returns the pieces of a loop with this plan, if there are several and their iterations may be interchanged.
    fn of(kernel: &Kernel, the: &Loop, plan: &Plan) -> Option<Self> {
        let mut all: Vec<Piece> = Vec::new();
        let mut was_costly = true;
        for stmt in &the.body {
            let is_costly = is_costly_code(stmt);
            if is_costly || was_costly {
                all.push(Piece::default());
            }
            was_costly = is_costly;
            all.last_mut()?.body.push(stmt.clone());
        }
        let mut this = Self { all, staged: Vec::new() };
        let is_legal = this.all.len() > 1 && this.own_buffers(plan) && this.own_checks() && this.own_sums(the);
        (is_legal && this.stage(kernel, the) && this.staged.len() <= MAX_STAGED).then_some(this)
    }

    /// Returns whether each buffer that is added to, or is an iteration's own, is accessed by one piece.
    fn own_buffers(&self, plan: &Plan) -> bool {
        let mut owners: BTreeMap<BufferId, usize> = BTreeMap::new();
        let mut is_legal = true;
        for (k, piece) in self.all.iter().enumerate() {
            for event in walk(&piece.body) {
                event.for_each_access(|buffer, _| {
                    let mut all = plan.private.iter().chain(&plan.accumulators).chain(&plan.scattered);
                    is_legal &= !all.any(|own| *own == buffer) || *owners.entry(buffer).or_insert(k) == k;
                });
            }
        }
        is_legal
    }

    /// Returns whether at most one piece can fail.
    fn own_checks(&self) -> bool {
        let may_fail = |event: Event<'_>| {
            matches!(
                event,
                Event::Instr(Instr::CheckIndex { .. } | Instr::IntOp { .. } | Instr::External { .. })
                    | Event::While { .. }
            )
        };
        self.all.iter().filter(|piece| walk(&piece.body).any(may_fail)).count() <= 1
    }

    /// Finds the piece of each sum; returns whether there is one for each.
    fn own_sums(&mut self, the: &Loop) -> bool {
        the.carried.iter().enumerate().all(|(k, c)| {
            let reads = |piece: &Piece| piece.body.iter().any(|stmt| used(stmt).contains(&c.var));
            let makes = |piece: &Piece| defined_in(&piece.body).contains(&c.next);
            let mut its = self.all.iter_mut().filter(|piece| reads(piece) || makes(piece));
            match (its.next(), its.next()) {
                (Some(piece), None) if reads(piece) && makes(piece) => {
                    piece.sums.push(k);
                    true
                }
                _ => false,
            }
        })
    }

    /// Finds what passes between pieces; returns whether all of it can.
    fn stage(&mut self, kernel: &Kernel, the: &Loop) -> bool {
        let written = written(&the.body);
        let cheap = |instr: &Instr| match instr {
            Instr::Const { .. } | Instr::Int { .. } => true,
            Instr::Load { buffer, .. } => !written.contains(buffer),
            _ => false,
        };
        // Where each register is defined, and the code that may be repeated.
        let mut made: BTreeMap<Reg, usize> = BTreeMap::new();
        let mut code: Vec<Instr> = Vec::new();
        for k in 0..self.all.len() {
            let mut wanted = BTreeSet::new();
            let own = defined_in(&self.all[k].body);
            self.all[k].body.iter().for_each(|stmt| wanted.extend(used(stmt)));
            wanted.retain(|r| !own.contains(r) && made.contains_key(r));
            let mut again = Vec::new();
            for instr in code.iter().rev() {
                if instr.dst().is_some_and(|dst| wanted.remove(&dst)) {
                    instr.for_each_use(|r| wanted.extend(made.contains_key(&r).then_some(r)));
                    again.push(instr.clone());
                }
            }
            again.reverse();
            self.all[k].again = again;
            for r in &wanted {
                if kernel.regs[*r] != Class::Real {
                    return false;
                }
                let maker = &mut self.all[made[r]].makes;
                if !maker.contains(r) {
                    maker.push(*r);
                    self.staged.push(*r);
                }
            }
            self.all[k].reads = wanted.into_iter().collect();
            made.extend(own.into_iter().map(|r| (r, k)));
            for stmt in &self.all[k].body {
                if let Stmt::Straight(instrs) = stmt {
                    code.extend(instrs.iter().filter(|instr| cheap(instr)).cloned());
                }
            }
        }
        true
    }

    /// Returns the place of a number of row `l` of a block.
    fn at(&self, r: Reg, l: Reg) -> Poly<Reg> {
        let k = self.staged.iter().position(|other| *other == r).unwrap_or(0);
        Poly::var(l).add(&Poly::constant(LANES * k as i64))
    }
}

/// The indices of the loops of a distributed one.
struct Written {
    block: Reg,
    /// With whether the piece is costly.
    pieces: Vec<(Reg, bool)>,
}

/// Emits `the` loop to `out`, with a loop over the rows of a block for each of the pieces.
fn write_pieces(cutter: &mut Cutter<'_>, the: &Loop, pieces: &Pieces, out: &mut Vec<Stmt>) -> Written {
    let (count, first, outer) = cutter.remainder_first(the, LANES, out);
    let place = cutter.kernel.memory(Poly::constant(LANES * pieces.staged.len() as i64));
    let block = cutter.int();
    let mut next: Vec<Reg> = the.carried.iter().map(|c| c.next).collect();
    let mut body = Vec::with_capacity(pieces.all.len());
    let mut loops = Vec::with_capacity(pieces.all.len());
    for piece in &pieces.all {
        let (own, number) = (cutter.int(), cutter.int());
        let by = first.add(&Poly::var(block).scale(LANES)).add(&Poly::var(own));
        let mut before = vec![Instr::Int { dst: number, value: by.clone() }];
        let (regs, no_buffers) = (&mut cutter.kernel.regs, BTreeMap::new());
        let mut map = BTreeMap::from([(the.index, number)]);
        for r in &piece.reads {
            let dst = regs.copy(*r);
            before.push(Instr::Load { dst, buffer: place, at: pieces.at(*r, own) });
            map.insert(*r, dst);
        }
        for k in &piece.sums {
            let c = the.carried[*k];
            map.insert(c.var, regs.copy(c.var));
        }
        let mut copier = Copier { regs, map, index: the.index, by, fresh: true, lane: None, buffers: &no_buffers };
        before.extend(piece.again.iter().map(|instr| copier.instr(instr)).collect::<Vec<_>>());
        let mut inside = vec![Stmt::Straight(before)];
        inside.extend(copier.block(&piece.body));
        let store = |r: &Reg| Instr::Store { buffer: place, at: pieces.at(*r, own), value: copier.of(*r) };
        inside.push(Stmt::Straight(piece.makes.iter().map(store).collect()));
        let sums = piece.sums.iter().map(|k| {
            let c = the.carried[*k];
            Carried { var: copier.of(c.var), init: c.var, next: copier.of(c.next) }
        });
        let carried: Vec<Carried> = sums.collect();
        piece.sums.iter().zip(&carried).for_each(|(k, c)| next[*k] = c.var);
        loops.push((own, piece.body.iter().any(is_costly_code)));
        body.push(Stmt::For { index: own, count: Poly::constant(LANES), carried, order: Order::InOrder, body: inside });
    }
    let carried = outer.into_iter().zip(next).map(|(c, next)| Carried { next, ..c }).collect();
    out.push(Stmt::For { index: block, count, carried, order: Order::InOrder, body });
    Written { block, pieces: loops }
}
