//! Time skewing: several steps of a stencil in one pass over memory.
//!
//! ```text
//! for t in 0..n                    for b in 0..n / (2 k)
//!   for i in 0..h                    for w in 0..(h + 2 k - 2 + r) / r
//!     y[i] = .. x[i - 1], x[i + 1]     for p in 0..k
//!   move to x from y                     for i in rows w r - 2 p .. (w + 1) r - 2 p
//!                                          y[i] = .. x[i - 1], x[i + 1]
//!                                        for i in rows w r - 2 p - 1 .. (w + 1) r - 2 p - 1
//!                                          x[i] = .. y[i - 1], y[i + 1]
//!                                  for t in 2 k (n / (2 k))..n   (as before)
//! ```
//!
//! A step is a list of stages: loops over the rows of arrays, each of which writes its own row and reads rows at most
//! `reach` away. Stage `s` of a block of steps lags `s reach` rows behind the first. While a few rows go through all
//! steps of the block they stay in the second cache, so that memory is read and written once for all these steps.
//!
//! **Order.** Row `i` of stage `s` runs in round `(i + s reach) / r`. If it touches an element that row `j` of an
//! earlier stage `s'` touches, then `j <= i + reach`, hence `j + s' reach <= i + s reach`: that row is in an earlier
//! round, or before it in the same one. All others may run in any order. Rows of one stage keep their order, and
//! loops of one stage have no other conflicts than elements that they write one after the other.
//!
//! Arrays that fit into the caches gain nothing: the sizes at run time decide how many steps a block has, and whether
//! there are blocks. What is left runs as before. Results keep their bits.

mod find;

use super::alternate::Pairs;
use crate::kernel::{BufferId, Instr, Kernel, Order, Reg, Stmt};
use crate::lanes::rewrite::{Copier, Cutter, Loop};
use crate::prune::prune;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::BTreeMap;

/// Number of elements of the arrays from which skewing pays: they do not fit into the third cache, or into the part of
/// it that other cores leave.
const LARGE: i64 = 1 << 20;

/// Number of elements that a block may touch at one time: half of the second cache.
const IN_CACHE: i64 = 1 << 16;

/// Minimum number of rows that fit for a block.
const FEWEST_ROWS: i64 = 8;

/// Maximum number of periods in a block.
const MOST_PERIODS: i64 = 16;

/// Minimum number of periods in a block.
const FEWEST_PERIODS: i64 = 2;

/// A loop over the steps of a stencil.
struct Steps {
    /// Stages of a step: positions of their loops in the body.
    stages: Vec<Vec<usize>>,
    /// First row that each loop writes, by its position.
    first: BTreeMap<usize, Poly<Reg>>,
    /// Arrays that alternate from step to step, moved at the end of the body.
    pairs: Pairs,
    /// Number of arrays.
    arrays: i64,
    /// Buffers that each row writes before it reads them.
    private: Vec<BufferId>,
    /// Length of a row.
    row: Poly<Reg>,
    /// Number of rows of each array.
    rows: Poly<Reg>,
    /// Distance of the farthest row that is read.
    reach: i64,
}

impl Steps {
    /// Returns the number of steps after which the arrays have their roles again.
    fn period(&self) -> i64 {
        if self.pairs.is_empty() { 1 } else { 2 }
    }
}

/// Sizes of blocks, computed before the loop.
struct Blocks {
    /// Number of blocks.
    count: Poly<Reg>,
    /// Number of periods in a block.
    periods: Poly<Reg>,
    /// Number of rows that a stage does in a round.
    rows: Poly<Reg>,
    /// Number of rounds.
    rounds: Poly<Reg>,
}

/// A stage in one round.
struct Turn<'s> {
    /// Positions of its loops.
    loops: &'s [usize],
    /// Whether the pairs of arrays are exchanged.
    is_exchanged: bool,
    /// Number of the step.
    step: Poly<Reg>,
    /// First row, and number of rows.
    rows: (Poly<Reg>, Poly<Reg>),
}

