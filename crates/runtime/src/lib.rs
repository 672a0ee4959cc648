//! What backends that run inside the process share: arguments, sizes, checks at entry, points for threads, failures.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel), and arguments. Out: a [`Layout`], which checks the
//! arguments of a call, and the [`Sizes`] of one set of extents, by which any backend runs.
//!
//! | module | owns |
//! | --- | --- |
//! | [`arguments`] | slices of one point, or memory of its own; strided arrays of many |
//! | [`sizes`] | from shapes to sizes, lengths and offsets |
//! | [`lines`] | memory in lines of a cache |
//! | [`check`] | whether arguments fit |
//! | [`batch`] | the points of a batch, checked once and shared out to threads |
//! | [`error`] | what may go wrong while running |
//! | [`promise`] | what a caller may promise, so that machine code need not look |

pub mod arguments;
pub mod batch;
pub mod check;
pub mod error;
pub mod lines;
pub mod promise;
pub mod sizes;

pub use arguments::{Elements, Slice, SliceMut, Strided, StridedMut};
pub use batch::{Batch, Part, Share};
pub use error::{Reason, RunError};
pub use lines::{Doubles, in_lines};
pub use promise::InRange;
pub use sizes::{Layout, Sizes, scalar};
