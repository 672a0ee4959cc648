//! Emitted C, compiled and run.

#![allow(dead_code)] // no test uses all of it

use chainrule_backend_tests::c::{self, Files};
use chainrule_backend_tests::case::named;
use chainrule_backend_tests::{Case, Outcome};
use chainrule_c::{Options, Precision, Source, emit_many};

/// Returns a source as files.
pub fn files(source: &Source) -> Files<'_> {
    let Source { name, functions, header, source } = source;
    Files { name, functions, header, source, number: "double" }
}

/// Compiles all kernels as one program, runs it, and returns each kernel's results or message.
pub fn run_c(cc: &str, flags: &[&str], cases: &[Case], options: &Options) -> Vec<Outcome> {
    let source = emit_many("kernels", &named(cases).iter().collect::<Vec<_>>(), options).unwrap();
    let number = if options.precision == Precision::Single { "float" } else { "double" };
    c::run(cc, flags, cases, &Files { number, ..files(&source) })
}
