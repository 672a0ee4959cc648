//! Unroll-and-jam of lane loops.
//!
//! In: a loop that is cut into blocks and contains other loops. Out: one iteration for several blocks, with each inner
//! loop once. Uniform values are loaded once, accumulators are loaded and stored once, and there are as many
//! independent sums as blocks.
//!
//! ```text
//! for b in 0..n/8                          for g in 0..n/8/4
//!   for l in 0..8 at once                    for l in 0..8 at once
//!     for j in 0..m                            for j in 0..m
//!       d[j, l] = d[j, l] + q[j] * x[8 b + l]    q' = q[j]
//!                                                d[j, l] = (((d[j, l] + q' * x[32 g + l]) + q' * x[32 g + 8 + l]) + ..
//! ```
//!
//! Invariants: each iteration computes the same values; private memory and partial sums get a copy for each block;
//! memory is added to in the order of the blocks.

use super::Plan;
use super::rewrite::{Copies, Cutter, LaneBuffers, Loop, reads};
use crate::kernel::{BufferId, Carried, Choice, Class, Instr, LANES, Order, Reg, Stmt};
use crate::rebuild::is_nothing;
use crate::registers::Registers;
use chainrule_base::Poly;
use std::collections::BTreeMap;

/// Returns the index of a lane's partial result of sum `k`, in block `t` of `blocks` jammed blocks.
pub(super) fn partial_at(k: i64, t: i64, blocks: i64, lane: Reg) -> Poly<Reg> {
    Poly::var(lane).add(&Poly::constant((k * blocks + t) * LANES))
}

/// Groups of jammed blocks.
pub(super) struct Groups {
    /// Number of blocks in a group: as many as the plan has space for, or fewer.
    pub of: i64,
    /// First block of the first group.
    pub first: Poly<Reg>,
    /// Number of groups.
    pub count: Poly<Reg>,
    /// Iterations between the blocks of a group, and blocks between groups.
    pub steps: (Poly<Reg>, i64),
}

impl Groups {
    /// Returns the first block after all groups.
    pub(super) fn end(all: &[Self]) -> Poly<Reg> {
        all.last().map_or_else(Poly::zero, |last| last.first.add(&last.count.scale(last.of)))
    }
}

impl Cutter<'_> {
    /// Returns the loop over groups of blocks. `spread` maps buffers to copies with an element for each lane, and for
    /// each block if they are private.
    pub(super) fn jammed(&mut self, plan: &Plan, the: &Loop, groups: &Groups, wide: LaneBuffers<'_>) -> Stmt {
        let (group, lane) = (self.int(), self.int());
        let (step, of) = &groups.steps;
        let first = groups.first.add(&Poly::var(group).scale(*of)).scale(LANES).add(&Poly::var(lane));
        let by: Vec<Poly<Reg>> = (0..groups.of).map(|t| first.add(&step.scale(t))).collect();
        let mut varying: Vec<BTreeMap<Reg, Reg>> = vec![BTreeMap::new(); by.len()];
        let mut first = Vec::new();
        for (t, map) in (0..).zip(&mut varying) {
            for ((k, c), buffer) in (0..).zip(&the.carried).zip(wide.partial.into_iter().cycle()) {
                let so_far = self.real();
                map.insert(c.var, so_far);
                first.push(Instr::Load { dst: so_far, buffer, at: partial_at(k, t, plan.blocks, lane) });
            }
        }
        if reads(&the.body, the.index) {
            for (at, map) in by.iter().zip(&mut varying) {
                let index = self.int_of(&mut first, at.clone());
                map.insert(the.index, index);
            }
        }
        let regs = &mut self.kernel.regs;
        let lane_at = Poly::var(lane);
        let uniform = BTreeMap::new();
        let mut jam = Jam { regs, varying, uniform, index: the.index, by, lane: lane_at, spread: wide.spread, plan };
        let mut body = vec![Stmt::Straight(first)];
        body.extend(jam.block(&the.body));
        let mut last = Vec::new();
        for t in 0..groups.of {
            for ((k, c), buffer) in (0..).zip(&the.carried).zip(wide.partial.into_iter().cycle()) {
                let value = jam.of(c.next, t as usize);
                last.push(Instr::Store { buffer, at: partial_at(k, t, plan.blocks, lane), value });
            }
        }
        body.push(Stmt::Straight(last));
        body.retain(|stmt| !is_nothing(stmt));
        let (count, carried) = (Poly::constant(LANES), Vec::new());
        let lanes = Stmt::For { index: lane, count, carried, order: Order::Lanes, body };
        let (count, carried) = (groups.count.clone(), Vec::new());
        Stmt::For { index: group, count, carried, order: Order::InOrder, body: vec![lanes] }
    }
}

