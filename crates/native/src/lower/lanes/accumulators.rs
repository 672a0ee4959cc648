//! Partial sums of lane loops that stay in vector registers between blocks, and their reduction.
//!
//! A vectorised loop keeps the partial results of a sum in eight elements of the workspace, which its blocks load and
//! store, and which are added up after the loop: halves of a vector, then halves of the rest. If all lanes are one
//! vector and nothing else accesses these elements, they need no memory. The reduction uses halves of vectors, also for
//! elements in memory.

use crate::asm::{Arith, Half, Shape, Xmm};
use crate::lower::copies;
use crate::lower::homes::Homes;
use crate::lower::lanes::ACTIVE;
use crate::lower::plan::{Home, NEVER, Number, calls};
use crate::lower::survey::{Survey, weight};
use crate::lower::{Result, Writer};
use chainrule_base::{Id, Poly};
use chainrule_kernel::addresses::at_first;
use chainrule_kernel::{BufferId, Class, Event, Instr, Kernel, LANES, Place, Reg};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};

/// Number of operators that reduce [`LANES`] elements.
const STEPS: usize = LANES as usize - 1;

/// Number of instructions of a reduction tree: loads, then operators.
pub(in crate::lower) const TREE: usize = LANES as usize + STEPS;

/// A reduction of elements to one.
#[derive(Debug)]
pub(in crate::lower) struct Tree {
    op: Arith,
    /// Whether the instruction takes its arguments in the other order.
    is_exchanged: bool,
    buffer: BufferId,
    /// First of the elements.
    first: Poly<Reg>,
    dst: Reg,
}

impl Tree {
    /// Returns the first of the elements, if they are a vector that may stay in a register.
    fn vector(&self) -> Option<i64> {
        self.first.as_constant().filter(|first| first % LANES == 0)
    }
}

/// Partial sums in vector registers.
#[derive(Default, Debug)]
pub(in crate::lower) struct Accumulators {
    /// Value location of each vector, by buffer and first element.
    vectors: BTreeMap<(BufferId, i64), Number>,
    /// Reduction trees, by the number of the first event.
    pub trees: BTreeMap<u32, Tree>,
}

impl Accumulators {
    /// Returns whether there are any.
    pub(in crate::lower) fn are_some(&self) -> bool {
        !self.vectors.is_empty()
    }

    /// Returns whether all of a buffer stays in vectors.
    pub(in crate::lower) fn holds(&self, buffer: BufferId) -> bool {
        self.vectors.range((buffer, i64::MIN)..=(buffer, i64::MAX)).next().is_some()
    }
}

/// Accesses of a buffer.
struct Seen {
    first: u32,
    last: u32,
    /// Loop around the first access, if all other accesses are inside it too.
    around: Option<u32>,
    /// Loop around the last access.
    around_last: Option<u32>,
    is_other: bool,
    weights: BTreeMap<i64, u64>,
}

