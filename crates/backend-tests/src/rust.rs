//! Compilation and execution of emitted Rust: many kernels in one program.
//!
//! The program is a crate of its own outside the workspace, built offline with the workspace's toolchain: a library
//! with the emitted module, without `std` if the module does not need it, and a `main` that reads arguments and prints
//! results bit for bit. Clippy checks the library first. Integers are checked for overflow, as in a debug build.

use crate::case::{Case, Outcome};
use chainrule_kernel::{Class, SizeSource};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// An emitted module.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Function of each case.
    pub functions: &'a [String],
    /// Text of the module.
    pub text: &'a str,
    /// Whether it calls methods that `core` lacks.
    pub needs_std: bool,
    /// Whether it calls the crate `libm`.
    pub needs_libm: bool,
    /// Type of numbers: `f64` or `f32`.
    pub number: &'a str,
}

/// Returns whether there is a toolchain with clippy; prints a notice if there is none.
#[must_use]
pub fn has_clippy() -> bool {
    let found = cargo().args(["clippy", "--version"]).output().is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: there is no clippy");
    }
    found
}

/// Returns the workspace's cargo, outside the workspace's directory.
fn cargo() -> Command {
    let mut command = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    // Flags of the tests' own build do not apply to the emitted module.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS"] {
        command.env_remove(name);
    }
    command
}

