//! Emission of pieces as loops over the iterations of a round.

use super::supply::{Needs, Supply};
use super::{Addition, Piece, Splitter, defined, uses, writes};
use crate::kernel::{BufferId, Carried, Class, Instr, LANES, Order, Reg, Stmt};
use crate::lanes::Plan;
use crate::lanes::independence::Group;
use crate::lanes::jam::partial_at;
use crate::lanes::rewrite::{Copier, Copies, Cutter, LaneBuffers, Loop, at_once, reads};
use crate::rebuild::is_nothing;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of blocks that go through the pieces together.
const BLOCKS: i64 = 16;

/// Destination of a number.
enum Target {
    /// Slot of this register.
    Place(Reg),
    /// Partial sum with this index.
    Sum(usize),
}

/// An iteration split into pieces.
pub(in crate::lanes) struct Apart {
    pieces: Vec<Piece>,
    supply: Supply,
    sums: Vec<Group>,
    /// Buffer of the saved numbers.
    places: BufferId,
    /// Number of blocks that it has space for.
    blocks: i64,
}

/// Iterations that go through the pieces together.
pub(in crate::lanes) struct Round {
    /// Index of the first iteration.
    pub first: Poly<Reg>,
    /// Number of iterations in a block.
    pub lanes: Poly<Reg>,
    /// Number of blocks, if not one.
    pub blocks: Option<Poly<Reg>>,
}

/// Round under construction.
struct Block<'a> {
    the: &'a Loop,
    apart: &'a Apart,
    round: &'a Round,
    wide: LaneBuffers<'a>,
    /// Indices of loops around pieces.
    around: BTreeMap<Reg, Reg>,
    run: usize,
}

