//! The prefixes of vector instructions, VEX and EVEX, and their selection.
//!
//! | prefix | bytes | meaning |
//! | --- | --- | --- |
//! | VEX, short | `C5`, `R vvvv L pp` | 16 registers, 16 or 32 bytes; map 1, no W, no high `rm` or index |
//! | VEX, long | `C4`, `R X B map`, `W vvvv L pp` | the same without the restrictions |
//! | EVEX | `62`, `R X B R' map`, `W vvvv 1 pp`, `z L'L b V' aaa` | 32 registers, 64 bytes, broadcast, masks |
//!
//! `R X B R' V'` and `vvvv` are high bits and a whole register number, inverted. In EVEX, a displacement of one byte
//! counts in units of the size of the memory operand, so that it reaches up to 64 times as far.

use super::address::Place;
use super::{Assembler, Mask, Source, Xmm};
use crate::Level;

/// An instruction without its operands: the bytes of its prefixes if all operands are register 0.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// The long VEX prefix and the opcode, the first byte lowest, or 0 if there is no such form.
    vex: u32,
    /// The first three bytes of the EVEX prefix and the opcode, in the same order.
    evex: u32,
    /// Size of the memory operand, as a power of two, or [`FULL`].
    memory: u8,
    /// Whether the two sources may be exchanged.
    commutes: bool,
}

/// Memory of the size of the vector, or a broadcast double.
const FULL: u8 = u8::MAX;

/// The bit of W in both prefixes, as stored in [`Form`].
const W: u32 = 0x80 << 16;

/// `pp`: no prefix, `66`, `F3`, `F2`.
pub(super) const NP: u8 = 0;
pub(super) const P66: u8 = 1;
pub(super) const PF3: u8 = 2;
pub(super) const PF2: u8 = 3;

impl Form {
    /// Returns an instruction of packed doubles or 64-bit integers, with W = 0 or ignored in VEX and W = 1 in EVEX.
    /// Maps 1, 2 and 3 are `0F`, `0F 38` and `0F 3A`.
    #[inline]
    pub(super) const fn new(pp: u8, map: u8, opcode: u8) -> Self {
        let (pp, map, opcode) = ((pp as u32) << 16, (map as u32) << 8, (opcode as u32) << 24);
        let vex = 0xC4 | 0xE0 << 8 | map | 0x78 << 16 | pp | opcode;
        let evex = 0x62 | 0xF0 << 8 | map | 0x7C << 16 | pp | opcode | W;
        Self { vex, evex, memory: FULL, commutes: false }
    }

    /// Sets W = 1 in VEX too.
    #[inline]
    pub(super) const fn w1(mut self) -> Self {
        self.vex |= W;
        self
    }

    /// Sets W = 0 in EVEX too.
    #[inline]
    pub(super) const fn evex_w0(mut self) -> Self {
        self.evex &= !W;
        self
    }

    #[inline]
    pub(super) const fn only_vex(mut self) -> Self {
        self.evex = 0;
        self
    }

    #[inline]
    pub(super) const fn only_evex(mut self) -> Self {
        self.vex = 0;
        self
    }

    /// Sets the size of the memory operand at any vector length, as a power of two, without broadcast.
    #[inline]
    pub(super) const fn bytes(mut self, power: u8) -> Self {
        self.memory = power;
        self
    }

    /// Returns the prefixes.
    #[inline(always)]
    pub(super) const fn heads(self) -> Heads {
        Heads(self.vex as u64 | (self.evex as u64) << 32)
    }

    /// Sets whether the sources may be exchanged.
    #[inline]
    pub(super) const fn commutes(mut self, commutes: bool) -> Self {
        self.commutes = commutes;
        self
    }
}

/// Immediate after the operands: a number of `len` bytes, 0 or 1.
#[derive(Clone, Copy)]
pub(super) struct Immediate {
    value: u8,
    len: usize,
}

