//! Decisions before emission: the location of each value, and its next uses.
//!
//! In: a kernel. Out: a [`Plan`].
//!
//! **Blocks.** A block is a sequence of instructions without control flow. A value that is defined and used in one
//! block is *local*: in each block, [`registers`](super::registers) allocates registers by next use. All other values
//! are *global*: each has one location for its whole live interval, a register or a part of the frame.
//!
//! **Straight-line code** without integers has no globals except the pointers of buffers. If it also has no truth
//! values, a single backward walk over its instructions suffices ([`straight`](super::straight)).
//!
//! **Next uses** are found in a backward walk, and stored in reverse order of the forward walk that reads them.

pub(in crate::lower) mod assign;
pub(in crate::lower) mod homes;
pub(in crate::lower) mod spans;
pub(in crate::lower) mod survey;

use super::accumulators::{self, Accumulators};
use super::assign::{Assigned, assign_pointers};
use super::copies;
use super::frame::Words;
use super::homes::{Homes, Lanes};
use super::lanes::{self, LanePlan, Planner};
use super::pieces::{self, Crossing, Piece};
use super::straight::{Straight, has_only_numbers};
use super::survey::Survey;
use super::{n_lanes, pointers};
use crate::asm::{Gpr, Shape, Xmm};
use crate::level::Level;
use chainrule_base::{Diagnostic, Id, Poly};
use chainrule_kernel::addresses::kept_addresses;
use chainrule_kernel::{BufferId, Class, Event, Instr, Kernel, LANES, Liveness, Part, Place, Reg, events, parts};
use chainrule_ops::Op;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// No further use.
pub(super) const NEVER: u32 = u32::MAX;

/// Kind of a register's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A double in each lane.
    Real,
    /// A truth value in each lane: all bits or none.
    Truth,
    /// One integer.
    Int,
}

/// Location of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Home {
    /// Local to its block.
    Local,
    /// In a vector register.
    Xmm(Xmm),
    /// In a slot of the frame for reals.
    Slot(u32),
    /// In a general register.
    Gpr(Gpr),
    /// In a word of the frame.
    Word(u32),
}

/// An integer added by the plan; also an index into [`Plan::homes`].
pub(super) type Number = usize;

/// Plan of a loop.
#[derive(Default, Debug)]
pub(super) struct LoopPlan {
    /// Number of iterations, or their limit; has no location if it is a small constant.
    pub count: Number,
    /// Number of iterations if it is a small constant.
    pub known_count: Option<i32>,
    /// Counter of the iterations of a conditional loop.
    pub counter: Number,
    /// Address that replaces the index, one of `kept`.
    pub counted: Option<Counted>,
    pub kept: Vec<Kept>,
    /// Plan of a lane loop.
    pub lanes: Option<LanePlan>,
    /// Values broadcast before the loop for lane loops in it, with their locations.
    pub spread: BTreeMap<Reg, Number>,
}

/// A loop that is controlled by an address that starts at 0, because its index only occurs in cached addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// Location of the address.
    pub place: Number,
    /// Step in elements.
    pub step: i64,
    /// End in elements, if it is a small constant; otherwise it is in the location of the number of iterations.
    pub end: Option<i32>,
}

/// A cached address of a loop.
#[derive(Debug)]
pub(super) struct Kept {
    /// The address without constant terms.
    pub address: Poly<Reg>,
    pub at: KeptAt,
    pub step: Step,
    /// Number of accesses in an iteration.
    pub accesses: u64,
}

/// Location of a cached address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeptAt {
    pub place: Number,
    /// Buffer that the pointer points into; `None` if it is a number of elements, times the number of points.
    pub within: Option<BufferId>,
    /// The address that controls the loop: the pointer is the one of the first iteration, so many elements before.
    pub after: Option<Number>,
}

