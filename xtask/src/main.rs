//! Chores of the workspace: `cargo xtask <chore>`.

use std::process::{Command, ExitCode};
use xtask::{memcheck, tidy};

const HELP: &str = "\
Chores of the Chainrule workspace.

Usage: cargo xtask <chore>

  check     cargo check of everything
  test      the whole test command of the README
  tidy      the layering of the crates, the length of files
  lint      format, clippy and rustdoc, warnings as errors
  bench     operation counts of the benchmark problems
  memcheck  native code under valgrind, where that is installed
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

fn main() -> ExitCode {
    let chore = std::env::args().nth(1).unwrap_or_default();
    let done = match chore.as_str() {
        "check" => cargo(&["check", "--workspace", "--all-targets"]),
        "test" => cargo(&["test", "--workspace"]),
        "tidy" => match tidy::check() {
            Ok(faults) if faults.is_empty() => true,
            Ok(faults) => {
                faults.iter().for_each(|fault| eprintln!("{fault}"));
                false
            }
            Err(error) => {
                eprintln!("tidy could not look: {error}");
                false
            }
        },
        "lint" => lint(),
        "memcheck" => match memcheck::check() {
            Ok(clean) => clean,
            Err(error) => {
                eprintln!("memcheck could not look: {error}");
                false
            }
        },
        "bench" => cargo(&["run", "--release", "-p", "chainrule-bench", "--", "counts"]),
        "docs" => cargo(&["doc", "--workspace", "--no-deps", "--open"]),
        _ => {
            eprint!("{HELP}");
            chore.is_empty() || chore == "--help" || chore == "-h" || chore == "help"
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
