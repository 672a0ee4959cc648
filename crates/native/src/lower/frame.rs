//! The frame: the memory of running code beside its arguments, in one piece that the workspace owns.
//!
//! | part | is |
//! | --- | --- |
//! | words | 8 bytes each: what the caller passes and reads ([`Header`]), pointers and lengths of buffers, sizes, integers |
//! | slots | one vector each: values that are not in registers, arguments of calls |
//!
//! A register, `rbp` or, where nothing is called, the one it comes in, `rdi`, points a little behind the begin of the
//! slots, such that the first slots are reached by displacements of one byte. Nothing is on the stack but the caller's
//! registers, so that no kernel can overflow it.

use crate::asm::{Gpr, Mem, Shape};
use chainrule_base::Id;
use chainrule_kernel::{BufferId, Kernel};

/// The words that code and caller know.
pub(crate) struct Header;

impl Header {
    /// The numbers by which it failed; arguments of calls on integers.
    pub(crate) const NUMBERS: u32 = 0;
    /// The address of what calls of users' functions need.
    pub(crate) const CALLS: u32 = 3;
    /// The first word that depends on the kernel.
    pub(crate) const LEN: u32 = 4;
}

/// The words of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    n_buffers: u32,
    n: u32,
}

impl Words {
    /// Those that every kernel has.
    pub(crate) fn new(kernel: &Kernel) -> Self {
        let n_buffers = kernel.buffers.len() as u32;
        Self { n_buffers, n: Header::LEN + 2 * n_buffers + kernel.sizes.len() as u32 }
    }

    /// The pointer to the first element of a buffer.
    pub(crate) fn pointer(&self, b: BufferId) -> u32 {
        Header::LEN + b.index() as u32
    }

    /// The number of elements of a buffer.
    pub(crate) fn length(&self, b: BufferId) -> u32 {
        Header::LEN + self.n_buffers + b.index() as u32
    }

    /// The value of a size, by its index.
    pub(crate) fn size(&self, index: usize) -> u32 {
        Header::LEN + 2 * self.n_buffers + index as u32
    }

    /// One more word.
    pub(crate) fn take(&mut self) -> u32 {
        self.take_all(1)
    }

    /// So many more, one after the other; the first.
    pub(crate) fn take_all(&mut self, n: u32) -> u32 {
        self.n += n;
        self.n - n
    }

    /// How many bytes of a frame they take: whole lines of the cache.
    pub(crate) fn bytes(&self) -> usize {
        (8 * self.n as usize).next_multiple_of(64)
    }
}

/// Where the parts of a frame are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLayout {
    /// The widest value that a slot takes.
    shape: Shape,
    register: Gpr,
    /// Bytes before the slots.
    words: usize,
}

impl FrameLayout {
    /// `shape`: of the widest values. `calls`: whether the code calls functions.
    pub(crate) fn new(shape: Shape, words: &Words, calls: bool) -> Self {
        let register = if calls { Gpr::RBP } else { Gpr::RDI };
        Self { shape, register, words: words.bytes() }
    }

    /// The register by which the frame is reached.
    pub(crate) fn register(self) -> Gpr {
        self.register
    }

    /// Where the first slot is, from where the register points to.
    #[inline]
    fn first_slot(self) -> i64 {
        match self.shape {
            Shape::One | Shape::Four => -128,
            // Displacements of EVEX count whole vectors.
            Shape::Eight => -128 * 64,
        }
    }

    /// Bytes of one slot.
    pub(crate) fn slot_bytes(self) -> usize {
        8 * lanes(self.shape)
    }

    /// From the begin of the frame to where its register points.
    pub(crate) fn base(self) -> usize {
        self.words + self.first_slot().unsigned_abs() as usize
    }

    /// Bytes of a frame with `n_slots` slots.
    pub(crate) fn bytes(self, n_slots: u32) -> usize {
        self.words + self.slot_bytes() * n_slots as usize
    }

    pub(crate) fn word(self, word: u32) -> Mem {
        Mem::At { base: self.register, disp: (8 * i64::from(word) - self.base() as i64) as i32 }
    }

    #[inline]
    pub(crate) fn slot(self, slot: u32) -> Mem {
        self.packed(slot, 0, Shape::One)
    }

    /// The place of the `i`th of some values of this shape that stand one after the other from a slot on.
    pub(crate) fn packed(self, slot: u32, i: u32, shape: Shape) -> Mem {
        let at = self.slot_bytes() * slot as usize + 8 * lanes(shape) * i as usize;
        Mem::At { base: self.register, disp: (self.first_slot() + at as i64) as i32 }
    }
}

/// How many doubles a vector of this shape holds.
pub(crate) fn lanes(shape: Shape) -> usize {
    match shape {
        Shape::One => 1,
        Shape::Four => 4,
        Shape::Eight => 8,
    }
}
