//! Random programs from end to end, and their derivatives in every way there is to them.
//!
//! Programs come from the library's generators, failures shrink, seeds are fixed. To look further, run with
//! `CHAINRULE_RANDOM_SEED=n` (added to every seed) and `CHAINRULE_RANDOM_CASES=k` (k times as many programs);
//! `CHAINRULE_RANDOM_SHRINKS=k` has what fails tried k times to be made smaller, not 5000.
//!
//! | module | compares |
//! | --- | --- |
//! | `auto` | the three settings of unrolling: values, derivatives, names, types, failures |
//! | `programs` | programs in F~: interpreter, reference evaluator, forward mode, differences |
//! | `strategies` | the same unrolled: every strategy, products with vectors, Hessians, patterns |
//! | `expressions` | functions made in Rust: nested `d`, `select`, users' functions |
//! | `corners` | derivatives by hand where random points do not come by |
//! | `chains` | loops that take elements of what others make: optimised and not, values and derivatives |
//! | `borders` | indices that wrap around, stop at borders, are reflected or guarded |
//! | `scatters` | stencils and elements by index, whose gradients add where others add |
//! | `written` | programs as people write them, in every way to compile and differentiate them |
//! | `compiled` | emitted C and Rust, compiled, against the interpreter, before and after the optimiser |

#![allow(clippy::unwrap_used)] // helpers of tests

mod auto;
mod borders;
mod chains;
mod compare;
mod compiled;
mod corners;
mod exact;
mod expressions;
mod programs;
mod scatters;
mod strategies;
mod support;
mod written;

use support::{case, values};
