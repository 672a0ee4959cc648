//! Varying integers: those that lanes load from memory, truncate from reals or compute from such, and elements at
//! addresses that depend on them.
//!
//! Each varying integer has a word of the frame for each lane, and so has the common part of addresses that only differ
//! by a constant, such as the fields of a record with a gathered number. That part is computed once for each block.
//! Integers are computed by scalar code, lane by lane. Elements are loaded one by one, or several adjacent ones
//! together ([`rows`](crate::lower::rows)), which works at all levels and takes no longer than gather instructions.
//! Words of inactive lanes repeat that of the last active one. An index is read from memory once, so that what is
//! checked is what is used. Adjacent integers that are only converted to doubles, soon after, need no words where an
//! instruction converts them in memory.

use crate::asm::{Alu, Condition, Gpr, Half, Integer as Op, IntegerPredicate, Label, Mask, Mem, Shape, Xmm};
use crate::level::Level;
use crate::lower::frame::Words;
use crate::lower::lanes::Across;
use crate::lower::plan::{NEVER, Number};
use crate::lower::{Here, Overflow, Result, SCRATCH, Site, Writer, n_lanes};
use chainrule_base::{Id, Poly};
use chainrule_kernel::addresses::split_constant;
use chainrule_kernel::{BufferId, Event, Instr, LANES, Reg};
use std::collections::BTreeMap;

/// Maximum number of instructions from the load of integers to their conversion in memory.
const MAX_BETWEEN: usize = 8;

/// Varying integers of a lane loop, with the first word of each.
#[derive(Default, Debug)]
pub(in crate::lower) struct Varying {
    integers: BTreeMap<Reg, Integer>,
    /// Parts of addresses, except single integers.
    parts: BTreeMap<Poly<Reg>, u32>,
}

/// A varying integer.
#[derive(Debug)]
struct Integer {
    /// First of its words.
    words: u32,
    source: Source,
}

/// Origin of a varying integer.
#[derive(Debug)]
enum Source {
    Loaded(Loaded),
    /// A real.
    Truncated,
    /// The sum of a constant and an integer, which the same constant separates from this one, not itself such a sum.
    Beside(Reg),
    /// Other integers.
    Computed,
}

/// An integer in memory.
#[derive(Debug)]
struct Loaded {
    buffer: BufferId,
    at: Poly<Reg>,
    /// Whether its only use is a conversion to a double that soon follows, before which nothing writes to memory.
    is_converted: bool,
}

impl Varying {
    /// Reserves words for an integer at `at` of a buffer; `is_converted` if its only use is a conversion, before which
    /// nothing writes to memory.
    pub(in crate::lower) fn integer(
        &mut self,
        r: Reg,
        (buffer, at): (BufferId, &Poly<Reg>),
        is_converted: bool,
        words: &mut Words,
    ) {
        let source = Source::Loaded(Loaded { buffer, at: at.clone(), is_converted });
        self.integers.insert(r, Integer { words: words.take_all(LANES as u32), source });
    }

    /// Reserves words for the result of an instruction other than a load.
    pub(in crate::lower) fn result(&mut self, r: Reg, instr: &Instr, words: &mut Words) {
        let source = match instr {
            Instr::ToInt { .. } => Source::Truncated,
            Instr::Int { value, .. } => match value.split_constant().0.as_var() {
                Some(of) => match self.integers.get(&of).map(|of| &of.source) {
                    Some(Source::Beside(first)) => Source::Beside(*first),
                    _ => Source::Beside(of),
                },
                None => Source::Computed,
            },
            _ => Source::Computed,
        };
        self.integers.insert(r, Integer { words: words.take_all(LANES as u32), source });
    }

    /// Reserves words for a part of addresses.
    pub(in crate::lower) fn part(&mut self, part: Poly<Reg>, words: &mut Words) {
        if part.as_var().is_none() {
            self.parts.entry(part).or_insert_with(|| words.take_all(LANES as u32));
        }
    }

