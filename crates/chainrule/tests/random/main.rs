//! Random programs, end to end, and their derivatives in all ways to compute them.
//!
//! Programs come from the library's generators, failures shrink, seeds are fixed. For a longer run, set
//! `CHAINRULE_RANDOM_SEED=n` (added to every seed) and `CHAINRULE_RANDOM_CASES=k` (k times as many programs);
//! `CHAINRULE_RANDOM_SHRINKS=k` limits the attempts to shrink a failure to k instead of 5000.
//!
//! | module | compares |
//! | --- | --- |
//! | `auto` | the three settings of unrolling: values, derivatives, names, types, failures |
//! | `programs` | programs in F~: interpreter, reference evaluator, forward mode, differences |
//! | `strategies` | the same unrolled: every strategy, products with vectors, Hessians, patterns |
//! | `expressions` | functions made in Rust: nested `d`, `select`, users' functions |
//! | `corners` | derivatives by hand in corner cases that random points miss |
//! | `chains` | loops that read elements of each other's results: optimised and not, values and derivatives |
//! | `borders` | indices that wrap around, are clamped, reflected or guarded |
//! | `scatters` | stencils and elements by index, whose gradients accumulate in shared elements |
//! | `selections` | maxima, minima and other choices in loops, with ties |
//! | `written` | realistic programs, in every way to compile and differentiate them |
//! | `degrees` | operations of gradients with those of their functions, at two sizes |
//! | `compiled` | emitted C and Rust, compiled, against the interpreter, before and after the optimiser |

#![allow(clippy::unwrap_used)] // helpers of tests

mod auto;
mod borders;
mod chains;
mod compare;
mod compiled;
mod corners;
mod degrees;
mod exact;
mod expressions;
mod less;
mod programs;
mod scatters;
mod selections;
mod strategies;
mod support;
mod written;

use support::{case, values};
