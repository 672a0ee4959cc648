//! The kernel IR: what backends run. Loops, buffers, straight-line blocks of scalar instructions.
//!
//! In: a differentiated function of the array IR, or a scalar graph. Out: a [`Kernel`] whose memory is
//! planned: every buffer is an argument or a place in the workspace, so running allocates nothing.

pub mod events;
pub mod kernel;

pub use events::{Event, events};
pub use kernel::{
    Buffer, BufferId, Carried, Choice, Class, Condition, External, Instr, Kernel, Place, Port, Reg, SizeParam,
    SizeSource, Stmt,
};
