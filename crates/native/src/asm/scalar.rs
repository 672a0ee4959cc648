//! Scalars: the instructions of most code for one point, with their last operand in a register or in memory.
//!
//! The bytes are those of the other modules, made in fewer steps: there is one length, and neither a mask nor an
//! immediate. The form depends on data, so both are made and one is selected without a branch.

use super::address::Place;
use super::arithmetic::{fma_form, scalar_or_packed};
use super::constant::Reference;
use super::moves::memory_move;
use super::prefix::{Form, Heads, Immediate, Masking, Memory, Operands, evex, vex};
use super::{Arith, Assembler, Fma, FmaOrder, Gpr, Mem, Shape, Xmm};
use crate::Level;

/// The last operand of a scalar instruction, a register or 8 bytes of memory without an index, in one number: that of a
/// [`Place`], or [`IN_REGISTER`] with a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Scalar(u64);

/// A highest byte that no memory operand has.
const IN_REGISTER: u64 = 0xFF << 56;

impl Scalar {
    /// Returns the memory `disp` bytes behind the address in a register.
    #[inline(always)]
    pub(crate) fn at(base: Gpr, disp: i32) -> Self {
        Self(Place::from(Mem::At { base, disp }).bits())
    }

    /// Returns the constant at this offset.
    #[inline(always)]
    pub(crate) fn constant(offset: u32) -> Self {
        Self(Place::from(Mem::Constant(offset)).bits())
    }

    /// Returns the register, if it is one.
    #[inline(always)]
    pub(crate) fn register(self) -> Option<Xmm> {
        (self.0 & IN_REGISTER == IN_REGISTER).then_some(Xmm(self.0 as u8))
    }
}

impl From<Xmm> for Scalar {
    #[inline(always)]
    fn from(register: Xmm) -> Self {
        Self(u64::from(register.0) | IN_REGISTER)
    }
}

impl Assembler {
    /// `vaddsd` and so on: `dst = a op source`.
    #[inline]
    pub(crate) fn arith_scalar(&mut self, op: Arith, dst: Xmm, a: Xmm, source: Scalar) {
        let form = scalar_or_packed(Shape::One, op as u8).commutes(matches!(op, Arith::Add | Arith::Mul));
        self.scalar(form, dst, a, source);
    }

    /// `vfmadd132sd` and so on: see [`Self::fma`].
    #[inline]
    pub(crate) fn fma_scalar(&mut self, op: Fma, order: FmaOrder, dst: Xmm, a: Xmm, source: Scalar) {
        self.scalar(fma_form(op, order, Shape::One), dst, a, source);
    }

    /// `vmovsd` from memory; `vmovapd` from a register.
    #[inline]
    pub(crate) fn load_scalar(&mut self, dst: Xmm, source: Scalar) {
        match source.register() {
            Some(src) => self.mov(Shape::One, dst, src),
            None => self.scalar_memory(memory_move(Shape::One, 0x10).heads(), dst.0, 0, Place::of_bits(source.0)),
        }
    }

    /// `vmovsd` to memory.
    #[inline]
    pub(crate) fn store_scalar(&mut self, to: Scalar, src: Xmm) {
        self.scalar_memory(memory_move(Shape::One, 0x11).heads(), src.0, 0, Place::of_bits(to.0));
    }

    #[inline(always)]
    fn scalar(&mut self, form: Form, dst: Xmm, a: Xmm, source: Scalar) {
        match source.register() {
            Some(rm) => self.vector(form, 0, dst.0, a.0, rm, Immediate::NONE),
            None => self.scalar_memory(form.heads(), dst.0, a.0, Place::of_bits(source.0)),
        }
    }

    /// Writes an instruction with both prefixes, of 8 bytes of memory.
    #[inline(never)]
    fn scalar_memory(&mut self, heads: Heads, reg: u8, a: u8, place: Place) {
        let operands = Operands::new(SCALAR, 0, reg, a, Immediate::NONE, Masking::NONE);
        let (has_evex, must) = (self.level == Level::Avx512, (reg | a) > 15);
        if !place.is_plain() || (reg | a) > 31 || must && !has_evex {
            return self.vector_memory_any(heads, operands, place, Memory::Vector);
        }
        let is_evex = must | (has_evex & place.is_shorter_scaled(3));
        let base_high = place.base() >> 3;
        let long = evex(heads, operands, base_high, 0, Memory::Vector);
        let (short, short_len) = vex(heads, operands, a, base_high, 0);
        let (head, head_len, shift) = if is_evex { (long, 5, 3) } else { (short, short_len, 0) };
        let (modrm, displacement, value) = place.modrm(shift);
        let end = head_len + 1 + displacement;
        let head = head | u64::from(modrm | (reg & 7) << 3) << (8 * head_len);
        let at = self.len + head_len + 1;
        let window = self.window();
        window[..8].copy_from_slice(&head.to_le_bytes());
        // The mask has no effect; it proves that indices are inside the window.
        window[(head_len + 1) & 15..][..4].copy_from_slice(&value.to_le_bytes());
        match u32::try_from(at) {
            Ok(at) => {
                // Branch-free, because it is hard to predict whether it is a constant.
                let n = self.references.len();
                self.references.push(Reference::new(at, value as u32, 0));
                self.references.truncate(n + usize::from(place.is_constant()));
            }
            Err(_) if place.is_constant() => self.refer(head_len + 1, end, value as u32),
            Err(_) => {}
        }
        self.advance(end);
    }
}

/// Form of the memory operand of all scalar instructions.
const SCALAR: Form = Form::new(0, 0, 0).bytes(3);