impl KeptAt {
    /// Returns the size of an element in its unit, for one point.
    pub(super) fn unit(self) -> i64 {
        if self.within.is_some() { 8 } else { 1 }
    }
}

/// Step of a cached address in one iteration.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A constant number of elements.
    Constant(i64),
    /// A number that is computed before the loop.
    Number(Number, Poly<Reg>),
}

/// A stretch of the kernel. Its events are numbered from 1; each instruction is one.
#[derive(Clone, Copy)]
pub(super) enum Stretch<'k> {
    /// Instructions, and the number of the first.
    Block(u32, &'k [Instr]),
    /// A control event, and its number.
    Control(u32, Event<'k>),
}

/// Plan of a kernel.
pub(super) struct Plan<'k> {
    pub stretches: Vec<Stretch<'k>>,
    pub n_events: usize,
    pub kinds: Vec<Kind>,
    /// Locations of values that outlive their block.
    assigned: Assigned,
    /// Next use in the block of each operand of each instruction, in the order of [`operands`], and of its result. In
    /// reverse order.
    pub next: Vec<u32>,
    /// Whether each load that is not of an input may be delayed to its first use, by number of event; empty if there is
    /// none.
    lazy: Vec<bool>,
    pub facts: Facts,
    /// Comparisons of integers that only the following branch reads, by number of event.
    pub fused: BTreeSet<u32>,
    pub accumulators: Accumulators,
    /// Plans of loops, by number of the opening event.
    pub loops: BTreeMap<u32, LoopPlan>,
    /// Pointers with locations of their own, by number of the opening event of their loop; in straight-line code all
    /// have locations, everywhere.
    pub pointers: BTreeMap<u32, Vec<(BufferId, Number)>>,
    pub words: Words,
    /// Whether there is neither control flow nor an integer.
    pub is_straight: bool,
    /// Chunks of straight-line code that is cut; otherwise empty.
    pub pieces: Vec<Piece<'k>>,
    /// Values that cross chunks, in the order of their definitions.
    pub crossings: Vec<Crossing>,
}

impl Plan<'_> {
    /// Returns the location of a register, a number or a pointer.
    #[inline]
    pub(super) fn home(&self, number: Number) -> Home {
        self.assigned.homes.get(number.wrapping_sub(self.assigned.first_home)).copied().unwrap_or(Home::Local)
    }

    /// Returns whether a function is called.
    #[inline]
    pub(super) fn has_calls(&self) -> bool {
        self.facts.calls > 0
    }

    /// Returns whether there is a lane loop.
    pub(super) fn has_lanes(&self) -> bool {
        self.loops.values().any(|plan| plan.lanes.is_some())
    }

    /// Returns whether there are values that outlive their block.
    #[inline]
    pub(super) fn has_globals(&self) -> bool {
        self.assigned.first_home == 0
    }

    /// Returns the slots of globals.
    pub(super) fn taken_slots(&self) -> Range<u32> {
        let first = if self.crossings.is_empty() { 0 } else { pieces::FIRST_SLOT };
        first..first + self.assigned.n_slots
    }

    /// Returns the definitions in these events that later chunks read.
    pub(super) fn crossings_of(&self, first: u32, last: u32) -> &[Crossing] {
        let [from, to] = [first, last + 1].map(|at| self.crossings.partition_point(|crossing| crossing.at < at));
        &self.crossings[from..to]
    }

    /// Returns the vector registers that hold globals anywhere, one bit each.
    pub(super) fn pinned(&self) -> u32 {
        self.assigned.vectors.iter().map(|(x, _)| 1 << x.0).sum()
    }

    /// Returns the vector registers whose globals are live across event `at`.
    pub(super) fn vectors_over(&self, at: u32) -> u32 {
        self.assigned.vectors.iter().filter(|(_, taken)| taken.is_over(at)).map(|(x, _)| 1 << x.0).sum()
    }

    /// Returns the vector register of global `r`, as a bit.
    pub(super) fn vector_of(&self, r: Reg) -> u32 {
        match self.home(r.index()) {
            Home::Xmm(x) => 1 << x.0,
            _ => 0,
        }
    }

    /// Returns the registers that may have locations.
    pub(super) fn globals(&self) -> std::ops::Range<usize> {
        if self.has_globals() { 0..self.kinds.len() } else { 0..0 }
    }

    /// Returns whether a general register is in use, or may be.
    pub(super) fn uses(&self, g: Gpr) -> bool {
        self.assigned.homes.contains(&Home::Gpr(g)) || self.assigned.generals.contains(&g)
    }

    /// Returns whether code for one point uses the upper lanes.
    pub(super) fn is_wide(&self) -> bool {
        self.has_lanes() || self.facts.has_copies
    }

    /// Returns the general registers that hold no global in these events.
    pub(super) fn spares(&self, from: u32, to: u32) -> impl Iterator<Item = Gpr> + '_ {
        let taken = self.assigned.spans.as_ref().map_or(0, |spans| spans.taken(from, to));
        self.assigned.generals.iter().enumerate().filter(move |(number, _)| taken >> number & 1 == 0).map(|(_, g)| *g)
    }

    /// Returns whether the load of this event, which is not of an input, may be delayed to its first use.
    pub(super) fn is_lazy(&self, at: u32) -> bool {
        self.lazy.get(at as usize).copied().unwrap_or(false)
    }

    /// Returns the next use if so many entries are left.
    #[inline]
    pub(super) fn next_when(&self, left: usize) -> Option<u32> {
        self.next.get(left.checked_sub(1)?).copied()
    }
}

