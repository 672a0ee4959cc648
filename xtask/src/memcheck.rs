//! Native code under valgrind's memcheck: no read of uninitialised memory, no access outside of its own memory.

use cargo_metadata::MetadataCommand;
use std::process::Command;

/// Builds and runs the example `memcheck` of `backend-tests` under valgrind; returns whether valgrind found nothing.
/// Without valgrind the check is skipped with a message, and passes.
///
/// # Errors
/// The example does not build, or the workspace cannot be read.
pub fn check() -> Result<bool, Box<dyn std::error::Error>> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: valgrind is not installed");
        return Ok(true);
    }
    let build = ["build", "--package", "chainrule-backend-tests", "--example", "memcheck"];
    if !Command::new("cargo").args(build).status()?.success() {
        return Err("the example does not build".into());
    }
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let program = metadata.target_directory.join("debug").join("examples").join("memcheck");
    let passed_over =
        metadata.workspace_root.join("crates").join("backend-tests").join("examples").join("memcheck.supp");
    eprintln!("valgrind {program}");
    // Valgrind knows AVX2, but not AVX-512; code that is written while the program runs is translated anew.
    let flags = [
        "--quiet",
        "--error-exitcode=1",
        "--smc-check=all-non-file",
        "--leak-check=full",
        "--show-leak-kinds=definite",
    ];
    let mut valgrind = Command::new("valgrind");
    valgrind.args(flags).arg("--errors-for-leak-kinds=definite").arg(format!("--suppressions={passed_over}"));
    let status = valgrind.arg(program).status()?;
    Ok(status.success())
}