/// Finds the buffers that only the loops of `once` access, and the reductions of these and others. Other kernels access
/// the buffers `shared`, which are in ascending order.
pub(in crate::lower) fn plan(
    kernel: &Kernel,
    shared: &[BufferId],
    events: &[Event<'_>],
    once: &BTreeMap<u32, Reg>,
    survey: &Survey,
    homes: &mut Homes<'_>,
) -> Accumulators {
    let mut found = Accumulators::default();
    if once.is_empty() {
        return found;
    }
    let mut seen: BTreeMap<BufferId, Seen> = BTreeMap::new();
    let mut open: Vec<u32> = Vec::new();
    let mut lane: Option<Reg> = None;
    // Number of preceding calls outside lane loops.
    let mut calls_before = vec![0u32];
    let mut until = 0;
    for (at, event) in (1u32..).zip(events) {
        let is_call = match event {
            Event::Instr(instr) => lane.is_none() && calls(instr),
            Event::Copy { to, from, len, .. } => copies::is_call(to, from, len),
            _ => false,
        };
        calls_before.push(calls_before[at as usize - 1] + u32::from(is_call));
        let mut access = |buffer: BufferId, element: Option<i64>, last: u32| {
            let around = open.last().copied();
            let new = Seen { first: at, last, around, around_last: around, is_other: false, weights: BTreeMap::new() };
            let of_buffer = seen.entry(buffer).or_insert(new);
            (of_buffer.last, of_buffer.around_last) = (last, around);
            match element {
                Some(first) => {
                    *of_buffer.weights.entry(first).or_insert(0) += weight(survey.depth[at as usize]);
                }
                None => of_buffer.is_other = true,
            }
        };
        match event {
            Event::For { index, .. } if once.contains_key(&at) => lane = Some(*index),
            Event::EndFor { index, .. } if lane == Some(*index) => lane = None,
            Event::For { .. } | Event::While { .. } => open.push(at),
            Event::EndFor { .. } | Event::EndWhile { .. } => {
                open.pop();
            }
            Event::Copy { to, from, .. } => [to.0, from.0].into_iter().for_each(|b| access(b, None, at)),
            Event::Instr(Instr::Load { buffer, at: address, .. } | Instr::Store { buffer, at: address, .. }) => {
                if at < until {
                    continue;
                }
                let tree = lane.is_none().then(|| tree(events, at, survey)).flatten();
                if let Some(tree) = tree {
                    until = at + TREE as u32;
                    access(*buffer, tree.vector(), until - 1);
                    found.trees.insert(at, tree);
                } else {
                    access(*buffer, lane.and_then(|lane| vector(address, lane)), at);
                }
            }
            _ => {}
        }
    }
    let fits = |buffer: &BufferId, seen: &Seen| {
        let of = &kernel.buffers[*buffer];
        of.class == Class::Real
            && matches!(of.place, Place::Workspace(_))
            && !seen.is_other
            && shared.binary_search(buffer).is_err()
            && seen.around == seen.around_last
            && calls_before[seen.last as usize] == calls_before[seen.first as usize]
    };
    seen.retain(|buffer, seen| fits(buffer, seen));
    let read: BTreeSet<BufferId> = found.trees.values().map(|tree| tree.buffer).collect();
    for (buffer, seen) in seen.iter().filter(|(buffer, _)| read.contains(buffer)) {
        for (first, weight) in &seen.weights {
            found.vectors.insert((*buffer, *first), homes.vector(seen.first, seen.last, *weight));
        }
    }
    found
}

/// Returns the first of the elements accessed by the lanes of the loop over `lane`, one each, if they are a vector.
fn vector(address: &Poly<Reg>, lane: Reg) -> Option<i64> {
    let (slope, _) = address.split_linear(lane)?;
    let first = at_first(address, lane).as_constant()?;
    (slope.as_constant() == Some(1) && first % LANES == 0).then_some(first)
}

/// Returns the reduction tree that starts at event `at`, if nothing else reads its intermediate results.
fn tree(events: &[Event<'_>], at: u32, survey: &Survey) -> Option<Tree> {
    let instrs = events.get(at as usize - 1..at as usize - 1 + TREE)?;
    let instr = |i: usize| if let Event::Instr(instr) = instrs[i] { Some(instr) } else { None };
    let Instr::Load { buffer, at: from, .. } = instr(0)? else { return None };
    let mut parts = Vec::with_capacity(LANES as usize);
    for l in 0..LANES as usize {
        match instr(l)? {
            Instr::Load { dst, buffer: b, at } if b == buffer && *at == from.add(&Poly::constant(l as i64)) => {
                parts.push(*dst);
            }
            _ => return None,
        }
    }
    let Instr::Op { op, .. } = instr(LANES as usize)? else { return None };
    let (arith, is_exchanged) = match op {
        Op::Add => (Arith::Add, false),
        Op::Mul => (Arith::Mul, false),
        Op::Min => (Arith::Min, true),
        Op::Max => (Arith::Max, true),
        _ => return None,
    };
    let mut next = LANES as usize;
    while parts.len() > 1 {
        let half = parts.len() / 2;
        let mut halves = Vec::with_capacity(half);
        for i in 0..half {
            match instr(next)? {
                Instr::Op { dst, op: o, args: [a, b, _] } if o == op && [*a, *b] == [parts[i], parts[i + half]] => {
                    halves.push(*dst);
                }
                _ => return None,
            }
            next += 1;
        }
        if parts.iter().any(|part| survey.uses(*part) != 1) {
            return None;
        }
        parts = halves;
    }
    Some(Tree { op: arith, is_exchanged, buffer: *buffer, first: from.clone(), dst: parts[0] })
}

impl Writer<'_> {
    /// Returns the location of the vector accessed by the lanes at `at`.
    pub(in crate::lower) fn accumulator(&self, buffer: BufferId, at: &Poly<Reg>) -> Option<Home> {
        if !self.plan.accumulators.are_some() {
            return None;
        }
        let first = self.first_lane(at)?.as_constant()?;
        self.plan.accumulators.vectors.get(&(buffer, first)).map(|number| self.plan.home(*number))
    }

    pub(in crate::lower) fn load_accumulator(&mut self, dst: Reg, home: Home) -> Result<()> {
        let next = self.next_use();
        if self.plan.home(dst.index()) == Home::Local && next == NEVER {
            return Ok(());
        }
        let d = self.destination(dst, next)?;
        self.read_vector(d, home)?;
        self.defined(dst, d, next);
        Ok(())
    }

    pub(in crate::lower) fn store_accumulator(&mut self, value: Reg, home: Home) -> Result<()> {
        let next = self.next_use();
        let x = self.in_register(value, next)?;
        match home {
            Home::Xmm(to) if self.has_mask() => self.asm.mov_merging(self.lanes.shape, to, ACTIVE, x),
            Home::Xmm(to) => self.asm.mov(self.lanes.shape, to, x),
            Home::Slot(slot) => {
                let mem = self.frame.slot(slot);
                if self.has_mask() {
                    self.asm.store_masked(self.lanes.shape, mem, ACTIVE, x);
                } else {
                    self.asm.store(self.lanes.shape, mem, x);
                }
            }
            _ => return Err(crate::lower::bug("a vector has no place")),
        }
        self.release(value, next);
        Ok(())
    }

    fn read_vector(&mut self, d: Xmm, home: Home) -> Result<()> {
        match home {
            Home::Xmm(from) => self.asm.mov(Shape::Eight, d, from),
            Home::Slot(slot) => {
                let mem = self.frame.slot(slot);
                self.asm.load(Shape::Eight, d, mem);
            }
            _ => return Err(crate::lower::bug("a vector has no place")),
        }
        Ok(())
    }

    /// Reduces the elements of a tree, from a register or from memory.
    pub(in crate::lower) fn put_together(&mut self, tree: &Tree) -> Result<()> {
        let vector = tree.vector().and_then(|first| self.plan.accumulators.vectors.get(&(tree.buffer, first)));
        let home = vector.map(|number| self.plan.home(*number));
        // One next use of each load, three of each operator; the last one is that of the result.
        for _ in 0..LANES as usize + 3 * STEPS - 1 {
            self.next_use();
        }
        let next = self.next_use();
        let (x, y) = (self.temporary()?, self.temporary()?);
        match home {
            Some(home) => self.read_vector(x, home)?,
            None => {
                // Checks both ends.
                let _ = self.address(tree.buffer, &tree.first.add(&Poly::constant(LANES - 1)))?;
                let mem = self.address(tree.buffer, &tree.first)?;
                self.asm.load(Shape::Eight, x, mem);
            }
        }
        let (a, b) = if tree.is_exchanged { (y, x) } else { (x, y) };
        self.asm.half(Shape::Eight, y, x, Half::Upper);
        self.asm.arith(tree.op, Shape::Four, x, a, b);
        self.asm.half(Shape::Four, y, x, Half::Upper);
        // Two lanes as four: the upper ones are ignored.
        self.asm.arith(tree.op, Shape::Four, x, a, b);
        self.asm.permute_pairs(Shape::One, y, x, 1);
        self.asm.arith(tree.op, Shape::One, x, a, b);
        self.registers.give_back(y);
        self.registers.unlock(y);
        self.registers.give_back(x);
        self.registers.unlock(x);
        if self.plan.home(tree.dst.index()) == Home::Local && next == NEVER {
            return Ok(());
        }
        let d = self.destination(tree.dst, next)?;
        if d != x {
            self.asm.mov(Shape::One, d, x);
        }
        self.defined(tree.dst, d, next);
        Ok(())
    }
}
