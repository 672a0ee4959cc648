//! The kernel IR: what backends run. Loops, buffers, straight-line blocks of scalar instructions.
//!
//! In: a differentiated function of the array IR, or a scalar graph. Out: a [`Kernel`] whose memory is
//! planned: every buffer is an argument or a place in the workspace, so running allocates nothing.
//!
//! | module | owns |
//! | --- | --- |
//! | [`kernel`] | the IR itself |
//! | [`zeros`] | results that are zero, whatever the arguments |
//! | [`mod@events`] | a kernel as flat events, for backends |
//! | [`mod@contract`] | products fused with the sums that take them |
//! | [`addresses`] | what of an address stays the same in a loop, for backends |
//! | [`liveness`] | lives of registers, for backends |
//! | [`bytes`] | a kernel as bytes and back |
//! | [`mod@moves`] | moves that happen all at once, for backends |
//! | [`mod@verify`] | its invariants, checked |
//! | [`mod@check_layout`] | its memory plan, checked for given sizes |
//! | [`ranges`] | what is known of integers: whether addresses are inside |
//! | `prune` | what is of no use |
//! | [`mod@unchecked`] | a kernel without the checks of its indices |
//! | `rebuild` | statements taken apart and put together, for passes |
//! | [`loops`] | branches that the index decides, and what is known before running |
//! | [`choices`] | branches that go by data: both sides, and a choice, where several run at once |
//! | [`lanes`] | loops whose iterations run at once |
//! | [`mod@parts`] | loops that run in parts, on threads |
//! | [`mod@print`] | its listing |
//! | [`mod@counts`] | how many operations it does |
//! | [`from_graph`] | lowering a scalar graph: scheduling |
//! | [`from_ir`] | lowering a function of the array IR |
//! | `memory` | the memory plan: lengths and offsets over sizes |

pub mod addresses;
pub mod bytes;
pub mod check_layout;
pub mod choices;
pub mod contract;
pub mod counts;
pub mod events;
pub mod from_graph;
pub mod from_ir;
pub mod kernel;
pub mod lanes;
pub mod liveness;
pub mod loops;
mod memory;
pub mod moves;
pub mod parts;
pub mod print;
mod prune;
pub mod ranges;
mod rebuild;
pub mod unchecked;
pub mod verify;
pub mod zeros;

pub use check_layout::check_layout;
pub use choices::with_choices;
pub use contract::contract;
pub use counts::counts;
pub use events::{Event, Part, events, parts, walk, with_late_constants};
pub use from_graph::{GraphPort, lower_graph, lower_graph_fused};
pub use from_ir::{lower_function, lower_function_with};
pub use kernel::{
    Buffer, BufferId, Carried, Choice, Class, Computed, Condition, External, ExternalFn, Instr, Kernel, LANES, Order,
    PARTS, Place, Port, Reg, Signs, SizeParam, SizeSource, Stmt,
};
pub use lanes::vectorise;
pub use liveness::Liveness;
pub use loops::{hoist, streamline};
pub use moves::{Move, moves};
pub use parts::parallelise;
pub use ranges::Ranges;
pub use unchecked::unchecked;
pub use verify::verify;
pub use zeros::{Zeros, with_stored_zeros};
