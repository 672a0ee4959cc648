//! ModRM, SIB and displacements: how an instruction names a place in memory.
//!
//! | field | is |
//! | --- | --- |
//! | ModRM | `mod` (2 bits: how the displacement is written, or "register"), `reg` (3), `rm` (3) |
//! | SIB | `scale` (2), `index` (3), `base` (3); follows when `rm` is 4 |
//!
//! Two bases have no short form: 5 (`rbp`, `r13`) without a displacement would mean "relative to the next
//! instruction", and 4 (`rsp`, `r12`) as `rm` means that a SIB byte follows. An index of 4 means "none", so
//! `rsp` cannot be one.

use super::{Assembler, Gpr, Mem};

/// How a displacement is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Displacement {
    None,
    Byte,
    Four,
}

/// A place in memory as fields of the instruction.
#[derive(Clone, Copy)]
pub(super) struct Address {
    /// ModRM without `reg`, and SIB in the second byte.
    pub modrm_sib: u16,
    /// How many bytes those are: 1 or 2.
    pub len: usize,
    pub displacement: Displacement,
    /// Already scaled when it is a byte.
    pub value: i32,
    /// The fourth bits of base and index, as bit 0.
    pub base_high: u8,
    pub index_high: u8,
    /// Whether `value` counts in the constants.
    pub is_constant: bool,
}

impl Mem {
    /// The displacement, unless it is a constant's, which takes 4 bytes always.
    #[inline]
    fn disp(self) -> Option<i32> {
        match self {
            Self::At { disp, .. } | Self::Indexed { disp, .. } => Some(disp),
            Self::Constant(_) => None,
        }
    }

    /// Whether the displacement fits a byte only when it counts in units of `1 << shift` bytes, as EVEX does.
    #[inline]
    pub(super) fn is_shorter_scaled(self, shift: u8) -> bool {
        self.disp().is_some_and(|disp| i8::try_from(disp).is_err() && scaled(disp, shift).is_some())
    }
}

/// `disp` in units of `1 << shift`, if that is whole and fits a byte.
#[inline]
fn scaled(disp: i32, shift: u8) -> Option<i8> {
    let value = disp >> shift;
    if value << shift == disp { i8::try_from(value).ok() } else { None }
}

impl Assembler {
    /// The fields for `mem`, where a displacement of one byte counts in units of `1 << shift`.
    #[inline]
    pub(super) fn address(&mut self, mem: Mem, shift: u8) -> Address {
        match mem {
            Mem::At { base, disp } => {
                let (displacement, value) = fit(base, disp, shift);
                let low = u16::from(base.0 & 7);
                let sib = low == 4;
                let modrm_sib = u16::from(modification(displacement)) | low | if sib { 0x2400 } else { 0 };
                let len = 1 + usize::from(sib);
                let base_high = base.0 >> 3;
                Address { modrm_sib, len, displacement, value, base_high, index_high: 0, is_constant: false }
            }
            Mem::Indexed { mut base, mut index, scale, disp } => {
                if scale == 1 && (index.0 == 4 || (disp == 0 && base.0 & 7 == 5)) {
                    // The sum is the same, `rsp` may be a base, and the other base may need no displacement.
                    std::mem::swap(&mut base, &mut index);
                }
                if index.0 == 4 {
                    self.wrong("rsp as an index");
                }
                if !matches!(scale, 1 | 2 | 4 | 8) {
                    self.wrong("a scale other than 1, 2, 4, 8");
                }
                let (displacement, value) = fit(base, disp, shift);
                let sib = (scale.trailing_zeros() as u8) << 6 | (index.0 & 7) << 3 | (base.0 & 7);
                Address {
                    modrm_sib: u16::from(modification(displacement) | 4) | u16::from(sib) << 8,
                    len: 2,
                    displacement,
                    value,
                    base_high: base.0 >> 3,
                    index_high: index.0 >> 3,
                    is_constant: false,
                }
            }
            Mem::Constant(offset) => Address {
                modrm_sib: 5,
                len: 1,
                displacement: Displacement::Four,
                value: offset as i32,
                base_high: 0,
                index_high: 0,
                is_constant: true,
            },
        }
    }

    /// Writes an instruction whose last operand is in memory: `head` (prefixes and opcode, `head_len` of at
    /// most 6 bytes), ModRM with `reg`, SIB, displacement, and `immediate_len` bytes of `immediate`.
    #[inline]
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
        let mut at = head_len + address.len;
        let window = self.window();
        window[..8].copy_from_slice(&head.to_le_bytes());
        window[at..at + 4].copy_from_slice(&address.value.to_le_bytes());
        let displacement_at = at;
        at += match address.displacement {
            Displacement::None => 0,
            Displacement::Byte => 1,
            Displacement::Four => 4,
        };
        if immediate_len > 0 {
            window[at..at + 4].copy_from_slice(&immediate.to_le_bytes());
            at += immediate_len;
        }
        if address.is_constant {
            self.refer(displacement_at, at, address.value as u32);
        }
        self.advance(at);
    }
}

#[inline]
fn fit(base: Gpr, disp: i32, shift: u8) -> (Displacement, i32) {
    if disp == 0 && base.0 & 7 != 5 {
        (Displacement::None, 0)
    } else if let Some(byte) = scaled(disp, shift) {
        (Displacement::Byte, i32::from(byte))
    } else {
        (Displacement::Four, disp)
    }
}

/// The `mod` bits.
#[inline]
fn modification(displacement: Displacement) -> u8 {
    match displacement {
        Displacement::None => 0x00,
        Displacement::Byte => 0x40,
        Displacement::Four => 0x80,
    }
}
