//! General registers: 64-bit integers and addresses.
//!
//! The suffixes of the names are the operands: `r` a register, `m` memory, `i` an immediate, destination first.
//! Instructions that change flags are marked; all others preserve them, except [`mov_ri`](Assembler::mov_ri).

use super::address::Place;
use super::{Assembler, Condition, Gpr, Mem};

/// `dst = dst op source`, with flags; [`Alu::Cmp`] only sets flags. The value is the opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alu {
    /// `add`
    Add = 0x00,
    /// `or`
    Or = 0x08,
    /// `and`
    And = 0x20,
    /// `sub`
    Sub = 0x28,
    /// `xor`
    Xor = 0x30,
    /// `cmp`
    Cmp = 0x38,
}

/// Shifts by a known number of bits; the value is ModRM's `reg`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shift {
    /// `shl`
    Left = 4,
    /// `shr`
    Right = 5,
    /// `sar`: shifts in the sign bit.
    RightSigned = 7,
}

/// REX without a bit set, and with W, which makes operands 64 bits long.
const REX: u64 = 0x40;
const REX_W: u64 = 0x48;

/// Returns the two bytes of an opcode after `0F`.
#[inline]
const fn two(opcode: u64) -> (u64, usize) {
    (0x0F | opcode << 8, 2)
}

#[inline]
const fn one(opcode: u64) -> (u64, usize) {
    (opcode, 1)
}

impl Assembler {
    /// Writes a 64-bit instruction between registers, with `immediate_len` bytes of `immediate`, at most 4.
    #[inline]
    fn registers(&mut self, (opcode, len): (u64, usize), reg: u8, rm: u8, immediate: i32, immediate_len: usize) {
        debug_assert!(reg < 16 && rm < 16, "general registers are 0 to 15");
        let rex = REX_W | u64::from(reg >> 3) << 2 | u64::from(rm >> 3);
        let modrm = u64::from(0xC0 | (reg & 7) << 3 | (rm & 7));
        let head = rex | opcode << 8 | modrm << (8 * (1 + len));
        let at = len + 2;
        self.emit(head | u64::from(immediate as u32) << (8 * at), at + immediate_len);
    }

    /// As [`Self::registers`] without W, and with a REX prefix only if a high register requires it.
    #[inline]
    fn registers_short(&mut self, opcode: (u64, usize), reg: u8, rm: u8) {
        self.registers_prefixed((reg | rm) >= 8, opcode, reg, rm);
    }

    /// As [`Self::registers_short`], for the lowest byte of `rm`, which is encoded with a prefix from SPL on.
    #[inline]
    fn registers_byte(&mut self, opcode: (u64, usize), reg: u8, rm: u8) {
        self.registers_prefixed(reg >= 8 || rm >= 4, opcode, reg, rm);
    }

    #[inline]
    fn registers_prefixed(&mut self, has_prefix: bool, (opcode, len): (u64, usize), reg: u8, rm: u8) {
        let high = u64::from(reg >> 3) << 2 | u64::from(rm >> 3);
        let modrm = u64::from(0xC0 | (reg & 7) << 3 | (rm & 7));
        let rest = opcode | modrm << (8 * len);
        if has_prefix {
            self.emit(REX | high | rest << 8, len + 2);
        } else {
            self.emit(rest, len + 1);
        }
    }

    /// Writes a 64-bit instruction with memory.
    #[inline]
    fn memory(&mut self, opcode: (u64, usize), reg: u8, mem: Mem, immediate: i32, immediate_len: usize) {
        self.memory_at(opcode, reg, mem.into(), immediate, immediate_len);
    }

    fn memory_at(&mut self, (opcode, len): (u64, usize), reg: u8, place: Place, immediate: i32, immediate_len: usize) {
        let address = self.address(place, 0);
        let rex = REX_W | u64::from(reg >> 3) << 2 | u64::from(address.index_high) << 1 | u64::from(address.base_high);
        self.with_memory(rex | opcode << 8, len + 1, reg, address, immediate as u32, immediate_len);
    }

    /// `mov` between registers.
    #[inline]
    pub(crate) fn mov_rr(&mut self, dst: Gpr, src: Gpr) {
        self.registers(one(0x8B), dst.0, src.0, 0, 0);
    }

    /// Moves a number into a register, in the fewest bytes: 2 to 10. Zero is made by `xor`, which CHANGES FLAGS; see
    /// [`mov_ri_keeping_flags`](Self::mov_ri_keeping_flags).
    #[inline]
    pub(crate) fn mov_ri(&mut self, dst: Gpr, value: i64) {
        if value == 0 {
            self.registers_short(one(0x31), dst.0, dst.0);
        } else {
            self.mov_ri_keeping_flags(dst, value);
        }
    }

