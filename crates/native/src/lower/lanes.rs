//! Lane loops of one point: their bodies run in vectors.
//!
//! A lane loop has eight iterations; it is one round of eight lanes, or two of four. In its body reals and truth values
//! are vectors, integers are those of the first lane of the round. A loop of fewer iterations is a round with only that
//! many active lanes, if there are masks for it: the others compute arbitrary values, but access no memory.
//!
//! | kernel | code |
//! | --- | --- |
//! | an element next to that of the previous lane | a vector in memory |
//! | the same element in all lanes | one number, broadcast |
//! | strided elements | loaded and stored one by one, or several adjacent ones together (`rows`) |
//! | a real from outside the loop | broadcast before the loop, into a location of its own |
//! | an integer that is linear in the lane | known in the first lane, with its step; also addresses that depend on it |
//! | an integer that differs arbitrarily between lanes | in a word for each lane (`varying`) |
//!
//! The kernel guarantees that iterations are independent; addresses are checked in all lanes.

pub(in crate::lower) mod accumulators;
pub(in crate::lower) mod reversed;
pub(in crate::lower) mod rows;
pub(in crate::lower) mod spread;
pub(in crate::lower) mod strided;
pub(in crate::lower) mod varying;

use super::frame::Words;
use super::homes::Homes;
use super::plan::{Home, NEVER, Number, calls};
use super::registers::Copy;
use super::spread::{Around, Early, Uniform};
use super::survey::{Survey, weight};
use super::varying::{Varying, conversion};
use super::{Here, Overflow, Result, SCRATCH, Writer, n_lanes};
use crate::asm::{Alu, Condition, Half, Integer, Mask, Mem, Shape, Shift, Xmm};
use crate::level::Level;
use chainrule_base::{Id, Poly};
use chainrule_kernel::addresses::{at_first, slope, split_constant};
use chainrule_kernel::lanes::body::{Lane as Kept, Lanes};
use chainrule_kernel::{Class, Event, Instr, Kernel, LANES, Liveness, Order, Reg};
use std::collections::{BTreeMap, BTreeSet};

/// Plan of a lane loop.
#[derive(Debug)]
pub(super) struct LanePlan {
    index: Reg,
    /// Reals and truth values from outside the loop, with the locations of their broadcasts.
    pub(super) uniform: BTreeMap<Reg, Uniform>,
    /// Steps of integers between lanes, including the index.
    steps: BTreeMap<Reg, i64>,
    /// Bytes between the elements of two lanes, if not constant, by slope in elements.
    apart: BTreeMap<Poly<Reg>, Number>,
    active: Active,
    /// Location of the index of the last active lane, if an integer depends on the index.
    last: Option<Number>,
    pub(super) varying: Varying,
}

/// Active lanes of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Active {
    All,
    /// A constant number of leading lanes.
    First(i64),
    /// The number of iterations, fewer than [`LANES`]: in the location of that number, once it is known.
    Counted(Option<Number>),
}

/// Mask register of the active lanes.
pub(super) const ACTIVE: Mask = Mask(7);

/// Distance of the last active lane from the first, in elements.
pub(super) enum Last {
    Known(Poly<Reg>),
    /// This number minus one, times the distance of adjacent lanes.
    Counted(Number, Poly<Reg>),
}

/// Position of an element in the next lane, relative to the current one.
pub(super) enum Across {
    /// The next element, also for several points.
    Next,
    /// The same element.
    Same,
    /// So many elements further.
    Far(Poly<Reg>),
    /// At a varying index.
    Varying,
}

/// Returns the vectors of a level.
pub(super) fn shape(level: Level) -> Shape {
    match level {
        Level::Avx2 => Shape::Four,
        Level::Avx512 => Shape::Eight,
    }
}

/// Returns the active lanes of a loop with this count at a level; `None` if it needs masks that the level does not
/// have.
fn active(level: Level, count: &Poly<Reg>) -> Option<Active> {
    let width = n_lanes(shape(level)) as i64;
    match (count.as_constant(), level) {
        (Some(..=0), _) => None,
        (Some(n), _) if n % width == 0 => Some(Active::All),
        (_, Level::Avx2) => None,
        (Some(n), _) => Some(Active::First(n)),
        (None, _) => Some(Active::Counted(None)),
    }
}

/// Planner of lane loops.
pub(super) struct Planner<'a, 'h> {
    pub kernel: &'a Kernel,
    pub lives: &'a Liveness,
    pub survey: &'a Survey,
    /// Receives requests for locations.
    pub homes: &'a mut Homes<'h>,
    /// Receives requests for constants in memory.
    pub words: &'a mut Words,
}