/// Skews the loops over steps of stencils. `O(n d)` for loops nested `d` deep.
pub(crate) fn skew(kernel: &mut Kernel) {
    let mut found = find::find(kernel);
    if found.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut cutter = Cutter::new(kernel);
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if found.contains_key(&index) => {
            let the = Loop { index, count, carried, body };
            if let Some(steps) = found.remove(&index) {
                cutter.skewed(&the, &steps, done);
            }
        }
        stmt => done.push(stmt),
    });
    prune(&mut body, kernel.regs.len(), &kernel.buffers);
    kernel.body = body;
}

impl Cutter<'_> {
    /// Emits the blocks of a loop over steps and the steps that are left over to `out`.
    fn skewed(&mut self, the: &Loop, steps: &Steps, out: &mut Vec<Stmt>) {
        let mut before = Vec::new();
        let blocks = self.sizes(&the.count, steps, &mut before);
        let done = blocks.count.mul(&blocks.periods).scale(steps.period());
        let done = Poly::var(self.int_of(&mut before, done));
        let (block, round, period) = (self.int(), self.int(), self.int());
        let first = (blocks.periods.mul(&Poly::var(block)).add(&Poly::var(period))).scale(steps.period());
        let mut body = Vec::new();
        for half in 0..steps.period() {
            let step = first.add(&Poly::constant(half));
            for (at, stage) in (half * steps.stages.len() as i64..).zip(&steps.stages) {
                let stages = steps.period() * steps.stages.len() as i64;
                let lag = Poly::var(period).scale(stages).add(&Poly::constant(at)).scale(steps.reach);
                let rows = (blocks.rows.mul(&Poly::var(round)).sub(&lag), blocks.rows.clone());
                let turn = Turn { loops: stage, is_exchanged: half == 1, step: step.clone(), rows };
                self.stage(the, steps, &turn, &mut body);
            }
        }
        out.push(Stmt::Straight(before));
        let counts = [(period, blocks.periods), (round, blocks.rounds), (block, blocks.count)];
        for (index, count) in counts {
            body = vec![Stmt::For { index, count, carried: Vec::new(), order: Order::InOrder, body }];
        }
        out.append(&mut body);
        let left = self.int();
        let step = done.add(&Poly::var(left));
        let (number, buffers) = (self.int(), BTreeMap::new());
        let map = BTreeMap::from([(the.index, number)]);
        let regs = &mut self.kernel.regs;
        let mut copier =
            Copier { regs, map, index: the.index, by: step.clone(), fresh: false, lane: None, buffers: &buffers };
        let mut body = vec![Stmt::Straight(vec![Instr::Int { dst: number, value: step }])];
        body.extend(copier.block(&the.body));
        let count = the.count.sub(&done);
        out.push(Stmt::For { index: left, count, carried: Vec::new(), order: Order::InOrder, body });
    }

    /// Computes the sizes of blocks for `count` steps.
    fn sizes(&mut self, count: &Poly<Reg>, steps: &Steps, before: &mut Vec<Instr>) -> Blocks {
        let number = |n: i64| Poly::constant(n);
        let stages = steps.period() * steps.stages.len() as i64;
        let (zero, one) = (self.int_of(before, number(0)), self.int_of(before, number(1)));
        let all = self.int_of(before, steps.row.mul(&steps.rows).scale(steps.arrays));
        let large = self.int_of(before, number(LARGE));
        let is_large = self.int_op(before, Op::Lt, large, all);

        let across = self.int_of(before, steps.row.scale(steps.arrays));
        let across = self.int_op(before, Op::Max, across, one);
        let (cache, fewest) = (self.int_of(before, number(IN_CACHE)), self.int_of(before, number(FEWEST_ROWS)));
        let fit = self.int_op(before, Op::Quot, cache, across);
        let fit = self.int_op(before, Op::Max, fit, fewest);
        // A quarter of the rows in each round, in fours, which run at once.
        let rows = self.quotient(&Poly::var(fit), 16, before).scale(4);
        let (rows, four) = (self.int_of(before, rows), self.int_of(before, number(4)));
        let rows = self.int_op(before, Op::Max, rows, four);

        let others = Poly::var(fit).sub(&Poly::var(rows));
        let periods = self.quotient(&others, stages * steps.reach, before);
        let periods = self.int_of(before, periods);
        let (least, most) = (self.int_of(before, number(FEWEST_PERIODS)), self.int_of(before, number(MOST_PERIODS)));
        let periods = self.int_op(before, Op::Max, periods, least);
        let periods = self.int_op(before, Op::Min, periods, most);

        let count = self.int_of(before, count.clone());
        let count = self.int_op(before, Op::Max, count, zero);
        let turns = self.quotient(&Poly::var(count), steps.period(), before);
        let turns = self.int_of(before, turns);
        // As few blocks as have room for all periods, of equal lengths.
        let up = self.int_of(before, Poly::var(turns).add(&Poly::var(periods)).sub(&number(1)));
        let blocks = self.int_op(before, Op::Quot, up, periods);
        let blocks = self.int_op(before, Op::Max, blocks, one);
        let periods = self.int_op(before, Op::Quot, turns, blocks);
        let periods = self.int_op(before, Op::Max, periods, least);
        let blocks = self.int_op(before, Op::Quot, turns, periods);
        let blocks = self.int_of(before, Poly::var(blocks).mul(&Poly::var(is_large)));

        let (periods, rows) = (Poly::var(periods), Poly::var(rows));
        let lag = periods.scale(stages).sub(&number(1)).scale(steps.reach);
        let end = steps.rows.add(&lag).add(&rows).sub(&number(1));
        let (end, per_round) = (self.int_of(before, end), self.int_of(before, rows.clone()));
        let rounds = Poly::var(self.int_op(before, Op::Quot, end, per_round));
        Blocks { count: Poly::var(blocks), periods, rows, rounds }
    }

    /// Emits the rows of a stage in one round to `out`.
    fn stage(&mut self, the: &Loop, steps: &Steps, turn: &Turn<'_>, out: &mut Vec<Stmt>) {
        let Turn { loops, is_exchanged, step, rows } = turn;
        let exchanged = steps.pairs.iter().filter(|_| *is_exchanged).flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let mut buffers: BTreeMap<BufferId, BufferId> = exchanged.collect();
        // The copy has names of its own for them, since two of them may have their memory in turn.
        let all = &mut self.kernel.buffers;
        buffers.extend(steps.private.iter().map(|id| (*id, all.push(all[*id].clone()))));
        let number = self.int();
        let mut map = BTreeMap::from([(the.index, number)]);
        out.push(Stmt::Straight(vec![Instr::Int { dst: number, value: step.clone() }]));
        for (at, stmt) in the.body.iter().enumerate() {
            match stmt {
                Stmt::Straight(_) => {
                    let (regs, by) = (&mut self.kernel.regs, Poly::var(number));
                    let mut copier =
                        Copier { regs, map, index: the.index, by, fresh: true, lane: None, buffers: &buffers };
                    out.extend(copier.block(std::slice::from_ref(stmt)));
                    map = copier.map;
                }
                Stmt::For { index, count, body, .. } if loops.contains(&at) => {
                    let Some(first) = steps.first.get(&at) else { continue };
                    let by_map = |p: &Poly<Reg>| p.substitute(|r| Poly::var(map.get(&r).copied().unwrap_or(r)));
                    let (count, first) = (by_map(count), by_map(first));
                    let mut before = Vec::new();
                    let begin = rows.0.sub(&first);
                    let (zero, count) = (self.int_of(&mut before, Poly::zero()), self.int_of(&mut before, count));
                    let from = self.int_of(&mut before, begin.clone());
                    let from = self.int_op(&mut before, Op::Max, from, zero);
                    let to = self.int_of(&mut before, begin.add(&rows.1));
                    let to = self.int_op(&mut before, Op::Min, to, count);
                    let count = Poly::var(to).sub(&Poly::var(from));
                    out.push(Stmt::Straight(before));
                    out.push(self.iterations((*index, body), (&Poly::var(from), count), map.clone(), &buffers));
                }
                _ => {}
            }
        }
    }
}
