//! Common runtime of the backends that run inside the process: arguments, sizes, checks at entry, batches, errors.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel) and arguments. Out: a [`Layout`], which checks the arguments of a call,
//! and the [`Sizes`] of one set of extents, which every backend takes.
//!
//! | module | owns |
//! | --- | --- |
//! | [`arguments`] | borrowed or owned elements of one point, strided arrays of many points |
//! | [`sizes`] | from shapes to sizes, lengths and offsets |
//! | [`lines`] | alignment of memory to cache lines and pages |
//! | [`check`] | checks of arguments at entry |
//! | [`backend`] | the interface of backends |
//! | [`batch`] | many points, checked once and divided among threads |
//! | [`error`] | errors of running |
//! | [`threads`] | whether the process has the threads of the pool |
//! | [`site`] | failures of machine code |
//! | [`overflow`] | effect of integer overflow |
//! | [`promise`] | the caller's promise that lets machine code omit index checks |

pub mod arguments;
pub mod backend;
pub mod batch;
pub mod check;
pub mod error;
pub mod lines;
pub mod overflow;
pub mod promise;
pub mod site;
pub mod sizes;
pub mod threads;

pub use arguments::{Elements, Slice, SliceMut, Strided, StridedMut};
pub use backend::Backend;
pub use batch::{Batch, Part, Share};
pub use error::{Reason, RunError};
pub use lines::{Doubles, in_lines};
pub use overflow::Overflow;
pub use promise::InRange;
pub use site::{Panic, Site};
pub use sizes::{Layout, Sizes, scalar};
