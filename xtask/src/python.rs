//! Tests of the Python package in a virtual environment under `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Interpreters that are tried, in this order.
const INTERPRETERS: &[&str] = &["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];

/// Oldest supported minor version of Python 3.
const MINOR: u32 = 11;

/// Packages that the tests use, besides the package itself.
const PACKAGES: &[&str] = &["maturin>=1.9.4,<2", "numpy>=2", "scipy>=1.13", "pytest>=8"];

/// Modules of [`PACKAGES`].
const MODULES: &str = "import maturin, numpy, scipy, pytest";

/// Packages that adapters and stubs are tested with, several gigabytes with `PyTorch`. Ipopt's headers and pkg-config
/// must be installed for `cyipopt`, which is built from its sources.
const ADAPTED: &[&str] = &[
    "jax",
    "numba",
    "casadi",
    "joblib",
    "dask[distributed]",
    "cloudpickle",
    "pandas",
    "tqdm",
    "mypy",
    "basedpyright",
    "cyipopt",
    "ray",
    "torch",
];

/// Tests that use packages of [`ADAPTED`].
const ADAPTED_TESTS: &[&str] =
    &["adapters", "programs/test_guide.py", "functions/test_stubs.py", "functions/test_batch.py"];

/// Prints the installed version of each package that is named, or that it is missing.
const VERSIONS: &str = "
import importlib.metadata as m, platform, sys
print('Python', platform.python_version(), 'on', platform.machine())
for name in sys.argv[1:]:
    try: print(' ', name, m.version(name))
    except m.PackageNotFoundError: print(' ', name, 'is not installed: its tests are skipped')
";

const PIP: [&str; 4] = ["-m", "pip", "install", "--quiet"];

/// Builds the package for the interpreter that is found and runs its tests; returns whether they pass.
///
/// Without an interpreter, or where packages are missing and cannot be installed, says so and succeeds.
pub fn test(root: &Path) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    let Some(python) = environment(&root, "python") else {
        eprintln!(
            "No Python of version 3.{MINOR} or later with `venv` is there: the tests of the Python package are skipped."
        );
        return true;
    };
    let is_installed = run(Command::new(&python).args(PIP).args(PACKAGES));
    if !is_installed && !run(Command::new(&python).args(["-c", MODULES])) {
        eprintln!("{} cannot be installed: the tests of the Python package are skipped.", PACKAGES.join(", "));
        return true;
    }
    install(&root, &python) && pytest(&root, &python, &[])
}

/// Runs the tests of adapters, pickles and stubs with the real packages, in an environment of their own; prints the
/// versions that ran.
pub fn adapters(root: &Path) -> bool {
    let Ok(root) = root.canonicalize() else { return false };
    let Some(python) = environment(&root, "adapters") else {
        eprintln!("No Python of version 3.{MINOR} or later with `venv` is there.");
        return false;
    };
    // One package after the other: some have no build for every system, and their tests are skipped.
    for package in ADAPTED {
        if !run(Command::new(&python).args(PIP).arg(package)) {
            eprintln!("{package} cannot be installed: its tests are skipped.");
        }
    }
    let names = ADAPTED.iter().map(|package| package.split('[').next().unwrap_or(package));
    let tests: Vec<&str> = ["-rs", "--durations=5"].iter().chain(ADAPTED_TESTS).copied().collect();
    run(Command::new(&python).args(PIP).args(PACKAGES))
        && install(&root, &python)
        && run(Command::new(&python).args(["-c", VERSIONS]).args(names))
        && pytest(&root, &python, &tests)
}

/// Returns the interpreter of a virtual environment under `target/`, which is made where it is not there.
fn environment(root: &Path, name: &str) -> Option<PathBuf> {
    let python = interpreter()?;
    let environment = target(root).join(name);
    let own = environment.join(if cfg!(windows) { "Scripts" } else { "bin" }).join("python");
    let is_there = own.exists() || run(Command::new(python).args(["-m", "venv"]).arg(&environment));
    is_there.then_some(own)
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Builds and installs the package, in the profile of `cargo test`, so that the library is not compiled a second time
/// with other options.
fn install(root: &Path, python: &Path) -> bool {
    let mut install = Command::new(python);
    let options = ["--no-deps", "--force-reinstall", "--no-build-isolation"];
    install.args(PIP).args(options).arg(root.join("python"));
    install.env("MATURIN_PEP517_ARGS", "--profile dev").env("CARGO_TARGET_DIR", target(root));
    let scripts = python.parent().map(Path::to_path_buf);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    if let Ok(path) = std::env::join_paths(scripts.into_iter().chain(std::env::split_paths(&paths))) {
        install.env("PATH", path);
    }
    run(&mut install)
}

/// `-P`: the folder of the package's sources is not the package that was installed.
fn pytest(root: &Path, python: &Path, args: &[&str]) -> bool {
    let tests = root.join("python/tests");
    let mut pytest = Command::new(python);
    pytest.args(["-P", "-m", "pytest", "-c"]).arg(root.join("python/pyproject.toml")).args(args);
    if args.is_empty() {
        pytest.arg(&tests);
    }
    run(pytest.current_dir(&tests))
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
