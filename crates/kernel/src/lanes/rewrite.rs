//! Emission of lane loops: blocks, and the remainder.

use super::apart::{Apart, Round};
use super::cost::JAM;
use super::jam::{Groups, partial_at};
use super::sweep::is_pure;
use super::tile::Tiles;
use super::{Plan, reads_directly};
use crate::choices::choose;
use crate::events::walk;
use crate::kernel::{Buffer, BufferId, Carried, Choice, Class, Instr, Kernel, LANES, Order, Place, Reg, Stmt};
use crate::rebuild::{each_statement, is_nothing};
use crate::registers::Registers;
use chainrule_base::Poly;
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Cuts the loops over the given indices. Branches on `choosable` conditions are if-converted,
/// and other loops of the nests are tiled first.
pub(super) fn rewrite(
    kernel: &mut Kernel,
    mut plans: BTreeMap<Reg, Plan>,
    mut tiles: Tiles,
    choosable: &BTreeSet<Reg>,
) {
    if plans.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    let mut cutter = Cutter::new(kernel);
    cutter.narrow(&mut body, &mut tiles, &mut plans);
    cutter.panels(&mut body, &mut tiles, &mut plans);
    cutter.tile(&mut body, &tiles, &mut plans);
    // A lane loop contains no loops to cut.
    each_statement(&mut body, |stmt, done| match stmt {
        Stmt::For { index, count, carried, order: Order::InOrder, mut body } if plans.contains_key(&index) => {
            choose(&mut cutter.kernel.regs, &mut body, choosable);
            let plan = plans.remove(&index).unwrap_or_default();
            cutter.cut(&plan, Loop { index, count, carried, body }, done);
        }
        stmt => done.push(stmt),
    });
    kernel.body = body;
}

pub(crate) struct Loop {
    pub index: Reg,
    pub count: Poly<Reg>,
    pub carried: Vec<Carried>,
    pub body: Vec<Stmt>,
}

impl Loop {
    /// Returns the loop as a sequential statement.
    pub fn in_order(self) -> Stmt {
        let Self { index, count, carried, body } = self;
        Stmt::For { index, count, carried, order: Order::InOrder, body }
    }
}

/// Buffers of a loop with an element for each lane.
#[derive(Clone, Copy)]
pub(in crate::lanes) struct LaneBuffers<'a> {
    /// Copies of private memory and accumulators, by the buffer that they replace.
    pub spread: &'a BTreeMap<BufferId, BufferId>,
    /// Partial results of sums, if the loop has sums.
    pub partial: Option<BufferId>,
}

/// Builder of new statements.
pub(crate) struct Cutter<'k> {
    pub kernel: &'k mut Kernel,
    /// Failure index for operators that cannot fail.
    failure: usize,
    /// New workspace regions: length and offset. Only one lane loop runs at a time, so all share them.
    places: Vec<(Poly<Reg>, Poly<Reg>)>,
}

impl<'k> Cutter<'k> {
    pub fn new(kernel: &'k mut Kernel) -> Self {
        let failure = kernel.failures.len();
        kernel.failures.push(("the number of iterations is none".to_owned(), None));
        Self { kernel, failure, places: Vec::new() }
    }

    pub fn real(&mut self) -> Reg {
        self.kernel.regs.push(Class::Real)
    }

    pub fn int(&mut self) -> Reg {
        self.kernel.regs.push(Class::Int)
    }

    pub fn int_op(&mut self, out: &mut Vec<Instr>, op: Op, a: Reg, b: Reg) -> Reg {
        let dst = self.int();
        out.push(Instr::IntOp { dst, op, args: [a, b, a], failure: self.failure });
        dst
    }

    pub fn int_of(&mut self, out: &mut Vec<Instr>, value: Poly<Reg>) -> Reg {
        let dst = self.int();
        out.push(Instr::Int { dst, value });
        dst
    }

    /// Returns the condition that all of these numbers reach their least ones; `None` if all are constants.
    pub fn all_reach(&mut self, asked: &[(Poly<Reg>, i64)], before: &mut Vec<Instr>) -> Option<Reg> {
        let mut holds: Option<Reg> = None;
        for (n, least) in asked.iter().filter(|(n, _)| n.as_constant().is_none()) {
            // Not by a difference with `n`, which overflows for arbitrary arguments.
            let (less, n) = (self.int_of(before, Poly::constant(least - 1)), self.int_of(before, n.clone()));
            let enough = self.int_op(before, Op::Lt, less, n);
            holds = Some(match holds {
                Some(so_far) => {
                    let dst = self.int();
                    before.push(Instr::Op { dst, op: Op::And, args: [so_far, enough, so_far] });
                    dst
                }
                None => enough,
            });
        }
        holds
    }