    /// Returns the varying integers.
    pub(in crate::lower) fn integers(&self) -> impl Iterator<Item = Reg> + '_ {
        self.integers.keys().copied()
    }

    fn words(&self, part: &Poly<Reg>) -> Option<u32> {
        match part.as_var() {
            Some(r) => self.integers.get(&r).map(|integer| integer.words),
            None => self.parts.get(part).copied(),
        }
    }
}

/// Returns the position of the conversion of `r` among the first events after its load, if nothing between writes to
/// memory, or takes the place of an integer of the address; `has_no_place` tells which registers are not in numbers.
pub(in crate::lower) fn conversion(r: Reg, after: &[Event<'_>], has_no_place: impl Fn(&Reg) -> bool) -> Option<usize> {
    let keeps = |event: &&Event<'_>| match event {
        Event::Instr(Instr::Const { .. } | Instr::ToReal { .. }) => true,
        Event::Instr(Instr::Load { dst, .. }) => has_no_place(dst),
        _ => false,
    };
    let converts = |event: &Event<'_>| matches!(event, Event::Instr(Instr::ToReal { src, .. }) if *src == r);
    after.iter().take(MAX_BETWEEN).take_while(keeps).position(converts)
}

/// Returns the number of groups of four lanes.
fn n_halves(shape: Shape) -> u32 {
    n_lanes(shape) as u32 / 4
}

