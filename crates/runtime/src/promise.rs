//! What a caller may promise of a program, so that machine code need not look while it runs.

/// The promise that no index of a program is ever out of its range. Whoever has one has made it: it is made by
/// [`Self::promised`] alone.
///
/// Machine code proves or tests that each address is inside of its buffer. With this promise it does not test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InRange(());

impl InRange {
    /// Promises it.
    ///
    /// # Safety
    /// Whatever arguments the program that this is given for will run with: with its checks it would not fail at an index.
    /// Otherwise memory is read or written that is not its own. Of a program that comes from bytes, it is promised too that
    /// they are those that a Chainrule wrote.
    #[must_use]
    #[allow(unsafe_code, reason = "it is the caller who knows the program and its data")]
    pub const unsafe fn promised() -> Self {
        Self(())
    }
}
