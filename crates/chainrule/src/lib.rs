//! Chainrule: a compiler for derivatives. This crate is the library for users.
//!
//! A [`Function`] is built from Rust expressions ([`var`], [`vars`], [`matrix`]) or from an F~ file ([`Module`]).
//! Derivatives of it are functions again ([`Function::jacobian`] and its siblings), run ([`Function::compile`]) or
//! emitted as C ([`Function::emit_c`]) or Rust ([`Function::emit_rust`]).
//!
//! ```
//! use chainrule::{Function, vars};
//! let (x, y) = (vars("x", 2), vars("y", 2));
//! let f = Function::new("f", (&x, &y), &(x.dot(&y).sin() + &x[0]))?;
//! let gradient = f.gradient().by(&["x"]).compile()?;
//! assert_eq!(gradient.eval(&[&[0.0, 0.0], &[3.0, 4.0]])?, [[4.0, 4.0]]);
//! # Ok::<(), chainrule::Error>(())
//! ```
//!
//! The terms of this documentation are defined in `docs/glossary.md` of the repository.
//!
//! | module | owns |
//! | --- | --- |
//! | `build` | functions written in Rust: [`Expr`], [`Vector`], [`Matrix`], [`d`], [`UserFunction`] |
//! | [`mod@array`] | array programs written in Rust: loops are kept |
//! | `module` | functions in F~ files |
//! | `function` | [`Function`]: named arguments and results, a scalar graph or an array program |
//! | [`files`] | atomic replacement of files |
//! | [`guard`] | conversion of panics to errors of kind bug |
//! | `interface` | [`Signature`], [`Shape`]: arguments and results of a function |
//! | `derive` | [`Derivation`]: requests for derivatives |
//! | [`eliminate`], [`accumulate`] | linearised graphs without a function; all of accumulation |
//! | `straight` | [`Unroll`]: choice between loops and straight-line code |
//! | `passes` | from a function to the kernel that runs or is written |
//! | **`execute`** | **execution in this process** |
//! | `compiled` | [`Compiled`]: executable code |
//! | `saved` | compiled functions as bytes |
//! | `compile_options` | [`CompileOptions`]: backend, instruction set, threads, checks |
//! | `engine` | execution: native code or the interpreter |
//! | `batch` | batches of points |
//! | `within` | [`Within`]: executable code within a bound of memory |
//! | `bound` | repeated evaluation at single points, in preallocated memory |
//! | `prepared` | evaluation of large arguments |
//! | **`matrices`** | **sparse Jacobians and Hessians** |
//! | `matrix` | [`SparseMatrix`]: a sparse Jacobian or Hessian of any function, in the way that is chosen |
//! | `coloured` | [`Coloured`]: sparse derivatives by a few directions |
//! | `sparse` | [`Sparse`]: sparse Jacobians and Hessians of array programs |
//! | **`explain`** | **reports on functions** |
//! | `where_spent`, `loop_counts` | operations by result and by line of source, and in sizes |
//! | `optimisation` | [`Optimisation`]: report of the optimiser of array programs |
//! | `prediction` | [`Prediction`]: predicted time, and the choices for loops |
//! | `array_dot` | array programs as Graphviz graphs |
//! | **other** | |
//! | `emit` | C, Rust |
//! | [`bisect`] | the first pass that changes results, and a small program for it |
//! | [`check`] | derivatives compared with forward mode and differences in extended precision |
//! | [`report`] | diagnostics drawn beside their source |

pub mod array;
pub mod bisect;
mod build;
pub mod check;
mod derive;
pub mod eliminate;
mod emit;
mod error;
mod execute;
mod explain;
pub mod files;
mod function;
pub mod guard;
mod interface;
mod matrices;
mod module;
mod passes;
pub mod report;
mod straight;

use execute::{batch, bound, compile_options, compiled, engine, prepared, saved, within};
use explain::{array_dot, loop_counts, optimisation, prediction, where_spent};
use matrices::{coloured, matrix, sparse};

pub use batch::{BatchOptions, Observer};
pub use bound::Bound;
pub use build::{
    Cond, Expr, IntoExpr, Matrix, Scope, Tensor, UserFunction, Vector, d, matrix, select, time_derivative, var, vars,
};
pub use chainrule_accumulate as accumulate;
pub use chainrule_accumulate::Pattern;
pub use chainrule_accumulate::strategy::{Report, Strategy};
pub use chainrule_autodiff::sparse::DenseBlock;
pub use chainrule_base::timing::PassTime;
pub use chainrule_base::{Diagnostic, Diagnostics, Kind, Name, Sources};
pub use chainrule_graph::Semantics;
pub use chainrule_ir::{Type, Value};
pub use chainrule_ops::{Counts, Op};
pub use chainrule_rewrite::{Measure, StopReason};
pub use chainrule_runtime::{InRange, RunError, Slice, SliceMut, Strided, StridedMut};
pub use chainrule_scalarise::UNROLL_BUDGET;
pub use chainrule_scalarise::regions::Accumulated;
pub use chainrule_search as search;
pub use chainrule_search::{STRATEGIES, strategy};
pub use coloured::{Coloured, PreparedColoured};
pub use compile_options::{Backend, Checks, CompileOptions, Level};
pub use compiled::{Compiled, Workspace};
pub use derive::{Derivation, Derived, Triangle};
pub use emit::{
    CBatch, COptions, CSource, Precision, RustFma, RustLibrary, RustOptions, RustSource, emit_c, emit_c_with,
    emit_rust, format_source,
};
pub use error::{Error, Result};
pub use function::{Function, Tensors};
pub use interface::{Shape, Signature};
pub use loop_counts::LoopCounts;
pub use matrix::{PreparedMatrix, SparseMatrix, SparseWay};
pub use module::{Definition, Module};
pub use optimisation::{AppliedRule, CheckpointedLoop, Optimisation, OptimiserPass, RuleLine};
#[doc(hidden)]
pub use passes::{Fault, Seed};
pub use passes::{Pass, PassLevel, PassTimes, Rewrite, Snapshot, passes, time_passes, time_run};
pub use prediction::{PredictedLoop, Prediction, shown_time};
pub use prepared::Prepared;
pub use saved::is_saved;
pub use sparse::{PreparedSparse, Sparse, SparseForm, SparsePrograms, results as sparse_results};
pub use straight::Unroll;
pub use where_spent::{LineOperations, OperationsByLine, ResultOperations};
pub use within::Within;

/// Rust blocks of the README and the guide, run as doc tests.
#[cfg(doctest)]
// Blocks of the guide carry `file=name`, which its tests read.
#[allow(rustdoc::invalid_codeblock_attributes)]
mod guide {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/guide/emitted.md")]
    mod emitted {}
    #[doc = include_str!("../../../docs/guide/library.md")]
    mod library {}
    #[doc = include_str!("../../../docs/guide/limits.md")]
    mod limits {}
    #[doc = include_str!("../../../docs/guide/loops.md")]
    mod loops {}
    #[doc = include_str!("../../../docs/guide/manipulator.md")]
    mod manipulator {}
    #[doc = include_str!("../../../docs/guide/nist.md")]
    mod nist {}
    #[doc = include_str!("../../../docs/guide/sparse.md")]
    mod sparse {}
    #[doc = include_str!("../../../docs/guide/spacetime.md")]
    mod spacetime {}
    #[doc = include_str!("../../../docs/guide/spherical-harmonics.md")]
    mod spherical_harmonics {}
}
