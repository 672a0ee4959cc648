//! What the backends that write text share.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel), and a [`Language`]. Out: the text of its functions, and
//! what their documentation says. A backend brings the spelling of declarations, statements and
//! operators, and makes files of the text; what is needed, what can fail, what everything is called, how
//! long code is cut and in which order things are said is the same for all of them, and stands here.
//!
//! | module | owns |
//! | --- | --- |
//! | [`facts`] | what is needed; what registers are; ranges of integers |
//! | [`pieces`] | cutting long code into functions; values that live across cuts |
//! | [`precision`] | numbers of 64 or 32 bits |
//! | [`names`] | identifiers, each of which means one thing |
//! | [`mod@unit`] | names, parameters and reasons to fail of one kernel |
//! | [`external`] | users' functions, which emitted code calls |
//! | [`language`] | what differs from one language to another |
//! | [`body`] | statements |
//! | [`describe`] | what the documentation of a function says |
//!
//! Nothing recurses: neither on the length of a kernel nor on its nesting.

pub mod body;
pub mod describe;
pub mod external;
pub mod facts;
pub mod language;
pub mod names;
pub mod pieces;
pub mod precision;
pub mod unit;

pub use body::{Writer, Written};
pub use facts::{Facts, MAX_EXTENT};
pub use language::{At, Language, Piece, Terms, Whole, fill};
pub use names::Scope;
pub use pieces::Pieces;
pub use precision::Precision;
pub use unit::{Code, Param, Reason, Unit};
