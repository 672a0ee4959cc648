//! What every stage of Chainrule stands on.
//!
//! | module | owns |
//! | --- | --- |
//! | [`id`] | typed ids and the arenas they index |
//! | [`name`] | names: cheap to clone, compared by text |
//! | [`source`] | source texts, spans, line and column |
//! | [`diagnostic`] | what is said to a person: user errors, limitations, bugs |
//! | [`large`] | vectors for much data |
//! | [`poly`] | polynomials with integer coefficients: array sizes, buffer offsets |
//!
//! Nothing here does any IO.

pub mod diagnostic;
pub mod id;
pub mod large;
pub mod name;
pub mod poly;
pub mod source;

pub use diagnostic::{Diagnostic, Diagnostics, Kind, count};
pub use id::{Arena, Id};
pub use name::Name;
pub use poly::Poly;
pub use source::{FileId, Sources, Span};
