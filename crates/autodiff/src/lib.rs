//! Differentiation of the array IR: IR in, IR out.
//!
//! | module | owns |
//! | --- | --- |
//! | [`forward`] | expansion of every `Jvp` and `Vjp` into ordinary code; forward mode |
//! | `reverse` | reverse mode, for a `Vjp` whose body is ordinary code |
//! | [`request`] | construction of a function that computes requested derivatives |
//! | [`orders`] | derivatives of any order |
//! | [`parts`] | selection of parts of results, differentiation by parts of parameters |
//! | [`sparse`] | sparse Jacobians and Hessians, with the pattern from the index structure |
//! | [`tidy`] | forwarding and dead code elimination, after either mode |
//!
//! Private modules: `activity` (activity analysis), `canonical` and `congruent` (equal leaves of tuples, arrays and
//! states), `dual` (dual numbers in code), `cotangent` (cotangents in code), `custom` (functions that state their own
//! derivative), `asked` (requests as `Jvp`s and `Vjp`s), `diagonal` (the diagonal of a Hessian), `bounds` (integers
//! that are bounded at entry), `chain` (the chain rule for one operator), `powers` (products of roots of one number,
//! before differentiation), `emit` (emission of statements), `lift` (arrays that are dual numbers before they have a
//! tangent), `useful` (leaves whose tangents are used).

mod activity;
mod bounds;
mod canonical;
mod chain;
pub mod check;
mod congruent;
mod cotangent;
mod custom;
mod dual;
mod emit;
pub mod forward;
mod lift;
pub mod parts;
mod powers;
pub mod request;
mod reverse;
mod slopes;
pub mod sparse;
pub mod tidy;
mod useful;

use request::asked;

pub use custom::own_derivative;
pub use forward::{expand, expand_told, expand_with};
pub use parts::{PartOf, Step, part_type};
pub use powers::without_products_of_roots;
pub use request::orders;
pub use request::{Mode, Part, Request, by_rows_where, check_request, derive, derive_told};
pub use reverse::{CHECKPOINTS, MadeAgain, Reason};
pub use sparse::{Places, Sparsity};
