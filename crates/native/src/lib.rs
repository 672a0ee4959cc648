//! The native backend: machine code for 64-bit x86, in memory.
//!
//! | module | owns |
//! | --- | --- |
//! | [`level`] | what the processor has: AVX2 with FMA, or AVX-512 |
//! | `asm` | the encoder: instructions, labels and constants to bytes |
//! | `executable` | memory that holds code, never writable and executable at once |
//! | `perf_map` | names of code for profilers, in a file, only when asked |
//!
//! On other processors and systems the crate is empty. Two modules touch the outside and nothing else
//! does: `executable` maps memory, `perf_map` writes a file.
#![cfg(all(target_arch = "x86_64", unix))]

#[allow(dead_code, unused_imports, reason = "the encoder is whole; the lowering uses what it needs of it")]
pub(crate) mod asm;
#[allow(dead_code, reason = "the lowering is built on it")]
pub(crate) mod executable;
pub mod level;
#[allow(dead_code, reason = "the lowering is built on it")]
pub(crate) mod perf_map;

pub use level::Level;
