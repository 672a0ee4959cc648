//! Vectors from and to memory, general registers and each other; lanes moved within vectors; conversions
//! between doubles and integers.

use super::prefix::{Form, Immediate, Masking, NP, P66, PF2, PF3};
use super::{Assembler, Gpr, Mask, Mem, Shape, Source, Xmm};

/// `vmovapd` between registers, `reg` from `rm`.
const MOVE: Form = Form::new(P66, 1, 0x28);
/// `vmovapd` between registers, `rm` from `reg`.
const MOVE_BACK: Form = Form::new(P66, 1, 0x29);

/// `vmovsd` or `vmovupd` from memory, or with opcode `0x11` to memory.
#[inline]
pub(super) const fn memory_move(shape: Shape, opcode: u8) -> Form {
    match shape {
        Shape::One => Form::new(PF2, 1, opcode).bytes(3),
        Shape::Four | Shape::Eight => Form::new(P66, 1, opcode),
    }
}

/// Half of the lanes of a vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Half {
    Lower = 0,
    Upper = 1,
}

impl Assembler {
    /// `vmovapd`: `dst = src`, for a scalar its 16 bytes (processors do this by renaming).
    #[inline]
    pub(crate) fn mov(&mut self, shape: Shape, dst: Xmm, src: Xmm) {
        if src.0 >= 8 && dst.0 < 8 {
            self.vector(MOVE_BACK, shape.length(), src.0, 0, dst, Immediate::NONE);
        } else {
            self.vector(MOVE, shape.length(), dst.0, 0, src, Immediate::NONE);
        }
    }

    /// `vmovsd`, `vmovupd`: loads from memory. A scalar's upper lanes become zero.
    #[inline]
    pub(crate) fn load(&mut self, shape: Shape, dst: Xmm, mem: Mem) {
        self.vector(memory_move(shape, 0x10), shape.length(), dst.0, 0, mem, Immediate::NONE);
    }

    /// `vmovsd`, `vmovupd`: stores to memory.
    #[inline]
    pub(crate) fn store(&mut self, shape: Shape, mem: Mem, src: Xmm) {
        self.vector(memory_move(shape, 0x11), shape.length(), src.0, 0, mem, Immediate::NONE);
    }

    /// `vmovupd`: loads two lanes from memory. The others become zero.
    #[inline]
    pub(crate) fn load_pair(&mut self, dst: Xmm, mem: Mem) {
        self.vector(Form::new(P66, 1, 0x10), 0, dst.0, 0, mem, Immediate::NONE);
    }

    /// `vmovupd`: stores the lowest two lanes to memory.
    #[inline]
    pub(crate) fn store_pair(&mut self, mem: Mem, src: Xmm) {
        self.vector(Form::new(P66, 1, 0x11), 0, src.0, 0, mem, Immediate::NONE);
    }

    /// `vmovapd` under a mask: lanes whose bit is set are those of `src`, the others stay. AVX-512.
    #[inline]
    pub(crate) fn mov_merging(&mut self, shape: Shape, dst: Xmm, mask: Mask, src: Xmm) {
        self.masked(MOVE, shape.length(), dst.0, 0, src.into(), Masking::merging(mask));
    }

    /// `vmovapd` under a mask: lanes whose bit is set are those of `src`, the others become zero. AVX-512.
    #[inline]
    pub(crate) fn mov_zeroing(&mut self, shape: Shape, dst: Xmm, mask: Mask, src: Xmm) {
        self.masked(MOVE, shape.length(), dst.0, 0, src.into(), Masking::zeroing(mask));
    }

    /// `vmovsd`, `vmovupd` under a mask: loads lanes whose bit is set; the others stay, and their memory is not
    /// accessed. AVX-512.
    #[inline]
    pub(crate) fn load_merging(&mut self, shape: Shape, dst: Xmm, mask: Mask, mem: Mem) {
        self.masked(memory_move(shape, 0x10), shape.length(), dst.0, 0, mem.into(), Masking::merging(mask));
    }