impl Planner<'_, '_> {
    /// Plans the lane loops whose bodies can run in vectors, by their opening events, and the broadcasts of the loops
    /// directly around them.
    pub(super) fn plan_all(&mut self, level: Level, events: &[Event<'_>]) -> (BTreeMap<u32, LanePlan>, Early) {
        let (kernel, lives) = (self.kernel, self.lives);
        let (mut plans, mut early) = (BTreeMap::new(), Early::new());
        let mut lanes = Lanes::new(kernel.regs.len());
        let mut last_end = 0;
        let mut around: Vec<Around> = Vec::new();
        // Branches on data are if-converted where possible.
        let none = BTreeSet::new();
        for (at, event) in (1u32..).zip(events) {
            // The loops inside a lane loop are run as they are.
            if at < last_end {
                continue;
            }
            around.retain(|outer| at < outer.end);
            let (index, count) = match event {
                Event::For { index, count, order: Order::Lanes, .. } => (index, count),
                Event::For { .. } => {
                    around.push(Around { begin: at, end: lives.end_of_loop[at as usize] });
                    continue;
                }
                _ => continue,
            };
            let end = lives.end_of_loop[at as usize];
            let body = &events[at as usize..end as usize - 1];
            if let Some(active) = active(level, count)
                && lanes.fits(kernel, *index, body, &none)
                && let Some(mut plan) = self.plan(&lanes, body, (at, end, *index), active)
            {
                // A call outside lanes preserves only one of them.
                if let Some(outer) = around.last()
                    && self.homes.call_nowhere_but(outer.begin, outer.end, at, end)
                {
                    plan.spread_early(*outer, lives, self.homes, early.entry(outer.begin).or_default());
                }
                plans.insert(at, plan);
                last_end = end;
            }
        }
        (plans, early)
    }

    fn plan(
        &mut self,
        lanes: &Lanes,
        body: &[Event<'_>],
        (begin, end, index): (u32, u32, Reg),
        active: Active,
    ) -> Option<LanePlan> {
        let Self { kernel, lives, survey, ref mut homes, ref mut words } = *self;
        let is_outside = |r: &Reg| lives.def[r.index()] < begin;
        let mut steps = BTreeMap::from([(index, 1)]);
        let mut apart: BTreeMap<Poly<Reg>, u64> = BTreeMap::new();
        let mut weights: BTreeMap<Reg, u64> = BTreeMap::new();
        let mut work = Work::default();
        let mut varying = Varying::default();
        for (at, event) in (begin as usize + 1..).zip(body) {
            let heft = weight(survey.depth[at]);
            let mut used = |r: Reg| {
                if is_outside(&r) && (kernel.regs[r] == Class::Real || survey.is_truth(r)) {
                    *weights.entry(r).or_insert(0) += heft;
                }
            };
            match event {
                Event::Instr(instr) => {
                    instr.for_each_use(&mut used);
                    match instr {
                        Instr::Op { .. } if calls(instr) => work.calls += 1,
                        Instr::Op { .. } | Instr::MulAdd { .. } => work.operators += 1,
                        _ => {}
                    }
                    // Inactive lanes have no arguments to call with.
                    if matches!(instr, Instr::External { .. }) && active != Active::All {
                        return None;
                    }
                    if let Instr::Int { dst, .. } = instr
                        && let Some(Kept::Step(step)) = lanes.of(*dst)
                    {
                        steps.insert(*dst, step);
                    }
                    let varies = |r: &Reg| lanes.of(*r) == Some(Kept::Varying);
                    if let Some(dst) = instr.dst().filter(varies)
                        && !matches!(instr, Instr::Load { .. })
                    {
                        varying.result(dst, instr, words);
                    }
                    if matches!(active, Active::Counted(_)) && stops_short(lanes, instr) {
                        return None;
                    }
                    if let Instr::Load { dst, buffer, at: element } = instr
                        && varies(dst)
                    {
                        let has_no_place = |r: &Reg| kernel.regs[*r] == Class::Real || varies(r);
                        let conversion = conversion(*dst, &body[at - begin as usize..], has_no_place);
                        let is_converted = conversion.is_some_and(|n| lives.last[dst.index()] as usize == at + 1 + n);
                        varying.integer(*dst, (*buffer, element), is_converted, words);
                    }
                    if let Instr::Load { at, .. } = instr
                        && lanes.is_varying(at)
                    {
                        work.far += 1;
                        let (part, offset) = split_constant(at);
                        offset.checked_mul(8)?;
                        varying.part(part, words);
                        continue;
                    }
                    if let Instr::Load { buffer, at, .. } | Instr::Store { buffer, at, .. } = instr
                        && (kernel.buffers[*buffer].class == Class::Real || at.vars().contains(&index))
                    {
                        let slope = lanes.slope(at)?;
                        match slope.as_constant() {
                            // All lanes would write one element.
                            Some(0) if matches!(instr, Instr::Store { .. }) => return None,
                            Some(-1..=1) => work.near += 1,
                            Some(step) => {
                                i32::try_from(step.checked_mul(8 * LANES)?).ok()?;
                                work.far += 1;
                            }
                            None if slope.vars().iter().all(is_outside) => {
                                *apart.entry(slope).or_insert(0) += heft;
                                work.far += 1;
                            }
                            None => return None,
                        }
                    }
                }
                Event::Copy { .. } => return None,
                Event::For { carried, .. } => carried.iter().for_each(|c| used(c.init)),
                Event::EndFor { carried, .. } => carried.iter().for_each(|c| used(c.next)),
                Event::Else { choices } => choices.iter().for_each(|c| used(c.then)),
                Event::EndIf { choices } => choices.iter().for_each(|c| used(c.otherwise)),
                _ => {}
            }
        }
        if matches!(active, Active::Counted(_)) && !work.pays_under_a_mask() {
            return None;
        }
        varying.integers().for_each(|r| homes.forget(r));
        let uniform = weights
            .into_iter()
            .map(|(r, weight)| (r, Uniform { place: homes.copy_for(r, begin, end, weight), early: false }));
        let uniform = uniform.collect();
        let apart = apart.into_iter().map(|(slope, weight)| (slope, homes.number(begin, end, weight))).collect();
        let last = (steps.len() > 1).then(|| homes.number(begin, end, 1));
        Some(LanePlan { index, uniform, steps, apart, active, last, varying })
    }
}

impl LanePlan {
    /// Returns the index of the loop.
    pub(super) fn index(&self) -> Reg {
        self.index
    }

    /// Returns the varying integers.
    pub(super) fn varying(&self) -> impl Iterator<Item = Reg> + '_ {
        self.varying.integers()
    }

    /// Sets the location of the count, for loops with inactive lanes.
    pub(super) fn counted_by(&mut self, count: Number) {
        if let Active::Counted(number) = &mut self.active {
            *number = Some(count);
        }
    }
}

/// Returns whether integers of inactive lanes, whose number is unknown, would follow from the index or from reals, and
/// not from integers of the last active lane.
fn stops_short(lanes: &Lanes, instr: &Instr) -> bool {
    let mut steps = false;
    instr.for_each_use(|r| steps |= matches!(lanes.of(r), Some(Kept::Step(_))));
    match instr {
        Instr::ToInt { .. } => true,
        Instr::Int { dst, .. } | Instr::IntOp { dst, .. } => steps && lanes.of(*dst) == Some(Kept::Varying),
        Instr::Load { at, .. } => steps && lanes.is_varying(at),
        _ => false,
    }
}

/// Number of accesses of each kind in a body.
#[derive(Default)]
struct Work {
    near: u64,
    /// Accesses of strided elements.
    far: u64,
    operators: u64,
    calls: u64,
}

impl Work {
    /// Returns whether a round with few active lanes takes less time than sequential iterations, by estimate: strided
    /// elements cost all lanes.
    fn pays_under_a_mask(&self) -> bool {
        let alone = self.near + self.far + self.operators + 20 * self.calls;
        let round = 2 * self.near + 20 * self.far + self.operators + 30 * self.calls;
        self.far == 0 || round < 4 * alone
    }
}

impl<'k> Writer<'k> {
    /// Begins a loop; returns the number of iterations of a round.
    pub(super) fn enter_lanes(&mut self, lanes: Option<&'k LanePlan>) -> Result<i64> {
        let Some(lanes) = lanes else { return Ok(1) };
        for (slope, number) in &lanes.apart {
            let from = self.poly(slope, 8, Overflow::Wraps)?;
            self.set_number(*number, from);
        }
        self.lanes.shape = shape(self.mode.level);
        for (r, Uniform { place, early }) in &lanes.uniform {
            if !early {
                self.spread(*r, *place)?;
            }
            match self.plan.home(*place) {
                Home::Xmm(x) => self.registers.name(x, *r, NEVER),
                Home::Slot(slot) => {
                    self.registers.forget(*r);
                    self.registers.set_copy(*r, Copy::Home(slot));
                }
                _ => return Err(super::bug("a value has no place in lanes")),
            }
        }
        self.lanes.plan = Some(lanes);
        self.truths.masks.keep(self.has_mask().then_some(ACTIVE));
        self.set_mask();
        Ok(n_lanes(self.lanes.shape) as i64)
    }

