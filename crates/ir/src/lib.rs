//! The typed array IR, which defines the meaning of an F~ program.
//!
//! In: a syntax tree. Out: a [`Function`]: first-order, with every function inlined, every intermediate named, sizes in
//! the types, loops as loops. The reference evaluator defines its meaning.
//!
//! | module | owns |
//! | --- | --- |
//! | [`check`] | the checker: files, names, types |
//! | [`elaborate`] | elaboration of checked definitions to the IR, with size checks |
//! | [`library`] | M~, in F~ |
//! | [`types`], [`leaves`] | types with sizes, and their scalar fields |
//! | [`function`] | the IR itself |
//! | [`EqualSizes`] | sizes that are required to be equal |
//! | [`typing`] | types of expressions |
//! | [`builder`] | construction of functions |
//! | [`custom`] | functions with their own derivative |
//! | [`verify`](mod@verify) | verifier of the invariants |
//! | [`value`] | values, and their shapes |
//! | [`evaluate`](mod@evaluate) | the reference evaluator |
//! | [`cost`] | operation counts of evaluations |
//! | [`bound`] | upper bounds of integers |
//! | [`difference`] | derivatives by central differences, as a check |
//! | [`print`](mod@print) | functions as F~ text, and as listings |
//! | [`parse`](mod@parse) | listings to functions |
//! | [`alpha`] | alpha equivalence |
//! | [`dce`] | dead code elimination |
//! | [`range`] | proofs that a size is not negative |
//! | [`rows`] | choice of the mode of a Jacobian |
//! | [`generate`] | random functions with arguments |

pub mod alpha;
pub mod builder;
pub mod check;
pub mod cost;
pub mod custom;
pub mod dce;
pub mod difference;
mod dual;
pub mod elaborate;
mod equal;
pub mod evaluate;
pub mod express;
pub mod function;
#[cfg(feature = "generate")]
pub mod generate;
pub mod library;
pub mod parse;
pub mod print;
pub mod sizes;
pub mod specialise;
pub mod types;
pub mod typing;
pub mod value;
pub mod verify;

pub use alpha::alpha_equal;
pub use builder::{Builder, Renaming, size_of};
pub use check::messages::nearest;
pub use check::{Definition, Loader, Program};
pub use custom::{Custom, Rule, RuleBlock};
pub use equal::EqualSizes;
pub use evaluate::{Failure, evaluate};
pub use function::{
    Block, ChangedElement, Expr, Function, Operands, Requirement, Rows, StateLoop, Stmt, Var, VarId, WhileLoop,
};
pub use parse::parse;
pub use print::{listing, print};
pub use sizes::{bound, range, rows};
pub use specialise::specialise;
pub use types::{Size, Type, leaves};
pub use typing::{check_type, describe, type_of};
pub use value::{Sizes, Value, bind_sizes, named_type};
pub use verify::verify;