    /// `vmovsd`, `vmovupd` under a mask: loads lanes whose bit is set; the others become zero, and their memory is not
    /// accessed. AVX-512.
    #[inline]
    pub(crate) fn load_zeroing(&mut self, shape: Shape, dst: Xmm, mask: Mask, mem: Mem) {
        self.masked(memory_move(shape, 0x10), shape.length(), dst.0, 0, mem.into(), Masking::zeroing(mask));
    }

    /// `vmovsd`, `vmovupd` under a mask: stores lanes whose bit is set; other memory is not accessed. AVX-512.
    #[inline]
    pub(crate) fn store_masked(&mut self, shape: Shape, mem: Mem, mask: Mask, src: Xmm) {
        self.masked(memory_move(shape, 0x11), shape.length(), src.0, 0, mem.into(), Masking::merging(mask));
    }

    /// `vmaskmovpd`: loads lanes whose sign bit in `mask` is set; the others become zero, and their memory is not
    /// accessed. A scalar takes the 16-byte form. The first 16 registers, at most four lanes.
    #[inline]
    pub(crate) fn load_where(&mut self, shape: Shape, dst: Xmm, mask: Xmm, mem: Mem) {
        self.vector(Form::new(P66, 2, 0x2D).only_vex(), shape.length(), dst.0, mask.0, mem, Immediate::NONE);
    }

    /// `vmaskmovpd`: stores lanes whose sign bit in `mask` is set; other memory is not accessed. A scalar takes the
    /// 16-byte form. The first 16 registers, at most four lanes.
    #[inline]
    pub(crate) fn store_where(&mut self, shape: Shape, mem: Mem, mask: Xmm, src: Xmm) {
        self.vector(Form::new(P66, 2, 0x2F).only_vex(), shape.length(), src.0, mask.0, mem, Immediate::NONE);
    }

    /// `vbroadcastsd`: broadcasts the lowest lane of a register, or one double of memory, to all lanes. For a scalar a
    /// move or a load.
    #[inline]
    pub(crate) fn broadcast(&mut self, shape: Shape, dst: Xmm, source: impl Into<Source>) {
        match (shape, source.into()) {
            (Shape::One, Source::Reg(src)) => self.mov(shape, dst, src),
            (Shape::One, Source::Mem(mem) | Source::Broadcast(mem)) => self.load(shape, dst, mem),
            (_, source) => {
                self.vector(Form::new(P66, 2, 0x19).bytes(3), shape.length(), dst.0, 0, source, Immediate::NONE);
            }
        }
    }

    /// `vpbroadcastq`: broadcasts a general register to all lanes, AVX-512. For a scalar
    /// [`movq_from`](Self::movq_from).
    #[inline]
    pub(crate) fn broadcast_gpr(&mut self, shape: Shape, dst: Xmm, src: Gpr) {
        if shape == Shape::One {
            return self.movq_from(dst, src);
        }
        self.vector(Form::new(P66, 2, 0x7C).only_evex(), shape.length(), dst.0, 0, Xmm(src.0), Immediate::NONE);
    }

    /// Zeroes all bits of all lanes: `vxorps`, from the 16th register on `vpxord`. Has no dependency.
    #[inline]
    pub(crate) fn zero(&mut self, dst: Xmm) {
        let form =
            if dst.0 < 16 { Form::new(NP, 1, 0x57).only_vex() } else { Form::new(P66, 1, 0xEF).evex_w0().only_evex() };
        self.vector(form, 0, dst.0, dst.0, dst, Immediate::NONE);
    }

    /// `vmovq`: 64 bits of a general register into the lowest lane; the others become zero.
    #[inline]
    pub(crate) fn movq_from(&mut self, dst: Xmm, src: Gpr) {
        self.vector(Form::new(P66, 1, 0x6E).w1().bytes(3), 0, dst.0, 0, Xmm(src.0), Immediate::NONE);
    }

