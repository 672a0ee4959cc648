//! The words between the code and its caller: 64 bits each, in one array whose address the code is given.

use chainrule_base::Id;
use chainrule_kernel::{BufferId, Kernel};

/// Where what lies in the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    sizes: usize,
    buffers: usize,
    arguments: usize,
    /// How many words there are.
    pub len: usize,
}

impl Frame {
    /// The pointer to what calls of users' functions need.
    pub const CALLS: usize = 0;
    /// The numbers by which a check failed, and arguments of integer operators: three words.
    pub const NUMBERS: usize = 1;
    /// The result of an integer operator.
    pub const RESULT: usize = 4;
    const HEADER: usize = 5;

    pub(crate) fn new(kernel: &Kernel) -> Self {
        let sizes = Self::HEADER;
        let buffers = sizes + kernel.sizes.len();
        let arguments = buffers + 2 * kernel.buffers.len();
        let most = kernel.externals.iter().map(|e| e.arity).max().unwrap_or(0).max(1);
        Self { sizes, buffers, arguments, len: arguments + most }
    }

    /// The value of a size.
    pub(crate) fn size(self, index: usize) -> usize {
        self.sizes + index
    }

    /// The pointer to the first element of a buffer.
    pub(crate) fn pointer(self, buffer: BufferId) -> usize {
        self.buffers + 2 * buffer.index()
    }

    /// How many elements a buffer has.
    pub(crate) fn length(self, buffer: BufferId) -> usize {
        self.buffers + 2 * buffer.index() + 1
    }

    /// The first argument of a user's function.
    pub(crate) fn arguments(self) -> usize {
        self.arguments
    }
}
