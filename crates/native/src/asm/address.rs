//! ModRM, SIB and displacements: the encoding of memory operands.
//!
//! | field | content |
//! | --- | --- |
//! | ModRM | `mod` (2 bits: size of the displacement, or "register"), `reg` (3), `rm` (3) |
//! | SIB | `scale` (2), `index` (3), `base` (3); follows when `rm` is 4 |
//!
//! Two bases have no short form: 5 (`rbp`, `r13`) without a displacement would mean "relative to the next instruction",
//! and 4 (`rsp`, `r12`) as `rm` means that a SIB byte follows. An index of 4 means "none", so `rsp` cannot be an index.

use super::{Assembler, Mem};

/// A memory operand as fields of the instruction.
#[derive(Clone, Copy)]
pub(super) struct Address {
    /// ModRM without `reg`, and SIB in the second byte.
    pub modrm_sib: u16,
    /// Number of these bytes: 1 or 2.
    pub len: usize,
    /// Size of the displacement in bytes: 0, 1 or 4.
    pub displacement: usize,
    /// The displacement, already scaled if it is a byte.
    pub value: i32,
    /// The fourth bits of base and index, as bit 0.
    pub base_high: u8,
    pub index_high: u8,
    /// Whether `value` is an offset into the constants.
    pub is_constant: bool,
}

/// A [`Mem`] in one number, so that it is passed in a register, which is several times as fast as in memory: the
/// displacement or offset in the low half, then a byte each for base, index and scale, then a byte that is 0 without an
/// index, 1 with one, 2 for a constant.
#[derive(Clone, Copy)]
pub(super) struct Place(u64);

impl From<Mem> for Place {
    #[inline(always)]
    fn from(mem: Mem) -> Self {
        let (low, base, index, scale, kind) = match mem {
            Mem::At { base, disp } => (disp as u32, base.0, 0, 1, 0),
            Mem::Indexed { base, index, scale, disp } => (disp as u32, base.0, index.0, scale, 1),
            Mem::Constant(offset) => (offset, 0, 0, 1, 2),
        };
        let high = u32::from_le_bytes([base, index, scale, kind]);
        Self(u64::from(low) | u64::from(high) << 32)
    }
}

impl Place {
    /// Returns the operand with this number.
    #[inline(always)]
    pub(super) fn of_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns its number; the highest byte is at most 2.
    #[inline(always)]
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(super) fn disp(self) -> i32 {
        self.0 as i32
    }

    #[inline(always)]
    pub(super) fn base(self) -> u8 {
        self.byte(0)
    }

    #[inline(always)]
    pub(super) fn is_constant(self) -> bool {
        self.byte(3) == 2
    }

    /// Returns whether there is no index, and no base that takes a SIB byte.
    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        self.byte(3) != 1 && self.base() & 7 != 4
    }

    /// Returns ModRM without `reg` of an operand that [is plain](Self::is_plain), where a displacement of one byte
    /// counts in units of `1 << shift`; also the size of the displacement, and its value.
    #[inline(always)]
    pub(super) fn modrm(self, shift: u8) -> (u8, usize, i32) {
        let (displacement, value) = fit(self.base(), self.disp(), shift);
        let of_base = modification(displacement) as u8 | self.base() & 7;
        if self.is_constant() { (5, 4, self.disp()) } else { (of_base, displacement, value) }
    }

    #[inline(always)]
    fn byte(self, i: u32) -> u8 {
        (self.0 >> (32 + 8 * i)) as u8
    }

    /// Returns whether the displacement only fits a byte if it counts in units of `1 << shift` bytes, as in EVEX. The
    /// displacement of a constant always takes 4 bytes.
    #[inline(always)]
    pub(super) fn is_shorter_scaled(self, shift: u8) -> bool {
        let disp = self.disp();
        let value = disp >> shift;
        // Branch-free, because the result is hard to predict.
        let (is_long, fits) = (i32::from(disp as i8) != disp, i32::from(value as i8) == value);
        (self.byte(3) < 2) & is_long & (value << shift == disp) & fits
    }
}

