//! The typed array IR: what an F~ program means.
//!
//! In: a syntax tree. Out: a [`Function`]: first-order, every function inlined, every intermediate
//! named, sizes in the types, loops as loops. The reference evaluator gives its meaning.
//!
//! | module | owns |
//! | --- | --- |
//! | [`types`] | types with sizes |
//! | [`function`] | the IR itself |

pub mod function;
pub mod types;

pub use function::{Block, Expr, Function, Requirement, Stmt, Var, VarId};
pub use types::{Size, Type};
