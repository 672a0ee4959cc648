//! Values of a block: loaded into registers, stored to slots, or read from memory by the instruction that needs them.

use super::frame::lanes;
use super::lanes::Across;
use super::plan::{Home, NEVER};
use super::registers::{Copy, Spill};
use super::{Literal, NOWHERE, Origin, Result, SCRATCH, Writer, no_register};
use crate::asm::{Mem, Scalar, Shape, Source, Xmm};
use crate::level::Level;
use chainrule_base::{Id, Poly};
use chainrule_kernel::{BufferId, Place, Reg};

impl<'k> Writer<'k> {
    /// Returns the next use, after the current instruction, of the next operand in order, then of its result.
    #[inline]
    pub(super) fn next_use(&mut self) -> u32 {
        self.uses.left = self.uses.left.wrapping_sub(1);
        self.uses.next.get(self.uses.left).copied().unwrap_or(NEVER)
    }

    /// As [`Self::next_use`], for two operands.
    #[inline]
    pub(super) fn next_two(&mut self) -> (u32, u32) {
        self.uses.left = self.uses.left.wrapping_sub(2);
        match self.uses.next.get(self.uses.left..).and_then(<[u32]>::first_chunk) {
            Some([second, first]) => (*first, *second),
            None => (NEVER, NEVER),
        }
    }

    #[inline]
    pub(super) fn write_spill(&mut self, spill: Spill) {
        if let Some((x, slot)) = spill {
            match self.frame.slot(slot) {
                Mem::At { base, disp } if self.lanes.shape == Shape::One => {
                    self.asm.store_scalar(Scalar::at(base, disp), x);
                }
                mem => self.asm.store(self.lanes.shape, mem, x),
            }
        }
    }

    /// Allocates a register for `r`.
    #[inline]
    pub(super) fn take(&mut self, r: Reg, next: u32) -> Result<Xmm> {
        match self.registers.take_free(r, next) {
            Some(x) => Ok(x),
            None => self.take_taken(r, next),
        }
    }

    /// As [`Self::take`], if another value must be spilled.
    #[inline(never)]
    fn take_taken(&mut self, r: Reg, next: u32) -> Result<Xmm> {
        let Some(x) = self.registers.victim() else { return Err(no_register()) };
        if let Some(slot) = self.registers.take_taken(x, r, next) {
            self.write_spill(Some((Xmm(x), slot)));
        }
        Ok(Xmm(x))
    }

    /// Allocates a register for an intermediate, until the end of the instruction; the caller releases it.
    pub(super) fn temporary(&mut self) -> Result<Xmm> {
        let (x, spill) = self.registers.take_unnamed().ok_or_else(no_register)?;
        self.write_spill(spill);
        self.registers.lock(x);
        Ok(x)
    }

    /// Returns a register that holds `r`, locked until the end of the instruction.
    #[inline]
    pub(super) fn in_register(&mut self, r: Reg, next: u32) -> Result<Xmm> {
        match self.registers.use_at(r, next) {
            Some(x) => Ok(x),
            None => self.fetch(r, next),
        }
    }

    /// As [`Self::in_register`], for a value in no register.
    #[inline(never)]
    pub(super) fn fetch(&mut self, r: Reg, next: u32) -> Result<Xmm> {
        let copy = self.registers.copy(r);
        if let Some(row) = self.row_of(copy) {
            return self.load_row(row, r, next);
        }
        let x = self.take(r, next)?;
        self.load_copy(x, copy)?;
        Ok(x)
    }

    /// Returns an operand for `r`: a register, or memory if that is no worse.
    #[inline]
    pub(super) fn source(&mut self, r: Reg, next: u32) -> Result<Source> {
        match self.registers.use_at(r, next) {
            Some(x) => Ok(Source::Reg(x)),
            None => self.source_elsewhere(r, next),
        }
    }

    /// As [`Self::source`], for a value in no register.
    #[inline(never)]
    pub(super) fn source_elsewhere(&mut self, r: Reg, next: u32) -> Result<Source> {
        let copy = self.registers.copy(r);
        let is_worth = next != NEVER && self.registers.is_worth(next);
        if !is_worth
            && self.row_of(copy).is_none()
            && let Some(source) = self.operand(copy)?
        {
            return Ok(source);
        }
        Ok(Source::Reg(self.fetch(r, next)?))
    }