    /// Returns a branch to a copy of `near` with registers of its own, and to `otherwise`.
    pub fn either(&mut self, condition: Reg, near: &[Stmt], otherwise: Vec<Stmt>) -> Stmt {
        let (regs, map, buffers) = (&mut self.kernel.regs, BTreeMap::new(), BTreeMap::new());
        let by = Poly::var(condition);
        let mut copier = Copier { regs, map, index: condition, by, fresh: true, lane: None, buffers: &buffers };
        Stmt::If { condition, then: copier.block(near), otherwise, choices: Vec::new() }
    }

    /// Returns a new workspace buffer; `taken` holds the regions that the loop uses already.
    pub fn buffer(&mut self, len: Poly<Reg>, taken: &mut Vec<Poly<Reg>>) -> BufferId {
        let free = self.places.iter().find(|(l, at)| *l == len && !taken.contains(at)).map(|(_, at)| at.clone());
        let at = free.unwrap_or_else(|| {
            let at = self.kernel.workspace_reals.clone();
            self.kernel.workspace_reals = at.add(&len);
            self.places.push((len.clone(), at.clone()));
            at
        });
        taken.push(at.clone());
        self.kernel.buffers.push(Buffer { class: Class::Real, len, place: Place::Workspace(at) })
    }

    /// Emits the loop to `out`.
    fn cut(&mut self, plan: &Plan, the: Loop, out: &mut Vec<Stmt>) {
        let mut before = Vec::new();
        let (blocks, done) = self.blocks(&the.count, LANES, &mut before);
        if plan.overlaps {
            let steps = (the.count.sub(&done), 1);
            let pair = Groups { of: 2, first: Poly::zero(), count: blocks, steps };
            out.push(Stmt::Straight(before));
            out.push(self.jammed(plan, &the, &pair, LaneBuffers { spread: &BTreeMap::new(), partial: None }));
            return;
        }
        let mut taken = Vec::new();
        let mut spread: BTreeMap<BufferId, BufferId> = BTreeMap::new();
        // Buffers that share memory share their eight copies.
        let mut moved: BTreeMap<(Poly<Reg>, Poly<Reg>), BufferId> = BTreeMap::new();
        for buffer in &plan.private {
            let Buffer { len, place, .. } = self.kernel.buffers[*buffer].clone();
            let Place::Workspace(at) = place else { continue };
            let places = len.scale(LANES * plan.blocks);
            let wide = *moved.entry((at, len)).or_insert_with(|| self.buffer(places, &mut taken));
            spread.insert(*buffer, wide);
        }
        for buffer in &plan.accumulators {
            let len = self.kernel.buffers[*buffer].len.scale(LANES);
            spread.insert(*buffer, self.buffer(len, &mut taken));
        }
        let partial = (!plan.sums.is_empty())
            .then(|| self.buffer(Poly::constant(LANES * plan.blocks * plan.sums.len() as i64), &mut taken));
        let wide = LaneBuffers { spread: &spread, partial };
        let apart = self.taken_apart(plan, &the, &mut taken);
        let groups = self.groups((plan, &the), &blocks, &mut before);
        if plan.accumulators.is_empty() {
            let sums: Vec<Reg> = match plan.few_alone {
                true => the.carried.iter().map(|_| self.real()).collect(),
                false => the.carried.iter().map(|c| c.var).collect(),
            };
            let holds = plan.few_alone.then(|| self.is_some(&blocks, &mut before));
            if !before.is_empty() {
                out.push(Stmt::Straight(before));
            }
            let mut then = self.neutral(plan, wide);
            let lanes = the.count.sub(&done);
            then.extend(self.rounds(plan, &the, apart.as_ref(), &blocks, &groups, wide));
            if lanes.as_constant() != Some(0) {
                match &apart {
                    Some(apart) => {
                        let round = Round { first: done, lanes, blocks: None };
                        then.extend(self.in_pieces(apart, &the, &round, wide));
                    }
                    None => then.push(self.in_lanes(plan, &the, (done, lanes), wide)),
                }
            }
            self.together(plan, &the, wide, &sums, &mut then);
            let Some(condition) = holds else {
                out.extend(then);
                return;
            };
            let (alone, few) = self.alone(&the);
            let choice = |((c, then), few): ((&Carried, Reg), Reg)| Choice { var: c.var, then, otherwise: few };
            let choices = the.carried.iter().zip(sums).zip(few).map(choice).collect();
            out.push(Stmt::If { condition, then, otherwise: vec![alone], choices });
            return;
        }
        // Accumulators are cleared and reduced only if there is a block.
        let mut then = self.neutral(plan, wide);
        then.extend(self.rounds(plan, &the, apart.as_ref(), &blocks, &groups, wide));
        let sums: Vec<Reg> = the.carried.iter().map(|_| self.real()).collect();
        self.together(plan, &the, wide, &sums, &mut then);
        let holds = self.is_some(&blocks, &mut before);
        out.push(Stmt::Straight(before));
        let mut choices = Vec::new();
        let mut rest = Vec::new();
        for (c, then) in the.carried.iter().zip(sums) {
            let var = self.real();
            choices.push(Choice { var, then, otherwise: c.init });
            rest.push(Carried { var: c.var, init: var, next: c.next });
        }
        out.push(Stmt::If { condition: holds, then, otherwise: Vec::new(), choices });
        let rest = Loop { carried: rest, ..the };
        out.push(self.rest(rest, &done));
    }

