//! Every name gives Rust that compiles.

#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_backend_tests::names::awkwardly_named;
use chainrule_kernel::Kernel;
use chainrule_rust::{Options, emit, emit_many};
use std::fmt::Write;
use std::process::Command;

/// Compiles `modules`, each in a module of its own.
fn compile(modules: &[String]) {
    let dir = tempfile::tempdir().unwrap();
    let mut root = String::new();
    for (k, text) in modules.iter().enumerate() {
        std::fs::write(dir.path().join(format!("m{k}.rs")), text).unwrap();
        writeln!(root, "pub mod m{k};").unwrap();
    }
    std::fs::write(dir.path().join("lib.rs"), root).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-D", "warnings", "lib.rs"])
        .current_dir(&dir)
        .output();
    let Ok(output) = output else {
        println!("skipped: there is no rustc");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn any_name_is_emitted_as_rust() {
    let emitted = |(name, kernel): &(&str, Kernel)| {
        let module = emit(kernel, &Options::default()).unwrap();
        assert!(module.functions[0].contains(name.trim_matches('_')), "{name}: {:?}", module.functions);
        module.text
    };
    compile(&awkwardly_named().iter().map(emitted).collect::<Vec<_>>());
}

#[test]
fn all_names_can_stand_in_one_module() {
    let kernels = awkwardly_named();
    let kernels: Vec<&Kernel> = kernels.iter().map(|(_, kernel)| kernel).collect();
    let module = emit_many("names", &kernels, &Options::default()).unwrap();
    let mut functions = module.functions;
    functions.sort();
    functions.dedup();
    assert_eq!(functions.len(), kernels.len());
    compile(&[module.text]);
}