impl Cutter<'_> {
    /// Splits an iteration of `the` loop, if iterations add to common elements; `taken` as in [`Self::buffer`].
    pub(in crate::lanes) fn taken_apart(
        &mut self,
        plan: &Plan,
        the: &Loop,
        taken: &mut Vec<Poly<Reg>>,
    ) -> Option<Apart> {
        if plan.scattered.is_empty() {
            return None;
        }
        let classes = &self.kernel.regs;
        let mut splitter = Splitter::new(plan, the.index);
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
        // Private buffers have space for one block.
        let most = the.count.as_constant().map_or(BLOCKS, |n| (n / LANES).clamp(1, BLOCKS));
        let blocks = if plan.private.is_empty() { most } else { 1 };
        // One more for the sums of lanes.
        let places = self.buffer(Poly::constant(LANES * blocks * (supply.places.len() as i64 + 1)), taken);
        Some(Apart { pieces, supply, sums: plan.sums.clone(), places, blocks })
    }

    /// Emits all `blocks` in pieces.
    pub(in crate::lanes) fn blocks_in_pieces(
        &mut self,
        apart: &Apart,
        the: &Loop,
        blocks: &Poly<Reg>,
        wide: LaneBuffers<'_>,
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
        body.extend(self.in_pieces(apart, the, &Round { first, lanes: Poly::constant(LANES), blocks }, wide));
        let rounds = Stmt::For { index: round, count: rounds, carried: Vec::new(), order: Order::InOrder, body };
        [Stmt::Straight(before), rounds].into_iter().filter(|stmt| !is_nothing(stmt)).collect()
    }

    /// Emits the iterations of `round` in pieces. If the number of iterations may be zero, a branch guards them: code
    /// that runs once for all iterations, such as the update of a common element, must not run for none, since the
    /// element may not exist.
    pub(in crate::lanes) fn in_pieces(
        &mut self,
        apart: &Apart,
        the: &Loop,
        round: &Round,
        wide: LaneBuffers<'_>,
    ) -> Vec<Stmt> {
        let mut block = Block { the, apart, round, wide, around: BTreeMap::new(), run: 0 };
        let then = self.pieces(&mut block, &apart.pieces);
        if round.lanes.as_constant().is_some() {
            return then;
        }
        let mut before = Vec::new();
        let condition = self.is_some(&round.lanes, &mut before);
        vec![Stmt::Straight(before), Stmt::If { condition, then, otherwise: Vec::new(), choices: Vec::new() }]
    }

    fn pieces(&mut self, block: &mut Block<'_>, pieces: &[Piece]) -> Vec<Stmt> {
        let mut out = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Run { body, at_once } => {
                    let needs = block.apart.supply.of_run(block.run, body);
                    let order = if *at_once { Order::Lanes } else { Order::InOrder };
                    out.push(self.run(block, body, needs, Vec::new(), order));
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

    /// Emits a lane loop that moves registers to their destinations.
    fn moves(&mut self, block: &Block<'_>, moves: Vec<(Reg, Target)>) -> Stmt {
        let needs = block.apart.supply.needs(moves.iter().map(|(from, _)| *from).collect(), |_| false);
        self.run(block, &[], needs, moves, Order::Lanes)
    }

    /// Returns a polynomial over uniform integers, valid outside of the lanes; code that computes these goes to `out`.
    fn same_for_all(&mut self, block: &Block<'_>, poly: &Poly<Reg>, out: &mut Vec<Stmt>) -> Poly<Reg> {
        let Needs { again, .. } = block.apart.supply.needs(poly.vars().into_vec(), |_| false);
        let code = Stmt::Straight(again.iter().map(|at| block.apart.supply.again[*at].clone()).collect());
        let mut copier = block.copier(self, block.round.first.clone(), None);
        out.extend(copier.block(&[code]).into_iter().filter(|stmt| !is_nothing(stmt)));
        copier.poly(poly)
    }

    /// Emits a run, whose lanes run in `order`: its needs, its code, its saves, and `moves`.
    fn run(
        &mut self,
        block: &Block<'_>,
        body: &[Stmt],
        needs: Needs,
        mut moves: Vec<(Reg, Target)>,
        order: Order,
    ) -> Stmt {
        let Block { the, wide: LaneBuffers { partial, .. }, round, .. } = block;
        let Apart { supply, sums, places, .. } = block.apart;
        let here = self.here(block);
        let mut first = Vec::new();
        let mut map = BTreeMap::new();
        let mut read: BTreeSet<Reg> = moves.iter().map(|(from, _)| *from).collect();
        uses(body, &mut |r| {
            read.insert(r);
        });
        // If a run begins a sum that another run ends, every block would begin with the initial value. Blocks begin
        // with zero instead, and are added to it.
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
        let count = round.lanes.clone();
        let lanes = Stmt::For { index: here.lane, count, carried: Vec::new(), order, body: inside };
        match (here.nth, &round.blocks) {
            (Some(index), Some(count)) => {
                let (count, carried, order) = (count.clone(), Vec::new(), Order::InOrder);
                Stmt::For { index, count, carried, order, body: vec![lanes] }
            }
            _ => lanes,
        }
    }

    /// Emits the update of a common element: sums of each lane over all blocks, then the sum of the lanes.
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
        // The slot of the first block behind all blocks.
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

    /// Returns new indices for a piece.
    fn here(&mut self, block: &Block<'_>) -> Here {
        let lane = self.int();
        Here { lane, nth: block.round.blocks.as_ref().map(|_| self.int()), blocks: block.apart.blocks }
    }

    /// Returns the code of a piece and its needs in the lane of `here`, with new registers. `first` defines those in
    /// `map`.
    fn supplied(
        &mut self,
        block: &Block<'_>,
        here: &Here,
        body: &[Stmt],
        Needs { again, kept }: Needs,
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

/// Indices of a piece.
struct Here {
    lane: Reg,
    /// Index of the loop over blocks.
    nth: Option<Reg>,
    /// Number of blocks that a slot has space for.
    blocks: i64,
}

impl Here {
    /// Returns the number of iterations in earlier blocks.
    fn done(&self) -> Poly<Reg> {
        self.nth.map_or_else(Poly::zero, |nth| Poly::var(nth).scale(LANES))
    }

    fn place(&self, place: i64) -> Poly<Reg> {
        partial_at(place, 0, self.blocks, self.lane).add(&self.done())
    }
}

impl Block<'_> {
    /// Returns the copier of statements for the lane, with index `by`, or for code outside of the lanes.
    fn copier<'c>(&'c self, cutter: &'c mut Cutter<'_>, by: Poly<Reg>, lane: Option<Reg>) -> Copier<'c> {
        let (regs, map) = (&mut cutter.kernel.regs, self.around.clone());
        Copier { regs, map, index: self.the.index, by, fresh: true, lane, buffers: self.wide.spread }
    }
}
