//! The extension module `chainrule._core` of the Python package: programs written by source capture, functions, running
//! code.
//!
//! In: calls of the package's Python code. Out: values, or exceptions of `chainrule.errors`. This crate contains no
//! algorithm: capture, broadcasting and derivatives by argument are Python (`python/chainrule`), everything else is the
//! library. The interpreter's lock is released while functions are differentiated, compiled and run; a panic becomes
//! `chainrule.Bug`.

// Methods called from Python take lists by value.
#![allow(clippy::needless_pass_by_value)]

mod arrays;
mod batch;
mod bound;
mod call;
mod errors;
mod function;
mod numpy;
mod pattern;
mod program;
mod sparse;
mod xla;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    const SHORT: isize = crate::pattern::SHORT;
    #[pymodule_export]
    const LONG: isize = crate::pattern::LONG;

    #[pymodule_export]
    use crate::bound::Bound;
    #[pymodule_export]
    use crate::call::Caller;
    #[pymodule_export]
    use crate::function::{Compiled, Function, Workspace, module, replace};
    #[pymodule_export]
    use crate::program::{Lambda, Program, Suspended, Term};
    #[pymodule_export]
    use crate::sparse::{Sparse, SparseAt};
    #[pymodule_export]
    use crate::xla::{xla_handler, xla_register};
}