    /// Returns whether some lanes of the loop are inactive.
    pub(super) fn has_mask(&self) -> bool {
        self.lanes.plan.as_ref().is_some_and(|lane| lane.active != Active::All)
    }

    /// Initialises the mask of active lanes, if there is one.
    pub(super) fn set_mask(&mut self) {
        let [rax, rcx, _] = SCRATCH;
        match self.lanes.plan.as_ref().map(|lane| lane.active) {
            Some(Active::First(n)) => self.asm.mov_ri(rax, (1 << n) - 1),
            Some(Active::Counted(Some(count))) => {
                self.number_into(rcx, count);
                self.asm.mov_ri(rax, 1);
                self.asm.shift_left_by_rcx(rax);
                self.asm.dec(rax);
            }
            _ => return,
        }
        self.asm.mask_from(ACTIVE, rax);
    }

    /// Ends a loop; returns the number of iterations of a round.
    pub(super) fn leave_lane_loop(&mut self, index: Reg) -> i64 {
        let Some(lanes) = self.lanes.plan.take_if(|lanes| lanes.index == index) else { return 1 };
        for r in lanes.uniform.keys() {
            match self.plan.home(r.index()) {
                Home::Xmm(x) => self.registers.name(x, *r, NEVER),
                Home::Slot(slot) => {
                    self.registers.forget(*r);
                    self.registers.set_copy(*r, Copy::Home(slot));
                }
                _ => {}
            }
        }
        let by = n_lanes(self.lanes.shape) as i64;
        self.lanes.shape = self.mode.points;
        self.truths.masks.keep(None);
        by
    }

