//! Several iterations at once of loops around those that run in lanes, or inside of them: register tiling.
//!
//! In: a nest with a sum inside, one loop of which runs in lanes. Out: another loop of it, unrolled and jammed: each
//! iteration does what several did, and loops inside stand once.
//!
//! ```text
//! for i in 0..n                            for g in 0..n/4
//!   for j in 0..m     (in lanes)             for j in 0..m     (in lanes)
//!     for l in 0..k, s = 0                     for l in 0..k, s0 = 0, s1 = 0, s2 = 0, s3 = 0
//!       s = s + a[i, l] * b[l, j]                s0 = s0 + a[4 g, l] * b[l, j]
//!     c[i, j] = s                                s1 = s1 + a[4 g + 1, l] * b[l, j]
//!                                                ..
//!                                              c[4 g, j] = s0; c[4 g + 1, j] = s1; ..
//!                                          for i in 4 (n/4)..n   (as it was)
//! ```
//!
//! What does not go by the loop's index is read once for all of them: with four blocks of lanes, sixteen sums grow by four
//! elements of one matrix and four of the other.
//!
//! **What may be tiled**: a loop whose iterations do not look at each other ([`super::independence`]), with one loop inside, and
//! inside of that at most one, and so on; what it carries is read after that loop only.
//!
//! Holds: each iteration computes what it computed before, and sums are added in the order in which they were. What is shown of
//! the loop in lanes stays true: its iterations were apart within each iteration of the tiled loop, and those of the tiled
//! loop are apart from each other.

use super::cost::instr_time;
use super::jam::Jam;
use super::panel::Panels;
use super::rewrite::{Cutter, Loop, reads};
use super::{Plan, Spans};
use crate::events::Event;
use crate::kernel::{Carried, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// So many iterations at once at most.
const MOST: i64 = 4;

/// So many sums at once at most: they stay in registers, of which processors with long vectors have twice as many.
const MAX_SUMS: i64 = 16;

/// So many instructions are written at most for what is one iteration then.
const MAX_TILED: i64 = 256;

/// Which part of the time tiling has to leave at most.
const WORTH: f64 = 0.75;

/// What is to be done with a loop that is tiled.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    /// How many iterations are one.
    pub of: i64,
    /// What the loop in it reads from nearby.
    pub panels: Option<Panels>,
}

/// The loops to tile, by their indices.
pub(super) type Tiles = BTreeMap<Reg, Tile>;

/// A counted loop, by its opening and its closing event.
#[derive(Clone, Copy)]
pub(super) struct Nested {
    pub begin: usize,
    pub end: usize,
    pub index: Reg,
}

/// The loops of `kernel` to tile where loops are cut as `chosen`; `legal` are those whose iterations do not look at each other.
/// Linear in `events` for each loop that nests around a sum.
pub(super) fn choose(
    kernel: &Kernel,
    events: &[Event<'_>],
    spans: &Spans,
    legal: &BTreeMap<usize, Plan>,
    chosen: &BTreeMap<Reg, Plan>,
) -> Tiles {
    let mut tiles: Tiles = BTreeMap::new();
    let mut open: Vec<Nested> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::For { index, .. } => {
                let Some(end) = spans.end(at) else { continue };
                open.push(Nested { begin: at, end, index: *index });
                if is_sum(kernel, &events[at..end])
                    && let Some(cut) = open.iter().find(|the| chosen.contains_key(&the.index))
                {
                    let nest = Nest { events, open: &open, cut: *cut, plan: &chosen[&cut.index] };
                    tiles.extend(nest.best(kernel, legal));
                }
            }
            Event::EndFor { .. } => {
                open.pop();
            }
            _ => {}
        }
    }
    tiles
}