    fn load_copy(&mut self, x: Xmm, copy: Copy) -> Result<()> {
        if let Copy::Constant(literal) = copy
            && self.copies.literals[literal as usize].bits == 0
        {
            self.asm.zero(x);
            return Ok(());
        }
        match self.copy_source(copy)? {
            Some(Source::Mem(mem)) => self.asm.load(self.lanes.shape, x, mem),
            Some(source) => self.asm.broadcast(self.lanes.shape, x, source),
            None => return Err(super::bug("a value is read that is nowhere")),
        }
        Ok(())
    }

    /// Returns a copy as a memory operand of arithmetic, if possible.
    fn operand(&mut self, copy: Copy) -> Result<Option<Source>> {
        let level = self.mode.level;
        let is_operand = |source: &Source| level == Level::Avx512 || !matches!(source, Source::Broadcast(_));
        Ok(self.copy_source(copy)?.filter(is_operand))
    }

    /// Returns the memory of a copy.
    fn copy_source(&mut self, copy: Copy) -> Result<Option<Source>> {
        Ok(match copy {
            Copy::None => None,
            Copy::Slot(slot) | Copy::Home(slot) => Some(Source::Mem(self.frame.slot(slot))),
            Copy::Constant(at) => {
                let mut offset = self.copies.literals[at as usize].offset;
                if offset == NOWHERE {
                    offset = self.constant_of(at);
                }
                Some(self.constant_source(offset))
            }
            Copy::Load(at) => Some(match self.copies.origins[at as usize] {
                Origin::Element(buffer, disp) => {
                    let mem = Mem::At { base: self.pointer(buffer, SCRATCH[1]), disp };
                    if self.lanes.plan.is_some() { Source::Broadcast(mem) } else { Source::Mem(mem) }
                }
                Origin::Load(buffer, at) => {
                    let mem = self.address(buffer, at)?;
                    match self.across(at) {
                        Across::Same => Source::Broadcast(mem),
                        _ => Source::Mem(mem),
                    }
                }
                Origin::Row(_) => return Ok(None),
            }),
        })
    }

    /// Returns the offset of the constant of this number, added to the pool on the first request.
    pub(super) fn constant_of(&mut self, number: u32) -> u32 {
        let offset = self.constant_offset(self.copies.literals[number as usize].bits);
        self.copies.literals[number as usize].offset = offset;
        offset
    }

    /// Returns the offset of a constant for all lanes. Each constant of a kernel is requested once, and few are equal.
    fn constant_offset(&mut self, bits: u64) -> u32 {
        match (self.lanes.shape, self.mode.level) {
            (Shape::One, _) | (_, Level::Avx512) => self.asm.new_constant(bits),
            (_, Level::Avx2) => self.asm.constant_block([bits; 4]),
        }
    }

    /// Returns a constant for all lanes, as an operand of arithmetic.
    fn constant_source(&self, offset: u32) -> Source {
        match (self.lanes.shape, self.mode.level) {
            (Shape::One, _) | (_, Level::Avx2) => Source::Mem(Mem::Constant(offset)),
            (_, Level::Avx512) => Source::Broadcast(Mem::Constant(offset)),
        }
    }

    /// Returns a constant for all lanes, as an operand of bitwise logic, which reads 16 bytes for a scalar.
    pub(super) fn pattern(&mut self, bits: u64) -> Source {
        match (self.lanes.shape, self.mode.level) {
            (_, Level::Avx512) => Source::Broadcast(Mem::Constant(self.asm.constant(bits))),
            (Shape::One, Level::Avx2) => Source::Mem(Mem::Constant(self.asm.constant_block([bits; 2]))),
            (_, Level::Avx2) => Source::Mem(Mem::Constant(self.asm.constant_block([bits; 4]))),
        }
    }

    /// Releases the location of `r` after reading, if it is dead.
    #[inline]
    pub(super) fn release(&mut self, r: Reg, next: u32) {
        if next == NEVER {
            if let Some(x) = self.registers.register(r) {
                self.registers.unlock(x);
            }
            self.registers.release(r);
        }
    }

    /// Returns the register to which `r` is written: its own, or one for the block.
    pub(super) fn destination(&mut self, r: Reg, next: u32) -> Result<Xmm> {
        match self.plan.home(r.index()) {
            Home::Xmm(x) => Ok(x),
            _ => self.take(r, next),
        }
    }