    /// Returns the location of a value in the current code.
    pub(super) fn home_now(&self, r: Reg) -> Home {
        let uniform = self.lanes.plan.as_ref().and_then(|lane| lane.uniform.get(&r));
        self.plan.home(uniform.map_or(r.index(), |uniform| uniform.place))
    }

    /// Returns the address of the first lane, if all lanes are one round.
    pub(super) fn first_lane(&self, at: &Poly<Reg>) -> Option<Poly<Reg>> {
        let lane = self.lanes.plan.as_ref().filter(|_| n_lanes(self.lanes.shape) as i64 == LANES)?;
        Some(at_first(at, lane.index))
    }

    /// Returns the position of an element in the next lane, or at the next point.
    pub(super) fn across(&self, at: &Poly<Reg>) -> Across {
        let Some(lane) = &self.lanes.plan else { return Across::Next };
        if at.vars().iter().any(|r| self.is_varying(*r)) {
            return Across::Varying;
        }
        match slope(at, |r| lane.steps.get(&r).copied()) {
            Some(slope) => match slope.as_constant() {
                Some(0) => Across::Same,
                Some(1) => Across::Next,
                _ => Across::Far(slope),
            },
            // Checked by the plan.
            None => Across::Same,
        }
    }

    /// Returns whether a number is the index of the current lane loop.
    pub(super) fn is_index_of_lanes(&self, number: Number) -> bool {
        self.lanes.plan.as_ref().is_some_and(|lane| lane.index.index() == number)
    }

    /// Returns the step of an integer between lanes.
    pub(super) fn steps(&self, r: Reg) -> Option<i64> {
        self.lanes.plan.as_ref().and_then(|lane| lane.steps.get(&r)).copied()
    }

    /// Fails if an integer that is linear in the lane does not fit in the last one. Its terms are linear in the lane,
    /// so those between fit as well.
    pub(super) fn last_fits(&mut self, value: &Poly<Reg>) -> Result<()> {
        let [rax, ..] = SCRATCH;
        let Some((index, Some(last), active)) =
            self.lanes.plan.as_ref().map(|lane| (lane.index, lane.last, lane.active))
        else {
            return Err(super::bug("the index of the last lane has no place"));
        };
        match active {
            Active::All => {
                self.number_into(rax, index.index());
                self.asm.alu_ri(Alu::Add, rax, n_lanes(self.lanes.shape) as i32 - 1);
            }
            Active::First(n) => self.asm.mov_ri(rax, n - 1),
            Active::Counted(count) => {
                self.number_into(rax, count.unwrap_or(last));
                self.asm.dec(rax);
            }
        }
        self.set_number(last, rax);
        self.integers.instead = Some((index.index(), last));
        let _ = self.poly(value, 1, Overflow::Fails)?;
        self.integers.instead = None;
        Ok(())
    }