    /// Moves a number into a register; preserves flags.
    pub(crate) fn mov_ri_keeping_flags(&mut self, dst: Gpr, value: i64) {
        let (high, low) = (u64::from(dst.0 >> 3), u64::from(dst.0 & 7));
        if let Ok(value) = u32::try_from(value) {
            // Writing 32 bits clears the others.
            let rest = 0xB8 | low | u64::from(value) << 8;
            if high != 0 { self.emit(REX | high | rest << 8, 6) } else { self.emit(rest, 5) }
        } else if let Ok(value) = i32::try_from(value) {
            self.registers(one(0xC7), 0, dst.0, value, 4);
        } else {
            self.emit(REX_W | high | (0xB8 | low) << 8, 2);
            self.emit(value as u64, 8);
        }
    }

    /// `mov` from memory.
    #[inline]
    pub(crate) fn mov_rm(&mut self, dst: Gpr, mem: Mem) {
        self.memory(one(0x8B), dst.0, mem, 0, 0);
    }

    /// `mov` to memory.
    #[inline]
    pub(crate) fn mov_mr(&mut self, mem: Mem, src: Gpr) {
        self.memory(one(0x89), src.0, mem, 0, 0);
    }

    /// `mov` of a sign-extended number to 64 bits of memory.
    #[inline]
    pub(crate) fn mov_mi(&mut self, mem: Mem, value: i32) {
        self.memory(one(0xC7), 0, mem, value, 4);
    }

    /// `lea`: the address of memory.
    #[inline]
    pub(crate) fn lea(&mut self, dst: Gpr, mem: Mem) {
        self.memory(one(0x8D), dst.0, mem, 0, 0);
    }

    /// `add`, `sub`, `and`, `or`, `xor`, `cmp` of registers. Flags.
    #[inline]
    pub(crate) fn alu_rr(&mut self, op: Alu, dst: Gpr, src: Gpr) {
        self.registers(one(op as u64 | 3), dst.0, src.0, 0, 0);
    }

    /// As [`Self::alu_rr`] with a number, in the fewest bytes. Flags.
    #[inline]
    pub(crate) fn alu_ri(&mut self, op: Alu, dst: Gpr, value: i32) {
        let extension = op as u8 >> 3;
        if i8::try_from(value).is_ok() {
            self.registers(one(0x83), extension, dst.0, value & 0xFF, 1);
        } else if dst.0 == 0 {
            self.emit(REX_W | (op as u64 | 5) << 8 | u64::from(value as u32) << 16, 6);
        } else {
            self.registers(one(0x81), extension, dst.0, value, 4);
        }
    }

    /// As [`Self::alu_rr`] with memory as the source. Flags.
    #[inline]
    pub(crate) fn alu_rm(&mut self, op: Alu, dst: Gpr, mem: Mem) {
        self.memory(one(op as u64 | 3), dst.0, mem, 0, 0);
    }

    /// As [`Self::alu_rr`] with memory as the destination. Flags.
    #[inline]
    pub(crate) fn alu_mr(&mut self, op: Alu, mem: Mem, src: Gpr) {
        self.memory(one(op as u64 | 1), src.0, mem, 0, 0);
    }

    /// As [`Self::alu_rr`] with memory as the destination and a number. Flags.
    #[inline]
    pub(crate) fn alu_mi(&mut self, op: Alu, mem: Mem, value: i32) {
        let extension = op as u8 >> 3;
        if i8::try_from(value).is_ok() {
            self.memory(one(0x83), extension, mem, value, 1);
        } else {
            self.memory(one(0x81), extension, mem, value, 4);
        }
    }

    /// `imul`: `dst = dst * src`, the low 64 bits. Flags: overflow if they are not all.
    #[inline]
    pub(crate) fn imul_rr(&mut self, dst: Gpr, src: Gpr) {
        self.registers(two(0xAF), dst.0, src.0, 0, 0);
    }

    /// `imul` with memory. Flags.
    #[inline]
    pub(crate) fn imul_rm(&mut self, dst: Gpr, mem: Mem) {
        self.memory(two(0xAF), dst.0, mem, 0, 0);
    }

    /// `imul`: `dst = src * value`, in the fewest bytes. Flags.
    #[inline]
    pub(crate) fn imul_rri(&mut self, dst: Gpr, src: Gpr, value: i32) {
        if i8::try_from(value).is_ok() {
            self.registers(one(0x6B), dst.0, src.0, value & 0xFF, 1);
        } else {
            self.registers(one(0x69), dst.0, src.0, value, 4);
        }
    }

    /// `imul`: `dst = memory * value`, in the fewest bytes. Flags.
    #[inline]
    pub(crate) fn imul_rmi(&mut self, dst: Gpr, mem: Mem, value: i32) {
        if i8::try_from(value).is_ok() {
            self.memory(one(0x6B), dst.0, mem, value, 1);
        } else {
            self.memory(one(0x69), dst.0, mem, value, 4);
        }
    }

