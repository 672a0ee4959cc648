//! What is decided before the first instruction is written: where each value lives, and when it is used next.
//!
//! In: a kernel. Out: a [`Plan`].
//!
//! **Blocks.** A block is a run of instructions without control between them. A value that is defined and
//! used in one block is *local*: block by block, [`registers`](super::registers) hands out what is free to
//! what is used soonest. All others are *global*: each has one place for its whole life, a register
//! or a place in the frame.
//!
//! **Straight lines** without integers have no globals but the pointers of buffers; for them one walk backwards over the
//! instructions is all there is ([`straight`](super::straight)), where there are no truth values either.
//!
//! **Next uses** are found in one walk backwards, and laid down in the order opposite to that in which the walk forwards
//! asks.

use super::accumulators::{self, Accumulators};
use super::assign::{Assigned, Taken, assign_pointers};
use super::copies;
use super::frame::Words;
use super::homes::{Homes, Lanes};
use super::lanes::{self, LanePlan, plan_lanes};
use super::pieces::{self, Crossing, Piece};
use super::spans::Spans;
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

/// No use any more.
pub(super) const NEVER: u32 = u32::MAX;

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A double in each lane.
    Real,
    /// A truth value in each lane: all bits or none.
    Truth,
    /// One integer.
    Int,
}

/// Where a value lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Home {
    /// In its block only.
    Local,
    /// In a vector register.
    Xmm(Xmm),
    /// In a place of the frame for reals.
    Slot(u32),
    /// In a general register.
    Gpr(Gpr),
    /// In a word of the frame.
    Word(u32),
}

/// An integer that the plan adds to those of the kernel; an index into [`Plan::homes`] too.
pub(super) type Number = usize;

/// What a loop keeps.
#[derive(Default, Debug)]
pub(super) struct LoopPlan {
    /// The number of iterations, or their limit; has no place where it is known and small.
    pub count: Number,
    /// The number of iterations where it is known and small.
    pub known_count: Option<i32>,
    /// Counts the iterations of a conditional loop.
    pub counter: Number,
    /// What goes by one of `kept` needs no index.
    pub counted: Option<Counted>,
    pub kept: Vec<Kept>,
    /// Where the iterations run at once.
    pub lanes: Option<LanePlan>,
    /// What is put into lanes before the loop, for loops in it: values and their places.
    pub spread: BTreeMap<Reg, Number>,
}

/// A loop that ends where an address does, which begins at 0, since its index stands in addresses only, which are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// The address.
    pub place: Number,
    /// By how many elements it steps.
    pub step: i64,
    /// Where it ends, in elements, where that is known and small; otherwise that is put where the number of iterations is.
    pub end: Option<i32>,
}

/// An address that goes along with a loop.
#[derive(Debug)]
pub(super) struct Kept {
    /// Without constant terms.
    pub address: Poly<Reg>,
    pub at: KeptAt,
    pub step: Step,
}

/// Where an address is that is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeptAt {
    pub place: Number,
    /// The buffer in which it points to an element; otherwise it is a number of elements, times the number of points.
    pub within: Option<BufferId>,
}

impl KeptAt {
    /// What an element is, of one point.
    pub(super) fn unit(self) -> i64 {
        if self.within.is_some() { 8 } else { 1 }
    }
}

/// How far a kept address goes in one iteration.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// By so many elements.
    Constant(i64),
    /// By a number that is computed before the loop.
    Number(Number, Poly<Reg>),
}