    /// Returns the distance between the elements of the first and the last lane, if they differ.
    pub(super) fn last_lane(&self, at: &Poly<Reg>) -> Option<Last> {
        let slope = match self.across(at) {
            Across::Same | Across::Varying => return None,
            Across::Next => Poly::constant(1),
            Across::Far(slope) => slope,
        };
        Some(match self.lanes.plan.as_ref()?.active {
            Active::All => Last::Known(slope.scale(n_lanes(self.lanes.shape) as i64 - 1)),
            Active::First(n) => Last::Known(slope.scale(n - 1)),
            Active::Counted(count) => Last::Counted(count?, slope),
        })
    }

    /// Computes the distance of the last of so many lanes from the first in the second scratch register; uses the third
    /// one.
    pub(super) fn counted_last(&mut self, count: Number, slope: &Poly<Reg>) -> Result<()> {
        let [_, rcx, rdx] = SCRATCH;
        self.number_into(rcx, count);
        self.asm.dec(rcx);
        match slope.as_constant().map(i32::try_from) {
            Some(Ok(1)) => {}
            Some(Ok(step)) => self.asm.imul_rri(rcx, rcx, step),
            _ => {
                let apart = self.apart(slope)?;
                self.number_into(rdx, apart);
                self.asm.shift_ri(Shift::RightSigned, rdx, 3);
                self.asm.imul_rr(rcx, rdx);
            }
        }
        Ok(())
    }

    /// Returns the number with the bytes between the elements of two lanes.
    fn apart(&self, slope: &Poly<Reg>) -> Result<Number> {
        let apart = self.lanes.plan.as_ref().and_then(|lane| lane.apart.get(slope)).copied();
        apart.ok_or_else(|| super::bug("the distance of elements is not known"))
    }

    /// Loads the active lanes of the vector at `mem` into `d`.
    pub(super) fn load_lanes(&mut self, d: Xmm, mem: Mem) {
        if self.has_mask() {
            self.asm.load_zeroing(self.lanes.shape, d, ACTIVE, mem);
        } else {
            self.asm.load(self.lanes.shape, d, mem);
        }
    }

    /// Stores the active lanes of `x` to the vector at `mem`: four of them, two, one. A masked store would delay later
    /// loads of the memory that it does not write.
    pub(super) fn store_lanes(&mut self, mem: Mem, x: Xmm) -> Result<()> {
        let [rax, _, rdx] = SCRATCH;
        let count = match self.lanes.plan.as_ref().map(|lane| lane.active) {
            Some(Active::First(n)) => {
                self.asm.lea(rdx, mem);
                Ok(n)
            }
            Some(Active::Counted(Some(count))) => {
                self.asm.lea(rdx, mem);
                self.number_into(rax, count);
                Err(count)
            }
            _ => {
                self.asm.store(self.lanes.shape, mem, x);
                return Ok(());
            }
        };
        let t = self.temporary()?;
        let mut from = x;
        // Moves the tested bit into the carry flag.
        for (bit, shift) in [(4, 62), (2, 1), (1, 1)] {
            let skip = match count {
                Ok(n) if n & bit == 0 => continue,
                Ok(_) => None,
                Err(_) => {
                    let skip = self.asm.new_label();
                    if bit == 4 {
                        self.asm.mov(Shape::Eight, t, x);
                        from = t;
                    }
                    self.asm.shift_ri(Shift::Left, rax, shift);
                    self.asm.jcc(Condition::AboveEqual, skip);
                    Some(skip)
                }
            };
            let at = Mem::At { base: rdx, disp: 0 };
            match bit {
                4 => self.asm.store(Shape::Four, at, from),
                2 => self.asm.store_pair(at, from),
                _ => self.asm.store(Shape::One, at, from),
            }
            let is_last = match count {
                Ok(n) => n & (bit - 1) == 0,
                Err(_) => bit == 1,
            };
            if !is_last {
                self.asm.half(if bit == 4 { Shape::Eight } else { Shape::Four }, t, from, Half::Upper);
                self.asm.alu_ri(Alu::Add, rdx, 8 * bit as i32);
                from = t;
            }
            if let Some(skip) = skip {
                // The flags are lost, but the register holds the remaining bits.
                self.asm.bind(skip);
            }
        }
        self.registers.give_back(t);
        self.registers.unlock(t);
        Ok(())
    }

