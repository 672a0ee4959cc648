//! F~ text: lexer, parser, syntax tree with spans, formatter.
//!
//! In: a text of [`chainrule_base::Sources`]. Out: a [`tree::Module`] and diagnostics. This crate neither resolves
//! names nor types expressions.
//!
//! ```
//! let mut sources = chainrule_base::Sources::new();
//! let file = sources.add("<example>", "let square = fun x -> x * x");
//! let (module, diagnostics) = chainrule_syntax::parse(&sources, file);
//! assert!(diagnostics.is_empty());
//! assert_eq!(module.items.len(), 1);
//! ```

pub mod format;
#[cfg(feature = "generate")]
pub mod generate;
pub mod lexer;
pub mod parser;
mod precedence;
pub mod reduce;
pub mod spans;
pub mod token;
pub mod tree;

pub use format::{format, print_expr, print_module, print_type};
pub use parser::{parse, parse_expr};