    /// Returns the number of blocks of `of` iterations, and of their iterations.
    pub fn blocks(&mut self, count: &Poly<Reg>, of: i64, before: &mut Vec<Instr>) -> (Poly<Reg>, Poly<Reg>) {
        if let Some(n) = count.as_constant() {
            let blocks = n.max(0) / of;
            return (Poly::constant(blocks), Poly::constant(blocks * of));
        }
        let n = match count.as_var() {
            Some(n) => n,
            None => self.int_of(before, count.clone()),
        };
        let zero = self.int_of(before, Poly::zero());
        let n = self.int_op(before, Op::Max, n, zero);
        let blocks = self.quotient(&Poly::var(n), of, before);
        let done = blocks.scale(of);
        (blocks, done)
    }

    /// Returns the number of stretches of at most `of` iterations.
    pub fn n_stretches(&mut self, count: &Poly<Reg>, of: i64, before: &mut Vec<Instr>) -> Poly<Reg> {
        self.blocks(&count.add(&Poly::constant(of - 1)), of, before).0
    }

    /// Returns the stretch with this number.
    pub fn nth_stretch(&mut self, number: Reg, count: &Poly<Reg>, of: i64, begin: &mut Vec<Instr>) -> Stretch {
        let first = Poly::var(number).scale(of);
        let most = self.int_of(begin, Poly::constant(of));
        let left = self.int_of(begin, count.sub(&first));
        Stretch { first, count: Poly::var(self.int_op(begin, Op::Min, most, left)) }
    }

    /// Returns a register that tells whether `count` is positive.
    pub fn is_some(&mut self, count: &Poly<Reg>, before: &mut Vec<Instr>) -> Reg {
        let zero = self.int_of(before, Poly::zero());
        let some = self.int_of(before, count.clone());
        self.int_op(before, Op::Lt, zero, some)
    }

    /// Returns a copy of the loop with new registers, and its carried values at the end.
    fn alone(&mut self, the: &Loop) -> (Stmt, Vec<Reg>) {
        let index = self.int();
        let few: Vec<Reg> = the.carried.iter().map(|_| self.real()).collect();
        let vars = the.carried.iter().map(|c| c.var).zip(few.iter().copied());
        let map = vars.chain([(the.index, index)]).collect();
        let (buffers, regs) = (BTreeMap::new(), &mut self.kernel.regs);
        let by = Poly::var(index);
        let mut copier = Copier { regs, map, index: the.index, by, fresh: true, lane: None, buffers: &buffers };
        let body = copier.block(&the.body);
        let carried = the.carried.iter().zip(&few);
        let carried = carried.map(|(c, var)| Carried { var: *var, init: c.init, next: copier.of(c.next) }).collect();
        let (count, order) = (the.count.clone(), Order::InOrder);
        (Stmt::For { index, count, carried, order, body }, few)
    }