    /// `neg`. Flags.
    #[inline]
    pub(crate) fn neg(&mut self, dst: Gpr) {
        self.registers(one(0xF7), 3, dst.0, 0, 0);
    }

    /// `not`
    #[inline]
    pub(crate) fn not(&mut self, dst: Gpr) {
        self.registers(one(0xF7), 2, dst.0, 0, 0);
    }

    /// `test`: flags of `a & b`.
    #[inline]
    pub(crate) fn test_rr(&mut self, a: Gpr, b: Gpr) {
        self.registers(one(0x85), b.0, a.0, 0, 0);
    }

    /// `inc`. Flags, except carry.
    #[inline]
    pub(crate) fn inc(&mut self, dst: Gpr) {
        self.registers(one(0xFF), 0, dst.0, 0, 0);
    }

    /// `dec`. Flags, except carry.
    #[inline]
    pub(crate) fn dec(&mut self, dst: Gpr) {
        self.registers(one(0xFF), 1, dst.0, 0, 0);
    }

    /// `cqo`: copies the sign of `rax` to all bits of `rdx`.
    #[inline]
    pub(crate) fn cqo(&mut self) {
        self.emit(REX_W | 0x99 << 8, 2);
    }

    /// `idiv`: `rdx:rax` by a register; the quotient towards zero in `rax`, the remainder in `rdx`. Traps on zero and
    /// if the quotient does not fit. Flags are undefined.
    #[inline]
    pub(crate) fn idiv(&mut self, by: Gpr) {
        self.registers(one(0xF7), 7, by.0, 0, 0);
    }

    /// `shl`, `shr`, `sar` by less than 64 bits. Flags, unless by 0.
    #[inline]
    pub(crate) fn shift_ri(&mut self, op: Shift, dst: Gpr, bits: u8) {
        if bits > 63 {
            self.wrong("a shift by more than 63 bits");
        }
        if bits == 1 {
            self.registers(one(0xD1), op as u8, dst.0, 0, 0);
        } else {
            self.registers(one(0xC1), op as u8, dst.0, i32::from(bits), 1);
        }
    }

    /// `shl` by the lowest 6 bits of `rcx`, with flags.
    #[inline]
    pub(crate) fn shift_left_by_rcx(&mut self, dst: Gpr) {
        self.registers(one(0xD3), Shift::Left as u8, dst.0, 0, 0);
    }

    /// `setcc`: 1 or 0 in the lowest byte; the others stay.
    #[inline]
    pub(crate) fn setcc(&mut self, condition: Condition, dst: Gpr) {
        // Without REX, 4 to 7 are other bytes.
        self.registers_byte(two(0x90 | condition as u64), 0, dst.0);
    }

    /// `movzx`: the lowest byte of `src`, zeros above.
    #[inline]
    pub(crate) fn movzx_byte(&mut self, dst: Gpr, src: Gpr) {
        self.registers_byte(two(0xB6), dst.0, src.0);
    }

    /// `cmovcc`: `dst = src` if the condition holds.
    #[inline]
    pub(crate) fn cmov_rr(&mut self, condition: Condition, dst: Gpr, src: Gpr) {
        self.registers(two(0x40 | condition as u64), dst.0, src.0, 0, 0);
    }

    /// `cmovcc` from memory, which is read unconditionally.
    #[inline]
    pub(crate) fn cmov_rm(&mut self, condition: Condition, dst: Gpr, mem: Mem) {
        self.memory(two(0x40 | condition as u64), dst.0, mem, 0, 0);
    }

    /// `call` of the address in a register.
    #[inline]
    pub(crate) fn call_r(&mut self, target: Gpr) {
        self.registers_short(one(0xFF), 2, target.0);
    }

    /// `call` of the address in memory.
    #[inline]
    pub(crate) fn call_m(&mut self, target: Mem) {
        let address = self.address(target.into(), 0);
        let high = u64::from(address.index_high) << 1 | u64::from(address.base_high);
        let (head, len) = if high != 0 { (REX | high | 0xFF << 8, 2) } else { (0xFF, 1) };
        self.with_memory(head, len, 2, address, 0, 0);
    }

    /// `push`
    #[inline]
    pub(crate) fn push(&mut self, src: Gpr) {
        self.low(0x50, src);
    }

    /// `pop`
    #[inline]
    pub(crate) fn pop(&mut self, dst: Gpr) {
        self.low(0x58, dst);
    }

    /// Writes an opcode with the register in its lowest bits.
    #[inline]
    fn low(&mut self, opcode: u64, register: Gpr) {
        let opcode = opcode | u64::from(register.0 & 7);
        if register.0 < 8 { self.emit(opcode, 1) } else { self.emit(0x41 | opcode << 8, 2) }
    }

    /// `ret`
    #[inline]
    pub(crate) fn ret(&mut self) {
        self.emit(0xC3, 1);
    }
}
