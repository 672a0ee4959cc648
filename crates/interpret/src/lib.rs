//! The interpreter, a backend that runs any kernel.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel). Out: a [`Program`], flat bytecode over slots, which runs one point
//! ([`Backend::run`](chainrule_runtime::Backend::run)) or many
//! ([`Backend::run_batch`](chainrule_runtime::Backend::run_batch)). A run allocates lists of the buffers, but no
//! buffers; a batch that runs point by point also copies of one point's arguments and results.
//!
//! | module | owns |
//! | --- | --- |
//! | [`program`] | [`Program`] |
//! | `compile`, `bytecode` | compilation of a kernel to bytecode |
//! | [`memory`] | arguments of the running point, the workspace |
//! | `run` | execution of one point |
//! | `lanes` | execution of a block of points, each instruction for all of them |
//!
//! Arguments, sizes and failures are those of [`chainrule_runtime`].
//!
//! Every access is checked against its buffer; memory outside it is never touched. Values come from the rows of
//! `chainrule_ops`, so they are equal on every machine, and equal for one point and for many.

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
