//! Strided records: adjacent elements of each lane at strided or gathered positions, a record for each lane.
//!
//! Loaded one by one, they take a load, an address and a move for each lane and field. Instead, up to four fields are
//! loaded together, a vector for each lane, and blocks of four lanes by four fields are transposed, so that a vector
//! holds one field of all lanes, in two moves for each. That is a quarter of the instructions. If the memory is not
//! written again in the block, they are loaded at the first use, otherwise at the first load. Adjacent stores of such
//! elements are combined in the same way.

use crate::asm::{Half, Mask, Mem, Shape, Xmm};
use crate::level::Level;
use crate::lower::lanes::Across;
use crate::lower::lanes::reversed::is_reversed;
use crate::lower::plan::{Home, NEVER};
use crate::lower::registers::Copy;
use crate::lower::{Origin, Result, SCRATCH, Writer};
use chainrule_base::{Id, Poly};
use chainrule_kernel::addresses::split_constant;
use chainrule_kernel::{BufferId, Class, Instr, Place, Reg};
use std::collections::BTreeMap;

/// Number of fields that are transposed together.
const FIELDS: usize = 4;

/// Number of registers for transposition.
const TURNING: usize = 7;

/// Number of recent records examined for a load.
const RECENT: usize = 16;

/// Records of a block, or of consecutive blocks without code between.
#[derive(Default, Debug)]
pub(in crate::lower) struct Rows<'k> {
    /// Number of the next event.
    end: u32,
    all: Vec<Row<'k>>,
    /// Record of each load that belongs to one, by the number of its event.
    of: BTreeMap<u32, usize>,
}

/// Loads that are combined.
#[derive(Debug)]
struct Row<'k> {
    buffer: BufferId,
    /// Common part of their addresses.
    part: Poly<Reg>,
    /// Whether they are delayed to their first use; otherwise they are loaded with the first of them, before the memory
    /// is written.
    waits: bool,
    /// Remaining loads.
    fields: Vec<Field<'k>>,
}

/// A load of a record.
#[derive(Clone, Copy, Debug)]
struct Field<'k> {
    dst: Reg,
    at: &'k Poly<Reg>,
    /// Element relative to the common part.
    offset: i32,
    /// Next use, or the event at which it is loaded.
    next: u32,
}

/// Function that makes the address for the next lane.
type NextPlace<'k> = Box<dyn FnMut(&mut Writer<'k>) -> Mem>;

/// Registers of records that are loaded to be transposed.
struct Turned {
    /// Records: a lane each, or two of eight lanes.
    rows: [Xmm; 4],
    /// Register for the transposition.
    low: Xmm,
    /// A record before it becomes the upper half of a register.
    part: Xmm,
    /// Third field of a record.
    third: Xmm,
    shape: Shape,
    /// Number of adjacent elements that are loaded.
    width: usize,
    /// Elements that are loaded, if they are not loaded as a pair and one.
    mask: Option<Mask>,
}

impl Row<'_> {
    /// Returns whether an element is adjacent to the others, and not one of them.
    fn has_room(&self, offset: i32) -> bool {
        self.fields.iter().all(|field| offset.abs_diff(field.offset) < FIELDS as u32 && offset != field.offset)
    }
}