impl Immediate {
    pub(super) const NONE: Self = Self { value: 0, len: 0 };

    #[inline]
    pub(super) const fn byte(value: u8) -> Self {
        Self { value, len: 1 }
    }
}

/// Lanes to be written in EVEX: the low bits are the mask register, the high bit zeroes the other lanes.
#[derive(Clone, Copy)]
pub(super) struct Masking(u8);

impl Masking {
    pub(super) const NONE: Self = Self(0);

    /// Preserves the other lanes.
    #[inline]
    pub(super) const fn merging(mask: Mask) -> Self {
        Self(mask.0)
    }

    /// Zeroes the other lanes.
    #[inline]
    pub(super) const fn zeroing(mask: Mask) -> Self {
        Self(mask.0 | 0x80)
    }

    /// Returns whether the mask is one of the registers k1 to k7.
    #[inline]
    const fn has_mask(self) -> bool {
        matches!(self.0 & 0x7F, 1..=7)
    }
}

/// All of an instruction except its last operand, with each field in a byte of one number, so that it is passed in a
/// register, which is several times as fast as in memory.
///
/// | byte | content |
/// | --- | --- |
/// | 0, 1 | the register in ModRM's `reg`, the one in `vvvv` or 0 |
/// | 2 | the length: 0, 1, 2 for 16, 32, 64 bytes |
/// | 3, 4 | [`Form::memory`], [`Form::commutes`] |
/// | 5, 6 | the immediate, its number of bytes |
/// | 7 | [`Masking`] |
#[derive(Clone, Copy)]
pub(super) struct Operands(u64);

impl Operands {
    #[inline(always)]
    pub(super) fn new(form: Form, length: u8, reg: u8, a: u8, immediate: Immediate, masking: Masking) -> Self {
        let commutes = u8::from(form.commutes);
        let bytes = [reg, a, length, form.memory, commutes, immediate.value, immediate.len as u8, masking.0];
        Self(u64::from_le_bytes(bytes))
    }

    #[inline(always)]
    fn byte(self, i: u32) -> u8 {
        (self.0 >> (8 * i)) as u8
    }

    #[inline(always)]
    fn reg(self) -> u8 {
        self.byte(0)
    }

    #[inline(always)]
    fn a(self) -> u8 {
        self.byte(1)
    }

    #[inline(always)]
    fn length(self) -> u8 {
        self.byte(2)
    }

    #[inline(always)]
    fn memory(self) -> u8 {
        self.byte(3)
    }

    /// Returns the size of the memory operand, as a power of two.
    #[inline(always)]
    fn shift(self) -> u8 {
        match self.memory() {
            FULL => self.length() + 4,
            power => power,
        }
    }

    #[inline(always)]
    fn commutes(self) -> bool {
        self.byte(4) != 0
    }

    #[inline(always)]
    fn immediate(self) -> u8 {
        self.byte(5)
    }

    #[inline(always)]
    fn immediate_len(self) -> usize {
        usize::from(self.byte(6))
    }

    #[inline(always)]
    fn masking(self) -> u8 {
        self.byte(7)
    }

    /// Returns whether there are only registers up to the 31st, no immediate, and no mask.
    #[inline(always)]
    fn is_plain(self) -> bool {
        self.0 & u64::from_le_bytes([0xE0, 0xE0, 0, 0, 0, 0xFF, 0xFF, 0xFF]) == 0
    }

    /// Returns whether registers from the 16th on, or 64 bytes, are used.
    #[inline(always)]
    fn takes_evex(self) -> bool {
        self.0 & u64::from_le_bytes([0xF0, 0xF0, 2, 0, 0, 0, 0, 0]) != 0
    }
}

/// Memory operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// As many doubles as the vector has.
    Vector = 0,
    /// One double for all lanes.
    Broadcast = 1,
}

/// The prefixes of a [`Form`], VEX in the low half and EVEX in the high one; passed in a register like [`Operands`].
#[derive(Clone, Copy)]
pub(super) struct Heads(u64);

