//! The prefixes of vector instructions, VEX and EVEX, and which of them an instruction takes.
//!
//! | prefix | bytes | says |
//! | --- | --- | --- |
//! | VEX, short | `C5`, `R vvvv L pp` | 16 registers, 16 or 32 bytes; map 1, no W, no high `rm` or index |
//! | VEX, long | `C4`, `R X B map`, `W vvvv L pp` | the same without the restrictions |
//! | EVEX | `62`, `R X B R' map`, `W vvvv 1 pp`, `z L'L b V' aaa` | 32 registers, 64 bytes, broadcast, masks |
//!
//! `R X B R' V'` and `vvvv` are high bits and a whole register number, inverted. Under EVEX a displacement of
//! one byte counts in units of what the instruction reads, so that it reaches up to 64 times as far.

use super::address::Address;
use super::{Assembler, Mask, Mem, Source, Xmm};
use crate::Level;

/// An instruction, but for its operands.
#[derive(Clone, Copy)]
pub(super) struct Form {
    opcode: u8,
    /// 1, 2 or 3: `0F`, `0F 38`, `0F 3A`.
    map: u8,
    /// 0 to 3: none, `66`, `F3`, `F2`.
    pp: u8,
    vex: W,
    evex: W,
    /// Bytes in memory, as a power of two, or [`FULL`].
    memory: u8,
    /// Whether the two sources may be exchanged.
    commutes: bool,
}

/// The W bit under a prefix, or that there is no such form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum W {
    Absent,
    Zero,
    One,
}

/// Memory as long as the vector, or a broadcast double.
const FULL: u8 = u8::MAX;

/// `pp`: no prefix, `66`, `F3`, `F2`.
pub(super) const NP: u8 = 0;
pub(super) const P66: u8 = 1;
pub(super) const PF3: u8 = 2;
pub(super) const PF2: u8 = 3;

impl Form {
    /// An instruction of packed doubles or 64-bit integers, with W = 0 or ignored under VEX and W = 1 under
    /// EVEX.
    #[inline]
    pub(super) const fn new(pp: u8, map: u8, opcode: u8) -> Self {
        Self { opcode, map, pp, vex: W::Zero, evex: W::One, memory: FULL, commutes: false }
    }

    /// W = 1 under VEX too.
    #[inline]
    pub(super) const fn w1(mut self) -> Self {
        self.vex = W::One;
        self
    }

    /// W = 0 under EVEX too.
    #[inline]
    pub(super) const fn evex_w0(mut self) -> Self {
        self.evex = W::Zero;
        self
    }

    #[inline]
    pub(super) const fn only_vex(mut self) -> Self {
        self.evex = W::Absent;
        self
    }

    #[inline]
    pub(super) const fn only_evex(mut self) -> Self {
        self.vex = W::Absent;
        self
    }

    /// Takes so many bytes of memory at any vector length, as a power of two, and cannot broadcast.
    #[inline]
    pub(super) const fn bytes(mut self, power: u8) -> Self {
        self.memory = power;
        self
    }

    /// The sources may be exchanged.
    #[inline]
    pub(super) const fn commutes(mut self, commutes: bool) -> Self {
        self.commutes = commutes;
        self
    }

    /// What a scaled displacement counts in, as a power of two.
    #[inline]
    fn shift(self, length: u8) -> u8 {
        if self.memory == FULL { length + 4 } else { self.memory }
    }
}

/// What follows the operands: a number of `len` bytes, 0 or 1.
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

/// Which lanes are written, under EVEX: the low bits are the mask, the high one zeroes the other lanes.
#[derive(Clone, Copy)]
pub(super) struct Masking(u8);

impl Masking {
    pub(super) const NONE: Self = Self(0);

    /// The other lanes stay.
    #[inline]
    pub(super) const fn merging(mask: Mask) -> Self {
        Self(mask.0)
    }

    /// The other lanes become zero.
    #[inline]
    pub(super) const fn zeroing(mask: Mask) -> Self {
        Self(mask.0 | 0x80)
    }
}

impl Assembler {
    /// An instruction with its shortest prefix. `length` is 0, 1, 2 for 16, 32, 64 bytes; `reg` is the number
    /// of the register in ModRM's `reg`, `a` of the one in `vvvv`, or 0.
    #[inline]
    pub(super) fn vector(
        &mut self,
        form: Form,
        length: u8,
        reg: u8,
        a: u8,
        source: impl Into<Source>,
        immediate: Immediate,
    ) {
        self.vector_any(form, length, reg, a, source.into(), immediate);
    }

    fn vector_any(&mut self, form: Form, length: u8, reg: u8, a: u8, source: Source, immediate: Immediate) {
        let fits_vex = (reg | a) < 16 && length < 2 && form.vex != W::Absent;
        match source {
            Source::Reg(Xmm(rm)) if fits_vex && rm < 16 => self.vex_register(form, length, reg, a, rm, immediate),
            Source::Mem(mem) if fits_vex && !self.is_shorter_with_evex(form, length, mem) => {
                self.vex_memory(form, length, reg, a, mem, immediate);
            }
            Source::Broadcast(mem) if form.memory == 3 => {
                self.vector_any(form, length, reg, a, Source::Mem(mem), immediate);
            }
            _ => self.evex(form, length, reg, a, source, immediate, Masking::NONE),
        }
    }