/// Whether a loop carries numbers, and has nothing but instructions inside.
fn is_sum(kernel: &Kernel, events: &[Event<'_>]) -> bool {
    let [Event::For { carried, order: Order::InOrder, .. }, body @ ..] = events else { return false };
    !carried.is_empty()
        && carried.iter().all(|c| kernel.regs[c.var] == Class::Real)
        && body.iter().all(|event| matches!(event, Event::Instr(_)))
}

/// The loops around a sum, which is the last of them, one of which is to be cut.
pub(super) struct Nest<'n, 'k> {
    pub events: &'n [Event<'k>],
    open: &'n [Nested],
    pub cut: Nested,
    pub plan: &'n Plan,
}

impl Nest<'_, '_> {
    /// The loop that is best tiled, if one is worth it.
    fn best(&self, kernel: &Kernel, legal: &BTreeMap<usize, Plan>) -> Option<(Reg, Tile)> {
        let (sum, around) = self.open.split_last()?;
        let Event::For { carried, .. } = &self.events[sum.begin] else { return None };
        let all = MAX_SUMS / (self.plan.blocks * carried.len() as i64);
        let of = all.min(MOST);
        if of < 2 || !self.plan.scattered.is_empty() {
            return None;
        }
        let mut best: Option<(f64, &Nested)> = None;
        let mut inside = sum;
        for the in around.iter().rev() {
            let may = (legal.get(&the.begin)).is_some_and(|plan| {
                plan.private.is_empty() && plan.accumulators.is_empty() && plan.scattered.is_empty()
            });
            if !self.has_only(the, inside) {
                break;
            }
            inside = the;
            if the.index == self.cut.index || !may || !self.is_enough(the, of) {
                continue;
            }
            let part = self.part(the, sum, of);
            if part <= WORTH && best.is_none_or(|(least, _)| part < least) {
                best = Some((part, the));
            }
        }
        let (_, the) = best?;
        Some((the.index, Tile { of, panels: Panels::of(kernel, self, the, sum) }))
    }

    /// Whether `inside` is all that `the` has inside but for instructions, and what `the` carries is read after it only.
    fn has_only(&self, the: &Nested, inside: &Nested) -> bool {
        let Event::For { carried, .. } = &self.events[the.begin] else { return false };
        let (before, after) = (&self.events[the.begin + 1..inside.begin], &self.events[inside.end + 1..the.end]);
        let mut reads = false;
        for event in &self.events[the.begin + 1..=inside.end] {
            event.for_each_use(|r| reads |= carried.iter().any(|c| c.var == r));
        }
        !reads && before.iter().chain(after).all(|event| matches!(event, Event::Instr(_)))
    }

    /// Whether there are so many iterations of `the`, as far as is known, and what becomes of one is not too much.
    fn is_enough(&self, the: &Nested, of: i64) -> bool {
        let Event::For { count, .. } = &self.events[the.begin] else { return false };
        let n_instrs = (the.end - the.begin) as i64 * of * self.plan.blocks;
        count.as_constant().is_none_or(|n| n >= of) && n_instrs <= MAX_TILED
    }

    /// Which part of the time the sum takes where `of` iterations of `the` are one.
    fn part(&self, the: &Nested, sum: &Nested, of: i64) -> f64 {
        let first = self.cut.begin.min(the.begin);
        let by_cut = self.varying(first, sum.end, self.cut.index);
        let by_tile = self.varying(first, sum.end, the.index);
        let (blocks, of) = (self.plan.blocks as f64, of as f64);
        let (mut before, mut after) = (0.0, 0.0);
        let body = self.events[sum.begin + 1..sum.end].iter();
        let instrs = body.filter_map(|event| if let Event::Instr(instr) = event { Some(*instr) } else { None });
        // Fused with a product, or as long as one.
        let is_added = |product: Reg| {
            instrs.clone().any(
                |instr| matches!(instr, Instr::Op { op: Op::Add | Op::Sub, args, .. } if args[..2].contains(&product)),
            )
        };
        for instr in instrs.clone() {
            let (in_blocks, in_tile) = match instr {
                Instr::Load { buffer, at, .. } => {
                    let goes_by = |varying: &BTreeSet<Reg>| at.vars().iter().any(|r| varying.contains(r));
                    (goes_by(&by_cut) || self.plan.private.contains(buffer), goes_by(&by_tile))
                }
                Instr::Const { .. } | Instr::Int { .. } => continue,
                Instr::Op { dst, op: Op::Mul, .. } if is_added(*dst) => continue,
                _ => (true, true),
            };
            let time = instr_time(instr, None) * if in_blocks { blocks } else { 1.0 };
            before += time * of;
            after += time * if in_tile { of } else { 1.0 };
        }
        after / before
    }