/// Visits the operands of an instruction in vector registers.
pub(super) fn operands(instr: &Instr, kinds: &[Kind], mut visit: impl FnMut(Reg)) {
    match instr {
        Instr::Op { op, args, .. } => {
            args[..op.arity()].iter().filter(|r| kinds[r.index()] != Kind::Int).for_each(|r| visit(*r));
        }
        Instr::MulAdd { args, .. } => args.iter().for_each(|r| visit(*r)),
        Instr::External { args, .. } => args.iter().for_each(|r| visit(*r)),
        Instr::ToReal { src, .. } if kinds[src.index()] == Kind::Truth => visit(*src),
        Instr::ToInt { src, .. } => visit(*src),
        Instr::Store { value, .. } if kinds[value.index()] != Kind::Int => visit(*value),
        _ => {}
    }
}

/// Results of one forward walk over all instructions.
#[derive(Default)]
pub(super) struct Facts {
    /// Number of instructions that call a function, including copies.
    pub calls: u64,
    /// Number of constants.
    pub n_constants: usize,
    /// Approximate number of next uses.
    n_next: usize,
    /// Number of accesses of each buffer.
    pub accesses: Vec<u64>,
    /// Whether there is a copy.
    has_copies: bool,
    /// Whether each integer is 0 or 1; empty if there are none.
    bits: Vec<bool>,
}

impl Facts {
    /// Returns empty results.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut accesses = vec![0; kernel.buffers.len()];
        for zeros in &kernel.zeros {
            accesses[zeros.buffer.index()] += u64::from(zeros.which.count_ones());
        }
        Self { accesses, ..Self::default() }
    }

    /// Returns whether an integer is 0 or 1.
    pub(super) fn is_bit(&self, number: Number) -> bool {
        self.bits.get(number).is_some_and(|is_bit| *is_bit)
    }

    fn set_bit(&mut self, kernel: &Kernel, r: Reg) {
        if self.bits.is_empty() {
            self.bits = vec![false; kernel.regs.len()];
        }
        self.bits[r.index()] = true;
    }
}

