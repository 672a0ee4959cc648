//! Kernels as text: the outcomes in the files of all backends, and the emitted text in those of this crate.
//!
//! ```text
//! ; Why the case exists.
//! ; options: single, libm
//! kernel f
//! ...
//! ; f.rs
//! ...
//! ```
//!
//! The kernels of a file share a module. `UPDATE_FILETESTS=1` writes the emitted text anew.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::case::assert_same;
use chainrule_backend_tests::filetests::{self, cases, read, shared, split_expected};
use chainrule_backend_tests::rust::has_clippy;
use chainrule_backend_tests::{Case, interpret};
use chainrule_rust::{Fma, Library, Options, Precision, emit_many};
use support::run_rust;

/// Returns the options that a line of a file names.
fn options(line: &str) -> Result<Options, String> {
    filetests::options(line, |options: &mut Options, name, number| {
        match (name, number) {
            ("libm", None) => options.library = Library::Libm,
            ("single", None) => options.precision = Precision::Single,
            ("chunk", Some(chunk)) => options.chunk = chunk,
            _ => return false,
        }
        true
    })
}

#[test]
fn kernels_are_emitted_as_text() {
    chainrule_cases::files::check(concat!(env!("CARGO_MANIFEST_DIR"), "/filetests"), |text| {
        let (input, line) = split_expected(text);
        let kernels: Vec<_> = read(input)?.into_iter().map(|entry| entry.kernel).collect();
        let module = emit_many(kernels[0].name.as_str(), &kernels.iter().collect::<Vec<_>>(), &options(line)?)
            .map_err(|error| error.to_string())?;
        Ok(format!("{input}; {}.rs\n{}", kernels[0].name, module.text))
    });
}

#[test]
fn kernels_have_their_outcomes() {
    if !has_clippy() {
        return;
    }
    // Sizes come from shapes in the interpreter and from parameters in Rust.
    let cases: Vec<Case> = cases(&shared()).into_iter().filter(|case| interpret(case).is_ok()).collect();
    assert_same(&cases, &run_rust(&cases, &Options { library: Library::Own(Fma::Standard), ..Options::default() }));
}
