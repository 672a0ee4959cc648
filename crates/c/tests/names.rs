//! Every name gives C that compiles.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_backend_tests::c::{FLAGS, compiler};
use chainrule_backend_tests::names::awkwardly_named;
use chainrule_c::{Batch, Options, Source, emit, emit_many};
use chainrule_kernel::Kernel;
use std::process::Command;

/// Compiles all files in one call.
fn compile(cc: &str, flags: &[&str], sources: &[Source]) {
    let dir = tempfile::tempdir().unwrap();
    for (k, source) in sources.iter().enumerate() {
        // Each source includes its header by name; names may only differ in case.
        let place = dir.path().join(k.to_string());
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join(format!("{}.h", source.name)), &source.header).unwrap();
        std::fs::write(place.join("source.c"), &source.source).unwrap();
    }
    let files = (0..sources.len()).map(|k| format!("{k}/source.c"));
    let output = Command::new(cc).args(flags).arg("-fsyntax-only").args(files).current_dir(&dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn any_name_is_emitted_as_c() {
    let kernels = awkwardly_named();
    let sources: Vec<Source> = kernels.iter().map(|(_, kernel)| emit(kernel, &Options::default()).unwrap()).collect();
    for ((name, _), source) in kernels.iter().zip(&sources) {
        assert!(source.functions[0].contains(name.trim_matches('_')), "{name}: {:?}", source.functions);
    }
    let Some(cc) = compiler() else { return };
    compile(cc, &FLAGS, &sources);
}

#[test]
fn all_names_can_stand_in_one_file() {
    let kernels = awkwardly_named();
    let kernels: Vec<&Kernel> = kernels.iter().map(|(_, kernel)| kernel).collect();
    let options = Options { batch: Some(Batch { lanes: 4, threads: true }), ..Options::default() };
    let source = emit_many("names", &kernels, &options).unwrap();
    let mut functions = source.functions.clone();
    functions.sort();
    functions.dedup();
    assert_eq!(functions.len(), kernels.len());
    let Some(cc) = compiler() else { return };
    compile(cc, &FLAGS, std::slice::from_ref(&source));
    // The compiler's own dialect has more names.
    compile(cc, &["-Wall", "-Werror", "-D_GNU_SOURCE"], &[source]);
}
