//! Arithmetic of doubles, in one lane or several.
//!
//! For [`Shape::One`] the lanes above the lowest are those of `a`, as in the manual, and have no meaning.

use super::prefix::{Form, Immediate, Masking, P66, PF2};
use super::{Assembler, Mask, Shape, Source, Xmm};

/// `dst = a op source`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arith {
    /// `vaddsd`, `vaddpd`
    Add = 0x58,
    /// `vmulsd`, `vmulpd`
    Mul = 0x59,
    /// `vsubsd`, `vsubpd`
    Sub = 0x5C,
    /// `vminsd`, `vminpd`: `a < source ? a : source`, so the source if one is NaN or both are zero.
    Min = 0x5D,
    /// `vdivsd`, `vdivpd`
    Div = 0x5E,
    /// `vmaxsd`, `vmaxpd`: `a > source ? a : source`, so the source if one is NaN or both are zero.
    Max = 0x5F,
}

/// `dst = a op source` on the bits of all lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Logic {
    /// `vandpd`
    And = 0x54,
    /// `vandnpd`: `!a & source`.
    AndNot = 0x55,
    /// `vorpd`
    Or = 0x56,
    /// `vxorpd`
    Xor = 0x57,
}

/// Signs of the product and the addend in a fused operation, rounded once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fma {
    /// `product + addend`
    MulAdd = 0x98,
    /// `product - addend`
    MulSub = 0x9A,
    /// `-product + addend`
    NegMulAdd = 0x9C,
    /// `-product - addend`
    NegMulSub = 0x9E,
}

/// Roles of the operands 1 (`dst`), 2 (`a`) and 3 (`source`) of a fused operation: the first two digits are the
/// factors, the last one is the addend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FmaOrder {
    /// `dst * source + a`
    O132 = 0x00,
    /// `a * dst + source`
    O213 = 0x10,
    /// `a * source + dst`
    O231 = 0x20,
}

/// Rounding mode; the value is the immediate, which also suppresses the flag for inexact results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rounding {
    /// To the nearest integer, ties to even.
    Nearest = 0x8,
    /// Down.
    Floor = 0x9,
    /// Up.
    Ceil = 0xA,
    /// Towards zero.
    Trunc = 0xB,
}

/// Predicate of a comparison; all are quiet: only signalling NaN sets a flag. "Not" is true for unordered operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Predicate {
    /// `==`, false if unordered.
    Equal = 0x00,
    /// One is NaN.
    Unordered = 0x03,
    /// `!=`, true if unordered.
    NotEqual = 0x04,
    /// None is NaN.
    Ordered = 0x07,
    /// Never.
    False = 0x0B,
    /// `!=`, false if unordered.
    OrderedNotEqual = 0x0C,
    /// Always.
    True = 0x0F,
    /// `<`, false if unordered.
    Less = 0x11,
    /// `<=`, false if unordered.
    LessEqual = 0x12,
    /// `!(<)`, true if unordered.
    NotLess = 0x15,
    /// `!(<=)`, true if unordered.
    NotLessEqual = 0x16,
    /// `!(>=)`, true if unordered.
    NotGreaterEqual = 0x19,
    /// `!(>)`, true if unordered.
    NotGreater = 0x1A,
    /// `>=`, false if unordered.
    GreaterEqual = 0x1D,
    /// `>`, false if unordered.
    Greater = 0x1E,
}

/// Returns the form of an instruction that has a scalar and a packed version, with prefixes `F2` and `66`.
#[inline]
pub(super) const fn scalar_or_packed(shape: Shape, opcode: u8) -> Form {
    match shape {
        Shape::One => Form::new(PF2, 1, opcode).bytes(3),
        Shape::Four | Shape::Eight => Form::new(P66, 1, opcode),
    }
}

#[inline]
pub(super) const fn fma_form(op: Fma, order: FmaOrder, shape: Shape) -> Form {
    let opcode = op as u8 + order as u8;
    match shape {
        Shape::One => Form::new(P66, 2, opcode + 1).w1().bytes(3),
        Shape::Four | Shape::Eight => Form::new(P66, 2, opcode).w1(),
    }
}

