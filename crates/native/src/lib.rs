//! The native backend: machine code for 64-bit x86, in memory.
//!
//! | module | owns |
//! | --- | --- |
//! | [`program`] | compiled kernels: compilation, runs of one point or a batch |
//! | [`workspace`] | memory of running code |
//! | [`bound`] | a program with owned memory for arguments and results |
//! | `place` | frame placement within pages |
//! | `batch` | packing of points into lanes |
//! | `parallel` | one point on several threads |
//! | `lower` | lowering of a kernel to instructions |
//! | `support` | runtime calls |
//! | [`level`] | processor features: AVX2 with FMA, or AVX-512 |
//! | `asm` | the encoder: instructions, labels and constants to bytes |
//! | `room` | code buffer |
//! | `executable` | executable memory, never writable and executable at the same time |
//! | `pool` | cache of code memory |
//! | `perf_map` | names of code for profilers, in a file, only on request |
//!
//! On other processors and systems the crate is empty. Only four modules use the operating system: `room`, `executable`
//! and `pool` map memory, `perf_map` writes a file.
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