/// Copies statements of an iteration for several blocks or iterations. Recurses on the bounded nesting of loops that
/// are cut.
pub(super) struct Jam<'a> {
    pub(super) regs: &'a mut Registers,
    /// New registers of each block, for old ones that differ between iterations.
    pub(super) varying: Vec<BTreeMap<Reg, Reg>>,
    /// New registers for the others.
    pub(super) uniform: BTreeMap<Reg, Reg>,
    /// Index of the loop.
    pub(super) index: Reg,
    /// Index of each block.
    pub(super) by: Vec<Poly<Reg>>,
    pub(super) lane: Poly<Reg>,
    /// Copies of buffers with an element for each lane.
    pub(super) spread: &'a BTreeMap<BufferId, BufferId>,
    pub(super) plan: &'a Plan,
}

impl Jam<'_> {
    /// Returns the register for `r` in block `t`.
    pub fn of(&self, r: Reg, t: usize) -> Reg {
        self.varying[t].get(&r).or_else(|| self.uniform.get(&r)).copied().unwrap_or(r)
    }

    fn varies(&self, r: Reg) -> bool {
        r == self.index || self.varying[0].contains_key(&r)
    }

    fn poly(&self, poly: &Poly<Reg>, t: usize) -> Poly<Reg> {
        if poly.as_constant().is_some() {
            return poly.clone();
        }
        poly.substitute(|r| if r == self.index { self.by[t].clone() } else { Poly::var(self.of(r, t)) })
    }

    fn poly_varies(&self, poly: &Poly<Reg>) -> bool {
        poly.vars().into_iter().any(|r| self.varies(r))
    }

    fn element(&self, buffer: BufferId, at: &Poly<Reg>, t: usize) -> (BufferId, Poly<Reg>) {
        let at = self.poly(at, t);
        match self.spread.get(&buffer) {
            Some(wide) if self.plan.private.contains(&buffer) => {
                let first = Poly::constant(t as i64 * LANES);
                (*wide, at.scale(LANES * self.plan.blocks).add(&first).add(&self.lane))
            }
            Some(wide) => (*wide, at.scale(LANES).add(&self.lane)),
            None => (buffer, at),
        }
    }

    /// Defines `r` once.
    fn define_once(&mut self, r: Reg) -> Reg {
        let new = self.regs.copy(r);
        self.uniform.insert(r, new);
        new
    }

    /// Defines `r` for block `t`.
    fn define(&mut self, r: Reg, t: usize) -> Reg {
        let new = self.regs.copy(r);
        self.varying[t].insert(r, new);
        new
    }

    /// Iterates over the uniform registers, old and new.
    pub fn uniform(&self) -> impl Iterator<Item = (Reg, Reg)> + '_ {
        self.uniform.iter().map(|(old, new)| (*old, *new))
    }

    /// Copies the blocks in sequence: each continues with the carried values and memory of the previous one.
    pub fn one_by_one(&mut self, body: &[Stmt], carried: &[Carried]) -> Vec<Instr> {
        let mut out = Vec::new();
        for t in 0..self.by.len() {
            for c in carried {
                let so_far = if t == 0 { c.var } else { self.of(c.next, t - 1) };
                self.varying[t].insert(c.var, so_far);
            }
            for instr in body.iter().flat_map(|stmt| if let Stmt::Straight(code) = stmt { &code[..] } else { &[] }) {
                let differs = self.differs(instr);
                if differs || t == 0 {
                    let copy = self.instr(instr, differs.then_some(t));
                    out.push(copy);
                }
            }
        }
        out
    }

    /// Copies the statements of all blocks.
    pub fn block(&mut self, body: &[Stmt]) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        let mut at = 0;
        while at < body.len() {
            if !matches!(body[at], Stmt::Straight(_)) {
                let stmt = self.stmt(&body[at]);
                out.extend(stmt);
                at += 1;
                continue;
            }
            // An update is loaded and stored in one straight-line sequence, even if it is split over blocks.
            let stretch: Vec<&Instr> = body[at..]
                .iter()
                .map_while(|stmt| if let Stmt::Straight(code) = stmt { Some(code) } else { None })
                .flatten()
                .collect();
            at += body[at..].iter().take_while(|stmt| matches!(stmt, Stmt::Straight(_))).count();
            out.push(Stmt::Straight(self.straight(&stretch)));
        }
        out
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        Some(match stmt {
            Stmt::For { index, count, carried, order, body } => {
                let count = self.poly(count, 0);
                let inits: Vec<Vec<Reg>> = carried.iter().map(|c| self.each(|jam, t| jam.of(c.init, t))).collect();
                let vars: Vec<Vec<Reg>> = carried.iter().map(|c| self.each(|jam, t| jam.define(c.var, t))).collect();
                let index = self.define_once(*index);
                let body = self.block(body);
                let mut all = Vec::with_capacity(carried.len() * self.by.len());
                for ((c, inits), vars) in carried.iter().zip(inits).zip(vars) {
                    for (t, (init, var)) in inits.into_iter().zip(vars).enumerate() {
                        all.push(Carried { var, init, next: self.of(c.next, t) });
                    }
                }
                Stmt::For { index, count, carried: all, order: *order, body }
            }
            Stmt::If { condition, then, otherwise, choices } => {
                let condition = self.of(*condition, 0);
                let (then, otherwise) = (self.block(then), self.block(otherwise));
                let mut all = Vec::with_capacity(choices.len() * self.by.len());
                for c in choices {
                    for t in 0..self.by.len() {
                        let (then, otherwise) = (self.of(c.then, t), self.of(c.otherwise, t));
                        all.push(Choice { var: self.define(c.var, t), then, otherwise });
                    }
                }
                Stmt::If { condition, then, otherwise, choices: all }
            }
            Stmt::Copy { to, from, len, .. } => {
                let k = self.regs.push(Class::Int);
                let next = |at: &Poly<Reg>| at.add(&Poly::var(k));
                let mut code = Vec::with_capacity(2 * self.by.len());
                for t in 0..self.by.len() {
                    let value = self.regs.push(Class::Real);
                    let (buffer, at) = self.element(from.0, &next(&from.1), t);
                    code.push(Instr::Load { dst: value, buffer, at });
                    let (buffer, at) = self.element(to.0, &next(&to.1), t);
                    code.push(Instr::Store { buffer, at, value });
                }
                let (count, body) = (self.poly(len, 0), vec![Stmt::Straight(code)]);
                Stmt::For { index: k, count, carried: Vec::new(), order: Order::InOrder, body }
            }
            // Lane loops contain no `while`; straight-line code is merged above.
            Stmt::While { .. } | Stmt::Straight(_) => return None,
        })
    }

    fn each<T>(&mut self, mut f: impl FnMut(&mut Self, usize) -> T) -> Vec<T> {
        (0..self.by.len()).map(|t| f(self, t)).collect()
    }

    fn straight(&mut self, code: &[&Instr]) -> Vec<Instr> {
        let mut out = Vec::with_capacity(code.len() * self.by.len());
        let mut later: Vec<Vec<&Instr>> = Vec::new();
        // What one block loads, another loads from the same address: rows of a stencil overlap.
        let mut loaded: BTreeMap<(BufferId, Poly<Reg>), Reg> = BTreeMap::new();
        for instr in code {
            match instr {
                Instr::Load { buffer, .. } if self.is_added(*buffer) => {
                    later.push(vec![*instr]);
                    continue;
                }
                Instr::Store { buffer, value, .. } if self.is_added(*buffer) => {
                    if let Some(chain) = later.iter_mut().find(|chain| last(chain) == Some(*value)) {
                        chain.push(*instr);
                    }
                    continue;
                }
                Instr::Op { op, args, .. } => {
                    let chain = later
                        .iter_mut()
                        .find(|chain| last(chain).is_some_and(|so_far| args[..op.arity()].contains(&so_far)));
                    if let Some(chain) = chain {
                        chain.push(*instr);
                        continue;
                    }
                }
                _ => {}
            }
            if self.differs(instr) {
                for t in 0..self.by.len() {
                    let copy = self.instr(instr, Some(t));
                    match (instr, &copy) {
                        (Instr::Load { dst: old, .. }, Instr::Load { dst, buffer, at }) => {
                            let value = *loaded.entry((*buffer, at.clone())).or_insert(*dst);
                            self.varying[t].insert(*old, value);
                            if value != *dst {
                                continue;
                            }
                        }
                        (_, Instr::Store { buffer, .. }) => loaded.retain(|(other, _), _| other != buffer),
                        _ => {}
                    }
                    out.push(copy);
                }
            } else {
                let copy = self.instr(instr, None);
                out.push(copy);
            }
        }
        for chain in later {
            self.chain(&chain, &mut out);
        }
        out
    }

    /// Copies an update for all blocks with one load and one store.
    fn chain(&mut self, chain: &[&Instr], out: &mut Vec<Instr>) {
        let [Instr::Load { dst, buffer, at }, steps @ .., Instr::Store { value, .. }] = chain else { return };
        let mut so_far = self.regs.push(Class::Real);
        let (buffer, at) = self.element(*buffer, at, 0);
        out.push(Instr::Load { dst: so_far, buffer, at: at.clone() });
        for t in 0..self.by.len() {
            self.varying[t].insert(*dst, so_far);
            for step in steps {
                let copy = self.instr(step, Some(t));
                out.push(copy);
            }
            so_far = self.of(*value, t);
        }
        out.push(Instr::Store { buffer, at, value: so_far });
    }

    /// Returns whether `buffer` is an accumulator, so that each iteration reads the previous one's result.
    fn is_added(&self, buffer: BufferId) -> bool {
        self.plan.accumulators.contains(&buffer)
    }

    /// Returns whether `instr` differs between iterations.
    fn differs(&self, instr: &Instr) -> bool {
        match instr {
            Instr::Const { .. } => false,
            Instr::Int { value, .. } => self.poly_varies(value),
            Instr::Op { op, args, .. } | Instr::IntOp { op, args, .. } => {
                args[..op.arity()].iter().any(|r| self.varies(*r))
            }
            Instr::MulAdd { args, .. } => args.iter().any(|r| self.varies(*r)),
            Instr::ToReal { src, .. } | Instr::ToInt { src, .. } => self.varies(*src),
            Instr::External { args, .. } => args.iter().any(|r| self.varies(*r)),
            Instr::Load { buffer, at, .. } => {
                self.spread.contains_key(buffer) || self.is_added(*buffer) || self.poly_varies(at)
            }
            Instr::Store { .. } => true,
            Instr::CheckIndex { index, len, .. } => self.varies(*index) || self.poly_varies(len),
        }
    }

    /// Copies `instr` for block `t`, or once for all blocks.
    fn instr(&mut self, instr: &Instr, t: Option<usize>) -> Instr {
        InBlock { jam: self, t }.instr(instr)
    }
}

/// Copier for one block, or once for all blocks.
struct InBlock<'j, 'a> {
    jam: &'j mut Jam<'a>,
    t: Option<usize>,
}

impl InBlock<'_, '_> {
    /// Returns the block; uniform values are those of the first.
    fn block(&self) -> usize {
        self.t.unwrap_or(0)
    }
}

impl Copies for InBlock<'_, '_> {
    fn of(&self, r: Reg) -> Reg {
        self.jam.of(r, self.block())
    }

    fn define(&mut self, r: Reg) -> Reg {
        match self.t {
            Some(t) => self.jam.define(r, t),
            None => self.jam.define_once(r),
        }
    }

    fn poly(&self, poly: &Poly<Reg>) -> Poly<Reg> {
        self.jam.poly(poly, self.block())
    }

    fn element(&self, buffer: BufferId, at: &Poly<Reg>) -> (BufferId, Poly<Reg>) {
        self.jam.element(buffer, at, self.block())
    }
}

/// Returns the result of the last instruction of an incomplete update; `None` once it is stored.
fn last(chain: &[&Instr]) -> Option<Reg> {
    match chain.last()? {
        Instr::Load { dst, .. } | Instr::Op { dst, .. } => Some(*dst),
        _ => None,
    }
}
