//! Loop distribution of recurrences: what iterations compute without carried values is computed in lanes.
//!
//! ```text
//! for i in 0..n, s = z then t            for b in 0..(n + 63) / 64, i = 64 b + l, s' = z then s
//!   e = exp(x[i])                          for l in 0..min(64, n - 64 b)     (in lanes)
//!   t = f(s, e)                              staged[l] = exp(x[i])
//!                                          for l in 0..min(64, n - 64 b), s = s' then t
//!                                            t = f(s, staged[l])
//! ```
//!
//! A loop that carries a value, or reads elements that earlier iterations wrote, runs in sequence, and with it all its
//! exponentials. Those that depend on neither leave it, with all that they need; what only they needed is removed.
//!
//! **Staged numbers** are those that the rest of an iteration uses and that follow from a costly operator. All others
//! are computed again. A loop is distributed if the estimated time of an iteration falls by a tenth or more.
//!
//! **Checks** of indices that are known without carried values are done in both loops. Loops with other checks stay
//! whole: what they guard is not known.
//!
//! Invariant: every number is computed by the same operations, so it keeps its bits.

use super::cost::{LaneTime, STRIDED, instr_time};
use super::independence::legal;
use super::products::written;
use super::rewrite::{Copier, Copies, Cutter, Loop, Stretch, defined_in, used};
use super::{MAX_HEIGHT, Spans};
use crate::choices::choosable;
use crate::events::{Event, events, walk};
use crate::kernel::{Carried, Class, Instr, Kernel, LANES, Order, Reg, Stmt};
use crate::prune::prune;
use crate::rebuild::each_statement;
use crate::weights::WEIGHTS;
use chainrule_base::Poly;
use chainrule_ops::{Op, Semantics};
use std::collections::{BTreeMap, BTreeSet};

/// Iterations of a block.
const BLOCK: i64 = 64;

/// Minimum trip count, where it is known.
const FEWEST: i64 = 16;

/// Maximum number of staged numbers.
const MAX_STAGED: usize = 8;

/// An operator is costly if lanes save so much time of an iteration.
const COSTLY: f64 = 8.0;

/// Minimum part of the time of an iteration that is saved.
const SAVED: f64 = 0.1;

/// Time of an iteration for a staged number: its part of a store of all lanes, and its load.
const STAGED: f64 = 1.25;

/// Code that leaves a recurrence.
struct Leaving {
    /// Instructions, in order.
    code: Vec<Instr>,
    /// Numbers for the rest.
    staged: Vec<Reg>,
}

/// Distributes the recurrences of `kernel` where that pays. `O(n d)` for loops nested `d` deep.
pub(crate) fn distribute_recurrences(kernel: &mut Kernel, semantics: Semantics) {
    let has_costly = |event: &Event<'_>| matches!(event, Event::Instr(Instr::Op { op, .. }) if is_costly(*op));
    if !walk(&kernel.body).any(|event| has_costly(&event)) {
        return;
    }
    let found = recurrences(kernel, semantics);
    if found.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut any = false;
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, body } if found.contains(&index) => {
            let the = Loop { index, count, carried, body };
            match leaving(kernel, &the) {
                Some(found) => {
                    any = true;
                    write(&mut Cutter::new(kernel), the, &found, done);
                }
                None => done.push(the.in_order()),
            }
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
    if any {
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
    }
}

/// Returns the innermost loops, by their indices, that neither run in lanes nor are in a loop that does.
fn recurrences(kernel: &Kernel, semantics: Semantics) -> BTreeSet<Reg> {
    let flat = events(&kernel.body);
    let spans = Spans::of(&flat);
    let choosable = choosable(kernel, &flat);
    let legal = legal(kernel, &flat, &spans, semantics, Order::Lanes, &choosable);
    let mut found = BTreeSet::new();
    // Whether each open loop is in one that may run in lanes, and whether it contains a loop.
    let mut open: Vec<(bool, bool)> = Vec::new();
    for (at, event) in flat.iter().enumerate() {
        match event {
            Event::For { .. } | Event::While { .. } => {
                let is_in_lanes = legal.contains_key(&at) || open.last().is_some_and(|(is_in_lanes, _)| *is_in_lanes);
                open.iter_mut().for_each(|(_, has_loops)| *has_loops = true);
                open.push((is_in_lanes, false));
            }
            Event::EndFor { index, .. } => {
                let height = open.len();
                if open.pop() == Some((false, false)) && height <= MAX_HEIGHT {
                    found.insert(*index);
                }
            }
            Event::EndWhile { .. } => drop(open.pop()),
            _ => {}
        }
    }
    found
}