    #[inline]
    fn is_shorter_with_evex(&self, form: Form, length: u8, mem: Mem) -> bool {
        self.level == Level::Avx512 && form.evex != W::Absent && mem.is_shorter_scaled(form.shift(length))
    }

    #[inline]
    fn vex_register(&mut self, form: Form, length: u8, reg: u8, a: u8, rm: u8, immediate: Immediate) {
        let (a, rm) = if form.commutes && rm >= 8 && a < 8 { (rm, a) } else { (a, rm) };
        let (head, len) = vex(form, length, reg, a, rm >> 3, 0);
        let modrm = u64::from(0xC0 | (reg & 7) << 3 | (rm & 7));
        let bytes = head | (modrm | u64::from(immediate.value) << 8) << (8 * len);
        self.emit(bytes, len + 1 + immediate.len);
    }

    #[inline]
    fn vex_memory(&mut self, form: Form, length: u8, reg: u8, a: u8, mem: Mem, immediate: Immediate) {
        let address = self.address(mem, 0);
        let (head, len) = vex(form, length, reg, a, address.base_high, address.index_high);
        self.with_memory(head, len, reg, address, u32::from(immediate.value), immediate.len);
    }

    /// An instruction with an EVEX prefix.
    #[expect(clippy::too_many_arguments, reason = "the fields of one instruction")]
    pub(super) fn evex(
        &mut self,
        form: Form,
        length: u8,
        reg: u8,
        a: u8,
        source: Source,
        immediate: Immediate,
        masking: Masking,
    ) {
        if self.level != Level::Avx512 {
            return self.wrong("a register, a length, a mask or a broadcast that takes AVX-512, at a lower level");
        }
        if form.evex == W::Absent {
            return self.wrong("a register, a length or a broadcast that an instruction of AVX2 does not take");
        }
        if (reg | a) > 31 {
            return self.wrong("a vector register after the 31st");
        }
        match source {
            Source::Reg(Xmm(rm)) => {
                if rm > 31 {
                    return self.wrong("a vector register after the 31st");
                }
                let head = evex(form, length, reg, a, rm >> 3 & 1, rm >> 4, false, masking);
                let modrm = u64::from(0xC0 | (reg & 7) << 3 | (rm & 7));
                let bytes = head | modrm << 40 | u64::from(immediate.value) << 48;
                self.emit(bytes, 6 + immediate.len);
            }
            Source::Mem(mem) => {
                let address = self.address(mem, form.shift(length));
                self.evex_memory(form, length, reg, a, address, false, immediate, masking);
            }
            Source::Broadcast(mem) => {
                let broadcasts = form.memory == FULL;
                if !broadcasts && form.memory != 3 {
                    return self.wrong("a broadcast that the instruction does not take");
                }
                let address = self.address(mem, 3);
                self.evex_memory(form, length, reg, a, address, broadcasts, immediate, masking);
            }
        }
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the fields of one instruction")]
    fn evex_memory(
        &mut self,
        form: Form,
        length: u8,
        reg: u8,
        a: u8,
        address: Address,
        broadcast: bool,
        immediate: Immediate,
        masking: Masking,
    ) {
        let head = evex(form, length, reg, a, address.base_high, address.index_high, broadcast, masking);
        self.with_memory(head, 5, reg, address, u32::from(immediate.value), immediate.len);
    }
}

/// The VEX prefix and the opcode, and how many bytes they are: 3 or 4. `b` and `x` are high bits.
#[inline]
fn vex(form: Form, length: u8, reg: u8, a: u8, b: u8, x: u8) -> (u64, usize) {
    let w = form.vex == W::One;
    let last = (!a & 15) << 3 | length << 2 | form.pp;
    let r = (!reg & 8) << 4;
    if form.map == 1 && !w && b | x == 0 {
        (0xC5 | u64::from(r | last) << 8 | u64::from(form.opcode) << 16, 3)
    } else {
        let second = r | (x ^ 1) << 6 | (b ^ 1) << 5 | form.map;
        let third = u8::from(w) << 7 | last;
        (0xC4 | u64::from(second) << 8 | u64::from(third) << 16 | u64::from(form.opcode) << 24, 4)
    }
}

/// The EVEX prefix and the opcode, 5 bytes. `b` and `x` are high bits.
#[inline]
#[expect(clippy::too_many_arguments, reason = "the fields of one prefix")]
fn evex(form: Form, length: u8, reg: u8, a: u8, b: u8, x: u8, broadcast: bool, masking: Masking) -> u64 {
    let second = (!reg & 8) << 4 | (x ^ 1) << 6 | (b ^ 1) << 5 | (!reg & 16) | form.map;
    let third = u8::from(form.evex == W::One) << 7 | (!a & 15) << 3 | 4 | form.pp;
    let fourth = masking.0 | length << 5 | u8::from(broadcast) << 4 | (!a & 16) >> 1;
    0x62 | u64::from(second) << 8 | u64::from(third) << 16 | u64::from(fourth) << 24 | u64::from(form.opcode) << 32
}
