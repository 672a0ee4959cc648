//! The frame: memory of running code besides its arguments, in one block owned by the workspace.
//!
//! | part | content |
//! | --- | --- |
//! | words | 8 bytes each: data of the caller ([`Header`]), pointers and lengths of buffers, sizes, integers |
//! | slots | one vector each: values that are not in registers, arguments of calls |
//!
//! A register, `rbp` or, in leaf code, the argument register `rdi`, points slightly behind the start of the slots, so
//! that the first slots are reached by displacements of one byte. The stack only holds the callee-saved registers, so
//! no kernel can overflow it.

use crate::asm::{Gpr, Mem, Shape};
use chainrule_base::Id;
use chainrule_kernel::{BufferId, Kernel};

/// Words known to code and caller.
pub(crate) struct Header;

impl Header {
    /// Numbers of a failure; arguments of calls on integers.
    pub(crate) const NUMBERS: u32 = 0;
    /// Address of the context of user function calls.
    pub(crate) const CALLS: u32 = 3;
    /// First word that depends on the kernel.
    pub(crate) const LEN: u32 = 4;
}

/// Words of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    n_buffers: u32,
    n: u32,
}

impl Words {
    /// Returns the words that every kernel has.
    pub(crate) fn new(kernel: &Kernel) -> Self {
        let n_buffers = kernel.buffers.len() as u32;
        Self { n_buffers, n: Header::LEN + 2 * n_buffers + kernel.sizes.len() as u32 }
    }

    /// Returns the word of the pointer to the first element of a buffer.
    pub(crate) fn pointer(&self, b: BufferId) -> u32 {
        Header::LEN + b.index() as u32
    }

    /// Returns the word of the number of elements of a buffer.
    pub(crate) fn length(&self, b: BufferId) -> u32 {
        Header::LEN + self.n_buffers + b.index() as u32
    }

    /// Returns the word of a size, by its index.
    pub(crate) fn size(&self, index: usize) -> u32 {
        Header::LEN + 2 * self.n_buffers + index as u32
    }

    /// Allocates a word.
    pub(crate) fn take(&mut self) -> u32 {
        self.take_all(1)
    }

    /// Allocates `n` consecutive words; returns the first.
    pub(crate) fn take_all(&mut self, n: u32) -> u32 {
        self.n += n;
        self.n - n
    }

    /// Returns their size in bytes: whole cache lines.
    pub(crate) fn bytes(&self) -> usize {
        (8 * self.n as usize).next_multiple_of(64)
    }
}

/// Layout of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLayout {
    /// Widest value of a slot.
    shape: Shape,
    register: Gpr,
    /// Size of the words before the slots, in bytes.
    words: usize,
}

impl FrameLayout {
    /// Returns the layout; `shape` is that of the widest values, `calls` tells whether the code calls functions.
    pub(crate) fn new(shape: Shape, words: &Words, calls: bool) -> Self {
        let register = if calls { Gpr::RBP } else { Gpr::RDI };
        Self { shape, register, words: words.bytes() }
    }

    /// Returns the base register of the frame.
    pub(crate) fn register(self) -> Gpr {
        self.register
    }

    /// Returns the offset of the first slot from the base register.
    #[inline]
    fn first_slot(self) -> i64 {
        match self.shape {
            Shape::One | Shape::Four => -128,
            // Displacements of EVEX count whole vectors.
            Shape::Eight => -128 * 64,
        }
    }

    /// Returns the size of a slot in bytes.
    pub(crate) fn slot_bytes(self) -> usize {
        8 * lanes(self.shape)
    }

    /// Returns the offset of the base register from the start of the frame.
    pub(crate) fn base(self) -> usize {
        self.words + self.first_slot().unsigned_abs() as usize
    }

    /// Returns the size of a frame with `n_slots` slots in bytes.
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

    /// Returns the location of value `i` of consecutive values of this shape from a slot on.
    pub(crate) fn packed(self, slot: u32, i: u32, shape: Shape) -> Mem {
        let at = self.slot_bytes() * slot as usize + 8 * lanes(shape) * i as usize;
        Mem::At { base: self.register, disp: (self.first_slot() + at as i64) as i32 }
    }
}

/// Returns the number of doubles of a vector of this shape.
pub(crate) fn lanes(shape: Shape) -> usize {
    match shape {
        Shape::One => 1,
        Shape::Four => 4,
        Shape::Eight => 8,
    }
}