    /// Returns copies of two forms of a loop for the sides of a branch, with the choices of its carried values.
    pub fn both_of(&mut self, then: &Stmt, otherwise: &Stmt) -> (Vec<Stmt>, Vec<Stmt>, Vec<Choice>) {
        let Stmt::For { carried, .. } = otherwise else { return Default::default() };
        let [(then, of_then), (otherwise, of_otherwise)] = [then, otherwise].map(|the| self.copy_of(the, carried));
        let sums = carried.iter().zip(of_then.into_iter().zip(of_otherwise));
        let choices = sums.map(|(c, (then, otherwise))| Choice { var: c.var, then, otherwise }).collect();
        (then, otherwise, choices)
    }

    /// Returns a copy of a statement with new registers, and those of carried values.
    fn copy_of(&mut self, the: &Stmt, carried: &[Carried]) -> (Vec<Stmt>, Vec<Reg>) {
        let (index, buffers) = (self.int(), BTreeMap::new());
        let (regs, by) = (&mut self.kernel.regs, Poly::var(index));
        let mut copier = Copier { regs, map: BTreeMap::new(), index, by, fresh: true, lane: None, buffers: &buffers };
        let copy = copier.block(std::slice::from_ref(the));
        (copy, carried.iter().map(|c| copier.of(c.var)).collect())
    }

    /// Returns a copy of `count` iterations of a loop from `first` on, with new registers.
    pub fn iterations(
        &mut self,
        (index, body): (Reg, &[Stmt]),
        (first, count): (&Poly<Reg>, Poly<Reg>),
        mut map: BTreeMap<Reg, Reg>,
        buffers: &BTreeMap<BufferId, BufferId>,
    ) -> Stmt {
        let (number, own) = (self.int(), self.int());
        let by = first.add(&Poly::var(own));
        map.insert(index, number);
        let mut copy = vec![Stmt::Straight(vec![Instr::Int { dst: number, value: by.clone() }])];
        let regs = &mut self.kernel.regs;
        copy.extend(Copier { regs, map, index, by, fresh: true, lane: None, buffers }.block(body));
        Stmt::For { index: own, count, carried: Vec::new(), order: Order::InOrder, body: copy }
    }

    pub fn quotient(&mut self, n: &Poly<Reg>, by: i64, before: &mut Vec<Instr>) -> Poly<Reg> {
        if let Some(n) = n.as_constant() {
            return Poly::constant(n / by);
        }
        let n = match n.as_var() {
            Some(n) => n,
            None => self.int_of(before, n.clone()),
        };
        let by = self.int_of(before, Poly::constant(by));
        Poly::var(self.int_op(before, Op::Quot, n, by))
    }

    /// Returns the groups of jammed blocks of the plan, and groups of half the size for the rest, if that is at least
    /// [`JAM`] or blocks have loops, which run as long for one block as for two.
    fn groups(&mut self, (plan, the): (&Plan, &Loop), blocks: &Poly<Reg>, before: &mut Vec<Instr>) -> Vec<Groups> {
        let (mut groups, mut of) = (Vec::new(), plan.blocks);
        let has_loops = the.body.iter().any(|stmt| matches!(stmt, Stmt::For { .. }));
        let least = if has_loops { 2 } else { JAM };
        while of >= least || (of > 1 && groups.is_empty()) {
            let first = Groups::end(&groups);
            let count = self.quotient(&blocks.sub(&first), of, before);
            groups.push(Groups { of, first, count, steps: (Poly::constant(LANES), of) });
            of /= 2;
        }
        groups
    }

    /// Emits the loops over groups and over remaining blocks, or over pieces.
    fn rounds(
        &mut self,
        plan: &Plan,
        the: &Loop,
        apart: Option<&Apart>,
        blocks: &Poly<Reg>,
        groups: &[Groups],
        wide: LaneBuffers<'_>,
    ) -> Vec<Stmt> {
        if let Some(apart) = apart {
            return self.blocks_in_pieces(apart, the, blocks, wide);
        }
        let mut out = Vec::new();
        for groups in groups.iter().filter(|groups| groups.count.as_constant() != Some(0)) {
            out.push(self.jammed(plan, the, groups, wide));
        }
        let first = Groups::end(groups);
        let left = blocks.sub(&first);
        if left.as_constant() != Some(0) {
            let block = self.int();
            let from = first.add(&Poly::var(block)).scale(LANES);
            let body = vec![self.in_lanes(plan, the, (from, Poly::constant(LANES)), wide)];
            out.push(Stmt::For { index: block, count: left, carried: Vec::new(), order: Order::InOrder, body });
        }
        out
    }

