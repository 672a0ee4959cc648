//! Register tiling: unroll-and-jam of loops around lane loops, or inside of them.
//!
//! In: a nest with a sum inside, one loop of which runs in lanes. Out: another loop of the nest unrolled and jammed, so
//! that an iteration does the work of several, with each inner loop once.
//!
//! ```text
//! for i in 0..n                            r = n - 4 (n/4)
//!   for j in 0..m     (in lanes)           for i in 0..r   (as it was)
//!     for l in 0..k, s = 0                 for g in 0..n/4
//!       s = s + a[i, l] * b[l, j]            for j in 0..m     (in lanes)
//!     c[i, j] = s                              for l in 0..k, s0 = 0, s1 = 0, s2 = 0, s3 = 0
//!                                                s0 = s0 + a[r + 4 g, l] * b[l, j]
//!                                                s1 = s1 + a[r + 4 g + 1, l] * b[l, j]
//!                                                ..
//!                                              c[r + 4 g, j] = s0; c[r + 4 g + 1, j] = s1; ..
//! ```
//!
//! Values that do not depend on the loop's index are loaded once for all: with four blocks of lanes, sixteen sums use
//! four elements of one matrix and four of the other.
//!
//! Elements that all iterations add to are loaded once, added to by each, and stored once, as in blocks of lanes
//! ([`super::jam`]).
//!
//! **Conditions**: the iterations of the loop are independent ([`super::independence`]) except for additions. It
//! contains only instructions and loops, with lane loops innermost or around the innermost, and no inner loop needs its
//! carried values: operations that do are moved behind the loops.
//!
//! Invariants: each iteration computes the same values, and sums keep their order. The lane loop stays legal: its
//! iterations are independent within each iteration of the tiled loop, and iterations of the tiled loop are independent
//! of each other.

mod choose;

pub(super) use choose::choose;

use super::Plan;
use super::jam::Jam;
use super::panel::Panels;
use super::rewrite::{Copier, Copies, Cutter, Loop, reads};
use crate::kernel::{BufferId, Carried, Instr, Order, Reg, Stmt};
use crate::rebuild::{each_statement, is_nothing};
use chainrule_base::Poly;
use std::collections::{BTreeMap, BTreeSet};

/// Tiling of a loop.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    /// Number of iterations in a tile.
    pub of: i64,
    /// Buffers that all of them add to.
    pub added: BTreeSet<BufferId>,
    /// Panels that the inner loop reads.
    pub panels: Option<Panels>,
}

/// Groups of consecutive iterations.
struct Groups {
    /// Number of iterations in a group.
    of: i64,
    /// Number of groups.
    count: Poly<Reg>,
    /// First iteration of the first group.
    first: Poly<Reg>,
    /// Carried values of the loop over groups.
    carried: Vec<Carried>,
}

/// Loops to tile, by their indices.
pub(super) type Tiles = BTreeMap<Reg, Tile>;

/// A counted loop, by its opening and its closing event.
#[derive(Clone, Copy)]
pub(super) struct Nested {
    pub begin: usize,
    pub end: usize,
    pub index: Reg,
}

/// Returns a body up to its last inner loop, without the operations that need carried values, and what follows.
fn sums_last(body: &[Stmt], carried: &[Carried]) -> (Vec<Stmt>, Vec<Stmt>) {
    let inside = body.iter().rposition(|stmt| !matches!(stmt, Stmt::Straight(_))).map_or(0, |at| at + 1);
    let (inside, after) = body.split_at(inside);
    let mut summed: BTreeSet<Reg> = carried.iter().map(|c| c.var).collect();
    let mut moved = Vec::new();
    let mut inside = inside.to_vec();
    for stmt in &mut inside {
        let Stmt::Straight(code) = stmt else { continue };
        let (later, now): (Vec<Instr>, Vec<Instr>) = std::mem::take(code).into_iter().partition(|instr| {
            let mut reads = false;
            instr.for_each_use(|r| reads |= summed.contains(&r));
            summed.extend(instr.dst().filter(|_| reads));
            reads
        });
        *code = now;
        moved.extend(later);
    }
    (inside, [&[Stmt::Straight(moved)], after].concat())
}