/// A stretch of the kernel. Its events are numbered from 1, an instruction being one.
#[derive(Clone, Copy)]
pub(super) enum Stretch<'k> {
    /// Instructions, and the number of the first.
    Block(u32, &'k [Instr]),
    /// Control, and its number.
    Control(u32, Event<'k>),
}

/// The plan.
pub(super) struct Plan<'k> {
    pub stretches: Vec<Stretch<'k>>,
    pub n_events: usize,
    pub kinds: Vec<Kind>,
    /// By register; then the numbers that the plan adds; then the pointers of buffers. The first ones are left out
    /// where all are local.
    homes: Vec<Home>,
    /// How many are left out.
    first_home: usize,
    /// For each instruction: the next use in the block of each operand, in the order of [`operands`], and of
    /// what it defines. Backwards.
    pub next: Vec<u32>,
    /// Loads, but for those of inputs, that may wait until their first use, by number of event; empty where there are none.
    lazy: Vec<bool>,
    pub facts: Facts,
    /// Comparisons of integers that nobody reads but the branch that follows, by number of event.
    pub fused: BTreeSet<u32>,
    pub accumulators: Accumulators,
    /// By number of the opening event.
    pub loops: BTreeMap<u32, LoopPlan>,
    /// Pointers with places of their own, by number of the opening event of the loop in which they have them; in straight lines
    /// all have places, everywhere.
    pub pointers: BTreeMap<u32, Vec<(BufferId, Number)>>,
    /// The general registers that values which outlive their block may have, and where they do.
    generals: &'static [Gpr],
    spans: Option<Spans>,
    /// Where vector registers hold globals.
    vectors: Vec<(Xmm, Taken)>,
    /// How many slots have values of their own.
    n_slots: u32,
    pub words: Words,
    /// Whether a function is called.
    pub has_calls: bool,
    /// Whether a loop runs in lanes.
    pub has_lanes: bool,
    /// Whether there is neither control nor an integer.
    pub is_straight: bool,
    /// The pieces of a line that is cut; otherwise none.
    pub pieces: Vec<Piece<'k>>,
    /// What goes from piece to piece, in the order in which it is defined.
    pub crossings: Vec<Crossing>,
}

impl Plan<'_> {
    /// Where a register, a number or a pointer lives.
    #[inline]
    pub(super) fn home(&self, number: Number) -> Home {
        self.homes.get(number.wrapping_sub(self.first_home)).copied().unwrap_or(Home::Local)
    }

    /// Whether there are values that outlive their block.
    #[inline]
    pub(super) fn has_globals(&self) -> bool {
        self.first_home == 0
    }

    /// The slots that have values of their own.
    pub(super) fn taken_slots(&self) -> Range<u32> {
        let first = if self.crossings.is_empty() { 0 } else { pieces::FIRST_SLOT };
        first..first + self.n_slots
    }

    /// What these events define for later pieces.
    pub(super) fn crossings_of(&self, first: u32, last: u32) -> &[Crossing] {
        let [from, to] = [first, last + 1].map(|at| self.crossings.partition_point(|crossing| crossing.at < at));
        &self.crossings[from..to]
    }

    /// Vector registers that hold globals somewhere, one bit each.
    pub(super) fn pinned(&self) -> u32 {
        self.vectors.iter().map(|(x, _)| 1 << x.0).sum()
    }

    /// Vector registers whose globals are there before event `at` and needed after it.
    pub(super) fn vectors_over(&self, at: u32) -> u32 {
        self.vectors.iter().filter(|(_, taken)| taken.is_over(at)).map(|(x, _)| 1 << x.0).sum()
    }

    /// The vector register that `r` has for itself, as a bit.
    pub(super) fn vector_of(&self, r: Reg) -> u32 {
        match self.home(r.index()) {
            Home::Xmm(x) => 1 << x.0,
            _ => 0,
        }
    }

    /// The registers that may have places.
    pub(super) fn globals(&self) -> std::ops::Range<usize> {
        if self.has_globals() { 0..self.kinds.len() } else { 0..0 }
    }

    /// Whether a general register holds something, or may.
    pub(super) fn uses(&self, g: Gpr) -> bool {
        self.homes.contains(&Home::Gpr(g)) || self.generals.contains(&g)
    }

    /// Whether code for one point leaves something in the upper lanes.
    pub(super) fn is_wide(&self) -> bool {
        self.has_lanes || self.facts.has_copies
    }

    /// The general registers in which nothing lives from one event to another.
    pub(super) fn spares(&self, from: u32, to: u32) -> impl Iterator<Item = Gpr> + '_ {
        let taken = self.spans.as_ref().map_or(0, |spans| spans.taken(from, to));
        self.generals.iter().enumerate().filter(move |(number, _)| taken >> number & 1 == 0).map(|(_, g)| *g)
    }

    /// Whether the load of this number, which is not of an input, may wait until its first use.
    pub(super) fn is_lazy(&self, at: u32) -> bool {
        self.lazy.get(at as usize).copied().unwrap_or(false)
    }

    /// The next use that is asked for when so many are left.
    #[inline]
    pub(super) fn next_when(&self, left: usize) -> Option<u32> {
        self.next.get(left.checked_sub(1)?).copied()
    }
}

