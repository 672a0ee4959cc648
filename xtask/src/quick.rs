//! The fast tier: tests of the crates that a change touches, with a tenth of the random cases, then the programs of
//! `tests/programs` through the whole pipeline.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Part of the random cases that run.
const RANDOM_CASES: &str = "0.1";

/// Crates that the whole pipeline does not contain.
const OUTSIDE: &[&str] = &["backend-tests", "cases", "cli", "python", "search"];

/// Crate whose selection gives dependencies the features that they have for the library's tests. Otherwise cargo
/// compiles the changed crate, and those that use it, once for its own tests and once for the pipeline.
const UNIFIES_FEATURES: &str = "chainrule-backend-tests";

/// Returns the files that differ from the last commit; those of the last commit if there are none.
fn changed_files(root: &Path) -> Vec<String> {
    let git = |args: &[&str]| -> Vec<String> {
        let output = Command::new("git").current_dir(root).args(args).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let mut files = git(&["diff", "--name-only", "HEAD"]);
    files.extend(git(&["ls-files", "--others", "--exclude-standard"]));
    if files.is_empty() { git(&["diff", "--name-only", "HEAD~1", "HEAD"]) } else { files }
}

/// Returns the names under `crates/` of the crates with these files.
fn crates_of(files: &[String]) -> BTreeSet<String> {
    let name = |file: &String| Some(file.strip_prefix("crates/")?.split('/').next()?.to_owned());
    files.iter().filter_map(name).collect()
}

/// Returns the package of the crate `name`.
fn package(name: &str) -> String {
    if name == "chainrule" { name.to_owned() } else { format!("chainrule-{name}") }
}

/// Commands for changes in these crates; `docs` states whether pages have changed.
fn commands(crates: &BTreeSet<String>, docs: bool) -> Vec<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let mut all = vec![words("fmt --all --check"), words("test -p xtask")];
    for name in crates.iter().filter(|name| *name != "python") {
        let is_inside = *name != "chainrule" && !OUTSIDE.contains(&name.as_str());
        let with = if is_inside { format!(" -p {UNIFIES_FEATURES}") } else { String::new() };
        all.push(words(&format!("test -p {}{with}", package(name))));
    }
    if crates.contains("python") {
        all.push(words("check -p chainrule-python"));
    }
    let is_whole = crates.contains("chainrule");
    if !is_whole && crates.iter().any(|name| !OUTSIDE.contains(&name.as_str())) {
        all.push(words("test -p chainrule --test programs"));
    }
    if docs && !is_whole {
        all.push(words("test -p chainrule --test guide"));
    }
    all
}

/// Checks the crates `named`, or else those with changes; returns whether all is well. Prints the time of each command.
#[must_use]
pub fn check(root: &Path, named: &[String]) -> bool {
    let files = changed_files(root);
    let crates = if named.is_empty() { crates_of(&files) } else { named.iter().cloned().collect() };
    let docs = named.is_empty() && files.iter().any(|file| file.starts_with("docs/guide") || file == "README.md");
    let names: Vec<&str> = crates.iter().map(String::as_str).collect();
    eprintln!("crates: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
    commands(&crates, docs).iter().all(|args| {
        let start = Instant::now();
        let mut command = Command::new("cargo");
        command.current_dir(root).args(args).env("CHAINRULE_RANDOM_CASES", RANDOM_CASES);
        let is_well = command.status().is_ok_and(|status| status.success());
        let result = if is_well { "passed" } else { "FAILED" };
        eprintln!("cargo {}: {result} in {:.0} s", args.join(" "), start.elapsed().as_secs_f64());
        is_well
    })
}

#[cfg(test)]
mod tests {
    use super::{commands, crates_of};

    fn lines(files: &[&str], docs: bool) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        commands(&crates_of(&files), docs).iter().skip(2).map(|args| args.join(" ")).collect()
    }

    #[test]
    fn a_crate_is_tested_and_then_the_pipeline() {
        let files = ["crates/rewrite/src/turn.rs", "crates/rewrite/tests/random.rs", "docs/README.md"];
        assert_eq!(
            lines(&files, false),
            ["test -p chainrule-rewrite -p chainrule-backend-tests", "test -p chainrule --test programs"]
        );
    }

    #[test]
    fn the_library_includes_the_pipeline_and_the_command_does_not_need_it() {
        assert_eq!(lines(&["crates/chainrule/src/lib.rs"], true), ["test -p chainrule"]);
        assert_eq!(lines(&["crates/cli/src/main.rs"], false), ["test -p chainrule-cli"]);
        assert_eq!(lines(&["docs/guide/language.md"], true), ["test -p chainrule --test guide"]);
    }
}
