//! The kernel IR, the input of all backends: loops, buffers, straight-line blocks of scalar instructions.
//!
//! In: a differentiated function of the array IR, or a scalar graph. Out: a [`Kernel`] with planned memory: every
//! buffer is an argument or a region of the workspace, so that running allocates nothing.
//!
//! | module | owns |
//! | --- | --- |
//! | [`kernel`] | the IR itself |
//! | [`zeros`] | structurally zero results |
//! | [`mod@events`] | a kernel as flat events, for backends |
//! | [`mod@contract`] | contraction into fused multiply-adds |
//! | [`addresses`] | strength reduction of addresses, for backends |
//! | [`liveness`] | live intervals of registers, for backends |
//! | [`bytes`] | serialisation |
//! | [`mod@moves`] | parallel moves, for backends |
//! | [`mod@verify`] | verifier of the invariants |
//! | [`mod@check_layout`] | checker of the memory plan, for given sizes |
//! | [`ranges`] | range analysis of integers: proofs that addresses are in bounds |
//! | `prune` | dead code elimination |
//! | [`mod@unchecked`] | removal of index checks |
//! | `rebuild` | framework for passes over statements |
//! | [`loops`] | loop canonicalisation: index set splitting, folding, collapsing, hoisting |
//! | [`choices`] | if-conversion of branches on data, for lanes |
//! | [`lanes`] | vectorisation |
//! | [`mod@parts`] | parallel loops, for threads |
//! | [`passes`] | the list of passes, in order |
//! | [`mod@print`] | listing |
//! | [`mod@parse`] | parser of listings |
//! | [`mod@counts`] | operation counts |
//! | [`from_graph`] | lowering a scalar graph: scheduling |
//! | [`from_ir`] | lowering a function of the array IR |
//! | [`weights`] | measured weights of the cost model, by machine class |
//! | `memory` | the memory plan: lengths and offsets over sizes |

pub mod analyses;
pub mod bytes;
pub mod check_layout;
pub mod choices;
pub mod contract;
mod exponentials;
mod forward;
pub mod from_graph;
pub mod from_ir;
pub mod kernel;
pub mod lanes;
pub mod loops;
mod memory;
pub mod moves;
pub mod parse;
pub mod parts;
pub mod passes;
pub mod print;
mod prune;
mod rebuild;
mod steps;
pub mod unchecked;
pub mod verify;
pub mod weights;

pub(crate) use analyses::mentions;
pub use analyses::{addresses, counts, events, liveness, ranges, registers, zeros};
pub use check_layout::check_layout;
pub use choices::with_choices;
pub use contract::contract;
pub use counts::counts;
pub use events::{Event, Part, events, parts, walk, with_late_constants};
pub use from_graph::{GraphPort, Products, lower_graph, lower_graph_with};
pub use from_ir::{lower_function, lower_function_with};
pub use kernel::{
    Buffer, BufferId, Carried, Choice, Class, Computed, Condition, External, ExternalFn, Instr, Kernel, LANES,
    NEGATIVE_SIZE, Order, PARTS, Place, Port, Reg, Signs, SizeParam, SizeSource, Stmt,
};
pub use lanes::{LoopAccount, LoopForm, account, predicted_time, time, vectorise};
pub use liveness::Liveness;
pub use loops::{hoist, streamline};
pub use moves::{Move, moves};
pub use parse::{ParseError, parse};
pub use parts::parallelise;
pub use ranges::Ranges;
pub use registers::Registers;
pub use unchecked::unchecked;
pub use verify::verify;
pub use zeros::{Zeros, with_stored_zeros};
