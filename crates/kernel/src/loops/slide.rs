//! Sliding windows: loops over rows, one after the other, go through memory together.
//!
//! ```text
//! for i in 0..h                    for w in 0..(h + 1 + r - 1) / r
//!   u[i] = .. x[i], x[i + 1]         for i in rows w r .. (w + 1) r
//! for i in 0..h - 1                    u[i - w r + 1] = .. x[i], x[i + 1]
//!   y[i] = .. u[i], u[i + 1]         for i in rows w r - 1 .. (w + 1) r - 1
//!                                      y[i] = .. u[i - w r + 1], u[i - w r + 2]
//!                                    u[0] = u[r]
//! ```
//!
//! Each loop does a few rows in a round; what it writes is in the cache when the next one reads it. An array that only
//! these loops access needs no memory but for a window of rows: those of a round and those that the next round reads,
//! which move to its begin.
//!
//! **Order.** Iteration `i` of a loop with shift `s` runs in round `(i + s) / r`. If iteration `j` of a later loop,
//! with shift `t`, accesses a row that `i` accesses, and one of them writes it, then `i + s <= j + t`: the shifts are
//! the longest paths of these distances. So `i` is in an earlier round, or in the same one, where its loop comes first.
//! Iterations of one loop keep their order, and carried values go from round to round. Results keep their bits.
//!
//! The sizes decide at run time how many rows a round has, and whether there are rounds: arrays that fit into the first
//! cache gain nothing, nor do rows that do not fit into the second one.

mod find;

use crate::kernel::{BufferId, Carried, Choice, Instr, Kernel, Order, Reg, Stmt};
use crate::lanes::rewrite::{Copier, Copies, Cutter, Loop};
use crate::prune::prune;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use find::{Sequence, Window};
use std::collections::BTreeMap;

/// Number of elements of the arrays from which rounds pay.
const SMALLEST: i64 = 1 << 16;

/// Number of elements that a round should access: they fit into the first cache. Longer rows are done one by one.
const IN_CACHE: i64 = 1 << 12;

/// Maximum number of elements that a round may access: they fit into the second cache.
const MOST: i64 = 1 << 17;

/// Maximum number of rows of a round.
const MOST_ROWS: i64 = 16;

/// Minimum number of elements of the rows of an array, in the mean.
const SHORTEST_ROW: i64 = 16;

/// Sizes of rounds, computed before the loops.
struct Rounds {
    /// Whether there are rounds.
    pays: Reg,
    /// Number of rows of a round.
    rows: Reg,
    /// Number of rounds.
    count: Poly<Reg>,
}

/// Rewrites sequences of loops over rows in rounds. `O(n d)` for loops nested `d` deep.
pub(crate) fn slide(kernel: &mut Kernel) {
    let mut found = find::find(kernel);
    if found.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut cutter = Cutter::new(kernel);
    let mut open: Option<(Sequence, Vec<Loop>)> = None;
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body }
            if open.is_some() || found.contains_key(&index) =>
        {
            let so_far = open.take().or_else(|| Some((found.remove(&index)?, Vec::new())));
            let Some((sequence, mut loops)) = so_far else { return };
            loops.push(Loop { index, count, carried, body });
            if loops.len() == sequence.loops.len() {
                cutter.in_rounds(&sequence, &loops, done);
            } else {
                open = Some((sequence, loops));
            }
        }
        // Instructions between the loops come before them.
        stmt => done.push(stmt),
    });
    prune(&mut body, kernel.regs.len(), &kernel.buffers);
    kernel.body = body;
}