impl Heads {
    #[inline(always)]
    fn vex(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    fn evex(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl Assembler {
    /// Writes an instruction with its shortest prefix. `length` is 0, 1, 2 for 16, 32, 64 bytes; `reg` is the number of
    /// the register in ModRM's `reg`, `a` of the one in `vvvv`, or 0.
    #[inline(always)]
    pub(super) fn vector(
        &mut self,
        form: Form,
        length: u8,
        reg: u8,
        a: u8,
        source: impl Into<Source>,
        immediate: Immediate,
    ) {
        let operands = Operands::new(form, length, reg, a, immediate, Masking::NONE);
        self.vector_from(form, operands, source.into());
    }

    #[inline(always)]
    fn vector_from(&mut self, form: Form, operands: Operands, source: Source) {
        let heads = form.heads();
        match source {
            Source::Reg(Xmm(rm)) => self.vector_register(heads, operands, rm),
            Source::Mem(mem) => self.vector_memory(heads, operands, mem.into(), Memory::Vector),
            Source::Broadcast(mem) => self.vector_memory(heads, operands, mem.into(), Memory::Broadcast),
        }
    }

    /// Writes an instruction under a mask, which may not be k0.
    #[inline(always)]
    pub(super) fn masked(&mut self, form: Form, length: u8, reg: u8, a: u8, source: Source, masking: Masking) {
        if !masking.has_mask() {
            return self.wrong("k0, or what is no mask register, as a mask");
        }
        self.vector_from(form, Operands::new(form, length, reg, a, Immediate::NONE, masking), source);
    }

    #[inline(never)]
    fn vector_register(&mut self, heads: Heads, operands: Operands, rm: u8) {
        let (reg, a) = (operands.reg(), operands.a());
        let highest = reg | a | rm;
        let (head, len, rm) = if heads.vex() != 0 && highest < 16 && operands.length() < 2 && operands.masking() == 0 {
            let exchange = operands.commutes() && rm >= 8 && a < 8;
            let (a, rm) = if exchange { (rm, a) } else { (a, rm) };
            let (head, len) = vex(heads, operands, a, rm >> 3, 0);
            (head, len, rm)
        } else {
            if self.has_no_evex(heads, highest) {
                return;
            }
            (evex(heads, operands, rm >> 3 & 1, rm >> 4, Memory::Vector), 5, rm)
        };
        let modrm = u64::from(0xC0 | (reg & 7) << 3 | (rm & 7));
        let bytes = head | (modrm | u64::from(operands.immediate()) << 8) << (8 * len);
        self.emit(bytes, len + 1 + operands.immediate_len());
    }

    /// Most instructions have a memory operand without an index and no immediate: these are assembled here, the others
    /// in [`vector_memory_any`](Self::vector_memory_any).
    #[inline(never)]
    fn vector_memory(&mut self, heads: Heads, operands: Operands, place: Place, memory: Memory) {
        let must = operands.takes_evex() || heads.vex() == 0;
        let has_evex = self.level == Level::Avx512 && heads.evex() != 0;
        if !operands.is_plain() || !place.is_plain() || memory == Memory::Broadcast || must && !has_evex {
            return self.vector_memory_any(heads, operands, place, memory);
        }
        let shift = operands.shift();
        let (head, head_len, shift) = if must || has_evex && place.is_shorter_scaled(shift) {
            (evex(heads, operands, place.base() >> 3, 0, Memory::Vector), 5, shift)
        } else {
            let (head, len) = vex(heads, operands, operands.a(), place.base() >> 3, 0);
            (head, len, 0)
        };
        let (modrm, displacement, value) = place.modrm(shift);
        let end = head_len + 1 + displacement;
        let head = head | u64::from(modrm | (operands.reg() & 7) << 3) << (8 * head_len);
        let window = self.window();
        window[..8].copy_from_slice(&head.to_le_bytes());
        // The mask has no effect; it proves that indices are inside the window.
        window[(head_len + 1) & 15..][..4].copy_from_slice(&value.to_le_bytes());
        if place.is_constant() {
            self.refer(head_len + 1, end, value as u32);
        }
        self.advance(end);
    }

    #[inline(never)]
    pub(super) fn vector_memory_any(&mut self, heads: Heads, operands: Operands, place: Place, memory: Memory) {
        // A scalar is a broadcast to one lane.
        let memory = if operands.memory() == 3 { Memory::Vector } else { memory };
        let broadcast = memory == Memory::Broadcast;
        let shift = if broadcast { 3 } else { operands.shift() };
        let highest = operands.reg() | operands.a();
        let must = heads.vex() == 0 || highest > 15 || operands.length() > 1 || operands.masking() != 0 || broadcast;
        let pays = || self.level == Level::Avx512 && heads.evex() != 0 && place.is_shorter_scaled(shift);
        let (address, head, len) = if must || pays() {
            if self.has_no_evex(heads, highest) {
                return;
            }
            if broadcast && operands.memory() != FULL {
                return self.wrong("a broadcast that the instruction does not take");
            }
            let address = self.address(place, shift);
            (address, evex(heads, operands, address.base_high, address.index_high, memory), 5)
        } else {
            let address = self.address(place, 0);
            let (head, len) = vex(heads, operands, operands.a(), address.base_high, address.index_high);
            (address, head, len)
        };
        let immediate = u32::from(operands.immediate());
        self.with_memory(head, len, operands.reg(), address, immediate, operands.immediate_len());
    }

    /// Returns whether an instruction that needs EVEX has no such form, which is a fault. `highest` is the union of its
    /// register numbers.
    #[inline(always)]
    fn has_no_evex(&mut self, heads: Heads, highest: u8) -> bool {
        let fine = self.level == Level::Avx512 && heads.evex() != 0 && highest < 32;
        if !fine {
            self.wrong(if self.level != Level::Avx512 {
                "a register, a length, a mask or a broadcast that takes AVX-512, at a lower level"
            } else if heads.evex() == 0 {
                "a register, a length or a broadcast that an instruction of AVX2 does not take"
            } else {
                "a vector register after the 31st"
            });
        }
        !fine
    }
}

/// Returns the VEX prefix and the opcode, and their number of bytes: 3 or 4. `b` and `x` are high bits.
#[inline(always)]
pub(super) fn vex(heads: Heads, operands: Operands, a: u8, b: u8, x: u8) -> (u64, usize) {
    let high = u32::from(operands.reg() & 8) << 12 | u32::from(x) << 14 | u32::from(b) << 13;
    let long = heads.vex() ^ (high | u32::from(a) << 19 | u32::from(operands.length()) << 18);
    // The short prefix has no X, B, W and map. Both are made, and one is selected without a branch, which would be hard
    // to predict.
    let short = 0xC5 | long & 0x8000 | long >> 8 & 0x7F00 | long >> 24 << 16;
    let is_short = long & (0x7F00 | W) == 0x6100;
    (u64::from(if is_short { short } else { long }), 4 - usize::from(is_short))
}

/// Returns the EVEX prefix and the opcode, 5 bytes. `b` and `x` are high bits.
#[inline(always)]
pub(super) fn evex(heads: Heads, operands: Operands, b: u8, x: u8, memory: Memory) -> u64 {
    let (reg, a) = (u32::from(operands.reg()), u32::from(operands.a()));
    let high = (reg & 8) << 12 | u32::from(x) << 14 | u32::from(b) << 13 | (reg & 16) << 8 | (a & 15) << 19;
    let last = u32::from(operands.masking() | operands.length() << 5) | (memory as u32) << 4 | (!a & 16) >> 1;
    u64::from((heads.evex() & 0xFF_FFFF) ^ high | last << 24) | u64::from(heads.evex() >> 24) << 32
}