    /// Emits `count` iterations from `first` on in lanes.
    fn in_lanes(
        &mut self,
        plan: &Plan,
        the: &Loop,
        (first_at, count): (Poly<Reg>, Poly<Reg>),
        wide: LaneBuffers<'_>,
    ) -> Stmt {
        let lane = self.int();
        let at = first_at.add(&Poly::var(lane));
        let mut map = BTreeMap::new();
        let (mut first, mut last) = (Vec::new(), Vec::new());
        let partials = wide.partial.into_iter().flat_map(|p| (0..).zip(std::iter::repeat(p)));
        for ((k, buffer), c) in partials.zip(&the.carried).take(plan.sums.len()) {
            let so_far = self.real();
            map.insert(c.var, so_far);
            first.push(Instr::Load { dst: so_far, buffer, at: partial_at(k, 0, plan.blocks, lane) });
            last.push((k, buffer, c.next));
        }
        if reads(&the.body, the.index) {
            let index = self.int_of(&mut first, at.clone());
            map.insert(the.index, index);
        }
        let regs = &mut self.kernel.regs;
        let mut copier =
            Copier { regs, map, index: the.index, by: at, fresh: true, lane: Some(lane), buffers: wide.spread };
        let mut body = vec![Stmt::Straight(first)];
        body.extend(copier.block(&the.body));
        let store = |(k, buffer, next)| {
            let at = partial_at(k, 0, plan.blocks, lane);
            Instr::Store { buffer, at, value: copier.of(next) }
        };
        body.push(Stmt::Straight(last.into_iter().map(store).collect()));
        body.retain(|stmt| !is_nothing(stmt));
        Stmt::For { index: lane, count, carried: Vec::new(), order: Order::Lanes, body }
    }

    pub fn op(&mut self, op: Op, a: Reg, b: Reg, code: &mut Vec<Instr>) -> Reg {
        let dst = self.real();
        code.push(Instr::Op { dst, op, args: [a, b, a] });
        dst
    }

    /// Emits the last iterations, backwards.
    fn rest(&mut self, the: Loop, done: &Poly<Reg>) -> Stmt {
        let Loop { index, count, carried, body } = the;
        let back = self.int();
        let at = count.sub(&Poly::var(back)).sub(&Poly::constant(1));
        let reads_index = reads(&body, index);
        let (map, buffers, by) = (BTreeMap::new(), BTreeMap::new(), at.clone());
        let regs = &mut self.kernel.regs;
        let mut copier = Copier { regs, map, index, by, fresh: false, lane: None, buffers: &buffers };
        let mut rest = copier.block(&body);
        if reads_index {
            rest.insert(0, Stmt::Straight(vec![Instr::Int { dst: index, value: at }]));
        }
        Stmt::For { index: back, count: count.sub(done), carried, order: Order::InOrder, body: rest }
    }
}

/// Adds to `wanted` the registers from which `code` computes those in it.
pub(super) fn want(code: &[Instr], wanted: &mut BTreeSet<Reg>) {
    for instr in code.iter().rev() {
        if instr.dst().is_some_and(|dst| wanted.contains(&dst)) {
            instr.for_each_use(|r| _ = wanted.insert(r));
        }
    }
}

/// Returns the registers that statements define, also for their own code.
pub(super) fn defined_in(body: &[Stmt]) -> BTreeSet<Reg> {
    let mut found = BTreeSet::new();
    walk(body).for_each(|event| event.for_each_def(|r| _ = found.insert(r)));
    found
}

/// Returns the registers that a statement reads.
pub(super) fn used(stmt: &Stmt) -> BTreeSet<Reg> {
    let mut found = BTreeSet::new();
    walk(std::slice::from_ref(stmt)).for_each(|event| event.for_each_use(|r| _ = found.insert(r)));
    found
}

/// Returns whether `instr` computes one of the `wanted` registers.
pub(super) fn is_wanted(instr: &Instr, wanted: &BTreeSet<Reg>) -> bool {
    instr.dst().is_some_and(|dst| wanted.contains(&dst))
}

/// As [`straight_code`]; `None` also if the code may fail.
pub(super) fn wanted_code(body: &[Stmt], wanted: &mut BTreeSet<Reg>) -> Option<Vec<Instr>> {
    straight_code(body, wanted).filter(|code| code.iter().all(is_pure))
}