/// Returns whether lanes save much of the time of an operator.
pub(super) fn is_costly(op: Op) -> bool {
    WEIGHTS.operators.of(op).is_some_and(|weight| weight.plain - weight.lanes / LANES as f64 >= COSTLY)
}

/// The straight-line code of an iteration.
struct Iteration<'a> {
    code: Vec<&'a Instr>,
    /// Positions in `code` of what depends on no carried value, by what they define.
    alone: BTreeMap<Reg, usize>,
    /// Those of them that follow from a costly operator.
    costly: BTreeSet<Reg>,
    /// Registers that everything else uses.
    wanted: Vec<Reg>,
}

impl<'a> Iteration<'a> {
    /// Returns the iteration of a loop; `None` if an index that depends on carried values is checked: what that guards
    /// is not known.
    fn of(the: &'a Loop) -> Option<Self> {
        let mut defined = defined_in(&the.body);
        defined.extend(the.carried.iter().map(|c| c.var));
        let written = written(&the.body);
        let (code, alone, costly) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let mut this = Self { code, alone, costly, wanted: the.carried.iter().map(|c| c.next).collect() };
        for stmt in &the.body {
            let Stmt::Straight(instrs) = stmt else {
                this.wanted.extend(used(stmt));
                continue;
            };
            for instr in instrs {
                let (mut is_alone, mut is_dear) = (true, matches!(instr, Instr::Op { op, .. } if is_costly(*op)));
                instr.for_each_use(|r| {
                    is_alone &= r == the.index || !defined.contains(&r) || this.alone.contains_key(&r);
                    is_dear |= this.costly.contains(&r);
                });
                let stays = match instr {
                    Instr::Store { .. } | Instr::External { .. } => true,
                    Instr::Load { buffer, .. } => written.contains(buffer),
                    Instr::CheckIndex { .. } if !is_alone => return None,
                    _ => false,
                };
                if let Some(dst) = instr.dst().filter(|_| is_alone && !stays) {
                    this.alone.insert(dst, this.code.len());
                    this.costly.extend(is_dear.then_some(dst));
                } else {
                    instr.for_each_use(|r| this.wanted.push(r));
                }
                this.code.push(instr);
            }
        }
        Some(this)
    }

    /// Returns the numbers to stage, and the positions of what the rest of an iteration computes again.
    fn staged(&self, kernel: &Kernel) -> (BTreeSet<Reg>, BTreeSet<usize>) {
        let (mut staged, mut again) = (BTreeSet::new(), BTreeSet::new());
        let mut wanted = self.wanted.clone();
        while let Some(r) = wanted.pop() {
            let Some(at) = self.alone.get(&r) else { continue };
            match self.costly.contains(&r) && kernel.regs[r] == Class::Real {
                true => _ = staged.insert(r),
                false if again.insert(*at) => self.code[*at].for_each_use(|r| wanted.push(r)),
                false => {}
            }
        }
        (staged, again)
    }

    /// Returns the positions of what computes the `staged` numbers, and of all checks with what they check.
    fn needed(&self, staged: &BTreeSet<Reg>) -> BTreeSet<usize> {
        let mut needed = BTreeSet::new();
        let mut wanted: Vec<Reg> = staged.iter().copied().collect();
        for (at, instr) in self.code.iter().enumerate() {
            if matches!(instr, Instr::CheckIndex { .. }) {
                needed.insert(at);
                instr.for_each_use(|r| wanted.push(r));
            }
        }
        while let Some(r) = wanted.pop() {
            if let Some(at) = self.alone.get(&r)
                && needed.insert(*at)
            {
                self.code[*at].for_each_use(|r| wanted.push(r));
            }
        }
        needed
    }
}

