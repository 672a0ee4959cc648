//! The caller's promise that lets machine code omit index checks.

/// Promise that no index of a program is ever out of range. Only [`Self::promised`] makes it.
///
/// Machine code proves or tests that each address is inside its buffer. With this promise it does not test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InRange(());

impl InRange {
    /// Makes the promise.
    ///
    /// # Safety
    /// The program must not fail at an index check for any arguments it will run with. Otherwise an index out of range
    /// reads or writes arbitrary memory. For a program loaded from bytes, the bytes must have been written by
    /// Chainrule.
    #[must_use]
    #[allow(unsafe_code, reason = "it is the caller who knows the program and its data")]
    pub const unsafe fn promised() -> Self {
        Self(())
    }
}
