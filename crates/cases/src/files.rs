//! Cases kept as text: one runner for the file tests of all crates.
//!
//! A file test is a folder and a function that maps the text of a file to the text that the file should have: the same
//! input, with the output that the code computes. The runner compares both, or writes the file anew.

use std::path::{Path, PathBuf};

/// Environment variable that makes [`check`] write the computed texts.
pub const UPDATE: &str = "UPDATE_FILETESTS";

/// Checks all files below `folder`, in the order of their names. `run` returns the text that a file should have, or why
/// the case fails whatever the file expects.
///
/// # Panics
/// Panics with all failures, or if the folder cannot be read.
#[expect(clippy::panic, reason = "an assertion of tests")]
pub fn check(folder: impl AsRef<Path>, mut run: impl FnMut(&str) -> Result<String, String>) {
    let update = std::env::var_os(UPDATE).is_some();
    let faults: Vec<String> = paths(folder.as_ref())
        .iter()
        .filter_map(|path| Some(format!("{}: {}", path.display(), check_file(path, update, &mut run).err()?)))
        .collect();
    if !faults.is_empty() {
        panic!("{}", faults.join("\n\n"));
    }
}

/// Returns the files below `folder`, sorted.
///
/// # Panics
/// Panics if the folder cannot be read.
#[must_use]
#[expect(clippy::panic, reason = "an assertion of tests")]
pub fn paths(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() { &mut open } else { &mut found }.push(path);
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{} has no files", folder.display());
    found
}

fn check_file(path: &Path, update: bool, run: &mut impl FnMut(&str) -> Result<String, String>) -> Result<(), String> {
    let expected = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let found = run(&expected)?;
    if found == expected {
        return Ok(());
    }
    if update {
        return std::fs::write(path, found).map_err(|error| error.to_string());
    }
    Err(difference(&expected, &found))
}

/// Describes where two texts differ, with the whole text that was found.
fn difference(expected: &str, found: &str) -> String {
    let n_equal = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(n_equal).unwrap_or("the end of the file").to_owned();
    format!(
        "line {}: expected\n{}\nfound\n{}\nin\n{found}(`{UPDATE}=1` accepts it)",
        n_equal + 1,
        line(expected),
        line(found)
    )
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn the_first_line_that_differs_is_named() {
        let text = difference("a\nb\nc\n", "a\nx\nc\n");
        assert!(text.starts_with("line 2: expected\nb\nfound\nx\n"), "{text}");
        let text = difference("a\n", "a\nb\n");
        assert!(text.starts_with("line 2: expected\nthe end of the file\nfound\nb\n"), "{text}");
    }
}
