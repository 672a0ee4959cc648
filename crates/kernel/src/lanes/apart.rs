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

use super::Plan;
use super::independence::Group;
use super::jam::partial_at;
use super::rewrite::{Copier, Copies, Cutter, Loop, at_once, reads};
use crate::kernel::{BufferId, Carried, Class, Instr, LANES, Order, Reg, Stmt};
use chainrule_base::{Arena, Poly};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// How many blocks go from piece to piece together at most.
const BLOCKS: i64 = 16;

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

/// Where a number goes.
enum Target {
    /// The place of this register.
    Place(Reg),
    /// The partial sum of this number.
    Sum(usize),
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
}

impl Splitter<'_> {
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
                additions.push(Addition { buffer: *buffer, at: at.clone(), before, code, after, is_done: false });
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
    body.iter().flat_map(|stmt| -> Vec<Reg> {
        match stmt {
            Stmt::Straight(code) => code.iter().filter_map(Instr::dst).collect(),
            Stmt::For { carried, .. } => carried.iter().map(|c| c.var).collect(),
            Stmt::If { choices, .. } => choices.iter().map(|c| c.var).collect(),
            Stmt::Copy { .. } | Stmt::While { .. } => Vec::new(),
        }
    })
}

/// How pieces get what others have computed.
#[derive(Default)]
struct Supply {
    /// What is computed again, in the order of the program.
    again: Vec<Instr>,
    /// By register, which of `again` makes it.
    made: BTreeMap<Reg, usize>,
    /// The places of the others that a piece needs of another one.
    places: BTreeMap<Reg, i64>,
    /// Numbers that pieces define, and the piece; loops around define what they carry, in none.
    home: BTreeMap<Reg, Option<usize>>,
    /// How many runs there are.
    runs: usize,
}

impl Supply {
    /// Learns what the pieces define. `stays`: whether a buffer is not written in the loop.
    fn define(&mut self, pieces: &[Piece], real: &impl Fn(Reg) -> bool, stays: &impl Fn(BufferId) -> bool) {
        for piece in pieces {
            match piece {
                Piece::Run { body, .. } => {
                    let code = body.iter().filter_map(|stmt| match stmt {
                        Stmt::Straight(code) => Some(code),
                        _ => None,
                    });
                    for instr in code.flatten() {
                        let is_again = match instr {
                            Instr::Const { .. } | Instr::Int { .. } | Instr::IntOp { .. } | Instr::ToReal { .. } => {
                                true
                            }
                            Instr::Load { buffer, .. } => stays(*buffer),
                            Instr::Op { dst, .. } => !real(*dst),
                            _ => false,
                        };
                        if let Some(dst) = instr.dst().filter(|_| is_again) {
                            self.made.insert(dst, self.again.len());
                            self.again.push(instr.clone());
                        }
                    }
                    let run = self.runs;
                    self.home.extend(defined(body).map(|r| (r, Some(run))));
                    self.runs += 1;
                }
                Piece::Around { carried, body, .. } => {
                    self.home.extend(carried.iter().map(|c| (c.var, None)));
                    self.define(body, real, stays);
                }
                Piece::Sums | Piece::Total(_) => {}
            }
        }
    }

    /// What has to be computed again, in order, and the numbers that have to be kept for what is in `wanted`, where `has` tells
    /// what is there.
    fn needs(&self, wanted: Vec<Reg>, has: impl Fn(Reg) -> bool) -> (BTreeSet<usize>, BTreeSet<Reg>) {
        let (mut again, mut kept, mut todo) = (BTreeSet::new(), BTreeSet::new(), wanted);
        while let Some(r) = todo.pop() {
            if has(r) {
                continue;
            }
            match self.made.get(&r) {
                Some(at) => {
                    if again.insert(*at) {
                        self.again[*at].for_each_use(|r| todo.push(r));
                    }
                }
                None => {
                    if self.home.contains_key(&r) {
                        kept.insert(r);
                    }
                }
            }
        }
        (again, kept)
    }

    /// Whether a loop around pieces carries `r`.
    fn is_carried(&self, r: Reg) -> bool {
        self.home.get(&r).is_some_and(Option::is_none)
    }

