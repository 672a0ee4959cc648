//! Gathered indices: integers that lanes load from memory, and elements at addresses that depend on them.
//!
//! Each gathered index has a word of the frame for each lane, and so has the common part of addresses that only differ
//! by a constant, such as the fields of a record with a gathered number. That part is computed once for each block.
//! Elements are then loaded one by one, or several adjacent ones together ([`rows`](crate::lower::rows)), which works
//! at all levels and takes no longer than gather instructions. Words of inactive lanes repeat that of the last active
//! one. An index is read from memory once, so that what is checked is what is used. Adjacent integers that are only
//! converted to doubles, soon after, need no words where an instruction converts them in memory.

use crate::asm::{Alu, Condition, Gpr, Label, Mask, Mem, Shape, Xmm};
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

/// Gathered integers of a lane loop, with the first word of each.
#[derive(Default, Debug)]
pub(in crate::lower) struct Fetched {
    integers: BTreeMap<Reg, Integer>,
    /// Parts of addresses, except single integers.
    parts: BTreeMap<Poly<Reg>, u32>,
}

/// A gathered integer.
#[derive(Debug)]
struct Integer {
    /// First of its words.
    words: u32,
    /// Its location.
    buffer: BufferId,
    at: Poly<Reg>,
    /// Whether its only use is a conversion to a double that soon follows, before which nothing writes to memory.
    is_converted: bool,
}

impl Fetched {
    /// Reserves words for an integer at `at` of a buffer; `is_converted` if its only use is a conversion, before which
    /// nothing writes to memory.
    pub(in crate::lower) fn integer(
        &mut self,
        r: Reg,
        (buffer, at): (BufferId, &Poly<Reg>),
        is_converted: bool,
        words: &mut Words,
    ) {
        let words = words.take_all(LANES as u32);
        self.integers.insert(r, Integer { words, buffer, at: at.clone(), is_converted });
    }

    /// Reserves words for a part of addresses.
    pub(in crate::lower) fn part(&mut self, part: Poly<Reg>, words: &mut Words) {
        if part.as_var().is_none() {
            self.parts.entry(part).or_insert_with(|| words.take_all(LANES as u32));
        }
    }

    /// Returns the gathered integers.
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
    /// Returns an integer, if it is gathered.
    fn fetched(&self, r: Reg) -> Option<&Integer> {
        self.lanes.plan.as_ref()?.fetched.integers.get(&r)
    }

    /// Returns the first word of an integer, if it is gathered.
    fn words_of(&self, r: Reg) -> Option<u32> {
        Some(self.fetched(r)?.words)
    }

    /// Returns the word of an integer in the current lane, if it is gathered.
    pub(in crate::lower) fn fetched_word(&self, number: Number) -> Option<Mem> {
        let first = self.words_of(Reg::new(number))?;
        Some(self.frame.word(first + self.lanes.fetching))
    }

    /// Returns whether an integer is gathered.
    pub(in crate::lower) fn is_fetched(&self, r: Reg) -> bool {
        self.words_of(r).is_some()
    }

    /// Returns the buffer and the index of an integer, if adjacent ones are converted in memory.
    fn converted(&self, r: Reg) -> Option<(BufferId, Poly<Reg>)> {
        if self.mode.level != Level::Avx512 || self.has_mask() {
            return None;
        }
        let Integer { buffer, at, .. } = self.fetched(r).filter(|integer| integer.is_converted)?;
        self.is_adjacent(at).then(|| (*buffer, at.clone()))
    }

    /// Returns whether lanes have adjacent elements at `at`.
    fn is_adjacent(&self, at: &Poly<Reg>) -> bool {
        match self.across(at) {
            Across::Next => true,
            Across::Far(slope) => slope == Poly::constant(1),
            Across::Same | Across::Fetched => false,
        }
    }

    /// Returns the first word of an integer whose words are stored in halves.
    fn words_in_halves(&self, r: Reg) -> Option<u32> {
        let Integer { words, at, .. } = self.fetched(r)?;
        (!self.has_mask() && self.is_adjacent(at)).then_some(*words)
    }