impl Cutter<'_> {
    /// Tiles loops in `body`, and adds plans for copied loops to `plans`.
    pub(super) fn tile(&mut self, body: &mut Vec<Stmt>, tiles: &Tiles, plans: &mut BTreeMap<Reg, Plan>) {
        each_statement(body, |stmt, done| match stmt {
            Stmt::For { index, count, carried, order: Order::InOrder, body } if tiles.contains_key(&index) => {
                let the = Loop { index, count, carried, body };
                self.tiled(&tiles[&index], &the, plans, done);
            }
            stmt => done.push(stmt),
        });
    }

    fn tiled(&mut self, tile: &Tile, the: &Loop, plans: &mut BTreeMap<Reg, Plan>, out: &mut Vec<Stmt>) {
        let n = the.count.as_constant().filter(|_| the.carried.is_empty());
        let left = n.map_or(0, |n| n.rem_euclid(tile.of));
        let Some(n) = n.filter(|_| left > 1) else {
            let (count, first, carried) = self.remainder_first(the, tile.of, out);
            self.grouped(tile, the, Groups { of: tile.of, count, first, carried }, plans, out);
            return;
        };
        // The remainder is a smaller tile.
        for (of, count, first) in [(left, 1, 0), (tile.of, n / tile.of, left)] {
            let (count, first) = (Poly::constant(count), Poly::constant(first));
            self.grouped(tile, the, Groups { of, count, first, carried: Vec::new() }, plans, out);
        }
    }

    fn grouped(
        &mut self,
        tile: &Tile,
        the: &Loop,
        groups: Groups,
        plans: &mut BTreeMap<Reg, Plan>,
        out: &mut Vec<Stmt>,
    ) {
        let Groups { of, count, first, mut carried } = groups;
        let added = Plan { accumulators: tile.added.iter().copied().collect(), ..Plan::default() };
        let group = self.int();
        let by: Vec<Poly<Reg>> =
            (0..of).map(|t| first.add(&Poly::var(group).scale(of)).add(&Poly::constant(t))).collect();
        let mut varying: Vec<BTreeMap<Reg, Reg>> = vec![BTreeMap::new(); by.len()];
        let mut code = Vec::new();
        if reads(&the.body, the.index) {
            for (at, map) in by.iter().zip(&mut varying) {
                map.insert(the.index, self.int_of(&mut code, at.clone()));
            }
        }
        let places = BTreeMap::new();
        let regs = &mut self.kernel.regs;
        let mut jam = Jam {
            regs,
            varying,
            uniform: BTreeMap::new(),
            index: the.index,
            by,
            lane: Poly::zero(),
            spread: &places,
            plan: &added,
        };
        let (inside, after) = sums_last(&the.body, &carried);
        let mut body = vec![Stmt::Straight(code)];
        body.extend(jam.block(&inside));
        body.push(Stmt::Straight(jam.one_by_one(&after, &carried)));
        body.retain(|stmt| !is_nothing(stmt));
        for c in &mut carried {
            c.next = jam.of(c.next, of as usize - 1);
        }
        for (old, new) in jam.uniform() {
            if let Some(plan) = plans.get(&old) {
                let sums = plan.sums.iter().flat_map(|group| std::iter::repeat_n(*group, of as usize)).collect();
                plans.insert(new, Plan { sums, ..plan.clone() });
            }
        }
        out.push(Stmt::For { index: group, count, carried, order: Order::InOrder, body });
    }

    /// Emits the iterations that groups of `of` leave over to `out`, with their original indices. Returns the number of
    /// groups, the first iteration of the first group, and the carried values of the loop over groups.
    pub(super) fn remainder_first(
        &mut self,
        the: &Loop,
        of: i64,
        out: &mut Vec<Stmt>,
    ) -> (Poly<Reg>, Poly<Reg>, Vec<Carried>) {
        let mut before = Vec::new();
        let (groups, done) = self.blocks(&the.count, of, &mut before);
        let left = the.count.sub(&done);
        let first = match left.as_constant() {
            Some(left) => Poly::constant(left),
            None => Poly::var(self.int_of(&mut before, left.clone())),
        };
        out.extend((!before.is_empty()).then_some(Stmt::Straight(before)));
        let mut carried = the.carried.clone();
        if first.as_constant() != Some(0) {
            for c in &mut carried {
                c.init = self.real();
            }
            out.push(self.alone_first(the, left, &carried));
        }
        (groups, first, carried)
    }

    /// Returns the first `count` iterations unchanged; their carried values are the initial values of `then`.
    fn alone_first(&mut self, the: &Loop, count: Poly<Reg>, then: &[Carried]) -> Stmt {
        let map = the.carried.iter().zip(then).map(|(c, then)| (c.var, then.init)).collect();
        let (regs, buffers, by) = (&mut self.kernel.regs, BTreeMap::new(), Poly::var(the.index));
        let mut copier = Copier { regs, map, index: the.index, by, fresh: false, lane: None, buffers: &buffers };
        let body = copier.block(&the.body);
        let carried = (the.carried.iter())
            .map(|c| Carried { var: copier.of(c.var), init: c.init, next: copier.of(c.next) })
            .collect();
        Stmt::For { index: the.index, count, carried, order: Order::InOrder, body }
    }
}