    /// `vmovq`: the lowest lane into a general register.
    #[inline]
    pub(crate) fn movq_to(&mut self, dst: Gpr, src: Xmm) {
        self.vector(Form::new(P66, 1, 0x7E).w1().bytes(3), 0, src.0, 0, Xmm(dst.0), Immediate::NONE);
    }

    /// `vmovmskpd`: the sign bits of the lanes into a general register, zeros above; a scalar takes the 16-byte form,
    /// which yields two bits. The first 16 registers, at most four lanes.
    #[inline]
    pub(crate) fn signs_to(&mut self, shape: Shape, dst: Gpr, src: Xmm) {
        self.vector(Form::new(P66, 1, 0x50).only_vex(), shape.length(), dst.0, 0, src, Immediate::NONE);
    }

    /// `vcvtsi2sd`: a signed 64-bit integer to a double; `upper` provides the lanes above, and is a dependency.
    #[inline]
    pub(crate) fn cvtsi2sd(&mut self, dst: Xmm, upper: Xmm, src: Gpr) {
        self.vector(Form::new(PF2, 1, 0x2A).w1().bytes(3), 0, dst.0, upper.0, Xmm(src.0), Immediate::NONE);
    }

    /// `vcvtsi2sd` from memory.
    #[inline]
    pub(crate) fn cvtsi2sd_load(&mut self, dst: Xmm, upper: Xmm, mem: Mem) {
        self.vector(Form::new(PF2, 1, 0x2A).w1().bytes(3), 0, dst.0, upper.0, mem, Immediate::NONE);
    }

    /// `vcvttsd2si`: a double towards zero to a signed 64-bit integer; `i64::MIN` if it does not fit.
    #[inline]
    pub(crate) fn cvttsd2si(&mut self, dst: Gpr, source: impl Into<Source>) {
        self.vector(Form::new(PF2, 1, 0x2C).w1().bytes(3), 0, dst.0, 0, source, Immediate::NONE);
    }

    /// `vcvtsd2si`: a double to the nearest signed 64-bit integer, ties to even; `i64::MIN` if it does not fit.
    #[inline]
    pub(crate) fn cvtsd2si(&mut self, dst: Gpr, source: impl Into<Source>) {
        self.vector(Form::new(PF2, 1, 0x2D).w1().bytes(3), 0, dst.0, 0, source, Immediate::NONE);
    }

    /// `vcvtqq2pd`: signed 64-bit integers to doubles. A scalar takes the 16-byte form. AVX-512.
    #[inline]
    pub(crate) fn cvtqq2pd(&mut self, shape: Shape, dst: Xmm, source: impl Into<Source>) {
        self.vector(Form::new(PF3, 1, 0xE6).only_evex(), shape.length(), dst.0, 0, source, Immediate::NONE);
    }

    /// `vcvtpd2qq`: doubles to the nearest signed 64-bit integers, ties to even. A scalar takes the 16-byte
    /// form. AVX-512.
    #[inline]
    pub(crate) fn cvtpd2qq(&mut self, shape: Shape, dst: Xmm, source: impl Into<Source>) {
        self.vector(Form::new(P66, 1, 0x7B).only_evex(), shape.length(), dst.0, 0, source, Immediate::NONE);
    }

    /// `vcvttpd2qq`: doubles towards zero to signed 64-bit integers. A scalar takes the 16-byte form. AVX-512.
    #[inline]
    pub(crate) fn cvttpd2qq(&mut self, shape: Shape, dst: Xmm, source: impl Into<Source>) {
        self.vector(Form::new(P66, 1, 0x7A).only_evex(), shape.length(), dst.0, 0, source, Immediate::NONE);
    }

    /// Extracts half of the lanes of `src`, the lower or the upper ones: of eight `vextractf64x4`, of four
    /// `vextractf128`, of a scalar's 16 bytes nothing. `shape` is that of `src`.
    #[inline]
    pub(crate) fn half(&mut self, shape: Shape, dst: Xmm, src: Xmm, which: Half) {
        let form = match shape {
            Shape::One => return self.wrong("half of one lane"),
            Shape::Four => Form::new(P66, 3, 0x19).bytes(4),
            Shape::Eight => Form::new(P66, 3, 0x1B).bytes(5),
        };
        self.vector(form, shape.length(), src.0, 0, dst, Immediate::byte(which as u8));
    }