/// Returns the straight-line code of `body` that computes the registers in `wanted`, to which it adds those that the
/// code reads; `None` if another statement computes one of them.
pub(super) fn straight_code(body: &[Stmt], wanted: &mut BTreeSet<Reg>) -> Option<Vec<Instr>> {
    let mut parts = Vec::new();
    for stmt in body.iter().rev() {
        if let Stmt::Straight(code) = stmt {
            want(code, wanted);
            parts.push(code.iter().filter(|instr| is_wanted(instr, wanted)).cloned().collect::<Vec<_>>());
            continue;
        }
        let mut defines = false;
        walk(std::slice::from_ref(stmt)).for_each(|event| event.for_each_def(|r| defines |= wanted.contains(&r)));
        if defines {
            return None;
        }
    }
    Some(parts.into_iter().rev().flatten().collect())
}

/// Returns a lane loop over a block.
pub(super) fn at_once(lane: Reg, code: Vec<Instr>) -> Stmt {
    let body = vec![Stmt::Straight(code)];
    Stmt::For { index: lane, count: Poly::constant(LANES), carried: Vec::new(), order: Order::Lanes, body }
}

/// Returns whether an instruction reads `r` as a register. Recurses on the bounded nesting of loops that are cut.
pub(crate) fn reads(body: &[Stmt], r: Reg) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Straight(code) => code.iter().any(|instr| reads_directly(instr, r)),
        Stmt::For { body, .. } => reads(body, r),
        Stmt::If { then, otherwise, .. } => reads(then, r) || reads(otherwise, r),
        Stmt::Copy { .. } | Stmt::While { .. } => false,
    })
}

/// Consecutive iterations of a loop.
pub(crate) struct Stretch {
    /// First iteration.
    pub first: Poly<Reg>,
    pub count: Poly<Reg>,
}

/// Copies statements with another index. Recurses on the bounded nesting of loops that are cut.
pub(crate) struct Copier<'a> {
    pub regs: &'a mut Registers,
    /// New registers for old ones.
    pub map: BTreeMap<Reg, Reg>,
    pub index: Reg,
    pub by: Poly<Reg>,
    /// Whether all registers are new because the original stays.
    pub fresh: bool,
    /// Lane, for code in lanes.
    pub lane: Option<Reg>,
    /// New buffers for old ones; in lanes with eight elements for one.
    pub buffers: &'a BTreeMap<BufferId, BufferId>,
}

/// Substitution of the registers of copied instructions.
pub(crate) trait Copies {
    /// Returns the register that replaces `r`.
    fn of(&self, r: Reg) -> Reg;

    /// Returns the register to define in place of `r`.
    fn define(&mut self, r: Reg) -> Reg;

    fn poly(&self, poly: &Poly<Reg>) -> Poly<Reg>;

    fn element(&self, buffer: BufferId, at: &Poly<Reg>) -> (BufferId, Poly<Reg>);

    /// Returns the copy of an instruction.
    fn instr(&mut self, instr: &Instr) -> Instr {
        match instr {
            Instr::Const { dst, value } => Instr::Const { dst: self.define(*dst), value: *value },
            Instr::Int { dst, value } => {
                let value = self.poly(value);
                Instr::Int { dst: self.define(*dst), value }
            }
            Instr::Op { dst, op, args } => {
                let args = args.map(|r| self.of(r));
                Instr::Op { dst: self.define(*dst), op: *op, args }
            }
            Instr::MulAdd { dst, signs, args } => {
                let args = args.map(|r| self.of(r));
                Instr::MulAdd { dst: self.define(*dst), signs: *signs, args }
            }
            Instr::IntOp { dst, op, args, failure } => {
                let args = args.map(|r| self.of(r));
                Instr::IntOp { dst: self.define(*dst), op: *op, args, failure: *failure }
            }
            Instr::ToReal { dst, src } => {
                let src = self.of(*src);
                Instr::ToReal { dst: self.define(*dst), src }
            }
            Instr::ToInt { dst, src } => {
                let src = self.of(*src);
                Instr::ToInt { dst: self.define(*dst), src }
            }
            Instr::External { dst, function, args } => {
                let args = args.iter().map(|r| self.of(*r)).collect();
                Instr::External { dst: self.define(*dst), function: *function, args }
            }
            Instr::Load { dst, buffer, at } => {
                let (buffer, at) = self.element(*buffer, at);
                Instr::Load { dst: self.define(*dst), buffer, at }
            }
            Instr::Store { buffer, at, value } => {
                let (buffer, at) = self.element(*buffer, at);
                Instr::Store { buffer, at, value: self.of(*value) }
            }
            Instr::CheckIndex { index, len, failure } => {
                Instr::CheckIndex { index: self.of(*index), len: self.poly(len), failure: *failure }
            }
        }
    }
}

