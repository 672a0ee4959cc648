//! Operands of instructions: registers, memory, and the number of lanes.

/// A general register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Gpr(pub u8);

/// The general registers by their names.
impl Gpr {
    pub(crate) const RAX: Self = Self(0);
    pub(crate) const RCX: Self = Self(1);
    pub(crate) const RDX: Self = Self(2);
    pub(crate) const RBX: Self = Self(3);
    pub(crate) const RSP: Self = Self(4);
    pub(crate) const RBP: Self = Self(5);
    pub(crate) const RSI: Self = Self(6);
    pub(crate) const RDI: Self = Self(7);
    pub(crate) const R8: Self = Self(8);
    pub(crate) const R9: Self = Self(9);
    pub(crate) const R10: Self = Self(10);
    pub(crate) const R11: Self = Self(11);
    pub(crate) const R12: Self = Self(12);
    pub(crate) const R13: Self = Self(13);
    pub(crate) const R14: Self = Self(14);
    pub(crate) const R15: Self = Self(15);
}

/// A vector register of any width: 0 to 15, and with AVX-512 to 31.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Xmm(pub u8);

/// A mask register of AVX-512, k0 to k7. A write mask of k0 means "all lanes", so no masked instruction takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mask(pub u8);

/// Number of lanes of doubles of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// A scalar, in the lowest lane.
    One,
    /// Four lanes, a `ymm` register.
    Four,
    /// Eight lanes, a `zmm` register; AVX-512.
    Eight,
}

impl Shape {
    /// Returns the vector length of packed instructions, as in VEX.L and EVEX.L'L: 0, 1, 2 are 16, 32, 64 bytes.
    /// Scalars are in 16 bytes.
    #[inline]
    pub(super) fn length(self) -> u8 {
        self as u8
    }
}

/// A memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mem {
    /// `base + disp`.
    At {
        /// Base register.
        base: Gpr,
        /// Displacement in bytes.
        disp: i32,
    },
    /// `base + index * scale + disp`.
    Indexed {
        /// Base register.
        base: Gpr,
        /// Index register, any but `rsp`.
        index: Gpr,
        /// 1, 2, 4 or 8.
        scale: u8,
        /// Displacement in bytes.
        disp: i32,
    },
    /// Offset in bytes into the constants of the code, as returned by [`constant`](super::Assembler::constant).
    Constant(u32),
}

impl Mem {
    /// Returns the operand `bytes` bytes further, if an instruction can encode it.
    pub(crate) fn plus(self, bytes: i32) -> Option<Self> {
        Some(match self {
            Self::At { base, disp } => Self::At { base, disp: disp.checked_add(bytes)? },
            Self::Indexed { base, index, scale, disp } => {
                Self::Indexed { base, index, scale, disp: disp.checked_add(bytes)? }
            }
            Self::Constant(at) => Self::Constant(at.checked_add_signed(bytes)?),
        })
    }
}

/// Last source of a vector instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// A register.
    Reg(Xmm),
    /// As many bytes of memory as the instruction reads.
    Mem(Mem),
    /// One double of memory in all lanes; AVX-512. For a scalar instruction the same as `Mem`.
    Broadcast(Mem),
}

impl From<Xmm> for Source {
    #[inline]
    fn from(register: Xmm) -> Self {
        Self::Reg(register)
    }
}

impl From<Mem> for Source {
    #[inline]
    fn from(mem: Mem) -> Self {
        Self::Mem(mem)
    }
}