/// Returns the toolchain's name for this machine.
fn host() -> String {
    let output = cargo().args(["--version", "--verbose"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host").to_owned()
}

/// Writes a crate with a module `kernels` and `main`, and `libm` if needed.
///
/// # Panics
/// Panics if that fails.
pub fn write(dir: &Path, file: &File<'_>, main: &str) {
    let mut manifest = String::from(
        "[package]\nname = \"emitted\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n[profile.dev]\ndebug = false\n\n[dependencies]\n",
    );
    if file.needs_libm {
        // For this machine only: dependencies of others are not available offline.
        let options = ["--offline", "--filter-platform", &host()].map(str::to_owned);
        let metadata = cargo_metadata::MetadataCommand::new().other_options(options).exec().unwrap();
        let libm = metadata.packages.iter().find(|p| p.name.as_str() == "libm").expect("the workspace uses libm");
        let _ = writeln!(manifest, "libm = {{ path = {:?} }}", libm.manifest_path.parent().unwrap().as_str());
    }
    std::fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir_all(dir.join("src")).unwrap();
    std::fs::write(dir.join("src/kernels.rs"), file.text).unwrap();
    std::fs::write(dir.join("src/main.rs"), main).unwrap();
}

/// Adds the module `kernels` to a crate as a library named `emitted`.
///
/// # Panics
/// Panics if that fails.
pub fn write_library(dir: &Path, has_std: bool) {
    let start = if has_std { "" } else { "#![no_std]\n\n" };
    std::fs::write(dir.join("src/lib.rs"), format!("{start}pub mod kernels;\n")).unwrap();
}

/// Runs cargo in a crate, with its target directory in the crate's folder; warnings of our own code are errors.
///
/// # Panics
/// Panics if there is no cargo.
#[must_use]
pub fn run_cargo(dir: &Path, args: &[&str]) -> Output {
    let target = dir.join("target");
    let out =
        cargo().args(args).current_dir(dir).env("CARGO_TARGET_DIR", target).env("CARGO_INCREMENTAL", "0").output();
    out.unwrap()
}

/// Runs clippy on a crate, which must have no warnings.
///
/// # Panics
/// Panics with clippy's output.
pub fn clippy(dir: &Path) {
    let output = run_cargo(dir, &["clippy", "--offline", "--quiet", "--", "-D", "warnings"]);
    assert!(output.status.success(), "{}", first_lines(&output.stderr));
}

fn first_lines(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().take(60).collect::<Vec<_>>().join("\n")
}

/// Compiles all kernels as one program, runs it, and returns each kernel's results or message. Floats are returned as
/// doubles.
///
/// # Panics
/// Panics if clippy or the compiler prints anything, or the program panics.
#[must_use]
pub fn run(cases: &[Case], file: &File<'_>) -> Vec<Outcome> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), file, &main_text(file, cases));
    write_library(dir.path(), file.needs_std);
    clippy(dir.path());
    let built = run_cargo(dir.path(), &["build", "--offline", "--quiet"]);
    assert!(built.status.success(), "{}", first_lines(&built.stderr));
    std::fs::write(dir.path().join("input"), input(cases)).unwrap();
    let input = std::fs::File::open(dir.path().join("input")).unwrap();
    let program = dir.path().join("target/debug/emitted");
    let output = Command::new(program).stdin(Stdio::from(input)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}\n{}", text.lines().last().unwrap_or(""), first_lines(&output.stderr));
    let mut lines = text.lines();
    let outcomes = cases.iter().map(|case| case.parse(&mut lines)).collect();
    assert_eq!(lines.next(), None);
    outcomes
}

/// Returns a line of words for each argument of each case.
fn input(cases: &[Case]) -> String {
    let mut text = String::new();
    for array in cases.iter().flat_map(|case| &case.inputs) {
        for word in array.data.bits() {
            let _ = write!(text, "{word:x} ");
        }
        text.push('\n');
    }
    text
}

fn main_text(file: &File<'_>, cases: &[Case]) -> String {
    let mut text = MAIN.replace("NUMBER", file.number);
    for (i, (case, name)) in cases.iter().zip(file.functions).enumerate() {
        let kernel = &case.kernel;
        let mut arguments: Vec<String> = Vec::new();
        for (size, value) in kernel.sizes.iter().zip(case.sizes()) {
            if let SizeSource::Extent { .. } = size.source {
                arguments.push(value.to_string());
            }
        }
        let lines = if kernel.inputs.is_empty() { "_" } else { "lines" };
        let _ = writeln!(text, "fn run{i}({lines}: &mut Lines) {{");
        for (j, port) in kernel.inputs.iter().enumerate() {
            let read = if case.class(port) == Class::Real { "reals" } else { "ints" };
            let _ = writeln!(text, "    let in{j} = lines.{read}();");
            arguments.push(if port.shape.is_empty() { format!("in{j}[0]") } else { format!("&in{j}") });
        }
        for (j, port) in kernel.outputs.iter().enumerate() {
            let none = if case.class(port) == Class::Real { "NAN" } else { "i64::MIN / 3" };
            let _ = writeln!(text, "    let mut out{j} = vec![{none}; {}];", case.output_len(j));
            arguments.push(if port.shape.is_empty() { format!("&mut out{j}[0]") } else { format!("&mut out{j}") });
        }
        let sizes: Vec<String> = case.distinct_sizes().into_iter().map(|(_, value)| value.to_string()).collect();
        for (function, none) in [("work_len", "NAN"), ("iwork_len", "i64::MIN / 3")] {
            let function = format!("{name}_{function}");
            let is_constant = file.text.contains(&format!("pub const fn {function}("));
            if !is_constant && !file.text.contains(&format!("pub fn {function}(")) {
                continue;
            }
            let len = if is_constant { "()".to_owned() } else { format!("({}).unwrap()", sizes.join(", ")) };
            arguments.push(format!("&mut vec![{none}; kernels::{function}{len}]"));
        }
        let _ = writeln!(text, "    match kernels::{name}({}) {{", arguments.join(", "));
        text.push_str("        Err(failure) => println!(\"error {failure}\"),\n        Ok(()) => {\n            println!(\"ok\");\n");
        for (j, port) in kernel.outputs.iter().enumerate() {
            let show = if case.class(port) == Class::Real { "show" } else { "show_ints" };
            let _ = writeln!(text, "            {show}(&out{j});");
        }
        text.push_str("        }\n    }\n}\n\n");
    }
    text.push_str("fn main() {\n    let mut lines = Lines(std::io::stdin().lines());\n");
    for i in 0..cases.len() {
        let _ = writeln!(text, "    run{i}(&mut lines);");
    }
    text.push_str("}\n");
    text
}

const MAIN: &str = r#"
#![allow(dead_code, clippy::all)]

use emitted::kernels;

const NAN: NUMBER = NUMBER::NAN;

struct Lines(std::io::Lines<std::io::StdinLock<'static>>);

impl Lines {
    fn words(&mut self) -> Vec<u64> {
        let line = self.0.next().unwrap().unwrap();
        line.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
    }

    fn reals(&mut self) -> Vec<NUMBER> {
        self.words().into_iter().map(|bits| f64::from_bits(bits) as NUMBER).collect()
    }

    fn ints(&mut self) -> Vec<i64> {
        self.words().into_iter().map(|bits| bits as i64).collect()
    }
}

fn show(data: &[NUMBER]) {
    let words: Vec<String> = data.iter().map(|x| format!("{:x}", f64::from(*x).to_bits())).collect();
    println!("{}", words.join(" "));
}

fn show_ints(data: &[i64]) {
    let words: Vec<String> = data.iter().map(|x| format!("{x:x}")).collect();
    println!("{}", words.join(" "));
}

"#;