impl Copies for Copier<'_> {
    fn of(&self, r: Reg) -> Reg {
        self.map.get(&r).copied().unwrap_or(r)
    }

    fn define(&mut self, r: Reg) -> Reg {
        if !self.fresh {
            return r;
        }
        let new = self.regs.copy(r);
        self.map.insert(r, new);
        new
    }

    fn poly(&self, poly: &Poly<Reg>) -> Poly<Reg> {
        if poly.as_constant().is_some() {
            return poly.clone();
        }
        poly.substitute(|r| if r == self.index { self.by.clone() } else { Poly::var(self.of(r)) })
    }

    fn element(&self, buffer: BufferId, at: &Poly<Reg>) -> (BufferId, Poly<Reg>) {
        let at = self.poly(at);
        match (self.buffers.get(&buffer), self.lane) {
            (Some(wide), Some(lane)) => (*wide, at.scale(LANES).add(&Poly::var(lane))),
            (Some(other), None) => (*other, at),
            (None, _) => (buffer, at),
        }
    }
}

impl Copier<'_> {
    pub fn block(&mut self, body: &[Stmt]) -> Vec<Stmt> {
        body.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Straight(code) => Stmt::Straight(code.iter().map(|instr| self.instr(instr)).collect()),
            Stmt::For { index, count, carried, order, body } => {
                let count = self.poly(count);
                let inits: Vec<Reg> = carried.iter().map(|c| self.of(c.init)).collect();
                let vars: Vec<Reg> = carried.iter().map(|c| self.define(c.var)).collect();
                let index = self.define(*index);
                let body = self.block(body);
                let carried = carried.iter().zip(inits).zip(vars);
                let carried = carried.map(|((c, init), var)| Carried { var, init, next: self.of(c.next) }).collect();
                Stmt::For { index, count, carried, order: *order, body }
            }
            Stmt::While { limit, carried, condition, holds, body, failure } => {
                let limit = self.poly(limit);
                let inits: Vec<Reg> = carried.iter().map(|c| self.of(c.init)).collect();
                let vars: Vec<Reg> = carried.iter().map(|c| self.define(c.var)).collect();
                let condition = self.block(condition);
                let holds = self.of(*holds);
                let body = self.block(body);
                let carried = carried.iter().zip(inits).zip(vars);
                let carried = carried.map(|((c, init), var)| Carried { var, init, next: self.of(c.next) }).collect();
                Stmt::While { limit, carried, condition, holds, body, failure: *failure }
            }
            Stmt::If { condition, then, otherwise, choices } => {
                let (then, otherwise) = (self.block(then), self.block(otherwise));
                let choice = |c: &Choice| {
                    let (then, otherwise) = (self.of(c.then), self.of(c.otherwise));
                    Choice { var: self.define(c.var), then, otherwise }
                };
                let choices = choices.iter().map(choice).collect();
                Stmt::If { condition: self.of(*condition), then, otherwise, choices }
            }
            Stmt::Copy { to, from, len, .. } if self.lane.is_some() => {
                let (k, value) = (self.regs.push(Class::Int), self.regs.push(Class::Real));
                let next = |at: &Poly<Reg>| at.add(&Poly::var(k));
                let (buffer, at) = self.element(from.0, &next(&from.1));
                let load = Instr::Load { dst: value, buffer, at };
                let (buffer, at) = self.element(to.0, &next(&to.1));
                let body = vec![Stmt::Straight(vec![load, Instr::Store { buffer, at, value }])];
                Stmt::For { index: k, count: self.poly(len), carried: Vec::new(), order: Order::InOrder, body }
            }
            Stmt::Copy { to, from, len, is_move } => {
                let (to, from) = (self.element(to.0, &to.1), self.element(from.0, &from.1));
                Stmt::Copy { to, from, len: self.poly(len), is_move: *is_move }
            }
        }
    }
}