    /// Records that `r` was written to `x`.
    pub(super) fn defined(&mut self, r: Reg, x: Xmm, next: u32) {
        match self.plan.home(r.index()) {
            Home::Slot(slot) => {
                let mem = self.frame.slot(slot);
                self.asm.store(self.lanes.shape, mem, x);
                if next == NEVER {
                    self.registers.release(r);
                }
            }
            Home::Local if next == NEVER => self.registers.release(r),
            _ => {}
        }
    }

    pub(super) fn instr_load(&mut self, at: u32, dst: Reg, buffer: BufferId, address: &'k Poly<Reg>) -> Result<()> {
        let next = self.next_use();
        if self.plan.home(dst.index()) == Home::Local {
            if self.load_in_row(at, dst, next)? || next == NEVER {
                return Ok(());
            }
            let is_input = matches!(self.kernel.buffers[buffer].place, Place::Input(_));
            let may_be_operand = match self.across(address) {
                Across::Next => !self.has_mask(),
                Across::Same => true,
                Across::Far(_) | Across::Varying => false,
            };
            let waits = may_be_operand && (is_input || self.plan.is_lazy(at));
            if waits && self.is_stable(address) {
                let origin = match self.element(buffer, address)? {
                    Some(disp) => Origin::Element(buffer, disp),
                    None => Origin::Load(buffer, address),
                };
                let copy = self.origin(origin);
                self.registers.set_copy(dst, copy);
                return Ok(());
            }
        }
        let x = self.load_now(dst, buffer, address, next)?;
        self.defined(dst, x, next);
        Ok(())
    }

    /// Loads into the register of `dst`.
    pub(super) fn load_now(&mut self, dst: Reg, buffer: BufferId, at: &Poly<Reg>, next: u32) -> Result<Xmm> {
        let across = self.across(at);
        if let Across::Varying = across {
            let x = self.destination(dst, next)?;
            self.gather_varying(buffer, at, x)?;
            return Ok(x);
        }
        let mem = self.address(buffer, at)?;
        // The address stays in scratch registers, which spilling does not use.
        let x = self.destination(dst, next)?;
        match across {
            Across::Next => self.load_lanes(x, mem),
            Across::Far(step) => self.gather(mem, &step, x)?,
            _ => self.asm.broadcast(self.lanes.shape, x, mem),
        }
        Ok(x)
    }

    /// Adds a constant under a new number.
    pub(super) fn literal(&mut self, value: f64) -> Copy {
        self.copies.literals.push(Literal { bits: value.to_bits(), offset: NOWHERE });
        Copy::Constant(self.copies.literals.len() as u32 - 1)
    }

    /// Adds the source of a value under a new number.
    #[inline]
    pub(super) fn origin(&mut self, origin: Origin<'k>) -> Copy {
        self.copies.origins.push(origin);
        Copy::Load(self.copies.origins.len() as u32 - 1)
    }

    pub(super) fn instr_const(&mut self, dst: Reg, value: f64) -> Result<()> {
        let next = self.next_use();
        let copy = self.literal(value);
        if self.plan.home(dst.index()) == Home::Local {
            self.registers.set_copy(dst, copy);
            return Ok(());
        }
        let x = self.destination(dst, next)?;
        self.load_copy(x, copy)?;
        self.defined(dst, x, next);
        Ok(())
    }

    /// Returns the memory operand of an element at a constant address proved to be inside its buffer, whose pointer is
    /// in a register.
    #[inline]
    pub(super) fn known_element(&self, buffer: BufferId, at: &Poly<Reg>) -> Option<Mem> {
        self.place_of(buffer, at.as_constant()?)
    }

    /// As [`Self::known_element`], by the number of the element.
    #[inline]
    pub(super) fn place_of(&self, buffer: BufferId, element: i64) -> Option<Mem> {
        let len = self.kernel.buffers[buffer].len.as_constant()?;
        let disp = i32::try_from(element.checked_mul(self.element_bytes())?).ok()?;
        let base = self.addresses.pointers.of(buffer)?;
        (0..len).contains(&element).then_some(Mem::At { base, disp })
    }

    /// Returns the stride of elements of a buffer in bytes.
    pub(super) fn element_bytes(&self) -> i64 {
        8 * lanes(self.mode.points) as i64
    }
}
