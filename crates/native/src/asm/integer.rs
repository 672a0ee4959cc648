//! 64-bit integers in lanes. A scalar takes the 16-byte forms, so its operand in memory has 16 bytes.

use super::prefix::{Form, Immediate, P66};
use super::{Assembler, Mask, Shape, Source, Xmm};

/// `dst = a op source`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Integer {
    /// `vpaddq`
    Add = 0xD4,
    /// `vpsubq`
    Sub = 0xFB,
    /// `vpand`, with EVEX `vpandq`
    And = 0xDB,
    /// `vpandn`, with EVEX `vpandnq`: `!a & source`.
    AndNot = 0xDF,
    /// `vpor`, with EVEX `vporq`
    Or = 0xEB,
    /// `vpxor`, with EVEX `vpxorq`
    Xor = 0xEF,
}

/// Signed predicate of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IntegerPredicate {
    /// `vpcmpeqq`
    Equal = 0x29,
    /// `vpcmpgtq`
    Greater = 0x37,
}

/// `dst = a shifted by a number of bits`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LaneShift {
    /// `vpsllq`
    Left,
    /// `vpsrlq`
    Right,
    /// `vpsraq`: shifts in the sign bit. AVX-512.
    RightSigned,
}

impl Assembler {
    /// `vpaddq` and so on.
    #[inline]
    pub(crate) fn integer(&mut self, op: Integer, shape: Shape, dst: Xmm, a: Xmm, source: impl Into<Source>) {
        let form = Form::new(P66, 1, op as u8).commutes(!matches!(op, Integer::Sub | Integer::AndNot));
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::NONE);
    }

    /// `vpcmpeqq`, `vpcmpgtq` into a vector: all bits of a lane are 1 if the predicate holds. The first 16 registers,
    /// at most four lanes.
    #[inline]
    pub(crate) fn integer_compare(
        &mut self,
        predicate: IntegerPredicate,
        shape: Shape,
        dst: Xmm,
        a: Xmm,
        source: impl Into<Source>,
    ) {
        let form = Form::new(P66, 2, predicate as u8).only_vex();
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::NONE);
    }

    /// `vpcmpeqq`, `vpcmpgtq` into a mask register. AVX-512.
    #[inline]
    pub(crate) fn integer_compare_mask(
        &mut self,
        predicate: IntegerPredicate,
        shape: Shape,
        dst: Mask,
        a: Xmm,
        source: impl Into<Source>,
    ) {
        let form = Form::new(P66, 2, predicate as u8).only_evex();
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::NONE);
    }

    /// `vpcmpuq`: `a <= source` as unsigned numbers, into a mask register. AVX-512.
    #[inline]
    pub(crate) fn at_most_mask(&mut self, shape: Shape, dst: Mask, a: Xmm, source: impl Into<Source>) {
        let form = Form::new(P66, 3, 0x1E).only_evex();
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::byte(2));
    }

    /// `vpsllq`, `vpsrlq`, `vpsraq` by a constant number of bits.
    #[inline]
    pub(crate) fn integer_shift(&mut self, op: LaneShift, shape: Shape, dst: Xmm, a: Xmm, bits: u8) {
        // The opcode is shared; ModRM's `reg` selects the operation, and the destination is in `vvvv`.
        let (form, extension) = match op {
            LaneShift::Left => (Form::new(P66, 1, 0x73), 6),
            LaneShift::Right => (Form::new(P66, 1, 0x73), 2),
            LaneShift::RightSigned => (Form::new(P66, 1, 0x72).only_evex(), 4),
        };
        self.vector(form, shape.length(), extension, dst.0, a, Immediate::byte(bits));
    }
}
