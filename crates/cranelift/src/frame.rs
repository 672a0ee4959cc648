//! The frame: words of 64 bits between the code and its caller, in one array whose address is the code's argument.

use chainrule_base::Id;
use chainrule_kernel::{BufferId, Kernel};

/// Layout of the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    sizes: usize,
    buffers: usize,
    arguments: usize,
    /// Number of words.
    pub len: usize,
}

impl Frame {
    /// Pointer to the context of calls of user functions.
    pub const CALLS: usize = 0;
    /// Three words: the numbers of a failed check, or the arguments of integer operators.
    pub const NUMBERS: usize = 1;
    /// Result of an integer operator.
    pub const RESULT: usize = 4;
    const HEADER: usize = 5;

    pub(crate) fn new(kernel: &Kernel) -> Self {
        let sizes = Self::HEADER;
        let buffers = sizes + kernel.sizes.len();
        let arguments = buffers + 2 * kernel.buffers.len();
        let most = kernel.externals.iter().map(|e| e.arity).max().unwrap_or(0).max(1);
        Self { sizes, buffers, arguments, len: arguments + most }
    }

    /// Returns the word of a size.
    pub(crate) fn size(self, index: usize) -> usize {
        self.sizes + index
    }

    /// Returns the word of the pointer to a buffer.
    pub(crate) fn pointer(self, buffer: BufferId) -> usize {
        self.buffers + 2 * buffer.index()
    }

    /// Returns the word of a buffer's length.
    pub(crate) fn length(self, buffer: BufferId) -> usize {
        self.buffers + 2 * buffer.index() + 1
    }

    /// Returns the word of the first argument of a user function.
    pub(crate) fn arguments(self) -> usize {
        self.arguments
    }
}
