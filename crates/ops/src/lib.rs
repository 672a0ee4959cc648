//! Table of scalar operators, the only list of operators in Chainrule.
//!
//! Each operator is one [`Row`] of [`ROWS`]: its value in `f64`, in integers if it has one, and in extended precision;
//! its partial derivatives as [`Formula`]s over the same operators; its domain, its cost, its spelling in F~, C and
//! Rust. Adding an operator is adding a row (`CONTRIBUTING.md` describes the steps); the tests check all rows.
//!
//! Values come from `chainrule_mathfun` and, for functions missing there, from the pure Rust `libm`, so that a constant
//! folded at compile time is the same number on every machine.
//!
//! ```
//! use chainrule_ops::{Op, F64, partial};
//! let x = 0.5_f64;
//! let value = Op::Sin.value(&[x]);
//! assert_eq!(partial(&mut F64, Op::Sin, 0, &[x], &value), Op::Cos.value(&[x]));
//! ```

mod algebra;
mod cost;
mod formula;
mod power;
mod precise;
mod semantics;
mod slope;
mod special;
mod steps;
mod table;
mod whole;

pub use special::polygamma;

pub use algebra::{Algebra, F64, partial};
pub use cost::{CostClass, Counts};
pub use formula::Formula;
pub use power::power;
pub use precise::{Big, Precise};
pub use semantics::Semantics;
pub use slope::{Factor, Slope, Zero, multiply};
pub use table::{Domain, IntValue, Op, ROWS, Row, Spelling, Type};
pub use whole::{TRUNCATE_C, TRUNCATE_RUST, truncate};