/// Returns what leaves a recurrence, if that pays.
fn leaving(kernel: &Kernel, the: &Loop) -> Option<Leaving> {
    if the.count.as_constant().is_some_and(|n| n < FEWEST) {
        return None;
    }
    let iteration = Iteration::of(the)?;
    let (staged, again) = iteration.staged(kernel);
    if staged.is_empty() || staged.len() > MAX_STAGED {
        return None;
    }
    let leaves = iteration.needed(&staged);
    let mut lanes = LaneTime::new(the.index, WEIGHTS, STRIDED);
    let time = |at: &usize| instr_time(iteration.code[*at], None);
    let gone: f64 =
        leaves.iter().filter(|at| !again.contains(at) && iteration.code[**at].dst().is_some()).map(time).sum();
    let in_lanes: f64 = leaves.iter().map(|at| lanes.time(&kernel.regs, iteration.code[*at], None)).sum();
    let saved = gone - in_lanes / LANES as f64 - STAGED * staged.len() as f64;
    let all: f64 = (0..iteration.code.len()).map(|at| time(&at)).sum();
    (saved >= COSTLY / 2.0 && saved >= SAVED * all).then(|| Leaving {
        code: leaves.iter().map(|at| iteration.code[*at].clone()).collect(),
        staged: staged.into_iter().collect(),
    })
}

/// Emits `the` loop to `out`, without the code that leaves it.
fn write(cutter: &mut Cutter<'_>, the: Loop, found: &Leaving, out: &mut Vec<Stmt>) {
    let place = cutter.kernel.memory(Poly::constant(BLOCK * found.staged.len() as i64));
    let (mut before, mut begin) = (Vec::new(), Vec::new());
    let blocks = cutter.n_stretches(&the.count, BLOCK, &mut before);
    let block = cutter.int();
    let Stretch { first, count } = cutter.nth_stretch(block, &the.count, BLOCK, &mut begin);
    let [ahead, step] = [cutter.int(), cutter.int()];
    let at = |number: usize, index: Reg| Poly::var(index).add(&Poly::constant(BLOCK * number as i64));
    let own_index = |by: &Poly<Reg>| Instr::Int { dst: the.index, value: by.clone() };
    let no_buffers = BTreeMap::new();

    let by = first.add(&Poly::var(ahead));
    let regs = &mut cutter.kernel.regs;
    let mut copier = Copier {
        regs,
        map: BTreeMap::new(),
        index: the.index,
        by: by.clone(),
        fresh: true,
        lane: None,
        buffers: &no_buffers,
    };
    let mut in_lanes = vec![copier.instr(&own_index(&by))];
    in_lanes.extend(found.code.iter().map(|instr| copier.instr(instr)).collect::<Vec<_>>());
    let stores = found.staged.iter().enumerate();
    let stores = stores.map(|(k, r)| Instr::Store { buffer: place, at: at(k, ahead), value: copier.of(*r) });
    in_lanes.extend(stores.collect::<Vec<_>>());

    let staged: BTreeSet<Reg> = found.staged.iter().copied().collect();
    let by = first.add(&Poly::var(step));
    let mut rest = vec![own_index(&by)];
    let loads = found.staged.iter().enumerate();
    rest.extend(loads.map(|(k, r)| Instr::Load { dst: *r, buffer: place, at: at(k, step) }));
    let mut body = the.body;
    for stmt in &mut body {
        if let Stmt::Straight(code) = stmt {
            code.retain(|instr| instr.dst().is_none_or(|dst| !staged.contains(&dst)));
        }
    }
    let regs = &mut cutter.kernel.regs;
    let vars: Vec<Reg> = the.carried.iter().map(|c| regs.copy(c.var)).collect();
    let map = the.carried.iter().zip(&vars).map(|(c, var)| (c.var, *var)).collect();
    let mut copier = Copier { regs, map, index: the.index, by, fresh: false, lane: None, buffers: &no_buffers };
    let mut inside = vec![Stmt::Straight(rest)];
    inside.extend(copier.block(&body));
    let both = the.carried.iter().zip(&vars);
    let inner = both.clone().map(|(c, var)| Carried { var: *var, init: c.var, next: copier.of(c.next) }).collect();
    let outer = both.map(|(c, var)| Carried { next: *var, ..*c }).collect();
    let order = Order::InOrder;
    let blocked = vec![
        Stmt::Straight(begin),
        Stmt::For { index: ahead, count: count.clone(), carried: vec![], order, body: vec![Stmt::Straight(in_lanes)] },
        Stmt::For { index: step, count, carried: inner, order, body: inside },
    ];
    out.extend((!before.is_empty()).then_some(Stmt::Straight(before)));
    out.push(Stmt::For { index: block, count: blocks, carried: outer, order, body: blocked });
}