    /// Returns `a` with its lower or upper half replaced by the low lanes of `source`: eight lanes `vinsertf64x4`, four
    /// `vinsertf128`.
    #[inline]
    pub(crate) fn insert_half(&mut self, shape: Shape, dst: Xmm, a: Xmm, source: impl Into<Source>, which: Half) {
        let form = match shape {
            Shape::One => return self.wrong("half of one lane"),
            Shape::Four => Form::new(P66, 3, 0x18).bytes(4),
            Shape::Eight => Form::new(P66, 3, 0x1A).bytes(5),
        };
        self.vector(form, shape.length(), dst.0, a.0, source, Immediate::byte(which as u8));
    }

    /// Takes from each four lanes of `a`, then from each four of `b`, the lower two or the upper two: `vshuff64x2`; for
    /// four lanes in the first 16 registers `vperm2f128`.
    #[inline]
    pub(crate) fn halves_of_fours(&mut self, shape: Shape, dst: Xmm, a: Xmm, b: Xmm, which: Half) {
        let shuffle = Form::new(P66, 3, 0x23).w1().only_evex();
        let (form, choice) = match shape {
            Shape::One => return self.wrong("four of one lane"),
            Shape::Four if (dst.0 | a.0 | b.0) < 16 => {
                (Form::new(P66, 3, 0x06).only_vex(), if which == Half::Upper { 0x31 } else { 0x20 })
            }
            Shape::Four => (shuffle, if which == Half::Upper { 0b11 } else { 0b00 }),
            Shape::Eight => (shuffle, if which == Half::Upper { 0b11_01_11_01 } else { 0b10_00_10_00 }),
        };
        self.vector(form, shape.length(), dst.0, a.0, b, Immediate::byte(choice));
    }

    /// `vunpcklpd`: from each pair of lanes the lower of `a`, then the lower of `source`. A scalar takes the 16-byte
    /// form.
    #[inline]
    pub(crate) fn unpack_low(&mut self, shape: Shape, dst: Xmm, a: Xmm, source: impl Into<Source>) {
        self.vector(Form::new(P66, 1, 0x14), shape.length(), dst.0, a.0, source, Immediate::NONE);
    }

    /// `vunpckhpd`: from each pair of lanes the upper of `a`, then the upper of `source`. A scalar takes the 16-byte
    /// form.
    #[inline]
    pub(crate) fn unpack_high(&mut self, shape: Shape, dst: Xmm, a: Xmm, source: impl Into<Source>) {
        self.vector(Form::new(P66, 1, 0x15), shape.length(), dst.0, a.0, source, Immediate::NONE);
    }

    /// `vpermilpd`: each lane becomes the lower or, if its bit of `choice` is set, the upper one of its pair. A scalar
    /// takes the 16-byte form.
    #[inline]
    pub(crate) fn permute_pairs(&mut self, shape: Shape, dst: Xmm, source: impl Into<Source>, choice: u8) {
        self.vector(Form::new(P66, 3, 0x05), shape.length(), dst.0, 0, source, Immediate::byte(choice));
    }

    /// `vpermpd`: each lane of four becomes the one selected by its two bits of `choice`; with eight lanes, both halves
    /// do the same.
    #[inline]
    pub(crate) fn permute_fours(&mut self, shape: Shape, dst: Xmm, source: impl Into<Source>, choice: u8) {
        if shape == Shape::One {
            return self.wrong("four of one lane");
        }
        self.vector(Form::new(P66, 3, 0x01).w1(), shape.length(), dst.0, 0, source, Immediate::byte(choice));
    }

    /// `vzeroupper`: zeroes all lanes of the first 16 registers beyond 16 bytes, as SSE code requires for speed.
    #[inline]
    pub(crate) fn vzeroupper(&mut self) {
        self.emit(0x77_F8_C5, 3);
    }
}