/// What an instruction takes from vector registers.
pub(super) fn operands(instr: &Instr, kinds: &[Kind], mut visit: impl FnMut(Reg)) {
    match instr {
        Instr::Op { op, args, .. } => {
            args[..op.arity()].iter().filter(|r| kinds[r.index()] != Kind::Int).for_each(|r| visit(*r));
        }
        Instr::MulAdd { args, .. } => args.iter().for_each(|r| visit(*r)),
        Instr::External { args, .. } => args.iter().for_each(|r| visit(*r)),
        Instr::ToReal { src, .. } if kinds[src.index()] == Kind::Truth => visit(*src),
        Instr::Store { value, .. } if kinds[value.index()] != Kind::Int => visit(*value),
        _ => {}
    }
}

/// What one walk forwards over all instructions finds.
#[derive(Default)]
pub(super) struct Facts {
    /// How many instructions call a function, copies among them.
    pub calls: u64,
    /// How many constants there are.
    pub n_constants: usize,
    /// About how many next uses there are.
    n_next: usize,
    /// How often each buffer is accessed.
    pub accesses: Vec<u64>,
    /// Whether something is copied.
    has_copies: bool,
    /// Integers that are 0 or 1; empty where there are none.
    bits: Vec<bool>,
}

impl Facts {
    /// Nothing found yet.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut accesses = vec![0; kernel.buffers.len()];
        for zeros in &kernel.zeros {
            accesses[zeros.buffer.index()] += u64::from(zeros.which.count_ones());
        }
        Self { accesses, ..Self::default() }
    }

    /// Whether an integer is 0 or 1.
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