impl Assembler {
    /// Returns the fields of `place`, where a displacement of one byte counts in units of `1 << shift`.
    #[inline(always)]
    pub(super) fn address(&mut self, place: Place, shift: u8) -> Address {
        let (mut base, disp) = (place.byte(0), place.disp());
        match place.byte(3) {
            0 => {
                let (displacement, value) = fit(base, disp, shift);
                let low = u16::from(base & 7);
                let sib = low == 4;
                let modrm_sib = modification(displacement) | low | if sib { 0x2400 } else { 0 };
                let len = 1 + usize::from(sib);
                Address { modrm_sib, len, displacement, value, base_high: base >> 3, index_high: 0, is_constant: false }
            }
            1 => {
                let (mut index, scale) = (place.byte(1), place.byte(2));
                if scale == 1 && (index == 4 || (disp == 0 && base & 7 == 5)) {
                    // The sum is the same; `rsp` may be a base, and the other base may need no displacement.
                    std::mem::swap(&mut base, &mut index);
                }
                if index == 4 {
                    self.wrong("rsp as an index");
                }
                if !matches!(scale, 1 | 2 | 4 | 8) {
                    self.wrong("a scale other than 1, 2, 4, 8");
                }
                let (displacement, value) = fit(base, disp, shift);
                let sib = (scale.trailing_zeros() as u8) << 6 | (index & 7) << 3 | (base & 7);
                Address {
                    modrm_sib: modification(displacement) | 4 | u16::from(sib) << 8,
                    len: 2,
                    displacement,
                    value,
                    base_high: base >> 3,
                    index_high: index >> 3,
                    is_constant: false,
                }
            }
            _ => Address {
                modrm_sib: 5,
                len: 1,
                displacement: 4,
                value: disp,
                base_high: 0,
                index_high: 0,
                is_constant: true,
            },
        }
    }

    /// Writes an instruction with a memory operand: `head` (prefixes and opcode, `head_len` of at most 6 bytes), ModRM
    /// with `reg`, SIB, displacement, and `immediate_len` bytes of `immediate`.
    #[inline(always)]
    pub(super) fn with_memory(
        &mut self,
        head: u64,
        head_len: usize,
        reg: u8,
        address: Address,
        immediate: u32,
        immediate_len: usize,
    ) {
        let modrm_sib = u64::from(address.modrm_sib | u16::from(reg & 7) << 3);
        let head = head | modrm_sib << (8 * head_len);
        // The masks have no effect; they prove that indices are inside the window.
        let displacement_at = head_len + address.len;
        let end = displacement_at + address.displacement + immediate_len;
        let window = self.window();
        window[..8].copy_from_slice(&head.to_le_bytes());
        window[displacement_at & 15..][..4].copy_from_slice(&address.value.to_le_bytes());
        window[(displacement_at + address.displacement) & 15..][..4].copy_from_slice(&immediate.to_le_bytes());
        if address.is_constant {
            self.refer(displacement_at, end, address.value as u32);
        }
        self.advance(end);
    }
}

/// Returns the size of the displacement, and its value.
#[inline]
fn fit(base: u8, disp: i32, shift: u8) -> (usize, i32) {
    let value = disp >> shift;
    let is_byte = value << shift == disp && i32::from(value as i8) == value;
    let is_none = disp == 0 && base & 7 != 5;
    let len = if is_byte { 1 - usize::from(is_none) } else { 4 };
    (len, if is_byte { value } else { disp })
}

/// Returns the `mod` bits, for a displacement of 0, 1 or 4 bytes.
#[inline]
fn modification(displacement: usize) -> u16 {
    (displacement as u16 & 1) << 6 | (displacement as u16 & 4) << 5
}
