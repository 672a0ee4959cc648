//! Scalar straight-line emission: arithmetic of one point without values that outlive their block, most of large
//! functions.
//!
//! The same code as by `inline` and `values`, emitted in fewer steps: an operand is a register or a memory operand in
//! one number ([`Scalar`]), and the roles of a fused product's operands come from a table. Rare cases use the general
//! form.

use super::inline::{Operand, Order};
use super::plan::NEVER;
use super::registers::Copy;
use super::{NOWHERE, Origin, Result, Writer};
use crate::asm::{Arith, Fma, FmaOrder, Gpr, Mem, Scalar, Shape, Source, Xmm};
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Class, Instr, Place, Reg};

/// Roles of the operands of a fused product `a * b + c`, numbered from 0: the overwritten one, the one in a register,
/// the one that may be in memory, and the order of the instruction.
#[derive(Clone, Copy)]
struct Roles {
    over: u8,
    register: u8,
    memory: u8,
    order: FmaOrder,
}

/// Index: a bit for each operand in a register, and above these a bit for each dead operand.
static ROLES: [Roles; 64] = {
    let mut table = [Roles::of(0, 0); 64];
    let mut i = 0;
    while i < 64 {
        table[i] = Roles::of(i & 7, i >> 3);
        i += 1;
    }
    table
};

impl Roles {
    const fn of(held: usize, ends: usize) -> Self {
        const C: usize = 2;
        // A dead operand in a register, or else a dead operand, or else the addend.
        let order = [C, 0, 1];
        let (mut over, mut found, mut round) = (C, false, 0);
        while round < 2 {
            let mut k = 0;
            while k < 3 {
                let i = order[k];
                if !found && ends >> i & 1 != 0 && (held >> i & 1 != 0) == (round == 0) {
                    (over, found) = (i, true);
                }
                k += 1;
            }
            round += 1;
        }
        let (first, second) = match over {
            0 => (1, C),
            1 => (0, C),
            _ => (0, 1),
        };
        let exchange = held >> first & 1 == 0 && held >> second & 1 != 0;
        let (register, memory) = if exchange { (second, first) } else { (first, second) };
        // 213: dst = y * dst + source; 231: dst = y * source + dst; 132: dst = dst * source + y.
        let order = match (over, memory) {
            (C, _) => FmaOrder::O231,
            (_, C) => FmaOrder::O213,
            _ => FmaOrder::O132,
        };
        Self { over: over as u8, register: register as u8, memory: memory as u8, order }
    }
}