/// Truth values that only scalar operators read stay in vectors; those that are looked at as a number are one.
fn kinds(kernel: &Kernel, stretches: &[Stretch<'_>]) -> (Vec<Kind>, Facts) {
    let class = |class: &Class| if *class == Class::Real { Kind::Real } else { Kind::Int };
    let mut kinds: Vec<Kind> = kernel.regs.as_slice().iter().map(class).collect();
    let mut facts = Facts::new(kernel);
    // A use comes after the definition that makes the kind.
    let number = |kinds: &mut Vec<Kind>, r: Reg| {
        if kinds[r.index()] == Kind::Truth {
            kinds[r.index()] = Kind::Int;
        }
    };
    let numbers = |kinds: &mut Vec<Kind>, polys: &[&Poly<Reg>]| {
        for poly in polys.iter().filter(|p| p.as_constant().is_none()) {
            poly.terms().flat_map(|(m, _)| m).for_each(|r| number(kinds, *r));
        }
    };
    let mut before: &[Instr] = &[];
    for stretch in stretches {
        match stretch {
            Stretch::Block(_, instrs) => {
                before = instrs;
                for instr in *instrs {
                    // A sum stands for what has no operator, for it is no call and gives a number.
                    let alike = match instr {
                        Instr::Op { dst, op, .. } => Some((dst, *op, op.arity() + 1)),
                        Instr::MulAdd { dst, .. } | Instr::ToReal { dst, .. } => Some((dst, Op::Add, 4)),
                        _ => None,
                    };
                    if let Some((dst, op, n_next)) = alike {
                        facts.n_next += n_next;
                        if op.gives_truth() {
                            if let Instr::Op { args, .. } = instr
                                && connects_bits(op, args, &facts)
                            {
                                facts.set_bit(kernel, *dst);
                            } else {
                                kinds[dst.index()] = Kind::Truth;
                            }
                        }
                        facts.calls += u64::from(!super::inline::is_inline(op));
                        continue;
                    }
                    facts.n_next += 1;
                    match instr {
                        Instr::Const { .. } => facts.n_constants += 1,
                        Instr::Load { buffer, at, .. } => {
                            facts.accesses[buffer.index()] += 1;
                            numbers(&mut kinds, &[at]);
                        }
                        Instr::Store { buffer, at: address, value } => {
                            facts.accesses[buffer.index()] += 1;
                            numbers(&mut kinds, &[address]);
                            number(&mut kinds, *value);
                        }
                        instr => {
                            if let Instr::IntOp { dst, op, .. } = instr
                                && op.gives_truth()
                            {
                                facts.set_bit(kernel, *dst);
                            }
                            facts.calls += u64::from(calls(instr));
                            instr.for_each_use(|r| number(&mut kinds, r));
                        }
                    }
                }
            }
            Stretch::Control(_, event) => match event {
                Event::Instr(_) => {}
                // One of the block before is looked at where it is.
                Event::If { condition } if is_defined_in(std::mem::take(&mut before), *condition) => {}
                Event::Copy { to, from, len } => {
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

/// Whether `op` makes a truth value of others that are integers, and so makes an integer.
fn connects_bits(op: Op, args: &[Reg; 3], facts: &Facts) -> bool {
    matches!(op, Op::And | Op::Or | Op::Not) && args[..op.arity()].iter().all(|r| facts.is_bit(r.index()))
}

fn is_defined_in(block: &[Instr], r: Reg) -> bool {
    block.iter().rev().any(|instr| instr.dst() == Some(r))
}

/// Whether an instruction calls a function, which destroys most registers.
pub(super) fn calls(instr: &Instr) -> bool {
    match instr {
        Instr::Op { op, .. } => !super::inline::is_inline(*op),
        Instr::IntOp { op, .. } => !super::integers::is_inline(*op),
        Instr::External { .. } => true,
        _ => false,
    }
}

/// The stretches of a kernel, and how many events there are.
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
        let (loops, first_home, assigned): (_, _, Assigned) = if is_straight {
            // Each address is known, so pointers are all there is.
            let homes = assign_pointers(&facts.accesses, n_events, facts.calls);
            let (generals, vectors, spans): (&[Gpr], _, _) = (&[], Vec::new(), None);
            (BTreeMap::new(), n_regs, Assigned { homes, n_slots, generals, vectors, spans })
        } else {
            let events = events(&kernel.body);
            let lives = Liveness::new(n_regs, &events);
            let mut survey = Survey::new(kernel, &events, &kinds);
            fused = survey.fuse(&events, shape);
            let mut homes = Homes::new(n_regs, n_events, &kinds, &lives, &survey);
            let (lanes, early) = match shape {
                Shape::One => plan_lanes(kernel, level, &events, &lives, &survey, &mut homes, &mut words),
                _ => Default::default(),
            };
            let is_one_round = n_lanes(lanes::shape(level)) as i64 == LANES;
            let once: BTreeMap<u32, Reg> =
                lanes.iter().filter(|_| is_one_round).map(|(at, plan)| (*at, plan.index())).collect();
            // In addresses it is 0.
            once.values().filter(|index| !survey.is_read(**index)).for_each(|index| homes.forget(*index));
            accumulators = accumulators::plan(kernel, &events, &once, &survey, &mut homes);
            let kept = kept_addresses(&events, &lives, true, &once);
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
            pointers = pointers::wishes(&events, kernel.buffers.len(), &lives, &once, &accumulators, &mut homes);
            let assigned = homes.assign(level, has_calls, &mut words);
            pointers::spared(&mut loops, &pointers, &lives, &assigned.homes);
            (loops, 0, assigned)
        };
        let has_lanes = loops.values().any(|plan: &LoopPlan| plan.lanes.is_some());
        Ok(Self {
            stretches,
            n_events,
            kinds,
            homes: assigned.homes,
            first_home,
            next,
            lazy,
            facts,
            fused,
            accumulators,
            loops,
            pointers,
            generals: assigned.generals,
            spans: assigned.spans,
            n_slots: assigned.n_slots,
            words,
            vectors: assigned.vectors,
            has_calls,
            has_lanes,
            is_straight,
            pieces,
            crossings,
        })
    }
}

/// Whether there is no control, and no integer: then all values are local, and nothing differs from point to point but
/// numbers and truth values.
fn is_straight(stretches: &[Stretch<'_>], kinds: &[Kind]) -> bool {
    stretches.iter().all(|s| matches!(s, Stretch::Block(..))) && !kinds.contains(&Kind::Int)
}

/// For each buffer the first one that lies where it lies, nothing for inputs, where nothing is stored: those that take turns in
/// one place of the workspace begin there all. A load that waits must not meet what is stored to another one, which lives when
/// nothing reads this one any more.
pub(super) fn places(kernel: &Kernel) -> impl Iterator<Item = Option<usize>> {
    let mut first: BTreeMap<(bool, &Poly<Reg>), usize> = BTreeMap::new();
    kernel.buffers.as_slice().iter().enumerate().map(move |(i, buffer)| match &buffer.place {
        Place::Input(_) => None,
        Place::Workspace(at) => Some(*first.entry((buffer.class == Class::Real, at)).or_insert(i)),
        Place::Output(_) => Some(i),
    })
}

/// See [`Plan::next`] and [`Plan::lazy`]. One walk backwards.
fn next_uses(
    kernel: &Kernel,
    n_events: usize,
    stretches: &[Stretch<'_>],
    kinds: &[Kind],
    n_next: usize,
) -> (Vec<u32>, Vec<bool>) {
    // What is written at once: an instruction has at most so many operands on numbers, with what it defines.
    const MOST: usize = 4;
    let mut found: Vec<u32> = Vec::with_capacity(n_next + MOST);
    let mut lazy = Vec::new();
    let mut next = vec![NEVER; kernel.regs.len()];
    // The end of the block, beyond which a use does not count.
    let mut end = NEVER;
    // Where the place of a buffer is written next.
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
            // Most instructions alike, whatever they do: which comes next is hard to predict.
            let of_numbers = match instr {
                Instr::Op { dst, op, args } if op.is_numeric() => Some((dst, args, op.arity())),
                Instr::MulAdd { dst, args, .. } => Some((dst, args, 3)),
                _ => None,
            };
            if let Some((dst, args, n)) = of_numbers
                && n > 0
            {
                // Unused places repeat the first argument.
                let backwards = [*dst, args[(n - 1).min(2)], args[n.saturating_sub(2).min(2)], args[0]];
                let len = found.len();
                found.extend_from_slice(&backwards.map(|r| inside(next[r.index()])));
                found.truncate(len + n + 1);
                args.iter().for_each(|r| next[r.index()] = at);
                continue;
            }
            match instr {
                // Nothing is read, and what is asked for is the next use of a number.
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

/// Whether a batch can run in lanes: all integers are the same for all points, and none is in memory; truth
/// values need not be.
pub(super) fn fits_lanes(kernel: &Kernel) -> bool {
    let (stretches, _) = stretches(kernel);
    let (kinds, _) = kinds(kernel, &stretches);
    if is_straight(&stretches, &kinds) {
        return true;
    }
    let events = events(&kernel.body);
    let Some(varying) = chainrule_kernel::liveness::varying(kernel.regs.len(), &events) else { return false };
    let real = |b: BufferId| kernel.buffers[b].class == Class::Real;
    // What control, addresses and integer operators read are integers, so nothing else has to be asked of it.
    (0..kinds.len()).all(|i| kinds[i] != Kind::Int || !varying[i])
        && events.iter().all(|event| match event {
            Event::Instr(Instr::Load { buffer, .. } | Instr::Store { buffer, .. }) => real(*buffer),
            Event::Copy { to, .. } => real(to.0),
            Event::If { condition } => kinds[condition.index()] == Kind::Int,
            _ => true,
        })
}
