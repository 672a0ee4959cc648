//! The native backend: machine code for 64-bit x86, in memory.
//!
//! | module | owns |
//! | --- | --- |
//! | [`program`] | a kernel as machine code: compiling, running one point or a batch |
//! | [`workspace`] | the memory of running code |
//! | [`bound`] | a program with memory of its own for arguments and results |
//! | `place` | where that memory lies in pages |
//! | `batch` | points between the caller's strides and lanes |
//! | `parallel` | one point on several threads |
//! | `lower` | from a kernel to instructions |
//! | `support` | what machine code calls back |
//! | [`level`] | what the processor has: AVX2 with FMA, or AVX-512 |
//! | `asm` | the encoder: instructions, labels and constants to bytes |
//! | `room` | memory that code is written into |
//! | `executable` | memory that holds code, never writable and executable at once |
//! | `pool` | memory of code that is gone, for code to come |
//! | `perf_map` | names of code for profilers, in a file, only when asked |
//!
//! On other processors and systems the crate is empty. Four modules touch the outside and nothing else
//! does: `room`, `executable` and `pool` map memory, `perf_map` writes a file.
#![cfg(all(target_arch = "x86_64", unix))]
#![allow(unsafe_code)]

#[allow(dead_code, unused_imports, reason = "the encoder is whole; the lowering uses what it needs of it")]
pub(crate) mod asm;
mod batch;
pub mod bound;
pub(crate) mod executable;
pub mod level;
mod lower;
mod parallel;
pub(crate) mod perf_map;
mod place;
mod pool;
pub mod program;
pub(crate) mod room;
mod support;
pub mod workspace;

pub use bound::Bound;
pub use level::Level;
pub use program::{Options, Program};
pub use workspace::Workspace;