impl Assembler {
    /// `vaddsd`, `vaddpd` and so on: `dst = a op source`.
    #[inline]
    pub(crate) fn arith(&mut self, op: Arith, shape: Shape, dst: Xmm, a: Xmm, source: impl Into<Source>) {
        let form = scalar_or_packed(shape, op as u8).commutes(matches!(op, Arith::Add | Arith::Mul));
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::NONE);
    }

    /// `vandpd` and so on: `dst = a op source`. A scalar takes the 16-byte form, and 16 bytes of memory.
    #[inline]
    pub(crate) fn logic(&mut self, op: Logic, shape: Shape, dst: Xmm, a: Xmm, source: impl Into<Source>) {
        let form = Form::new(P66, 1, op as u8).commutes(!matches!(op, Logic::AndNot));
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::NONE);
    }

    /// `vfmadd132sd` and so on, by [`Fma`] and [`FmaOrder`].
    #[inline]
    pub(crate) fn fma(&mut self, op: Fma, order: FmaOrder, shape: Shape, dst: Xmm, a: Xmm, source: impl Into<Source>) {
        self.vector(fma_form(op, order, shape), shape.length(), dst.0, a.0, source, Immediate::NONE);
    }

    /// `vsqrtsd`, `vsqrtpd`. A scalar from memory also depends on the last value of `dst`; call [`zero`](Self::zero)
    /// before if that is recent.
    #[inline]
    pub(crate) fn sqrt(&mut self, shape: Shape, dst: Xmm, source: impl Into<Source>) {
        let source = source.into();
        self.vector(
            scalar_or_packed(shape, 0x51),
            shape.length(),
            dst.0,
            upper(shape, dst, source),
            source,
            Immediate::NONE,
        );
    }

    /// `vroundsd`, `vroundpd`, with EVEX `vrndscalesd`, `vrndscalepd`: rounds to an integer. For `dst` see
    /// [`sqrt`](Self::sqrt).
    #[inline]
    pub(crate) fn round(&mut self, mode: Rounding, shape: Shape, dst: Xmm, source: impl Into<Source>) {
        let source = source.into();
        let form = match shape {
            Shape::One => Form::new(P66, 3, 0x0B).bytes(3),
            Shape::Four | Shape::Eight => Form::new(P66, 3, 0x09),
        };
        let immediate = Immediate::byte(mode as u8);
        self.vector(form, shape.length(), dst.0, upper(shape, dst, source), source, immediate);
    }

    /// `vcmpsd`, `vcmppd` into a vector: all bits of a lane are 1 if `a predicate source`. The first 16 registers, at
    /// most four lanes.
    #[inline]
    pub(crate) fn compare(&mut self, predicate: Predicate, shape: Shape, dst: Xmm, a: Xmm, source: impl Into<Source>) {
        let form = scalar_or_packed(shape, 0xC2).only_vex();
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::byte(predicate as u8));
    }

    /// `vcmpsd`, `vcmppd` into a mask register: a bit for each lane, zeros above. AVX-512.
    #[inline]
    pub(crate) fn compare_mask(
        &mut self,
        predicate: Predicate,
        shape: Shape,
        dst: Mask,
        a: Xmm,
        source: impl Into<Source>,
    ) {
        let form = scalar_or_packed(shape, 0xC2).only_evex();
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::byte(predicate as u8));
    }

    /// `vucomisd`: flags from two scalars. Unordered: zero, parity and carry are set; greater: none; less: carry;
    /// equal: zero.
    #[inline]
    pub(crate) fn compare_flags(&mut self, a: Xmm, source: impl Into<Source>) {
        self.vector(Form::new(P66, 1, 0x2E).bytes(3), 0, a.0, 0, source, Immediate::NONE);
    }

    /// `vblendvpd`: in each lane `if_one` if the sign bit of `mask` is set, else `if_zero`. A scalar takes the 16-byte
    /// form. The first 16 registers, at most four lanes.
    #[inline]
    pub(crate) fn blend(&mut self, shape: Shape, dst: Xmm, if_zero: Xmm, if_one: impl Into<Source>, mask: Xmm) {
        if mask.0 > 15 {
            return self.wrong("a mask in a vector register after the 15th");
        }
        let form = Form::new(P66, 3, 0x4B).only_vex();
        self.vector(form, shape.length(), dst.0, if_zero.0, if_one, Immediate::byte(mask.0 << 4));
    }

    /// `vblendmpd`: in each lane `if_one` if the mask's bit is set, else `if_zero`. A scalar takes the 16-byte form,
    /// with a broadcast of its memory operand. AVX-512.
    #[inline]
    pub(crate) fn blend_mask(&mut self, shape: Shape, dst: Xmm, if_zero: Xmm, if_one: impl Into<Source>, mask: Mask) {
        let source = match if_one.into() {
            Source::Mem(mem) if shape == Shape::One => Source::Broadcast(mem),
            source => source,
        };
        let form = Form::new(P66, 2, 0x65).only_evex();
        self.masked(form, shape.length(), dst.0, if_zero.0, source, Masking::merging(mask));
    }

    /// `vtestpd`: the zero flag is set if no lane has the sign bits of both `a` and `source` set; the carry flag if
    /// each lane with the sign bit of `source` also has that of `a`. A scalar takes the 16-byte form. The first 16
    /// registers, at most four lanes.
    #[inline]
    pub(crate) fn test_signs(&mut self, shape: Shape, a: Xmm, source: impl Into<Source>) {
        self.vector(Form::new(P66, 2, 0x0F).only_vex(), shape.length(), a.0, 0, source, Immediate::NONE);
    }
}

/// Returns the register for the upper lanes of a scalar instruction with one source: one that it depends on anyway.
#[inline]
fn upper(shape: Shape, dst: Xmm, source: Source) -> u8 {
    match (shape, source) {
        (Shape::One, Source::Reg(register)) => register.0,
        (Shape::One, _) => dst.0,
        (Shape::Four | Shape::Eight, _) => 0,
    }
}