    /// What a run needs.
    fn of_run(&self, run: usize, body: &[Stmt]) -> (BTreeSet<usize>, BTreeSet<Reg>) {
        let mut wanted = Vec::new();
        uses(body, &mut |r| wanted.push(r));
        self.needs(wanted, |r| self.home.get(&r) == Some(&Some(run)))
    }

    /// What an addition to an element of all iterations needs.
    fn of_total(&self, addition: &Addition) -> (BTreeSet<usize>, BTreeSet<Reg>) {
        let mut wanted = Vec::new();
        addition.code.iter().for_each(|instr| instr.for_each_use(|r| wanted.push(r)));
        self.needs(wanted, |_| false)
    }

    /// Gives places to what is kept.
    fn place(&mut self, pieces: &[Piece], run: &mut usize) {
        let mut kept = BTreeSet::new();
        for piece in pieces {
            match piece {
                Piece::Run { body, .. } => {
                    kept.extend(self.of_run(*run, body).1);
                    *run += 1;
                }
                Piece::Around { carried, body, .. } => {
                    let moved: Vec<Reg> = carried.iter().flat_map(|c| [c.init, c.next]).collect();
                    kept.extend(self.needs(moved, |_| false).1);
                    kept.extend(carried.iter().map(|c| c.var));
                    self.place(body, run);
                }
                Piece::Sums => {}
                Piece::Total(addition) => kept.extend(self.of_total(addition).1),
            }
        }
        for r in kept {
            let next = self.places.len() as i64;
            self.places.entry(r).or_insert(next);
        }
    }
}

/// An iteration that is taken apart.
pub(super) struct Apart {
    pieces: Vec<Piece>,
    supply: Supply,
    sums: Vec<Group>,
    /// Where what is kept is.
    places: BufferId,
    /// How many blocks it has room for.
    blocks: i64,
}

/// Iterations that go from piece to piece together.
pub(super) struct Round {
    /// The index of the first one.
    pub first: Poly<Reg>,
    /// How many there are in a block.
    pub lanes: Poly<Reg>,
    /// How many blocks there are, if not one.
    pub blocks: Option<Poly<Reg>>,
}

/// A round that is being written.
struct Block<'a> {
    the: &'a Loop,
    apart: &'a Apart,
    round: &'a Round,
    spread: &'a BTreeMap<BufferId, BufferId>,
    /// Where partial sums are.
    partial: Option<BufferId>,
    /// The indices of loops around pieces.
    around: BTreeMap<Reg, Reg>,
    run: usize,
}

