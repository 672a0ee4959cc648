//! The interpreter: a backend that runs any kernel.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel). Out: a [`Program`], flat bytecode over slots, which runs
//! one point ([`Program::run`]) or many ([`Program::run_batch`]) without allocating.
//!
//! | module | owns |
//! | --- | --- |
//! | [`program`] | [`Program`], the checks of the arguments |
//! | `compile`, `liveness`, `bytecode` | from a kernel to bytecode |
//! | [`sizes`] | from shapes to sizes, lengths and offsets |
//! | [`memory`] | slices, strided arguments, the workspace |
//! | `run` | one point |
//! | `lanes` | a block of points at once, each instruction for all of them |
//! | [`error`] | what may go wrong while running |
//!
//! Every access is checked against its buffer; memory outside it is never touched. Values come from
//! the rows of `chainrule_ops`, so they are the same on every machine, and the same for one point and
//! for many.

mod bytecode;
mod compile;
pub mod error;
mod lanes;
mod liveness;
pub mod memory;
pub mod program;
mod run;
pub mod sizes;

pub use error::RunError;
pub use lanes::LANES;
pub use memory::{Slice, SliceMut, Strided, StridedMut, Workspace};
pub use program::Program;
pub use sizes::Sizes;
