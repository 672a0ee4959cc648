//! Pages of the guide and the README: fenced blocks and the meaning of their first lines.
//!
//! | block | meaning | checked by |
//! | --- | --- | --- |
//! | `ft`, `ft file=model.ft` | a program; with a name, console blocks of the page can use the file | `guide.rs` |
//! | `run` | calls of functions of the program above: `f([1, 2], 3) = 4`, `f(1) fails: index` | `guide.rs` |
//! | `error`, `warning` | the exact message for the program above | `guide.rs` |
//! | `console` | `$ chainrule ...` lines, each with its output | `guide_console.rs` of the command line |
//! | `console` | `$ cargo run ... -p chainrule-example-NAME` with its output | `guide.rs` of that example |
//! | `python` of `python.md`, README | programs, run in one process per page | the Python package's tests |
//! | `rust`, `rust,should_panic` | a program without errors, one that panics | doc tests of `lib.rs` |
//! | `sh` | commands that succeed; those that install or test are only known ones | `guide_console.rs` |
//! | `json`, `csv`, `text` with `file=name` | a file for console blocks | |
//! | `c in=name` | lines of a file that a console block of the page writes | `guide_console.rs` of the command line |
//! | `text` | formulas | |
//!
//! In output, `...` matches any part of a line: a time, or digits that rounding may change.

// Each test uses a part of this module.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

/// Fenced block.
pub struct Block {
    /// Language, for instance `ft`.
    pub tag: String,
    /// Name after `file=`.
    pub file: Option<String>,
    /// Name after `in=`: the file that contains these lines.
    pub within: Option<String>,
    /// Text.
    pub text: String,
    /// Line of the page at which its text starts, from 1.
    pub line: usize,
}

/// Page of the guide.
pub struct Page {
    /// Path.
    pub path: PathBuf,
    /// Lines.
    pub lines: Vec<String>,
    /// Blocks.
    pub blocks: Vec<Block>,
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all pages of the guide, by name, then the README and `ARCHITECTURE.md`.
pub fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = ["docs/guide", "docs/guide/python"]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 10, "pages are missing: {paths:?}");
    paths.extend(["README.md", "ARCHITECTURE.md"].map(|name| root().join(name)));
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Page {
    let lines: Vec<String> = std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect();
    let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for (i, line) in lines.iter().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, Some(info)) => {
                let after =
                    |key: &str| info.split_whitespace().find_map(|word| word.strip_prefix(key)).map(str::to_string);
                let tag = info.split_whitespace().next().unwrap_or_default().to_string();
                open =
                    Some(Block { tag, file: after("file="), within: after("in="), text: String::new(), line: i + 2 });
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a block has no end", path.display());
    Page { path: path.to_path_buf(), lines, blocks }
}

impl Page {
    /// Returns the location of a block, for messages.
    pub fn place(&self, block: &Block) -> String {
        format!("{}:{}", self.path.file_name().unwrap().to_string_lossy(), block.line)
    }
}

impl Block {
    /// Returns the commands of a console block: the text after `$ `.
    pub fn commands(&self) -> Vec<&str> {
        self.text.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
    }
}

/// Returns the package that `command` runs, if it is an example of the repository.
pub fn example_of(command: &str) -> Option<&str> {
    let rest = command.strip_prefix("cargo run --release -p ")?;
    let package = rest.split(' ').next()?;
    package.starts_with("chainrule-example-").then_some(package)
}

/// Returns `text` without terminal colour codes.
pub fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_string();
    first + &parts.map(|part| part.split_once('m').map_or(part, |(_, rest)| rest)).collect::<String>()
}

/// Returns whether `line` matches `pattern`, in which `...` matches any text.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split("...");
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Returns `found` with matching lines replaced by those of `expected`.
pub fn as_expected(expected: &str, found: &str) -> String {
    let mut lines: Vec<&str> = found.lines().collect();
    if expected.lines().count() == lines.len() {
        for (line, pattern) in lines.iter_mut().zip(expected.lines()) {
            if fits(pattern, line) {
                *line = pattern;
            }
        }
    }
    lines.join("\n")
}

/// Compares blocks with their expected content. With `UPDATE_GUIDE=1` in the environment the pages are updated instead;
/// review the difference.
pub fn compare(page: &Page, found: &[(usize, String)]) -> Vec<String> {
    let wrong = |(index, text): &&(usize, String)| page.blocks[*index].text.trim_end() != text.trim_end();
    let mut wrong: Vec<&(usize, String)> = found.iter().filter(wrong).collect();
    wrong.sort();
    if !wrong.is_empty() && std::env::var_os("UPDATE_GUIDE").is_some() {
        let mut lines = page.lines.clone();
        for (index, text) in wrong.iter().rev() {
            let block = &page.blocks[*index];
            let (from, n) = (block.line - 1, block.text.lines().count());
            lines.splice(from..from + n, text.trim_end().lines().map(str::to_string));
        }
        chainrule::files::replace(&page.path, (lines.join("\n") + "\n").as_bytes()).unwrap();
        return Vec::new();
    }
    let show = |(index, text): &&(usize, String)| {
        let block = &page.blocks[*index];
        format!("{}: the guide says\n{}\nbut it is\n{}\n", page.place(block), block.text.trim_end(), text.trim_end())
    };
    let mut shown: Vec<String> = wrong.iter().map(show).collect();
    if !shown.is_empty() {
        shown.push("If the change is meant: UPDATE_GUIDE=1 in the environment writes the pages anew.".into());
    }
    shown
}
