//! Emitted Rust, compiled and run.

#![allow(dead_code)] // no test uses all of it

use chainrule_backend_tests::case::named;
use chainrule_backend_tests::rust::{self, File};
use chainrule_backend_tests::{Case, Outcome};
use chainrule_rust::{Module, Options, Precision, emit_many};

/// Returns a module as a file.
pub fn file<'a>(module: &'a Module, options: &Options) -> File<'a> {
    let number = if options.precision == Precision::Single { "f32" } else { "f64" };
    let Module { functions, text, needs_std, needs_libm, .. } = module;
    File { functions, text, needs_std: *needs_std, needs_libm: *needs_libm, number }
}

/// Returns all kernels in one module, `k0`, `k1`, ...
pub fn module(cases: &[Case], options: &Options) -> Module {
    emit_many("kernels", &named(cases).iter().collect::<Vec<_>>(), options).unwrap()
}

/// Lints and compiles all kernels as one program, runs it, and returns each kernel's results or message.
pub fn run_rust(cases: &[Case], options: &Options) -> Vec<Outcome> {
    rust::run(cases, &file(&module(cases, options), options))
}
