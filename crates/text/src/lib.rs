//! Shared parts of backends that write text.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel), and a [`Language`]. Out: the text of its functions and of their
//! documentation. A backend provides the spelling of declarations, statements and operators, and assembles files. This
//! crate provides the rest: needed values, possible failures, names, splitting of long code, and the order of
//! statements.
//!
//! | module | owns |
//! | --- | --- |
//! | [`facts`] | needed registers; origins of registers; ranges of integers |
//! | [`pieces`] | splitting of long code into functions; values that live across splits |
//! | [`precision`] | numbers of 64 or 32 bits |
//! | [`names`] | unique identifiers |
//! | [`pattern`] | sparsity patterns as static arrays |
//! | [`mod@unit`] | names, parameters and failure codes of one kernel |
//! | [`external`] | user functions called by emitted code |
//! | [`language`] | interface of a target language |
//! | [`body`] | statements |
//! | [`describe`] | documentation of a function |
//!
//! Nothing is recursive, neither in the length of a kernel nor in its nesting.

pub mod body;
pub mod describe;
pub mod external;
pub mod facts;
pub mod language;
pub mod names;
pub mod pattern;
pub mod pieces;
pub mod precision;
pub mod unit;

pub use body::{Writer, Written};
pub use facts::{Facts, MAX_EXTENT};
pub use language::{At, Binding, Language, Piece, Terms, Whole, fill};
pub use names::Scope;
pub use pattern::{Pattern, PatternNames};
pub use pieces::Pieces;
pub use precision::Precision;
pub use unit::{Code, Param, Reason, Unit};