    /// Returns the maximum number of lanes that access memory.
    pub(super) fn n_active(&self) -> usize {
        match self.lanes.plan.as_ref().map(|lane| lane.active) {
            Some(Active::First(n)) => n as usize,
            _ => n_lanes(self.lanes.shape),
        }
    }

    /// Returns the number of active lanes if it is only known at run time.
    fn counted(&self) -> Option<Number> {
        if let Active::Counted(count) = self.lanes.plan.as_ref()?.active { count } else { None }
    }

    /// Sets the flags: greater, if more than `n` lanes are active.
    fn compare_count(&mut self, count: Number, n: i32) {
        match self.plan.home(count) {
            Home::Word(word) => {
                let mem = self.frame.word(word);
                self.asm.alu_mi(Alu::Cmp, mem, n);
            }
            Home::Gpr(g) => self.asm.alu_ri(Alu::Cmp, g, n),
            _ => drop(self.failures.fault.get_or_insert("the number of lanes has no place")),
        }
    }

    /// Fails unless the index of each lane is in range, with the index of the first failing lane.
    pub(super) fn check_all(&mut self, index: Reg, step: i64, len: &Poly<Reg>, failure: usize) -> Result<()> {
        let [rax, rcx, rdx] = SCRATCH;
        let last = self.n_active() as i32 - 1;
        let counted = self.counted();
        let _ = self.poly(len, 1, Overflow::Fails)?;
        self.number_into(rcx, index.index());
        let label = self.site_with(super::Site::Index { failure }, vec![Here::In(rcx), Here::In(rax)]);
        self.asm.test_rr(rcx, rcx);
        self.asm.jcc(Condition::Negative, label);
        self.asm.alu_rr(Alu::Cmp, rcx, rax);
        self.asm.jcc(Condition::GreaterEqual, label);
        let inside = self.asm.new_label();
        match counted {
            Some(count) => {
                self.number_into(rdx, count);
                self.asm.dec(rdx);
                if step < 0 {
                    self.asm.neg(rdx);
                }
                self.asm.alu_rr(Alu::Add, rdx, rcx);
            }
            None => self.asm.lea(rdx, Mem::At { base: rcx, disp: if step < 0 { -last } else { last } }),
        }
        if step > 0 {
            self.asm.alu_rr(Alu::Cmp, rdx, rax);
            self.asm.jcc(Condition::Less, inside);
            self.asm.mov_rr(rcx, rax);
        } else {
            self.asm.test_rr(rdx, rdx);
            self.asm.jcc(Condition::NotNegative, inside);
            self.asm.mov_ri(rcx, -1);
        }
        self.asm.jmp(label);
        self.asm.bind(inside);
        Ok(())
    }

    /// Converts an integer that is linear in the lane to doubles.
    pub(super) fn stepping_to_real(&mut self, dst: Reg, src: Reg, step: i64) -> Result<()> {
        let [rax, ..] = SCRATCH;
        self.number_into(rax, src.index());
        if self.mode.level == Level::Avx512 {
            let steps: [u64; 8] = std::array::from_fn(|lane| step.wrapping_mul(lane as i64) as u64);
            let from_first = Mem::Constant(self.asm.constant_block(steps));
            return self.finish(dst, |this, d| {
                this.asm.broadcast_gpr(this.lanes.shape, d, rax);
                this.asm.integer(Integer::Add, this.lanes.shape, d, d, from_first);
                this.asm.cvtqq2pd(this.lanes.shape, d, d);
            });
        }
        let mut first = true;
        self.integers_to_reals(dst, &mut |this| {
            if !std::mem::take(&mut first) {
                this.asm.alu_ri(Alu::Add, rax, step as i32);
            }
        })
    }

    /// Converts to doubles the integers that `next` puts into the first scratch register, lane by lane.
    pub(super) fn integers_to_reals(&mut self, dst: Reg, next: &mut dyn FnMut(&mut Self)) -> Result<()> {
        let [rax, ..] = SCRATCH;
        let mut element = |this: &mut Self, x: Xmm| {
            next(this);
            this.asm.zero(x);
            this.asm.cvtsi2sd(x, x, rax);
        };
        let next_use = self.next_use();
        let d = self.destination(dst, next_use)?;
        self.collect(d, &mut element)?;
        self.defined(dst, d, next_use);
        Ok(())
    }
}