impl Cutter<'_> {
    /// Emits loops in rounds, and as they are for sizes where that does not pay, to `out`.
    fn in_rounds(&mut self, sequence: &Sequence, loops: &[Loop], out: &mut Vec<Stmt>) {
        let mut before = Vec::new();
        let rounds = self.rounds_for(sequence, loops, &mut before);
        let (then, sums) = self.rounds_of(sequence, loops, &rounds);

        let (index, buffers) = (self.int(), BTreeMap::new());
        let (regs, by) = (&mut self.kernel.regs, Poly::var(index));
        let mut copier = Copier { regs, map: BTreeMap::new(), index, by, fresh: true, lane: None, buffers: &buffers };
        let mut otherwise = Vec::new();
        for Loop { index, count, carried, body } in loops {
            let (index, count, carried) = (*index, count.clone(), carried.clone());
            let the = Stmt::For { index, count, carried, order: Order::InOrder, body: body.clone() };
            otherwise.extend(copier.block(&[the]));
        }
        let carried = loops.iter().flat_map(|the| &the.carried).zip(sums);
        let choices = carried.map(|(c, then)| Choice { var: c.var, then, otherwise: copier.of(c.var) }).collect();
        out.push(Stmt::Straight(before));
        out.push(Stmt::If { condition: rounds.pays, then, otherwise, choices });
    }

    /// Computes the sizes of rounds.
    fn rounds_for(&mut self, sequence: &Sequence, loops: &[Loop], before: &mut Vec<Instr>) -> Rounds {
        let lag = sequence.lag();
        let one = self.int_of(before, Poly::constant(1));
        // No number may be too large for arrays without elements: each is at most the limit that it is compared with.
        let lens = sequence.arrays.keys().map(|array| self.kernel.buffers[*array].len.clone()).collect();
        let all = self.sum_of(lens, SMALLEST, before);
        let row = self.sum_of(sequence.arrays.values().cloned().collect(), MOST + 1, before);
        let at_least_one = self.int_op(before, Op::Max, row, one);
        let cache = self.int_of(before, Poly::constant(IN_CACHE));
        let fit = self.int_op(before, Op::Quot, cache, at_least_one);
        let rows = self.int_of(before, Poly::var(fit).sub(&Poly::constant(lag)));
        let most = self.int_of(before, Poly::constant(MOST_ROWS));
        let rows = self.int_op(before, Op::Min, rows, most);
        let rows = self.int_op(before, Op::Max, rows, one);

        let shortest = SHORTEST_ROW * sequence.arrays.len() as i64;
        let left = Poly::constant(MOST).sub(&Poly::var(row).scale(lag + 1));
        let mut asked = vec![(Poly::var(all), SMALLEST), (Poly::var(row), shortest), (left, 0)];
        for Window { buffer, row, kept, .. } in &sequence.windows {
            let row = self.sum_of(vec![row.clone()], MOST + 1, before);
            let window = Poly::var(row).mul(&Poly::var(rows).add(&Poly::constant(*kept)));
            asked.push((self.kernel.buffers[*buffer].len.sub(&window), 0));
        }
        let pays = self.all_reach(&asked, before).unwrap_or(one);

        let mut ends: Vec<Poly<Reg>> = Vec::new();
        for (the, (_, shift)) in loops.iter().zip(&sequence.loops) {
            let end = the.count.add(&Poly::constant(*shift));
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        let ends: Vec<Reg> = ends.into_iter().map(|end| self.int_of(before, end)).collect();
        let end = ends.into_iter().reduce(|a, b| self.int_op(before, Op::Max, a, b)).unwrap_or(one);
        let end = self.int_of(before, Poly::var(end).add(&Poly::var(rows)).sub(&Poly::constant(1)));
        let count = Poly::var(self.int_op(before, Op::Quot, end, rows));
        Rounds { pays, rows, count }
    }

    /// Returns the sum of numbers, each of which counts as `limit` at most.
    fn sum_of(&mut self, mut numbers: Vec<Poly<Reg>>, limit: i64, before: &mut Vec<Instr>) -> Reg {
        let limit = self.int_of(before, Poly::constant(limit));
        let mut sum = Poly::zero();
        while let Some(number) = numbers.pop() {
            let n = numbers.len();
            numbers.retain(|other| *other != number);
            let times = (n - numbers.len()) as i64 + 1;
            let number = self.int_of(before, number);
            let number = self.int_op(before, Op::Min, number, limit);
            sum = sum.add(&Poly::var(number).scale(times));
        }
        self.int_of(before, sum)
    }

    /// Returns the loop over rounds, and the carried values at its end, loop by loop.
    fn rounds_of(&mut self, sequence: &Sequence, loops: &[Loop], rounds: &Rounds) -> (Vec<Stmt>, Vec<Reg>) {
        let round = self.int();
        let first = Poly::var(round).mul(&Poly::var(rounds.rows));
        // The copy has names of its own for them, since only it accesses them.
        let all = &mut self.kernel.buffers;
        let own = sequence.private.iter().chain(sequence.windows.iter().map(|window| &window.buffer));
        let buffers: BTreeMap<BufferId, BufferId> = own.map(|id| (*id, all.push(all[*id].clone()))).collect();
        let mut begin = Vec::new();
        let mut begins: BTreeMap<BufferId, Poly<Reg>> = BTreeMap::new();
        for window in &sequence.windows {
            let at = first.add(&Poly::constant(window.first)).mul(&window.row);
            begins.insert(buffers[&window.buffer], Poly::var(self.int_of(&mut begin, at)));
        }
        let mut body = vec![Stmt::Straight(begin)];
        let (mut carried, mut sums) = (Vec::new(), Vec::new());
        for (the, (_, shift)) in loops.iter().zip(&sequence.loops) {
            let from = first.sub(&Poly::constant(*shift));
            let so_far: Vec<Reg> = the.carried.iter().map(|c| self.kernel.regs.copy(c.var)).collect();
            let turn = self.turn(the, (&from, rounds.rows), (&so_far, &buffers), &mut body);
            sums.extend(&so_far);
            let each = the.carried.iter().zip(so_far).zip(turn);
            carried.extend(each.map(|((c, var), next)| Carried { var, init: c.init, next }));
        }
        each_element(&mut body, |buffer, at| {
            if let Some(begin) = begins.get(buffer) {
                *at = at.sub(begin);
            }
        });
        for Window { buffer, row, kept, .. } in sequence.windows.iter().filter(|window| window.kept > 0) {
            let k = self.int();
            let (to, from) = (Poly::var(k).mul(row), Poly::var(rounds.rows).add(&Poly::var(k)).mul(row));
            let buffer = buffers[buffer];
            let copy = Stmt::Copy { to: (buffer, to), from: (buffer, from), len: row.clone(), is_move: false };
            let (count, carried) = (Poly::constant(*kept), Vec::new());
            body.push(Stmt::For { index: k, count, carried, order: Order::InOrder, body: vec![copy] });
        }
        let count = rounds.count.clone();
        (vec![Stmt::For { index: round, count, carried, order: Order::InOrder, body }], sums)
    }

    /// Emits the iterations of a loop in a round, `rows` of them from `from` on where it has so many, to `out`. Returns
    /// the carried values, which were `so_far`.
    fn turn(
        &mut self,
        the: &Loop,
        (from, rows): (&Poly<Reg>, Reg),
        (so_far, buffers): (&[Reg], &BTreeMap<BufferId, BufferId>),
        out: &mut Vec<Stmt>,
    ) -> Vec<Reg> {
        let mut before = Vec::new();
        let zero = self.int_of(&mut before, Poly::zero());
        let count = self.int_of(&mut before, the.count.clone());
        let count = self.int_op(&mut before, Op::Max, count, zero);
        let to = self.int_of(&mut before, from.add(&Poly::var(rows)));
        let to = self.int_op(&mut before, Op::Min, to, count);
        let from = self.int_of(&mut before, from.clone());
        let from = self.int_op(&mut before, Op::Max, from, zero);
        out.push(Stmt::Straight(before));

        let (own, number) = (self.int(), self.int());
        let by = Poly::var(from).add(&Poly::var(own));
        let results: Vec<Reg> = the.carried.iter().map(|c| self.kernel.regs.copy(c.var)).collect();
        let vars = the.carried.iter().map(|c| c.var).zip(results.iter().copied());
        let map = vars.chain([(the.index, number)]).collect();
        let mut body = vec![Stmt::Straight(vec![Instr::Int { dst: number, value: by.clone() }])];
        let regs = &mut self.kernel.regs;
        let mut copier = Copier { regs, map, index: the.index, by, fresh: true, lane: None, buffers };
        body.extend(copier.block(&the.body));
        let each = the.carried.iter().zip(&results).zip(so_far);
        let carried =
            each.map(|((c, var), init)| Carried { var: *var, init: *init, next: copier.of(c.next) }).collect();
        let count = Poly::var(to).sub(&Poly::var(from));
        out.push(Stmt::For { index: own, count, carried, order: Order::InOrder, body });
        results
    }
}

/// Calls `see` with the buffer and the address of each element and each copy in `body`.
fn each_element(body: &mut [Stmt], mut see: impl FnMut(&BufferId, &mut Poly<Reg>)) {
    let mut open: Vec<&mut Stmt> = body.iter_mut().collect();
    while let Some(stmt) = open.pop() {
        match stmt {
            Stmt::Straight(code) => {
                for instr in code {
                    if let Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. } = instr {
                        see(buffer, at);
                    }
                }
            }
            Stmt::Copy { to, from, .. } => {
                see(&to.0, &mut to.1);
                see(&from.0, &mut from.1);
            }
            Stmt::For { body, .. } => open.extend(body),
            Stmt::While { condition, body, .. } => open.extend(condition.iter_mut().chain(body)),
            Stmt::If { then, otherwise, .. } => open.extend(then.iter_mut().chain(otherwise)),
        }
    }
}
