//! F~ text: lexer, parser, syntax tree with spans, formatter.
//!
//! In: a text of [`chainrule_base::Sources`]. Out: a [`tree::Module`] and diagnostics. Names are not
//! resolved and nothing is typed here.

pub mod tree;