    /// What differs with `index`, of what is defined from one event to another.
    fn varying(&self, from: usize, to: usize, index: Reg) -> BTreeSet<Reg> {
        let mut varying = BTreeSet::from([index]);
        for event in &self.events[from..to] {
            let mut differs = false;
            event.for_each_use(|r| differs |= varying.contains(&r));
            if differs {
                event.for_each_def(|r| {
                    varying.insert(r);
                });
            }
        }
        varying
    }
}

impl Cutter<'_> {
    /// Tiles loops in `body`, and puts what is to be done with loops that are copied to `plans`.
    pub(super) fn tile(&mut self, body: &mut Vec<Stmt>, tiles: &Tiles, plans: &mut BTreeMap<Reg, Plan>) {
        each_statement(body, |stmt, done| match stmt {
            Stmt::For { index, count, carried, order: Order::InOrder, body } if tiles.contains_key(&index) => {
                self.tiled(tiles[&index].of, Loop { index, count, carried, body }, plans, done);
            }
            stmt => done.push(stmt),
        });
    }

    fn tiled(&mut self, of: i64, the: Loop, plans: &mut BTreeMap<Reg, Plan>, out: &mut Vec<Stmt>) {
        let mut before = Vec::new();
        let (tiles, done) = self.blocks(&the.count, of, &mut before);
        let left = the.count.sub(&done);
        let is_all = left.as_constant() == Some(0);
        let tile = self.int();
        let by: Vec<Poly<Reg>> = (0..of).map(|t| Poly::var(tile).scale(of).add(&Poly::constant(t))).collect();
        let mut varying: Vec<BTreeMap<Reg, Reg>> = vec![BTreeMap::new(); by.len()];
        let mut code = Vec::new();
        if reads(&the.body, the.index) {
            for (at, map) in by.iter().zip(&mut varying) {
                map.insert(the.index, self.int_of(&mut code, at.clone()));
            }
        }
        let vars: Vec<Reg> = the.carried.iter().map(|c| if is_all { c.var } else { self.real() }).collect();
        let (nothing, places) = (Plan::default(), BTreeMap::new());
        let regs = &mut self.kernel.regs;
        let mut jam = Jam::new(regs, varying, (the.index, by), Poly::zero(), &places, &nothing);
        let inside = the.body.iter().rposition(|stmt| !matches!(stmt, Stmt::Straight(_))).map_or(0, |at| at + 1);
        let (inside, after) = the.body.split_at(inside);
        let mut body = vec![Stmt::Straight(code)];
        body.extend(jam.block(inside));
        body.push(Stmt::Straight(jam.one_by_one(after, &the.carried, &vars)));
        body.retain(|stmt| !matches!(stmt, Stmt::Straight(code) if code.is_empty()));
        let last = of as usize - 1;
        let carried = (the.carried.iter().zip(&vars))
            .map(|(c, var)| Carried { var: *var, init: c.init, next: jam.of(c.next, last) })
            .collect();
        for (old, new) in jam.loops() {
            if let Some(plan) = plans.get(&old) {
                let sums = plan.sums.iter().flat_map(|group| std::iter::repeat_n(*group, of as usize)).collect();
                plans.insert(new, Plan { sums, ..plan.clone() });
            }
        }
        out.extend((!before.is_empty()).then_some(Stmt::Straight(before)));
        out.push(Stmt::For { index: tile, count: tiles, carried, order: Order::InOrder, body });
        if !is_all {
            let carried = (the.carried.iter().zip(&vars)).map(|(c, var)| Carried { init: *var, ..*c }).collect();
            out.push(self.rest(Loop { carried, ..the }, left, |index| done.add(&Poly::var(index))));
        }
    }
}