impl<'k> Writer<'k> {
    /// Finds the records of a block of a lane loop, whose first event has number `first`. A record does not extend over
    /// an index check, which its second part may need. Delayed loads of the previous block stay valid.
    pub(in crate::lower) fn find_rows(&mut self, first: u32, instrs: &'k [Instr]) {
        if first != self.lanes.rows.end {
            self.lanes.rows = Rows::default();
        }
        self.lanes.rows.end = first + instrs.len() as u32;
        if self.lanes.plan.is_none() {
            return;
        }
        let mut open = self.lanes.rows.all.len();
        // First record after the last write to each buffer, by its number.
        let mut written: BTreeMap<BufferId, usize> = BTreeMap::new();
        for (event, instr) in (first..).zip(instrs) {
            match instr {
                Instr::CheckIndex { .. } => open = self.lanes.rows.all.len(),
                Instr::Store { buffer, .. } => drop(written.insert(*buffer, self.lanes.rows.all.len())),
                Instr::Load { dst, buffer, at } if self.is_in_row(*dst, at) => {
                    let is_input = matches!(self.kernel.buffers[*buffer].place, Place::Input(_));
                    let waits = is_input || self.plan.is_lazy(event);
                    let (part, offset) = split_constant(at);
                    let field = Field { dst: *dst, at, offset, next: event };
                    let all = &mut self.lanes.rows.all;
                    let since = written.get(buffer).copied().unwrap_or(0).max(open);
                    let recent = all.len().saturating_sub(RECENT).max(since);
                    let belongs = |row: &Row<'_>| {
                        row.buffer == *buffer && row.waits == waits && row.part == part && row.has_room(offset)
                    };
                    let row = match all[recent..].iter().position(belongs) {
                        Some(i) => recent + i,
                        None => {
                            all.push(Row { buffer: *buffer, part, waits, fields: Vec::new() });
                            all.len() - 1
                        }
                    };
                    all[row].fields.push(field);
                    self.lanes.rows.of.insert(event, row);
                }
                _ => {}
            }
        }
    }

    /// Returns whether a load is of strided elements, in this block.
    fn is_in_row(&self, dst: Reg, at: &Poly<Reg>) -> bool {
        self.kernel.regs[dst] == Class::Real
            && self.plan.home(dst.index()) == Home::Local
            && match self.across(at) {
                Across::Far(slope) => !is_reversed(&slope),
                across => matches!(across, Across::Varying),
            }
    }

    /// Performs the load of an event, whose next use is `next`, or delays it, if it belongs to a record and was not
    /// loaded before. Returns whether it belongs to one.
    pub(in crate::lower) fn load_in_row(&mut self, event: u32, dst: Reg, next: u32) -> Result<bool> {
        let Some(row) = self.lanes.rows.of.get(&event).copied() else { return Ok(false) };
        let Row { fields, waits, .. } = &mut self.lanes.rows.all[row];
        if next == NEVER {
            fields.retain(|field| field.dst != dst);
            self.registers.release(dst);
            return Ok(true);
        }
        let Some(field) = fields.iter_mut().find(|field| field.dst == dst) else {
            // Its register may have been spilled.
            let _ = self.registers.use_at(dst, next);
            return Ok(true);
        };
        field.next = next;
        if *waits {
            self.registers.set_copy(dst, Copy::Load(self.copies.origins.len() as u32));
            self.copies.origins.push(Origin::Row(row));
        } else {
            self.load_row(row, dst, next)?;
        }
        Ok(true)
    }

    /// Returns the record in which `copy` is delayed.
    pub(in crate::lower) fn row_of(&self, copy: Copy) -> Option<usize> {
        let Copy::Load(number) = copy else { return None };
        match self.copies.origins[number as usize] {
            Origin::Row(row) => Some(row),
            _ => None,
        }
    }

    /// Loads `r`, which is delayed in a record and is used now and next at `next`, with the other delayed loads of the
    /// record. Locks the register.
    pub(in crate::lower) fn load_row(&mut self, row: usize, r: Reg, next: u32) -> Result<Xmm> {
        let Row { buffer, fields, waits, .. } = &mut self.lanes.rows.all[row];
        let (buffer, mut fields, waits) = (*buffer, std::mem::take(fields), *waits);
        let Some(asked) = fields.iter_mut().find(|field| field.dst == r) else {
            return Err(crate::lower::bug("a load waits nowhere"));
        };
        asked.next = next;
        let asked = *asked;
        fields.sort_unstable_by_key(|field| field.offset);
        let width = match fields.as_slice() {
            [first, .., last] => (last.offset - first.offset) as usize + 1,
            _ => 1,
        };
        if width > 1 && self.registers.n_usable() >= TURNING {
            return self.turn(buffer, &fields, (width, waits), r);
        }
        fields.retain(|field| field.dst != r);
        self.lanes.rows.all[row].fields = fields;
        let x = self.load_now(r, buffer, asked.at, next)?;
        self.registers.set_copy(r, Copy::None);
        Ok(x)
    }

    /// Loads fields, the first of which is `width - 1` before the last, and returns the register of `asked`. A vector
    /// must not extend beyond the requested fields, and recently stored memory is read with the width of its stores: by
    /// a pair and one.
    fn turn(
        &mut self,
        buffer: BufferId,
        fields: &[Field<'k>],
        (width, waits): (usize, bool),
        asked: Reg,
    ) -> Result<Xmm> {
        let [rax, ..] = SCRATCH;
        let mask = if width == 3 && waits && self.mode.level == Level::Avx512 {
            let mask = self.take_mask(None, NEVER)?;
            self.asm.mov_ri(rax, (1 << width) - 1);
            self.asm.mask_from(mask, rax);
            Some(mask)
        } else {
            None
        };
        let mut rows = [Xmm(0); 4];
        for x in &mut rows {
            *x = self.temporary()?;
        }
        let (low, part, third) = (self.temporary()?, self.temporary()?, self.temporary()?);
        // Inactive lanes may hold anything.
        let shape = if self.n_active() <= 4 { Shape::Four } else { self.lanes.shape };
        let block = Turned { rows, low, part, third, shape, width, mask };
        let mut place = self.record_places(buffer, fields)?;
        for lane in 0..self.n_active() {
            let mem = place(self);
            self.load_record(&block, lane, mem)?;
        }
        self.transpose_records(&block, fields, asked)
    }

    /// Returns a function that makes the address of the first field in the next lane.
    fn record_places(&mut self, buffer: BufferId, fields: &[Field<'k>]) -> Result<NextPlace<'k>> {
        let (first, last) = (fields[0], fields[fields.len() - 1]);
        match self.across(first.at) {
            Across::Varying => {
                let ats: Vec<&Poly<Reg>> = fields.iter().map(|field| field.at).collect();
                let mut places = self.varying_places(buffer, &ats)?;
                Ok(Box::new(move |this| places.next(this)))
            }
            Across::Far(slope) => {
                // Checks both ends.
                let _ = self.address(buffer, last.at)?;
                let mem = self.address(buffer, first.at)?;
                let mut places = self.places(mem, &slope)?;
                Ok(Box::new(move |this| places.next(this)))
            }
            _ => Err(crate::lower::bug("a load that waits is not apart")),
        }
    }

    /// Loads the record of a lane at `mem`.
    fn load_record(&mut self, block: &Turned, lane: usize, mem: Mem) -> Result<()> {
        let Turned { rows, part, third, width, .. } = *block;
        // A register holds two of eight lanes, which become adjacent.
        let (to, upper) = match block.shape {
            Shape::Eight => (rows[lane / 4 * 2 + lane % 2], lane % 4 >= 2),
            Shape::Four | Shape::One => (rows[lane % 4], false),
        };
        if width == FIELDS {
            match upper {
                false => self.asm.load(Shape::Four, to, mem),
                true => self.asm.insert_half(Shape::Eight, to, to, mem, Half::Upper),
            }
            return Ok(());
        }
        let x = if upper { part } else { to };
        if let Some(mask) = block.mask {
            self.asm.load_zeroing(Shape::Four, x, mask, mem);
        } else {
            self.asm.load_pair(x, mem);
            if width == 3 {
                self.asm.load(Shape::One, third, third_of(mem)?);
                self.asm.insert_half(Shape::Four, x, x, third, Half::Upper);
            }
        }
        if upper {
            self.asm.insert_half(Shape::Eight, to, to, part, Half::Upper);
        }
        Ok(())
    }

    /// Transposes loaded records, frees the registers without a field, and returns the register of `asked`.
    fn transpose_records(&mut self, block: &Turned, fields: &[Field<'k>], asked: Reg) -> Result<Xmm> {
        let Turned { rows: [a, b, c, d], low, part, third, shape, .. } = *block;
        let wanted = |column: i32| fields.iter().find(|field| field.offset == fields[0].offset + column);
        let odd = wanted(1).is_some() || wanted(3).is_some();
        self.asm.unpack_low(shape, low, a, b);
        if odd {
            self.asm.unpack_high(shape, a, a, b);
        }
        self.asm.unpack_low(shape, b, c, d);
        if odd {
            self.asm.unpack_high(shape, c, c, d);
        }
        // In this order each register is written after its last read.
        let columns = [
            (0, d, low, b, Half::Lower),
            (2, low, low, b, Half::Upper),
            (1, b, a, c, Half::Lower),
            (3, a, a, c, Half::Upper),
        ];
        let mut found = None;
        let mut free = vec![c, part, third];
        for (column, to, from, other, half) in columns {
            let Some(field) = wanted(column) else {
                free.push(to);
                continue;
            };
            self.asm.halves_of_fours(shape, to, from, other, half);
            self.registers.name(to, field.dst, field.next);
            self.registers.set_copy(field.dst, Copy::None);
            if field.dst == asked {
                found = Some(to);
            } else {
                self.registers.unlock(to);
            }
        }
        for x in free {
            self.registers.give_back(x);
            self.registers.unlock(x);
        }
        found.ok_or_else(|| crate::lower::bug("a load waits nowhere"))
    }

    /// Emits the first stores of `instrs`, if they are to adjacent elements at strided positions; returns their number,
    /// or 0.
    pub(in crate::lower) fn store_row(&mut self, instrs: &[Instr]) -> Result<usize> {
        let Some((buffer, first, slope, n)) = self.row_to_store(instrs) else { return Ok(0) };
        if self.registers.n_usable() < n + TURNING {
            return Ok(0);
        }
        let mut values = Vec::with_capacity(n);
        for instr in &instrs[..n] {
            let Instr::Store { value, .. } = instr else { return Err(crate::lower::bug("a row has no store")) };
            let next = self.next_use();
            values.push((*value, next, self.in_register(*value, next)?));
        }
        // Checks both ends.
        let _ = self.address(buffer, &first.add(&Poly::constant(n as i64 - 1)))?;
        let mem = self.address(buffer, first)?;
        let mut places = self.places(mem, &slope)?;
        let mut turned = [Xmm(0); 4];
        for x in &mut turned {
            *x = self.temporary()?;
        }
        let row = self.temporary()?;
        let shape = if self.n_active() <= 4 { Shape::Four } else { self.lanes.shape };
        // From each pair of fields, those of even lanes, then those of odd ones.
        let field = |i: usize| values[i.min(n - 1)].2;
        for (x, pair) in turned.chunks(2).zip([0, 2]) {
            if pair < n {
                self.asm.unpack_low(shape, x[0], field(pair), field(pair + 1));
                self.asm.unpack_high(shape, x[1], field(pair), field(pair + 1));
            }
        }
        let done = self.asm.new_label();
        for lane in 0..self.n_active() {
            if lane == 4 {
                turned
                    .iter()
                    .take(if n > 2 { 4 } else { 2 })
                    .for_each(|x| self.asm.half(Shape::Eight, *x, *x, Half::Upper));
            }
            let (low, high, upper) = (turned[lane % 2], turned[2 + lane % 2], lane % 4 >= 2);
            let mem = places.next_active(self, done);
            if n == 2 {
                let from = if upper { row } else { low };
                if upper {
                    self.asm.half(Shape::Four, row, low, Half::Upper);
                }
                self.asm.store_pair(mem, from);
                continue;
            }
            let half = if upper { Half::Upper } else { Half::Lower };
            self.asm.halves_of_fours(Shape::Four, row, low, high, half);
            if n == FIELDS {
                self.asm.store(Shape::Four, mem, row);
            } else {
                self.asm.store_pair(mem, row);
                self.asm.half(Shape::Four, row, row, Half::Upper);
                self.asm.store(Shape::One, third_of(mem)?, row);
            }
        }
        self.asm.bind(done);
        for x in turned.into_iter().chain([row]) {
            self.registers.give_back(x);
            self.registers.unlock(x);
        }
        values.into_iter().for_each(|(value, next, _)| self.release(value, next));
        Ok(n)
    }

    /// Returns the first two to four stores of `instrs` if they are to adjacent elements: the buffer, the address of
    /// the first one, the distance to the next lane, and their number.
    fn row_to_store<'i>(&self, instrs: &'i [Instr]) -> Option<(BufferId, &'i Poly<Reg>, Poly<Reg>, usize)> {
        self.lanes.plan.as_ref()?;
        let Instr::Store { buffer, at: first, .. } = instrs.first()? else { return None };
        let (part, offset) = split_constant(first);
        let is_next = |(k, instr): &(i32, &Instr)| match instr {
            Instr::Store { buffer: b, at, .. } if b == buffer => {
                let (p, o) = split_constant(at);
                p == part && o.checked_sub(offset) == Some(*k)
            }
            _ => false,
        };
        let n = (0..).zip(instrs.iter().take(FIELDS)).take_while(is_next).count();
        let is_real = self.kernel.buffers[*buffer].class == Class::Real;
        match self.across(first) {
            Across::Far(slope) if n > 1 && is_real && self.accumulator(*buffer, first).is_none() => {
                Some((*buffer, first, slope, n))
            }
            _ => None,
        }
    }
}

/// Returns the location of the third element.
fn third_of(mem: Mem) -> Result<Mem> {
    mem.plus(16).ok_or_else(|| crate::lower::bug("a place is too far"))
}
