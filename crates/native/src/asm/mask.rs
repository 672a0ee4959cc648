//! The mask registers of AVX-512, of which the lowest 8 bits are used: one for each lane.

use super::prefix::{Form, Immediate, P66, PF3};
use super::{Assembler, Gpr, Mask, Shape, Xmm};
use crate::Level;

/// `dst = a op b`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MaskLogic {
    /// `kandb`
    And = 0x41,
    /// `kandnb`: `!a & b`.
    AndNot = 0x42,
    /// `korb`
    Or = 0x45,
    /// `kxnorb`: `!(a ^ b)`; all ones for equal registers.
    XorNot = 0x46,
    /// `kxorb`
    Xor = 0x47,
}

impl Assembler {
    /// Writes an instruction that only has VEX forms, and belongs to AVX-512.
    #[inline]
    fn mask_form(&mut self, pp: u8, opcode: u8, length: u8, reg: u8, a: u8, rm: u8) {
        if self.level != Level::Avx512 {
            return self.wrong("a mask register at a level without them");
        }
        self.vector(Form::new(pp, 1, opcode).only_vex(), length, reg, a, Xmm(rm), Immediate::NONE);
    }

    /// `kandb`, `kandnb`, `korb`, `kxorb`, `kxnorb`
    #[inline]
    pub(crate) fn mask_logic(&mut self, op: MaskLogic, dst: Mask, a: Mask, b: Mask) {
        self.mask_form(P66, op as u8, 1, dst.0, a.0, b.0);
    }

    /// `knotb`
    #[inline]
    pub(crate) fn mask_not(&mut self, dst: Mask, src: Mask) {
        self.mask_form(P66, 0x44, 0, dst.0, 0, src.0);
    }

    /// `kmovb`
    #[inline]
    pub(crate) fn mask_mov(&mut self, dst: Mask, src: Mask) {
        self.mask_form(P66, 0x90, 0, dst.0, 0, src.0);
    }

    /// `kmovb` from a general register.
    #[inline]
    pub(crate) fn mask_from(&mut self, dst: Mask, src: Gpr) {
        self.mask_form(P66, 0x92, 0, dst.0, 0, src.0);
    }

    /// `kmovb` to a general register; zeros above the 8 bits.
    #[inline]
    pub(crate) fn mask_to(&mut self, dst: Gpr, src: Mask) {
        self.mask_form(P66, 0x93, 0, dst.0, 0, src.0);
    }

    /// `kortestb`: sets the zero flag if no bit of either is set, the carry flag if their union has all 8.
    #[inline]
    pub(crate) fn mask_test(&mut self, a: Mask, b: Mask) {
        self.mask_form(P66, 0x98, 0, a.0, 0, b.0);
    }

    /// `vpmovm2q`: sets all bits of a lane to the mask's bit. A scalar takes the 16-byte form.
    #[inline]
    pub(crate) fn mask_spread(&mut self, shape: Shape, dst: Xmm, src: Mask) {
        self.vector(Form::new(PF3, 2, 0x38).only_evex(), shape.length(), dst.0, 0, Xmm(src.0), Immediate::NONE);
    }

    /// `vpmovq2m`: the sign bits of the lanes, zeros above; a scalar takes the 16-byte form, which yields two.
    #[inline]
    pub(crate) fn mask_of_signs(&mut self, shape: Shape, dst: Mask, src: Xmm) {
        self.vector(Form::new(PF3, 2, 0x39).only_evex(), shape.length(), dst.0, 0, src, Immediate::NONE);
    }
}
