//! Foundations of every stage of Chainrule.
//!
//! | module | owns |
//! | --- | --- |
//! | [`id`] | typed ids and the arenas they index |
//! | [`name`] | names: cheap to clone, compared by text |
//! | [`source`] | source texts, spans, line and column |
//! | [`diagnostic`] | messages to people: user errors, limitations, bugs |
//! | [`large`] | vectors for large data |
//! | [`poly`] | polynomials with integer coefficients: array sizes, buffer offsets |
//! | [`timing`] | time of compiler passes, if it is recorded |
//!
//! No module does any IO.

pub mod diagnostic;
pub mod id;
pub mod large;
pub mod name;
pub mod poly;
pub mod source;
pub mod timing;

pub use diagnostic::{Diagnostic, Diagnostics, Kind, count};
pub use id::{Arena, Id};
pub use name::Name;
pub use poly::Poly;
pub use source::{FileId, Sources, Span};
