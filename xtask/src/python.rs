//! Tests of the Python package in a virtual environment under `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Interpreters that are tried, in this order.
const INTERPRETERS: &[&str] = &["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];

/// Oldest supported minor version of Python 3.
const MINOR: u32 = 11;

/// Packages that the tests use, besides the package itself.
const PACKAGES: &[&str] = &["maturin>=1.9.4,<2", "numpy>=2", "scipy>=1.13", "pytest>=8"];

/// Builds the package for the interpreter that is found and runs its tests; returns whether they pass.
///
/// Without an interpreter, says so and succeeds.
pub fn test(root: &Path) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    let Some(python) = interpreter() else {
        eprintln!(
            "No Python of version 3.{MINOR} or later with `venv` is there: the tests of the Python package are skipped."
        );
        return true;
    };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let environment = target.join("python");
    let scripts = environment.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let own = scripts.join("python");
    if !own.exists() && !run(Command::new(&python).args(["-m", "venv"]).arg(&environment)) {
        return false;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    if !run(Command::new(&own).args(pip).args(PACKAGES)) {
        return false;
    }
    // The profile of `cargo test`, so that the library is not compiled a second time with other options.
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(scripts).chain(std::env::split_paths(&paths)));
    let mut install = Command::new(&own);
    install.args(pip).args(["--no-deps", "--force-reinstall", "--no-build-isolation"]).arg(root.join("python"));
    install.env("MATURIN_PEP517_ARGS", "--profile dev").env("CARGO_TARGET_DIR", &target);
    if let Ok(path) = path {
        install.env("PATH", path);
    }
    // `-P`: the folder of the package's sources is not the package that was installed.
    let tests = root.join("python/tests");
    run(&mut install) && run(Command::new(&own).args(["-P", "-m", "pytest"]).arg(&tests).current_dir(&tests))
}

/// Returns the first interpreter that is new enough and can make virtual environments.
fn interpreter() -> Option<String> {
    let code = format!("import sys, venv, ensurepip; sys.exit(sys.version_info < (3, {MINOR}))");
    let works = |name: &String| Command::new(name).args(["-c", &code]).output().is_ok_and(|done| done.status.success());
    let chosen = std::env::var("PYTHON").ok();
    chosen.into_iter().chain(INTERPRETERS.iter().map(ToString::to_string)).find(works)
}

fn run(command: &mut Command) -> bool {
    eprintln!("{command:?}");
    command.status().is_ok_and(|status| status.success())
}