impl Writer<'_> {
    /// Returns an integer, if it varies between lanes.
    fn varying(&self, r: Reg) -> Option<&Integer> {
        self.lanes.plan.as_ref()?.varying.integers.get(&r)
    }

    /// Returns the first word of an integer, if it varies.
    fn words_of(&self, r: Reg) -> Option<u32> {
        Some(self.varying(r)?.words)
    }

    /// Returns the word of an integer in the current lane, if it varies.
    pub(in crate::lower) fn varying_word(&self, number: Number) -> Option<Mem> {
        let first = self.words_of(Reg::new(number))?;
        Some(self.frame.word(first + self.lanes.current))
    }

    /// Returns the difference of a stepping integer in the current lane from its value in the first.
    pub(in crate::lower) fn steps_so_far(&self, number: Number) -> i32 {
        let step = (self.lanes.current > 0).then(|| self.steps(Reg::new(number))).flatten();
        step.map_or(0, |step| step as i32 * self.lanes.current as i32)
    }

    /// Returns whether an integer varies.
    pub(in crate::lower) fn is_varying(&self, r: Reg) -> bool {
        self.words_of(r).is_some()
    }

    /// Calls `emit` for each lane, of which integers are then those of that lane; of inactive lanes those of the last
    /// active one. Not for lanes whose number is unknown, if integers step.
    pub(in crate::lower) fn for_each_lane(&mut self, mut emit: impl FnMut(&mut Self, u32) -> Result<()>) -> Result<()> {
        for lane in 0..n_lanes(self.lanes.shape) {
            self.lanes.current = lane.min(self.n_active() - 1) as u32;
            emit(self, lane as u32)?;
        }
        self.lanes.current = 0;
        Ok(())
    }

    /// Computes a varying integer in each lane by scalar code, which leaves it in the first scratch register.
    pub(in crate::lower) fn compute_varying(
        &mut self,
        dst: Reg,
        compute: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some(first) = self.words_of(dst) else { return Err(crate::lower::bug("an integer does not vary")) };
        self.compute_words(first, compute)
    }

    /// As [`Self::compute_varying`], into the words from `first` on.
    fn compute_words(&mut self, first: u32, mut compute: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let [rax, ..] = SCRATCH;
        self.for_each_lane(|this, lane| {
            compute(this)?;
            let word = this.frame.word(first + lane);
            this.asm.mov_mr(word, rax);
            Ok(())
        })
    }

    /// Computes a polynomial over varying integers.
    pub(in crate::lower) fn varying_poly(&mut self, dst: Reg, value: &Poly<Reg>) -> Result<()> {
        let (rest, by) = value.split_constant();
        if self.mode.level == Level::Avx512
            && let (Some(from), Some(to)) =
                (rest.as_var().and_then(|of| self.words_in_halves(of)), self.words_in_halves(dst))
        {
            return self.add_in_halves((from, to), by);
        }
        self.compute_varying(dst, |this| this.poly(value, 1, Overflow::Fails).map(drop))
    }

    /// Adds a constant to integers whose words are stored in halves.
    fn add_in_halves(&mut self, (from, to): (u32, u32), by: i64) -> Result<()> {
        let [rax, ..] = SCRATCH;
        self.asm.mov_ri(rax, by);
        let [constant, x, sum] = [self.temporary()?, self.temporary()?, self.temporary()?];
        self.asm.broadcast_gpr(Shape::Four, constant, rax);
        let mut beyond = Vec::new();
        for half in 0..n_halves(self.lanes.shape) {
            let (from, to) = (self.frame.word(from + 4 * half), self.frame.word(to + 4 * half));
            let is_beyond = self.take_mask(None, NEVER)?;
            self.asm.load(Shape::Four, x, from);
            self.asm.integer(Op::Add, Shape::Four, sum, x, constant);
            let (greater, less) = if by < 0 { (sum, x) } else { (x, sum) };
            self.asm.integer_compare_mask(IntegerPredicate::Greater, Shape::Four, is_beyond, greater, less);
            self.asm.store(Shape::Four, to, sum);
            beyond.push(is_beyond);
        }
        if let (Some(first), Some(last)) = (beyond.first(), beyond.last()) {
            let label = self.site(Site::Overflow(self.integers.computing), &[]);
            self.asm.mask_test(*first, *last);
            self.asm.jcc(Condition::NotEqual, label);
        }
        for x in [constant, x, sum] {
            self.registers.give_back(x);
            self.registers.unlock(x);
        }
        Ok(())
    }

    /// Truncates a real of each lane.
    pub(in crate::lower) fn truncate_varying(&mut self, dst: Reg, src: Reg) -> Result<()> {
        let [rax, ..] = SCRATCH;
        let Some(first) = self.words_of(dst) else { return Err(crate::lower::bug("an integer does not vary")) };
        let shape = self.lanes.shape;
        let next = self.next_use();
        let x = self.in_register(src, next)?;
        if self.mode.level == Level::Avx512 {
            let y = self.temporary()?;
            self.asm.cvttpd2qq(shape, y, x);
            for half in [Half::Lower, Half::Upper].into_iter().take(n_halves(shape) as usize) {
                let words = self.frame.word(first + if matches!(half, Half::Upper) { 4 } else { 0 });
                if let Half::Upper = half {
                    self.asm.half(shape, y, y, half);
                }
                self.asm.store(Shape::Four, words, y);
            }
            self.registers.give_back(y);
            self.registers.unlock(y);
        } else {
            let words = self.frame.word(first);
            self.asm.store(shape, words, x);
            for lane in 0..self.n_active() as u32 {
                let word = self.frame.word(first + lane);
                self.asm.cvttsd2si(rax, word);
                self.asm.mov_mr(word, rax);
            }
        }
        self.release(src, next);
        let active = self.n_active() as u32;
        if active < n_lanes(shape) as u32 {
            self.word_into(rax, first + active - 1);
            for lane in active..n_lanes(shape) as u32 {
                let word = self.frame.word(first + lane);
                self.asm.mov_mr(word, rax);
            }
        }
        Ok(())
    }

    /// Returns the location of an integer, if adjacent ones are converted in memory.
    fn converted(&self, r: Reg) -> Option<(BufferId, Poly<Reg>)> {
        if self.mode.level != Level::Avx512 || self.has_mask() {
            return None;
        }
        let Source::Loaded(Loaded { buffer, at, is_converted: true }) = &self.varying(r)?.source else { return None };
        self.is_adjacent(at).then(|| (*buffer, at.clone()))
    }

    /// Returns whether lanes have adjacent elements at `at`.
    fn is_adjacent(&self, at: &Poly<Reg>) -> bool {
        match self.across(at) {
            Across::Next => true,
            Across::Far(slope) => slope == Poly::constant(1),
            Across::Same | Across::Varying => false,
        }
    }

    /// Returns the first word of an integer whose words are stored in halves.
    fn words_in_halves(&self, r: Reg) -> Option<u32> {
        let Integer { words, source } = self.varying(r)?;
        let is_stored = match source {
            Source::Loaded(Loaded { at, .. }) => self.is_adjacent(at),
            Source::Truncated => self.mode.level == Level::Avx512,
            Source::Beside(of) => return self.words_in_halves(*of).map(|_| *words),
            Source::Computed => false,
        };
        (!self.has_mask() && is_stored).then_some(*words)
    }

    /// Loads an integer for each lane.
    pub(in crate::lower) fn load_varying(&mut self, dst: Reg, buffer: BufferId, at: &Poly<Reg>) -> Result<()> {
        let [_, rcx, rdx] = SCRATCH;
        let Some(first) = self.words_of(dst) else { return Err(crate::lower::bug("an integer does not vary")) };
        if self.converted(dst).is_some() {
            return Ok(());
        }
        let slope = match self.across(at) {
            Across::Far(slope) => slope,
            Across::Next => Poly::constant(1),
            Across::Varying => {
                let mut places = self.varying_places(buffer, &[at])?;
                for lane in 0..n_lanes(self.lanes.shape) {
                    let mem = places.next(self);
                    self.asm.mov_rm(rdx, mem);
                    let word = self.frame.word(first + lane as u32);
                    self.asm.mov_mr(word, rdx);
                }
                return Ok(());
            }
            Across::Same => return Err(crate::lower::bug("a varying integer is the same for all")),
        };
        let mem = self.address(buffer, at)?;
        if self.words_in_halves(dst).is_some() {
            let x = self.temporary()?;
            // Words are read one by one, which would wait for a store of a whole cache line.
            for half in 0..n_halves(self.lanes.shape) {
                let Some(mem) = mem.plus(32 * half as i32) else { return Err(crate::lower::bug("a block is too far")) };
                self.asm.load(Shape::Four, x, mem);
                let words = self.frame.word(first + 4 * half);
                self.asm.store(Shape::Four, words, x);
            }
            self.registers.give_back(x);
            self.registers.unlock(x);
            return Ok(());
        }
        let mut places = self.places(mem, &slope)?;
        let value = if places.is_stepped() { rcx } else { rdx };
        for lane in 0..n_lanes(self.lanes.shape) {
            if lane < self.n_active() {
                let mem = places.next(self);
                self.asm.mov_rm(value, mem);
            }
            let word = self.frame.word(first + lane as u32);
            self.asm.mov_mr(word, value);
        }
        Ok(())
    }

    /// Fails unless the index of each lane is in range, with the index of the first failing lane.
    pub(in crate::lower) fn check_varying(&mut self, index: Reg, len: &Poly<Reg>, failure: usize) -> Result<()> {
        let [rax, rcx, _] = SCRATCH;
        let is_length = self.integers.ranges.is_at_least_zero(len);
        let _ = self.poly(len, 1, Overflow::Fails)?;
        let label = self.site_with(Site::Index { failure }, vec![Here::In(rcx), Here::In(rax)]);
        let inside = self.asm.new_label();
        if is_length && self.mode.level == Level::Avx512 {
            self.check_together(index, rax, inside)?;
        }
        self.for_each_lane(|this, _| {
            this.number_into(rcx, index.index());
            if !is_length {
                this.asm.test_rr(rcx, rcx);
                this.asm.jcc(Condition::Negative, label);
            }
            this.asm.alu_rr(Alu::Cmp, rcx, rax);
            // As an unsigned number, a negative number exceeds any length.
            this.asm.jcc(if is_length { Condition::AboveEqual } else { Condition::GreaterEqual }, label);
            Ok(())
        })?;
        self.asm.bind(inside);
        Ok(())
    }

    /// Jumps to `inside` if all lanes of an integer whose words are stored in halves are less than `len`, as unsigned
    /// numbers.
    fn check_together(&mut self, index: Reg, len: Gpr, inside: Label) -> Result<()> {
        let Some(first) = self.words_in_halves(index) else { return Ok(()) };
        let x = self.temporary()?;
        self.asm.broadcast_gpr(Shape::Four, x, len);
        let halves = (0..n_halves(self.lanes.shape)).map(|half| {
            let (words, outside) = (self.frame.word(first + 4 * half), self.take_mask(None, NEVER)?);
            self.asm.at_most_mask(Shape::Four, outside, x, words);
            Ok(outside)
        });
        let halves: Vec<Mask> = halves.collect::<Result<_>>()?;
        if let (Some(first), Some(last)) = (halves.first(), halves.last()) {
            self.asm.mask_test(*first, *last);
            self.asm.jcc(Condition::Equal, inside);
        }
        self.registers.give_back(x);
        self.registers.unlock(x);
        Ok(())
    }

    /// Gathers elements at varying addresses into `d`.
    pub(in crate::lower) fn gather_varying(&mut self, buffer: BufferId, at: &Poly<Reg>, d: Xmm) -> Result<()> {
        let mut places = self.varying_places(buffer, &[at])?;
        self.collect(d, &mut |this, x| {
            let mem = places.next(this);
            this.asm.load(Shape::One, x, mem);
        })
    }

    /// Returns the locations of the first of some elements at varying addresses that differ by constants; checks all
    /// of them. Uses the first and the second scratch register.
    pub(in crate::lower) fn varying_places(&mut self, buffer: BufferId, ats: &[&Poly<Reg>]) -> Result<VaryingPlaces> {
        let [rax, rcx, _] = SCRATCH;
        let Some((part, offset)) = ats.first().map(|at| split_constant(at)) else {
            return Err(crate::lower::bug("no element varies"));
        };
        let first = self.lanes.plan.as_ref().and_then(|lane| lane.varying.words(&part));
        let (Some(first), Some(disp)) = (first, offset.checked_mul(8)) else {
            return Err(crate::lower::bug("an address has no words"));
        };
        let n = n_lanes(self.lanes.shape) as u32;
        if part.as_var().is_none() && !self.integers.varying_parts.contains(&part) {
            self.compute_words(first, |this| this.poly(&part, 1, Overflow::Wraps).map(drop))?;
            self.integers.varying_parts.push(part);
        }
        for at in ats {
            if !self.is_inside(buffer, at) {
                let (_, offset) = split_constant(at);
                for lane in 0..n {
                    self.word_into(rax, first + lane);
                    self.asm.alu_ri(Alu::Add, rax, offset);
                    self.check_inside(buffer, rax);
                }
            }
        }
        let base = self.pointer(buffer, rcx);
        Ok(VaryingPlaces { word: first, mem: Mem::Indexed { base, index: rax, scale: 8, disp } })
    }

    /// Converts a varying integer to doubles.
    pub(in crate::lower) fn varying_to_real(&mut self, dst: Reg, src: Reg) -> Result<()> {
        let [rax, ..] = SCRATCH;
        if let Some((buffer, at)) = self.converted(src) {
            let (shape, mem) = (self.lanes.shape, self.address(buffer, &at)?);
            return self.finish(dst, |this, d| this.asm.cvtqq2pd(shape, d, mem));
        }
        if self.mode.level == Level::Avx512
            && let Some(first) = self.words_of(src)
        {
            let (shape, words) = (self.lanes.shape, self.frame.word(first));
            return self.finish(dst, |this, d| this.asm.cvtqq2pd(shape, d, words));
        }
        let Some(mut word) = self.words_of(src) else { return Err(crate::lower::bug("an integer does not vary")) };
        self.integers_to_reals(dst, &mut |this| {
            this.word_into(rax, word);
            word += 1;
        })
    }

    fn word_into(&mut self, g: Gpr, word: u32) {
        let mem = self.frame.word(word);
        self.asm.mov_rm(g, mem);
    }
}

/// Locations of such elements, lane by lane.
pub(in crate::lower) struct VaryingPlaces {
    /// Word of the next lane.
    word: u32,
    mem: Mem,
}

impl VaryingPlaces {
    /// Returns the location for the next lane.
    pub(in crate::lower) fn next(&mut self, writer: &mut Writer<'_>) -> Mem {
        let [rax, ..] = SCRATCH;
        writer.word_into(rax, self.word);
        self.word += 1;
        self.mem
    }
}