impl Writer<'_> {
    /// Returns a register that holds `r`, locked until the end of the instruction.
    #[inline]
    fn plain_register(&mut self, r: Reg, next: u32) -> Result<Xmm> {
        match self.registers.use_at(r, next) {
            Some(x) => Ok(x),
            None => self.plain_fetch(r, next),
        }
    }

    /// As [`Self::plain_register`], for a value in no register.
    #[inline(never)]
    fn plain_fetch(&mut self, r: Reg, next: u32) -> Result<Xmm> {
        let (number, _, is_constant) = self.registers.slot_or_constant(r);
        let literal = if is_constant { number } else { 0 };
        let is_zero = is_constant & self.copies.literals.get(literal as usize).is_some_and(|literal| literal.bits == 0);
        if is_zero {
            return self.fetch(r, next);
        }
        let Some(place) = self.plain_place(r) else { return self.fetch(r, next) };
        let x = self.take(r, next)?;
        self.asm.load_scalar(x, place);
        Ok(x)
    }

    /// In straight-line code: returns whether the load of `dst` can be delayed to its use, because the memory is not
    /// written.
    #[inline]
    pub(super) fn plain_load(&mut self, at: u32, dst: Reg, buffer: BufferId, address: &Poly<Reg>) -> bool {
        let is_input = matches!(self.kernel.buffers[buffer].place, Place::Input(_));
        if !(is_input || self.plan.is_lazy(at)) || self.kernel.regs[dst] != Class::Real {
            return false;
        }
        let Some(Mem::At { disp, .. }) = self.known_element(buffer, address) else { return false };
        if self.next_use() != NEVER {
            let copy = self.origin(Origin::Element(buffer, disp));
            self.registers.set_copy(dst, copy);
        }
        true
    }

    /// Returns an operand for `r`: a register, or memory if that is no worse.
    #[inline]
    fn plain_source(&mut self, r: Reg, next: u32) -> Result<Scalar> {
        match self.registers.use_at(r, next) {
            Some(x) => Ok(x.into()),
            None => self.plain_source_elsewhere(r, next),
        }
    }

    /// As [`Self::plain_source`], for a value in no register.
    #[inline(never)]
    fn plain_source_elsewhere(&mut self, r: Reg, next: u32) -> Result<Scalar> {
        if next != NEVER && self.registers.is_worth(next) {
            return Ok(self.plain_fetch(r, next)?.into());
        }
        if let Some(place) = self.plain_place(r) {
            return Ok(place);
        }
        Ok(match self.source_elsewhere(r, next)? {
            Source::Reg(x) => x.into(),
            Source::Mem(Mem::At { base, disp }) => Scalar::at(base, disp),
            // Straight-line code has constant addresses; other operands go through a register.
            Source::Mem(_) | Source::Broadcast(_) => self.fetch(r, next)?.into(),
        })
    }

    /// In straight-line code: emits the store to a constant address at the start of `instrs`, with the next one if it
    /// is to the adjacent element; returns their number. Zeros are stored elsewhere, because many of them may be
    /// combined.
    #[inline]
    pub(super) fn plain_stores(&mut self, instrs: &[Instr]) -> Result<usize> {
        let Some((value, buffer, base, first)) = self.plain_target(instrs.first()) else { return Ok(0) };
        let (_, _, is_constant) = self.registers.slot_or_constant(value);
        if is_constant {
            return Ok(0);
        }
        let next = self.next_use();
        let x = self.plain_register(value, next)?;
        let beside =
            self.plain_target(instrs.get(1)).filter(|(_, b, _, second)| *b == buffer && first.abs_diff(*second) == 8);
        let Some((other, _, _, second)) = beside else {
            self.asm.store_scalar(Scalar::at(base, first), x);
            self.plain_release(value, next);
            return Ok(1);
        };
        let other_next = self.next_use();
        let y = self.plain_register(other, other_next)?;
        let both = self.temporary()?;
        let (low, high) = if first < second { (x, y) } else { (y, x) };
        self.store_both(Mem::At { base, disp: first.min(second) }, both, low, high);
        self.plain_release(value, next);
        self.plain_release(other, other_next);
        Ok(2)
    }

    /// Returns the value and the constant address of a store in straight-line code.
    #[inline]
    fn plain_target(&self, instr: Option<&Instr>) -> Option<(Reg, BufferId, Gpr, i32)> {
        let Some(Instr::Store { buffer, at, value }) = instr else { return None };
        if !self.mode.is_line || self.kernel.regs[*value] != Class::Real {
            return None;
        }
        match self.known_element(*buffer, at)? {
            Mem::At { base, disp } => Some((*value, *buffer, base, disp)),
            _ => None,
        }
    }

    /// Returns the operand of a slot, a constant or an element at a constant address. Branch-free for the first two,
    /// because the choice is hard to predict.
    #[inline]
    fn plain_place(&mut self, r: Reg) -> Option<Scalar> {
        let (number, is_slot, is_constant) = self.registers.slot_or_constant(r);
        if !(is_slot | is_constant) {
            let Copy::Load(number) = self.registers.copy(r) else { return None };
            let Origin::Element(buffer, disp) = *self.copies.origins.get(number as usize)? else { return None };
            return self.addresses.pointers.of(buffer).map(|base| Scalar::at(base, disp));
        }
        let literal = if is_constant { number } else { 0 };
        let mut offset = self.copies.literals.get(literal as usize).map_or(0, |literal| literal.offset);
        if is_constant & (offset == NOWHERE) {
            offset = self.constant_of(literal);
        }
        let Mem::At { base, disp } = self.frame.slot(number) else { return None };
        let (slot, constant) = (Scalar::at(base, disp), Scalar::constant(offset));
        Some(if is_constant { constant } else { slot })
    }

    /// [`Self::release`] of a local value.
    #[inline]
    fn plain_release(&mut self, r: Reg, next: u32) {
        self.registers.release_where(next == NEVER, r);
    }

    /// Emits `dst = a op b` whose operands are not both in registers.
    #[inline(never)]
    pub(super) fn plain_arith(&mut self, op: Arith, order: Order, dst: Reg, a: Operand, b: Operand) -> Result<()> {
        let (first, second) = if self.is_exchanged(order, a.reg, b.reg) { (b, a) } else { (a, b) };
        let x = self.plain_register(first.reg, first.next)?;
        let source = if a.reg == b.reg { x.into() } else { self.plain_source(second.reg, second.next)? };
        self.plain_release(a.reg, a.next);
        self.plain_release(b.reg, b.next);
        let next = self.next_use();
        let d = self.take(dst, next)?;
        self.asm.arith_scalar(op, d, x, source);
        if next == NEVER {
            self.registers.release(dst);
        }
        Ok(())
    }

    /// Emits a fused product whose operands are not all in registers; overwrites one of them.
    #[inline(never)]
    pub(super) fn plain_mul_add(&mut self, op: Fma, dst: Reg, args: &[Reg; 3], next: [u32; 3]) -> Result<()> {
        let (mut held, mut ends) = (0, 0);
        for i in 0..3 {
            held |= usize::from(self.registers.register(args[i]).is_some()) << i;
            ends |= usize::from(next[i] == NEVER) << i;
        }
        let Roles { over, register, memory, order } = ROLES[held | ends << 3];
        let [over, register, memory] = [over, register, memory].map(|i| usize::from(i).min(2));
        let x = self.plain_register(args[over], next[over])?;
        let y = self.plain_register(args[register], next[register])?;
        let source = if args[memory] == args[register] {
            y.into()
        } else if args[memory] == args[over] {
            x.into()
        } else {
            self.plain_source(args[memory], next[memory])?
        };
        (0..3).for_each(|i| self.plain_release(args[i], next[i]));
        let after = self.next_use();
        // The register of the overwritten operand, if it is free now.
        let d = if self.registers.is_free(x) {
            self.registers.take_this(x, dst, after);
            x
        } else {
            // All operands stay in place until they are read.
            [Some(x), Some(y), source.register()].into_iter().flatten().for_each(|x| self.registers.lock(x));
            let d = self.take(dst, after)?;
            self.asm.mov(Shape::One, d, x);
            d
        };
        self.asm.fma_scalar(op, order, d, y, source);
        if after == NEVER {
            self.registers.release(dst);
        }
        Ok(())
    }
}