    /// Loads an integer for each lane.
    pub(in crate::lower) fn load_fetched(&mut self, dst: Reg, buffer: BufferId, at: &Poly<Reg>) -> Result<()> {
        let [_, rcx, rdx] = SCRATCH;
        let Some(first) = self.words_of(dst) else { return Err(crate::lower::bug("an integer is not fetched")) };
        if self.converted(dst).is_some() {
            return Ok(());
        }
        let slope = match self.across(at) {
            Across::Far(slope) => slope,
            Across::Next => Poly::constant(1),
            Across::Fetched => {
                let mut places = self.fetched_places(buffer, &[at])?;
                for lane in 0..n_lanes(self.lanes.shape) {
                    let mem = places.next(self);
                    self.asm.mov_rm(rdx, mem);
                    let word = self.frame.word(first + lane as u32);
                    self.asm.mov_mr(word, rdx);
                }
                return Ok(());
            }
            Across::Same => return Err(crate::lower::bug("an integer that is fetched is the same for all")),
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
    pub(in crate::lower) fn check_fetched(&mut self, index: Reg, len: &Poly<Reg>, failure: usize) -> Result<()> {
        let [rax, rcx, _] = SCRATCH;
        let is_length = self.integers.ranges.is_at_least_zero(len);
        let _ = self.poly(len, 1, Overflow::Fails)?;
        let label = self.site_with(Site::Index { failure }, vec![Here::In(rcx), Here::In(rax)]);
        let inside = self.asm.new_label();
        if is_length && self.mode.level == Level::Avx512 {
            self.check_together(index, rax, inside)?;
        }
        for lane in 0..n_lanes(self.lanes.shape) {
            self.lanes.fetching = lane as u32;
            self.number_into(rcx, index.index());
            if !is_length {
                self.asm.test_rr(rcx, rcx);
                self.asm.jcc(Condition::Negative, label);
            }
            self.asm.alu_rr(Alu::Cmp, rcx, rax);
            // As an unsigned number, a negative number exceeds any length.
            self.asm.jcc(if is_length { Condition::AboveEqual } else { Condition::GreaterEqual }, label);
        }
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

    /// Gathers elements at gathered addresses into `d`.
    pub(in crate::lower) fn gather_fetched(&mut self, buffer: BufferId, at: &Poly<Reg>, d: Xmm) -> Result<()> {
        let mut places = self.fetched_places(buffer, &[at])?;
        self.collect(d, &mut |this, x| {
            let mem = places.next(this);
            this.asm.load(Shape::One, x, mem);
        })
    }

    /// Returns the locations of the first of some elements at gathered addresses that differ by constants; checks all
    /// of them. Uses the first and the second scratch register.
    pub(in crate::lower) fn fetched_places(&mut self, buffer: BufferId, ats: &[&Poly<Reg>]) -> Result<FetchedPlaces> {
        let [rax, rcx, _] = SCRATCH;
        let Some((part, offset)) = ats.first().map(|at| split_constant(at)) else {
            return Err(crate::lower::bug("no element is fetched"));
        };
        let first = self.lanes.plan.as_ref().and_then(|lane| lane.fetched.words(&part));
        let (Some(first), Some(disp)) = (first, offset.checked_mul(8)) else {
            return Err(crate::lower::bug("an address has no words"));
        };
        let n = n_lanes(self.lanes.shape) as u32;
        if part.as_var().is_none() && !self.integers.fetched_parts.contains(&part) {
            for lane in 0..n {
                self.lanes.fetching = lane;
                let from = self.poly(&part, 1, Overflow::Wraps)?;
                let word = self.frame.word(first + lane);
                self.asm.mov_mr(word, from);
            }
            self.integers.fetched_parts.push(part);
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
        Ok(FetchedPlaces { word: first, mem: Mem::Indexed { base, index: rax, scale: 8, disp } })
    }

    /// Converts a gathered integer to doubles.
    pub(in crate::lower) fn fetched_to_real(&mut self, dst: Reg, src: Reg) -> Result<()> {
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
        let mut lane = 0;
        self.integers_to_reals(dst, &mut |this| {
            this.lanes.fetching = lane;
            lane += 1;
            this.number_into(rax, src.index());
        })
    }

    fn word_into(&mut self, g: Gpr, word: u32) {
        let mem = self.frame.word(word);
        self.asm.mov_rm(g, mem);
    }
}

/// Locations of gathered elements, lane by lane.
pub(in crate::lower) struct FetchedPlaces {
    /// Word of the next lane.
    word: u32,
    mem: Mem,
}

impl FetchedPlaces {
    /// Returns the location for the next lane.
    pub(in crate::lower) fn next(&mut self, writer: &mut Writer<'_>) -> Mem {
        let [rax, ..] = SCRATCH;
        writer.word_into(rax, self.word);
        self.word += 1;
        self.mem
    }
}
