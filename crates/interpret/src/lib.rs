//! The interpreter: a backend that runs any kernel.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel). Out: a [`Program`], flat bytecode over slots, which runs
//! one point ([`Program::run`]) or many ([`Program::run_batch`]). Running allocates lists of the buffers, no buffers; a batch
//! that runs point by point, copies of one point's arguments and results.
//!
//! | module | owns |
//! | --- | --- |
//! | [`program`] | [`Program`] |
//! | `compile`, `bytecode` | from a kernel to bytecode |
//! | [`memory`] | the arguments of a running point, the workspace |
//! | `run` | one point |
//! | `lanes` | a block of points at once, each instruction for all of them |
//!
//! Arguments, sizes and failures are those of [`chainrule_runtime`].
//!
//! Every access is checked against its buffer; memory outside it is never touched. Values come from
//! the rows of `chainrule_ops`, so they are the same on every machine, and the same for one point and
//! for many.

mod bytecode;
mod compile;
mod lanes;
pub mod memory;
pub mod program;
mod run;

pub use chainrule_runtime::{RunError, Sizes, Slice, SliceMut, Strided, StridedMut};
pub use lanes::LANES;
pub use memory::Workspace;
pub use program::Program;
