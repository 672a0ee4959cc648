//! Checks of the wording of comments: beginnings of documentation, width of comment lines, words that tell history, and
//! the rate of everyday words that stand where the field has a term.
//!
//! Folders in [`CHECKED`] must have no fault. A folder is added once its comments follow the rules; its faults are then
//! errors. Rates are reported for every folder.

use crate::walk::files;
use std::path::Path;

/// Folders, relative to the workspace, whose comments must follow the rules.
pub const CHECKED: &[&str] = &[
    "benchmarks",
    "crates/accumulate",
    "crates/autodiff",
    "crates/backend-tests",
    "crates/base",
    "crates/c",
    "crates/cases",
    "crates/chainrule",
    "crates/cli",
    "crates/cranelift",
    "crates/graph",
    "crates/interpret",
    "crates/ir",
    "crates/kernel",
    "crates/mathfun",
    "crates/native",
    "crates/ops",
    "crates/python",
    "crates/rewrite",
    "crates/runtime",
    "crates/rust",
    "crates/scalarise",
    "crates/search",
    "crates/syntax",
    "crates/text",
    "examples/adbench",
    "examples/bundle_adjustment",
    "examples/gmm",
    "examples/manipulator",
    "examples/micro",
    "examples/nist",
    "examples/spacetime",
    "examples/spherical_harmonics",
    "fuzz",
    "xtask",
];

/// Beginnings of documentation that are neither a noun phrase nor a verb.
const OPENERS: &[&str] = &["What ", "That ", "Of ", "How many "];

/// Words of commit messages: comments speak of the present.
const HISTORY: &[&str] = &["previously", "formerly", "used to be", "in an earlier version", "has been changed"];

/// Maximum width of a comment line, in characters.
const WIDTH: usize = 120;

/// Words whose rate is reported, with the goal in occurrences per 1,000 comment words.
pub(crate) const RATED: &[(&str, f64)] = &[("what", 1.0), ("told", 0.1), ("dear", 0.1), ("apart", 0.1), ("asked", 0.1)];

/// Comments of one folder, counted.
#[derive(Default)]
pub struct Report {
    /// Faults, one line each, with file and line.
    pub faults: Vec<String>,
    n_words: usize,
    n_rated: [usize; RATED.len()],
}

impl Report {
    /// Returns the line of the table of rates for the folder `name`.
    pub fn rates(&self, name: &str) -> String {
        let mut line = format!("{name:24} {:7} words", self.n_words);
        for ((word, goal), n) in RATED.iter().zip(self.n_rated) {
            #[expect(clippy::cast_precision_loss, reason = "counts of words are far below 2^53")]
            let rate = 1000.0 * n as f64 / self.n_words.max(1) as f64;
            let mark = if rate > *goal { '*' } else { ' ' };
            line.push_str(&format!("  {word} {rate:5.2}{mark}"));
        }
        line.push_str(&format!("  {:4} faults", self.faults.len()));
        line
    }

    fn file(&mut self, path: &Path, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let mut documentation = false;
        for (i, line) in lines.iter().enumerate() {
            let Some((comment, is_doc)) = comment(line) else {
                documentation = false;
                continue;
            };
            let place = || format!("{}:{}", path.display(), i + 1);
            if is_doc && !documentation && OPENERS.iter().any(|opener| comment.starts_with(opener)) {
                self.faults
                    .push(format!("{}: documentation begins with a noun phrase or a verb: `{comment}`", place()));
            }
            if is_doc && !documentation && comment.starts_with("Whether ") && documents_function(&lines[i..]) {
                self.faults.push(format!("{}: a function's documentation begins with a verb: `{comment}`", place()));
            }
            if line.chars().count() > WIDTH {
                self.faults.push(format!("{}: a comment line is wider than {WIDTH} columns", place()));
            }
            let lower = comment.to_lowercase();
            for word in HISTORY.iter().filter(|word| lower.contains(**word)) {
                self.faults.push(format!("{}: `{word}`: comments speak of the present", place()));
            }
            for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
                self.n_words += 1;
                if let Some(at) = RATED.iter().position(|(rated, _)| *rated == word) {
                    self.n_rated[at] += 1;
                }
            }
            documentation = is_doc;
        }
    }
}

/// Returns the text of a comment line and whether it is documentation.
fn comment(line: &str) -> Option<(&str, bool)> {
    let line = line.trim_start();
    for (start, is_doc) in [("///", true), ("//!", true), ("//", false)] {
        if let Some(text) = line.strip_prefix(start) {
            return Some((text.trim(), is_doc));
        }
    }
    None
}

/// Returns whether the item below a block of documentation is a function.
fn documents_function(lines: &[&str]) -> bool {
    let item = lines
        .iter()
        .map(|line| line.trim_start())
        .find(|line| !line.starts_with("//") && !line.starts_with("#[") && !line.is_empty() && !line.starts_with(')'));
    item.is_some_and(|line| line.split(['(', '{', ';']).next().is_some_and(|head| head.split(' ').any(|w| w == "fn")))
}

/// Returns one report for each crate and tool of the workspace at `root`, in the order of their names.
///
/// # Errors
/// A folder or a file that cannot be read.
pub fn reports(root: &Path) -> std::io::Result<Vec<(String, Report)>> {
    let mut folders: Vec<String> = ["benchmarks", "fuzz", "xtask"].map(String::from).to_vec();
    for parent in ["crates", "examples"] {
        for entry in std::fs::read_dir(root.join(parent))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(format!("{parent}/{}", entry.file_name().display()));
            }
        }
    }
    folders.sort();
    let mut reports = Vec::new();
    for folder in folders {
        let mut report = Report::default();
        for file in files(&root.join(&folder), "rs")? {
            let text = std::fs::read_to_string(&file)?;
            report.file(file.strip_prefix(root).unwrap_or(&file), &text);
        }
        reports.push((folder, report));
    }
    Ok(reports)
}

/// Returns the faults of the folders in [`CHECKED`].
///
/// # Errors
/// As [`reports`].
pub fn check(root: &Path) -> std::io::Result<Vec<String>> {
    let reports = reports(root)?;
    let mut faults = Vec::new();
    for folder in CHECKED {
        match reports.iter().find(|(name, _)| name == folder) {
            Some((_, report)) => faults.extend(report.faults.iter().cloned()),
            None => faults.push(format!("{folder}: listed for its wording, but there is no such folder")),
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_folders_follow_the_rules() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root).expect("the sources can be read"), Vec::<String>::new());
    }

    #[test]
    fn faults_of_wording_are_found() {
        let text = [
            "/// What a thing is.",
            "struct A;",
            "/// A thing.",
            "/// What follows is its second line.",
            "struct B {",
            "    /// Whether it is bound.",
            "    bound: bool,",
            "}",
            "/// Whether it is bound.",
            "#[must_use]",
            "pub fn bound() -> bool {}",
            "// It used to be two, what is told.",
        ]
        .join("\n");
        let mut report = Report::default();
        report.file(Path::new("a.rs"), &text);
        report.file(Path::new("b.rs"), &format!("// {}\n", "x".repeat(118)));
        let places: Vec<&str> = report.faults.iter().filter_map(|f| f.split(": ").next()).collect();
        assert_eq!(places, ["a.rs:1", "a.rs:9", "a.rs:12", "b.rs:1"], "{:?}", report.faults);
        assert_eq!(report.n_rated, [3, 1, 0, 0, 0]);
    }
}
