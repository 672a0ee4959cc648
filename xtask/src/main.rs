//! Chores of the workspace: `cargo xtask <chore>`.

use std::path::Path;
use std::process::{Command, ExitCode};
use xtask::{links, memcheck, pages, paths, pictures, python, quick, shape, tidy, words};

const HELP: &str = "\
Chores of the Chainrule workspace.

Usage: cargo xtask <chore>

  check     fast tests after a small change: of the crates with changes, or of the crates named, such as
            cargo xtask check kernel native; a tenth of the random cases
  test      all tests, those of the Python package included where Python is there
  python    tests of the Python package, in a virtual environment under target/
  adapters  tests of the Python adapters with JAX, PyTorch, Ray, Ipopt and others, which are installed under target/ (8 GB)
  tidy      layers of the crates, length of files, links and wording of the pages, wording of comments, numbers of
            parameters and fields, lengths of functions
  shape     list functions with many parameters or lines, structs with many fields, and literals for `bool` parameters
  lint      format, clippy and rustdoc, warnings as errors
  bench     operation counts of the benchmark problems
  calibrate weights of the cost model beside times measured on this machine; with the name of a machine class, such as
            cargo xtask calibrate amd-zen4, the table of this class is written to crates/kernel/src/weights
  bisect    find the pass that changes the results of a program, and shrink the program: cargo xtask bisect FILE
            --what gradient --arg x='[1, 2]', with the options of `chainrule passes`; writes target/bisect
  memcheck  native code under valgrind, where that is installed
  pictures  draw the README's chart and sparsity pattern from the records and the examples
  docs      build the documentation and say where it is
";

fn cargo(args: &[&str]) -> bool {
    eprintln!("cargo {}", args.join(" "));
    Command::new("cargo").args(args).status().is_ok_and(|status| status.success())
}

fn lint() -> bool {
    let doc = || {
        eprintln!("cargo doc --workspace --no-deps");
        Command::new("cargo")
            .args(["doc", "--workspace", "--no-deps", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .status()
            .is_ok_and(|status| status.success())
    };
    cargo(&["fmt", "--all", "--check"])
        && cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            "chainrule/cranelift,chainrule-fuzz/targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ])
        && doc()
}

/// Prints the wording of each folder and all faults; returns whether there are none.
fn tidy_up() -> Result<bool, Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (folder, report) in words::reports(&root)? {
        println!("{}", report.rates(&folder));
    }
    let report = shape::report(&root)?;
    let shape::Shape { parameters, fields, literals } = report.shape();
    let (n_functions, n_long) = report.lengths();
    println!("{n_long} of {n_functions} functions have more than 80 lines and are no table");
    println!(
        "{parameters} functions with more than 6 parameters, {fields} structs with more than 15 fields, {literals} literals for `bool` parameters"
    );
    let mut faults = tidy::check()?;
    faults.extend(shape::check(&root)?);
    faults.extend(links::check(&root)?);
    faults.extend(pages::check(&root)?);
    faults.extend(paths::check(&root)?);
    faults.extend(words::check(&root)?);
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    Ok(faults.is_empty())
}

/// Lists the exceptions from the rules for parameters and fields.
fn list_shape(root: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    shape::report(root)?.lines().for_each(|line| println!("{line}"));
    Ok(true)
}

/// Finds the pass that changes the results of a program.
fn bisect(root: &Path) -> bool {
    let folder = root.join("target").join("bisect").display().to_string();
    let given: Vec<String> = std::env::args().skip(2).collect();
    let mut args = vec!["run", "--quiet", "-p", "chainrule-cli", "--", "passes"];
    args.extend(given.iter().map(String::as_str));
    if !given.iter().any(|arg| arg == "--shrink") {
        args.extend(["--shrink", &folder]);
    }
    cargo(&args)
}

/// Returns the outcome of a chore; a chore that cannot run prints why and fails.
fn reported(chore: &str, outcome: Result<bool, Box<dyn std::error::Error>>) -> bool {
    outcome.unwrap_or_else(|error| {
        eprintln!("{chore} cannot run: {error}");
        false
    })
}

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let done = match chore.as_str() {
        "check" => quick::check(&root, &std::env::args().skip(2).collect::<Vec<String>>()),
        "test" => cargo(&["test", "--workspace"]) && python::test(&root),
        "python" => python::test(&root),
        "adapters" => python::adapters(&root),
        "tidy" => reported("tidy", tidy_up()),
        "shape" => reported("shape", list_shape(&root)),
        "lint" => lint(),
        "memcheck" => reported("memcheck", memcheck::check()),
        "bisect" => bisect(&root),
        "pictures" => reported("pictures", pictures::write(&root)),
        "bench" => cargo(&["run", "--release", "-p", "chainrule-bench", "--", "counts"]),
        "calibrate" => {
            let class = std::env::args().nth(2);
            let mut args = vec!["bench", "-p", "chainrule-native", "--bench", "weights", "--"];
            args.extend(class.as_deref());
            cargo(&args)
        }
        "docs" => cargo(&["doc", "--workspace", "--no-deps", "--open"]),
        _ => {
            eprint!("{HELP}");
            chore.is_empty() || chore == "--help" || chore == "-h" || chore == "help"
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