/// Determines kinds. Truth values read only by scalar operators stay in vectors; those read as a number are one.
fn kinds(kernel: &Kernel, stretches: &[Stretch<'_>]) -> (Vec<Kind>, Facts) {
    let class = |class: &Class| if *class == Class::Real { Kind::Real } else { Kind::Int };
    let mut kinds: Vec<Kind> = kernel.regs.as_slice().iter().map(class).collect();
    let mut facts = Facts::new(kernel);
    let mut before: &[Instr] = &[];
    for stretch in stretches {
        match stretch {
            Stretch::Block(_, instrs) => {
                before = instrs;
                instrs.iter().for_each(|instr| kinds_of_instr(kernel, instr, &mut kinds, &mut facts));
            }
            Stretch::Control(_, event) => match event {
                Event::Instr(_) => {}
                // One of the previous block is tested in its location.
                Event::If { condition } if is_defined_in(std::mem::take(&mut before), *condition) => {}
                Event::Copy { to, from, len, .. } => {
                    facts.calls += u64::from(copies::is_call(to, from, len));
                    facts.has_copies = true;
                    numbers(&mut kinds, &[&to.1, &from.1, *len]);
                }
                Event::For { count: poly, carried, .. } | Event::While { limit: poly, carried } => {
                    numbers(&mut kinds, &[*poly]);
                    carried.iter().for_each(|c| number(&mut kinds, c.init));
                }
                Event::EndFor { carried, .. } | Event::EndWhile { carried } => {
                    carried.iter().for_each(|c| number(&mut kinds, c.next));
                }
                Event::Test { holds, .. } => number(&mut kinds, *holds),
                Event::If { condition } => number(&mut kinds, *condition),
                Event::Else { choices } => choices.iter().for_each(|c| number(&mut kinds, c.then)),
                Event::EndIf { choices } => choices.iter().for_each(|c| number(&mut kinds, c.otherwise)),
            },
        }
    }
    (kinds, facts)
}

/// Determines the kind of the result of `instr`, and records its uses of truth values as numbers.
#[inline]
fn kinds_of_instr(kernel: &Kernel, instr: &Instr, kinds: &mut [Kind], facts: &mut Facts) {
    // A sum stands for instructions without an operator, because it is no call and yields a number.
    let alike = match instr {
        Instr::Op { dst, op, .. } => Some((dst, *op, op.arity() + 1)),
        Instr::MulAdd { dst, .. } | Instr::ToReal { dst, .. } => Some((dst, Op::Add, 4)),
        _ => None,
    };
    if let Some((dst, op, n_next)) = alike {
        facts.n_next += n_next;
        if op.gives_truth() {
            if let Instr::Op { args, .. } = instr
                && connects_bits(op, args, facts)
            {
                facts.set_bit(kernel, *dst);
            } else {
                kinds[dst.index()] = Kind::Truth;
            }
        }
        facts.calls += u64::from(!super::inline::is_inline(op));
        return;
    }
    facts.n_next += 1;
    match instr {
        Instr::Const { .. } => facts.n_constants += 1,
        Instr::Load { buffer, at, .. } => {
            facts.accesses[buffer.index()] += 1;
            numbers(kinds, &[at]);
        }
        Instr::Store { buffer, at: address, value } => {
            facts.accesses[buffer.index()] += 1;
            numbers(kinds, &[address]);
            number(kinds, *value);
        }
        instr => {
            if let Instr::IntOp { dst, op, .. } = instr
                && op.gives_truth()
            {
                facts.set_bit(kernel, *dst);
            }
            facts.calls += u64::from(calls(instr));
            instr.for_each_use(|r| number(kinds, r));
        }
    }
}

/// Records that a truth value is used as a number. A use comes after the definition that determines the kind.
fn number(kinds: &mut [Kind], r: Reg) {
    if kinds[r.index()] == Kind::Truth {
        kinds[r.index()] = Kind::Int;
    }
}

fn numbers(kinds: &mut [Kind], polys: &[&Poly<Reg>]) {
    for poly in polys.iter().filter(|p| p.as_constant().is_none()) {
        poly.terms().flat_map(|(m, _)| m).for_each(|r| number(kinds, *r));
    }
}

/// Returns whether `op` combines truth values that are integers, and so yields an integer.
fn connects_bits(op: Op, args: &[Reg; 3], facts: &Facts) -> bool {
    matches!(op, Op::And | Op::Or | Op::Not) && args[..op.arity()].iter().all(|r| facts.is_bit(r.index()))
}

fn is_defined_in(block: &[Instr], r: Reg) -> bool {
    block.iter().rev().any(|instr| instr.dst() == Some(r))
}

/// Returns whether an instruction calls a function, which destroys most registers.
pub(super) fn calls(instr: &Instr) -> bool {
    match instr {
        Instr::Op { op, .. } => !super::inline::is_inline(*op),
        Instr::IntOp { op, .. } => !super::integers::is_inline(*op),
        Instr::External { .. } => true,
        _ => false,
    }
}

/// Returns the stretches of a kernel, and the number of events.
fn stretches(kernel: &Kernel) -> (Vec<Stretch<'_>>, usize) {
    let mut n_events = 0;
    let number = |n_events: usize| u32::try_from(n_events + 1).unwrap_or(NEVER);
    let stretch = |part| match part {
        Part::Block(instrs) => {
            let first = number(n_events);
            n_events += instrs.len();
            Stretch::Block(first, instrs)
        }
        Part::Event(event) => {
            n_events += 1;
            Stretch::Control(number(n_events - 1), event)
        }
    };
    let stretches = parts(&kernel.body).map(stretch).collect();
    (stretches, n_events)
}

impl<'k> Plan<'k> {
    pub(super) fn new(
        kernel: &'k Kernel,
        shared: &[BufferId],
        level: Level,
        shape: Shape,
        piece_len: Option<usize>,
    ) -> Result<Self, Diagnostic> {
        let (stretches, n_events) = stretches(kernel);
        if n_events >= NEVER as usize {
            return Err(Diagnostic::limitation("the kernel has more than 4294967294 statements"));
        }
        let (is_straight, kinds, straight) = match stretches.as_slice() {
            [Stretch::Block(first, instrs)] if has_only_numbers(kernel) => {
                (true, vec![Kind::Real; kernel.regs.len()], Straight::new(kernel, *first, instrs, piece_len))
            }
            _ => {
                let (kinds, facts) = kinds(kernel, &stretches);
                let (next, lazy) = next_uses(kernel, n_events, &stretches, &kinds, facts.n_next);
                (is_straight(&stretches, &kinds), kinds, Straight { facts, next, lazy, ..Straight::default() })
            }
        };
        let Straight { facts, next, lazy, pieces, crossings, n_slots } = straight;
        let mut words = Words::new(kernel);
        let has_calls = facts.calls > 0;
        let n_regs = kernel.regs.len();
        let (mut fused, mut accumulators) = (BTreeSet::new(), Accumulators::default());
        let mut pointers: BTreeMap<u32, Vec<(BufferId, Number)>> = BTreeMap::new();
        let (loops, assigned): (_, Assigned) = if is_straight {
            // All addresses are constant, so there are only pointers.
            let homes = assign_pointers(&facts.accesses, n_events, facts.calls);
            let (generals, vectors, spans): (&[Gpr], _, _) = (&[], Vec::new(), None);
            (BTreeMap::new(), Assigned { homes, first_home: n_regs, n_slots, generals, vectors, spans })
        } else {
            let events = events(&kernel.body);
            let lives = Liveness::new(n_regs, &events);
            let mut survey = Survey::new(kernel, &events, &kinds);
            fused = survey.fuse(&events, shape);
            let mut homes = Homes::new(n_regs, n_events, &kinds, &lives, &survey);
            let (lanes, early) = match shape {
                Shape::One => {
                    let (lives, survey) = (&lives, &survey);
                    Planner { kernel, lives, survey, homes: &mut homes, words: &mut words }.plan_all(level, &events)
                }
                _ => Default::default(),
            };
            let is_one_round = n_lanes(lanes::shape(level)) as i64 == LANES;
            let once: BTreeMap<u32, Reg> =
                lanes.iter().filter(|_| is_one_round).map(|(at, plan)| (*at, plan.index())).collect();
            // In addresses it is 0.
            once.values().filter(|index| !survey.is_read(**index)).for_each(|index| homes.forget(*index));
            accumulators = accumulators::plan(kernel, shared, &events, &once, &survey, &mut homes);
            let mut kept = kept_addresses(&events, &lives, true, &once);
            // Addresses with varying integers are computed in each lane, and need the indices of loops.
            let varying: BTreeSet<Reg> = lanes.values().flat_map(lanes::LanePlan::varying).collect();
            kept.values_mut().for_each(|all| all.retain(|address| !address.vars().iter().any(|r| varying.contains(r))));
            let mut loops = homes.loops(&events, &lives, &survey, &kept, Lanes { once: &once, all: &lanes });
            for (at, mut plan) in lanes {
                if let Some(of_loop) = loops.get_mut(&at) {
                    plan.counted_by(of_loop.count);
                    of_loop.lanes = Some(plan);
                }
            }
            for (at, spread) in early {
                if let Some(of_loop) = loops.get_mut(&at) {
                    of_loop.spread = spread;
                }
            }
            pointers = pointers::wishes(&events, &lives, &once, (&accumulators, &loops), &mut homes);
            let assigned = homes.assign(level, has_calls, &mut words);
            pointers::spared(&mut loops, &pointers, &lives, &assigned.homes);
            (loops, assigned)
        };
        Ok(Self {
            stretches,
            n_events,
            kinds,
            assigned,
            next,
            lazy,
            facts,
            fused,
            accumulators,
            loops,
            pointers,
            words,
            is_straight,
            pieces,
            crossings,
        })
    }
}

/// Returns whether there is neither control flow nor an integer: then all values are local, and only numbers and truth
/// values differ between points.
fn is_straight(stretches: &[Stretch<'_>], kinds: &[Kind]) -> bool {
    stretches.iter().all(|s| matches!(s, Stretch::Block(..))) && !kinds.contains(&Kind::Int)
}

/// Returns, for each buffer, the first one at its address; `None` for inputs, which are never stored to. All buffers
/// that share memory of the workspace have the same address. A delayed load must not cross a store to another buffer of
/// the same memory, which is live when this one is dead.
pub(super) fn places(kernel: &Kernel) -> impl Iterator<Item = Option<usize>> {
    let mut first: BTreeMap<(bool, &Poly<Reg>), usize> = BTreeMap::new();
    kernel.buffers.as_slice().iter().enumerate().map(move |(i, buffer)| match &buffer.place {
        Place::Input(_) => None,
        Place::Workspace(at) => Some(*first.entry((buffer.class == Class::Real, at)).or_insert(i)),
        Place::Output(_) => Some(i),
    })
}

/// Computes [`Plan::next`] and [`Plan::lazy`] in one backward walk.
fn next_uses(
    kernel: &Kernel,
    n_events: usize,
    stretches: &[Stretch<'_>],
    kinds: &[Kind],
    n_next: usize,
) -> (Vec<u32>, Vec<bool>) {
    // Maximum number of entries written at a time: operands of an instruction on numbers, and its result.
    const MOST: usize = 4;
    let mut found: Vec<u32> = Vec::with_capacity(n_next + MOST);
    let mut lazy = Vec::new();
    let mut next = vec![NEVER; kernel.regs.len()];
    // End of the block, beyond which uses do not count.
    let mut end = NEVER;
    // Next store to the memory of each buffer.
    let places: Vec<Option<usize>> = places(kernel).collect();
    let mut written = vec![NEVER; kernel.buffers.len()];
    let mut seen: Vec<Reg> = Vec::new();
    for stretch in stretches.iter().rev() {
        let (first, instrs) = match stretch {
            Stretch::Block(first, instrs) => (*first, *instrs),
            Stretch::Control(at, event) => {
                end = *at;
                if let Event::If { condition } = event
                    && kinds[condition.index()] == Kind::Truth
                {
                    next[condition.index()] = end;
                    found.push(NEVER);
                }
                continue;
            }
        };
        let inside = |use_at: u32| if use_at <= end { use_at } else { NEVER };
        let mut at = first + instrs.len() as u32;
        for instr in instrs.iter().rev() {
            at -= 1;
            // Uniform code for most instructions: the kind of the next one is hard to predict.
            let of_numbers = match instr {
                Instr::Op { dst, op, args } if op.is_numeric() => Some((dst, args, op.arity())),
                Instr::MulAdd { dst, args, .. } => Some((dst, args, 3)),
                _ => None,
            };
            if let Some((dst, args, n)) = of_numbers
                && n > 0
            {
                // Unused operands repeat the first argument.
                let backwards = [*dst, args[(n - 1).min(2)], args[n.saturating_sub(2).min(2)], args[0]];
                let len = found.len();
                found.extend_from_slice(&backwards.map(|r| inside(next[r.index()])));
                found.truncate(len + n + 1);
                args.iter().for_each(|r| next[r.index()] = at);
                continue;
            }
            match instr {
                // Nothing is read; the only entry is the next use of a number.
                Instr::Const { dst, .. } => {
                    found.push(inside(next[dst.index()]));
                    continue;
                }
                Instr::Store { buffer, value, .. } => {
                    if let Some(place) = places[buffer.index()] {
                        written[place] = at;
                    }
                    if kinds[value.index()] != Kind::Int {
                        found.push(inside(next[value.index()]));
                        next[value.index()] = at;
                    }
                    continue;
                }
                Instr::Load { dst, buffer, .. } => {
                    if let Some(place) = places[buffer.index()] {
                        if lazy.is_empty() {
                            lazy = vec![false; n_events + 1];
                        }
                        lazy[at as usize] = inside(written[place]) == NEVER;
                    }
                    if kinds[dst.index()] != Kind::Int {
                        found.push(inside(next[dst.index()]));
                    }
                    continue;
                }
                _ => {}
            }
            if let Some(dst) = instr.dst()
                && kinds[dst.index()] != Kind::Int
            {
                found.push(inside(next[dst.index()]));
            }
            seen.clear();
            operands(instr, kinds, |r| seen.push(r));
            found.extend(seen.iter().rev().map(|r| inside(next[r.index()])));
            seen.iter().for_each(|r| next[r.index()] = at);
        }
    }
    (found, lazy)
}

/// Returns whether a batch can run in lanes: all integers are equal for all points, and none is in memory; truth values
/// may differ.
pub(super) fn fits_lanes(kernel: &Kernel) -> bool {
    let (stretches, _) = stretches(kernel);
    let (kinds, _) = kinds(kernel, &stretches);
    if is_straight(&stretches, &kinds) {
        return true;
    }
    let events = events(&kernel.body);
    let Some(varying) = chainrule_kernel::liveness::varying(kernel.regs.len(), &events) else { return false };
    let real = |b: BufferId| kernel.buffers[b].class == Class::Real;
    // Operands of control, addresses and integer operators are integers, so no other check is needed.
    (0..kinds.len()).all(|i| kinds[i] != Kind::Int || !varying[i])
        && events.iter().all(|event| match event {
            Event::Instr(Instr::Load { buffer, .. } | Instr::Store { buffer, .. }) => real(*buffer),
            Event::Copy { to, .. } => real(to.0),
            Event::If { condition } => kinds[condition.index()] == Kind::Int,
            _ => true,
        })
}
