//! The typed array IR: what an F~ program means.
//!
//! In: a syntax tree. Out: a [`Function`]: first-order, every function inlined, every intermediate
//! named, sizes in the types, loops as loops. The reference evaluator gives its meaning.
//!
//! | module | owns |
//! | --- | --- |
//! | [`check`] | files, names, types: from the tree to checked definitions |
//! | [`elaborate`] | from checked definitions to the IR, sizes checked |
//! | [`library`] | M~, in F~ |
//! | [`types`] | types with sizes |
//! | [`function`] | the IR itself |
//! | [`typing`] | the type of an expression |
//! | [`builder`] | making functions |
//! | [`custom`] | functions that state their own derivative |
//! | [`verify`](mod@verify) | whether a function keeps the invariants |
//! | [`value`] | values, and whether they fit a type |
//! | [`evaluate`](mod@evaluate) | the reference evaluator: what a function means |
//! | [`cost`] | how many operations an evaluation takes |
//! | [`bound`] | how large integers can become |
//! | [`difference`] | derivatives by central differences, to check others |
//! | [`print`](mod@print) | functions as F~ text |
//! | [`alpha`] | functions equal up to names |
//! | [`dce`] | leaving out what nothing uses |
//! | [`range`] | proofs that a size is not negative |
//! | [`rows`] | which way a Jacobian is cheaper |
//! | [`generate`] | random functions with arguments |

pub mod alpha;
pub mod bound;
pub mod builder;
pub mod check;
pub mod cost;
pub mod custom;
pub mod dce;
pub mod difference;
mod dual;
pub mod elaborate;
pub mod evaluate;
pub mod express;
pub mod function;
pub mod generate;
pub mod library;
pub mod print;
pub mod range;
pub mod rows;
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
pub use evaluate::{Failure, evaluate};
pub use function::{Block, Expr, Function, Operands, Requirement, Stmt, Var, VarId};
pub use print::print;
pub use specialise::specialise;
pub use types::{Size, Type};
pub use typing::{check_type, describe, type_of};
pub use value::{Sizes, Value, bind_sizes, named_type};
pub use verify::verify;
