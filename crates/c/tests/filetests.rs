//! Kernels as text: the outcomes in the files of all backends, and the emitted text in those of this crate.
//!
//! ```text
//! ; Why the case exists.
//! ; options: lanes 4, threads
//! kernel f
//! ...
//! ; f.h
//! ...
//! ; f.c
//! ...
//! ```
//!
//! The kernels of a file share a pair of files. `UPDATE_FILETESTS=1` writes the emitted text anew.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_backend_tests::c::{FLAGS, compiler};
use chainrule_backend_tests::case::assert_same;
use chainrule_backend_tests::filetests::{self, cases, read, shared, split_expected};
use chainrule_backend_tests::{Case, interpret};
use chainrule_c::{Batch, Options, Precision, emit_many};
use support::run_c;

/// Returns the options that a line of a file names.
fn options(line: &str) -> Result<Options, String> {
    let batch = |options: &mut Options| options.batch.take().unwrap_or(Batch { lanes: 1, threads: false });
    filetests::options(line, |options: &mut Options, name, number| {
        match (name, number) {
            ("lanes", Some(lanes)) => options.batch = Some(Batch { lanes, ..batch(options) }),
            ("batch-threads", None) => options.batch = Some(Batch { threads: true, ..batch(options) }),
            ("threads", None) => options.threads = true,
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
        let source = emit_many(kernels[0].name.as_str(), &kernels.iter().collect::<Vec<_>>(), &options(line)?)
            .map_err(|error| error.to_string())?;
        let name = &source.name;
        Ok(format!("{input}; {name}.h\n{}; {name}.c\n{}", source.header, source.source))
    });
}

#[test]
fn kernels_have_their_outcomes() {
    let Some(cc) = compiler() else { return };
    // Sizes come from shapes in the interpreter and from parameters in C.
    let cases: Vec<Case> = cases(&shared()).into_iter().filter(|case| interpret(case).is_ok()).collect();
    for options in [
        Options { inline_math: true, ..Options::default() },
        Options { chunk: 3, inline_math: true, ..Options::default() },
    ] {
        assert_same(&cases, &run_c(cc, &FLAGS, &cases, &options));
    }
}