impl Cutter<'_> {
    /// An iteration of `the` loop taken apart, where iterations add to elements that others add to; `taken` as in
    /// [`Self::buffer`].
    pub(super) fn taken_apart(&mut self, plan: &Plan, the: &Loop, taken: &mut Vec<Poly<Reg>>) -> Option<Apart> {
        if plan.scattered.is_empty() {
            return None;
        }
        let classes = &self.kernel.regs;
        let mut splitter = Splitter { plan, index: the.index, varying: BTreeSet::from([the.index]) };
        splitter.learn(classes, &the.body);
        let mut pieces = splitter.split(&the.body);
        let mut written = BTreeSet::new();
        writes(&the.body, &mut written);
        let mut supply = Supply::default();
        supply.define(&pieces, &|r| classes[r] == Class::Real, &|buffer| !written.contains(&buffer));
        if the.carried.iter().any(|c| supply.is_carried(c.next)) {
            pieces.push(Piece::Sums);
        }
        supply.place(&pieces, &mut 0);
        // What iterations have for themselves has room for one block.
        let most = the.count.as_constant().map_or(BLOCKS, |n| (n / LANES).clamp(1, BLOCKS));
        let blocks = if plan.private.is_empty() { most } else { 1 };
        // One more for the sums of lanes.
        let places = self.buffer(Poly::constant(LANES * blocks * (supply.places.len() as i64 + 1)), taken);
        Some(Apart { pieces, supply, sums: plan.sums.clone(), places, blocks })
    }

    /// All `blocks`, in pieces.
    pub(super) fn blocks_in_pieces(
        &mut self,
        apart: &Apart,
        the: &Loop,
        blocks: &Poly<Reg>,
        spread: &BTreeMap<BufferId, BufferId>,
        partial: Option<BufferId>,
    ) -> Vec<Stmt> {
        if blocks.as_constant() == Some(0) {
            return Vec::new();
        }
        let mut before = Vec::new();
        let rounds = self.quotient(&blocks.add(&Poly::constant(apart.blocks - 1)), apart.blocks, &mut before);
        let round = self.int();
        let done = Poly::var(round).scale(apart.blocks);
        let mut body = Vec::new();
        let blocks = (apart.blocks > 1).then(|| {
            let mut code = Vec::new();
            let (left, most) =
                (self.int_of(&mut code, blocks.sub(&done)), self.int_of(&mut code, Poly::constant(apart.blocks)));
            let count = self.int_op(&mut code, Op::Min, left, most);
            body.push(Stmt::Straight(code));
            Poly::var(count)
        });
        let first = done.scale(LANES);
        body.extend(self.in_pieces(
            apart,
            the,
            &Round { first, lanes: Poly::constant(LANES), blocks },
            spread,
            partial,
        ));
        let rounds = Stmt::For { index: round, count: rounds, carried: Vec::new(), order: Order::InOrder, body };
        [Stmt::Straight(before), rounds].into_iter().filter(|stmt| !is_nothing(stmt)).collect()
    }

    /// The iterations of `round` in pieces.
    pub(super) fn in_pieces(
        &mut self,
        apart: &Apart,
        the: &Loop,
        round: &Round,
        spread: &BTreeMap<BufferId, BufferId>,
        partial: Option<BufferId>,
    ) -> Vec<Stmt> {
        let mut block = Block { the, apart, round, spread, partial, around: BTreeMap::new(), run: 0 };
        self.pieces(&mut block, &apart.pieces)
    }

    fn pieces(&mut self, block: &mut Block<'_>, pieces: &[Piece]) -> Vec<Stmt> {
        let mut out = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Run { body, at_once } => {
                    let needs = block.apart.supply.of_run(block.run, body);
                    out.push(self.run(block, body, needs, Vec::new(), *at_once));
                    block.run += 1;
                }
                Piece::Sums => {
                    let sums = block.the.carried.iter().enumerate();
                    let sums = sums.filter(|(_, c)| block.apart.supply.is_carried(c.next));
                    let moves = sums.map(|(k, c)| (c.next, Target::Sum(k))).collect();
                    out.push(self.moves(block, moves));
                }
                Piece::Total(addition) => self.total(block, addition, &mut out),
                Piece::Around { index, count, carried, body } => {
                    let moves = |of: fn(&Carried) -> Reg| {
                        carried.iter().map(|c| (of(c), Target::Place(c.var))).collect::<Vec<_>>()
                    };
                    if !carried.is_empty() {
                        out.push(self.moves(block, moves(|c| c.init)));
                    }
                    let count = self.same_for_all(block, count, &mut out);
                    let new = self.int();
                    block.around.insert(*index, new);
                    let mut inside = self.pieces(block, body);
                    if !carried.is_empty() {
                        inside.push(self.moves(block, moves(|c| c.next)));
                    }
                    let carried = Vec::new();
                    out.push(Stmt::For { index: new, count, carried, order: Order::InOrder, body: inside });
                }
            }
        }
        out
    }

    /// In each lane, from registers to where they go, all at once.
    fn moves(&mut self, block: &Block<'_>, moves: Vec<(Reg, Target)>) -> Stmt {
        let needs = block.apart.supply.needs(moves.iter().map(|(from, _)| *from).collect(), |_| false);
        self.run(block, &[], needs, moves, true)
    }

    /// A polynomial of integers that are the same for all iterations, outside of all lanes; what those are made of goes to
    /// `out`.
    fn same_for_all(&mut self, block: &Block<'_>, poly: &Poly<Reg>, out: &mut Vec<Stmt>) -> Poly<Reg> {
        let (again, _) = block.apart.supply.needs(poly.vars().into_vec(), |_| false);
        let code = Stmt::Straight(again.iter().map(|at| block.apart.supply.again[*at].clone()).collect());
        let mut copier = block.copier(self, block.round.first.clone(), None);
        out.extend(copier.block(&[code]).into_iter().filter(|stmt| !is_nothing(stmt)));
        copier.poly(poly)
    }

    /// A run: what it needs, what it does, what is kept of it, and `moves`.
    fn run(
        &mut self,
        block: &Block<'_>,
        body: &[Stmt],
        needs: (BTreeSet<usize>, BTreeSet<Reg>),
        mut moves: Vec<(Reg, Target)>,
        at_once: bool,
    ) -> Stmt {
        let Block { the, partial, round, .. } = block;
        let Apart { supply, sums, places, .. } = block.apart;
        let here = self.here(block);
        let mut first = Vec::new();
        let mut map = BTreeMap::new();
        let mut read: BTreeSet<Reg> = moves.iter().map(|(from, _)| *from).collect();
        uses(body, &mut |r| {
            read.insert(r);
        });
        // Where a run begins a sum that another one ends, blocks would all begin with what there is before the first of them:
        // they begin with nothing, and are put to it.
        let ends: BTreeSet<Reg> = defined(body).collect();
        for (((k, c), group), buffer) in (0..).zip(&the.carried).zip(sums).zip(partial.iter().cycle()) {
            if read.contains(&c.var) {
                let dst = self.real();
                map.insert(c.var, dst);
                first.push(match ends.contains(&c.next) {
                    true => Instr::Load { dst, buffer: *buffer, at: partial_at(k, 0, 1, here.lane) },
                    false => Instr::Const { dst, value: group.neutral() },
                });
            }
        }
        let (mut inside, copies) = self.supplied(block, &here, body, needs, first, map);
        for r in ends {
            moves.extend(supply.places.contains_key(&r).then_some((r, Target::Place(r))));
            moves.extend(the.carried.iter().enumerate().filter(|(_, c)| c.next == r).map(|(k, _)| (r, Target::Sum(k))));
        }
        let mut last = Vec::new();
        for (from, to) in moves {
            let mut value = copies.get(&from).copied().unwrap_or(from);
            let (buffer, at) = match to {
                Target::Place(r) => (*places, here.place(supply.places[&r])),
                Target::Sum(k) => (partial.unwrap_or(*places), partial_at(k as i64, 0, 1, here.lane)),
            };
            if let Target::Sum(k) = to
                && !read.contains(&the.carried[k].var)
            {
                let so_far = self.real();
                last.push(Instr::Load { dst: so_far, buffer, at: at.clone() });
                value = self.op(sums[k].op(), so_far, value, &mut last);
            }
            last.push(Instr::Store { buffer, at, value });
        }
        inside.push(Stmt::Straight(last));
        inside.retain(|stmt| !is_nothing(stmt));
        let (order, count) = (if at_once { Order::Lanes } else { Order::InOrder }, round.lanes.clone());
        let lanes = Stmt::For { index: here.lane, count, carried: Vec::new(), order, body: inside };
        match (here.nth, &round.blocks) {
            (Some(index), Some(count)) => {
                let (count, carried, order) = (count.clone(), Vec::new(), Order::InOrder);
                Stmt::For { index, count, carried, order, body: vec![lanes] }
            }
            _ => lanes,
        }
    }

    /// Adds to an element of all iterations: the sum of each lane over all blocks, then that of the lanes.
    fn total(&mut self, block: &Block<'_>, addition: &Addition, out: &mut Vec<Stmt>) {
        let Block { round, apart: Apart { supply, places, .. }, .. } = block;
        let here = self.here(block);
        let (neutral, sum) = (self.real(), self.real());
        let nothing = Instr::Const { dst: neutral, value: Group::Sum.neutral() };
        if round.lanes.as_constant() != Some(LANES) {
            let lane = self.int();
            let at = partial_at(supply.places.len() as i64, 0, block.apart.blocks, lane);
            let value = self.real();
            let code = vec![
                Instr::Const { dst: value, value: Group::Sum.neutral() },
                Instr::Store { buffer: *places, at, value },
            ];
            out.push(at_once(lane, code));
        }
        let body = [Stmt::Straight(addition.code.clone())];
        let map = BTreeMap::from([(addition.before, if here.nth.is_some() { sum } else { neutral })]);
        let (inside, copies) = self.supplied(block, &here, &body, supply.of_total(addition), Vec::new(), map);
        let next = copies.get(&addition.after).copied().unwrap_or(addition.after);
        let (mut lanes, value) = (vec![Stmt::Straight(vec![nothing])], if here.nth.is_some() { sum } else { next });
        match (here.nth, &round.blocks) {
            (Some(index), Some(count)) => {
                let (count, carried) = (count.clone(), vec![Carried { var: sum, init: neutral, next }]);
                lanes.push(Stmt::For { index, count, carried, order: Order::InOrder, body: inside });
            }
            _ => lanes.extend(inside),
        }
        // Behind all blocks: the place of the first one.
        let at = partial_at(supply.places.len() as i64, 0, block.apart.blocks, here.lane);
        lanes.push(Stmt::Straight(vec![Instr::Store { buffer: *places, at, value }]));
        let (count, carried) = (round.lanes.clone(), Vec::new());
        out.push(Stmt::For { index: here.lane, count, carried, order: Order::Lanes, body: lanes });
        let at = self.same_for_all(block, &addition.at, out);
        let mut code = Vec::new();
        let first = supply.places.len() as i64 * block.apart.blocks * LANES;
        let all = self.tree(Group::Sum, *places, (0..LANES).map(|lane| Poly::constant(first + lane)), &mut code);
        let so_far = self.real();
        code.push(Instr::Load { dst: so_far, buffer: addition.buffer, at: at.clone() });
        let value = self.op(Op::Add, so_far, all, &mut code);
        code.push(Instr::Store { buffer: addition.buffer, at, value });
        out.push(Stmt::Straight(code));
    }

    /// New indices for a piece.
    fn here(&mut self, block: &Block<'_>) -> Here {
        let lane = self.int();
        Here { lane, nth: block.round.blocks.as_ref().map(|_| self.int()), blocks: block.apart.blocks }
    }

    /// What a piece needs, and what it does, in the lane that is `here`; the new registers for those of the iteration. `first`
    /// makes some that are in `map`.
    fn supplied(
        &mut self,
        block: &Block<'_>,
        here: &Here,
        body: &[Stmt],
        (again, kept): (BTreeSet<usize>, BTreeSet<Reg>),
        mut first: Vec<Instr>,
        mut map: BTreeMap<Reg, Reg>,
    ) -> (Vec<Stmt>, BTreeMap<Reg, Reg>) {
        let Apart { supply, places, .. } = block.apart;
        map.extend(block.around.iter().map(|(old, new)| (*old, *new)));
        for r in &kept {
            let Some(place) = supply.places.get(r) else { continue };
            let dst = self.real();
            map.insert(*r, dst);
            first.push(Instr::Load { dst, buffer: *places, at: here.place(*place) });
        }
        let again = Stmt::Straight(again.iter().map(|at| supply.again[*at].clone()).collect());
        let by = block.round.first.add(&here.done()).add(&Poly::var(here.lane));
        let index = block.the.index;
        if reads(body, index) || reads(std::slice::from_ref(&again), index) {
            let new = self.int_of(&mut first, by.clone());
            map.insert(index, new);
        }
        let mut copier = block.copier(self, by, Some(here.lane));
        copier.map = map;
        let mut inside = vec![Stmt::Straight(first)];
        inside.extend(copier.block(&[again]));
        inside.extend(copier.block(body));
        inside.retain(|stmt| !is_nothing(stmt));
        (inside, copier.map)
    }
}

/// The indices of a piece.
struct Here {
    lane: Reg,
    /// Of the loop over blocks.
    nth: Option<Reg>,
    /// How many blocks a place has room for.
    blocks: i64,
}

impl Here {
    /// How many iterations there are in blocks before this one.
    fn done(&self) -> Poly<Reg> {
        self.nth.map_or_else(Poly::zero, |nth| Poly::var(nth).scale(LANES))
    }

    fn place(&self, place: i64) -> Poly<Reg> {
        partial_at(place, 0, self.blocks, self.lane).add(&self.done())
    }
}

impl Block<'_> {
    /// What copies statements for the lane, where the index is `by`, or outside of all lanes.
    fn copier<'c>(&'c self, cutter: &'c mut Cutter<'_>, by: Poly<Reg>, lane: Option<Reg>) -> Copier<'c> {
        let (regs, map) = (&mut cutter.kernel.regs, self.around.clone());
        Copier { regs, map, index: self.the.index, by, fresh: true, lane, buffers: self.spread }
    }
}

fn is_nothing(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Straight(code) if code.is_empty())
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
