//! Array programs written in Rust: loops stay loops, sizes stay symbolic, and one compiled function serves all sizes.
//!
//! A [`Program`] takes arguments ([`Program::argument`]) and builds [`Term`]s from them: by operators and methods, by
//! loops whose bodies are closures ([`Program::build`], [`Program::sum`], [`Program::fold`], [`Program::scan`],
//! [`Program::repeat_while`]), by branches ([`Program::branch`]) and by every function of F~ and its library
//! ([`Program::apply`]). [`Program::function`] builds a [`crate::Function`] from a term, of the same kind as those of a
//! [`crate::Module`]: all requests for derivatives work on it.
//!
//! ```
//! use chainrule::array::Program;
//!
//! let p = Program::new("energy");
//! let (x, k) = (p.argument("x", "[n]Double"), p.argument("k", "Double"));
//! let stretch = p.sum(p.size("n") - 1, |i| (x.at(&i + 1) - x.at(&i)).pow(2));
//! let energy = p.function(0.5 * k * stretch)?;
//!
//! let gradient = energy.gradient().by(&["x"]).compile()?;
//! let result = gradient.call(&[vec![0.0, 1.0, 3.0].into(), 2.0.into()])?;
//! assert_eq!(result[0], vec![-2.0, -2.0, 4.0].into());
//! # Ok::<(), chainrule::Error>(())
//! ```
//!
//! A program is the syntax tree of an F~ function. The checker of F~ infers types and sizes, and reports errors when
//! the function is built; each operation is a separate `let`, evaluated at its position. If a program is written in
//! another language, [`Program::source`] and [`Program::locate`] make messages point into that language's text.
//!
//! | module | owns |
//! | --- | --- |
//! | `program` | [`Program`]: arguments, operations, the function |
//! | `loops` | loops and branches with closures as bodies |
//! | `state` | open blocks, names, locations |
//! | `term` | [`Term`], [`Operand`], operators and functions of numbers |

mod loops;
mod program;
mod state;
mod term;

pub use chainrule_base::{FileId, Span};
pub use program::{Part, Program, Suspended};
pub use state::{Lambda, MAX_BLOCKS};
pub use term::{Operand, Term};
