//! M~, the linear algebra of the dF~ paper (figure 4) and what people need beside it, written in F~.
//!
//! Every program sees it without an import, and may shadow its names.

/// The modules of the library: name and text, in the order in which they see each other.
pub const MODULES: &[(&str, &str)] = &[("linalg", include_str!("linalg.ft"))];
