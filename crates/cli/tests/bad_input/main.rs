//! Messages for wrong input: a table of programs, data files and command lines, each run with the real command in a
//! separate folder. One snapshot per group, to be read from a user's perspective: the error, its location, its reason,
//! and the remedy.
//!
//! General properties are checked in addition: exit code 1 (wrong input) or 2 (wrong command line), a message on
//! standard error, no results, no colours, no panic, and no message that calls itself a bug.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod command_lines;
mod data;
mod graphs;
mod programs;
mod requests;

use support::{Content, Place};

/// Case of wrong input.
pub struct Case {
    /// Unique in its group.
    pub name: &'static str,
    /// Files in the folder.
    pub files: &'static [(&'static str, Content)],
    /// Arguments of `chainrule`.
    pub args: &'static [&'static str],
}

/// All groups: the name of the snapshot, the cases.
const GROUPS: &[(&str, &[Case])] = &[
    ("syntax", programs::SYNTAX),
    ("names_and_types", programs::NAMES_AND_TYPES),
    ("sizes", programs::SIZES),
    ("imports", programs::IMPORTS),
    ("running", programs::RUNNING),
    ("derivatives", requests::DERIVATIVES),
    ("command_lines", command_lines::COMMAND_LINES),
    ("files", command_lines::FILES),
    ("arguments", data::ARGUMENTS),
    ("json", data::JSON),
    ("npy", data::NPY),
    ("text_files", data::TEXT),
    ("graphs", graphs::GRAPHS),
];

#[test]
fn every_mistake_is_explained() {
    let mut broken = Vec::new();
    for (group, cases) in GROUPS {
        let mut text = String::new();
        for case in *cases {
            let outcome = Place::with(case.files).run(case.args);
            let both = format!("{}{}", outcome.stdout, outcome.stderr);
            let rules = [
                ("exit code 1 or 2", matches!(outcome.code, Some(1 | 2))),
                ("a message", !outcome.stderr.trim().is_empty()),
                ("no panic", !both.contains("panicked") && !both.contains("RUST_BACKTRACE")),
                ("no bug", !both.to_lowercase().contains("bug in chainrule")),
                ("no colours", !both.contains('\u{1b}')),
                ("no path of this machine", !both.contains(std::env::temp_dir().to_str().unwrap())),
            ];
            broken
                .extend(rules.iter().filter(|rule| !rule.1).map(|rule| format!("{group}, {}: {}", case.name, rule.0)));
            text.push_str(&show(case, &outcome));
        }
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(*group, text);
        });
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_table_is_as_large_as_promised() {
    let count: usize = GROUPS.iter().map(|(_, cases)| cases.len()).sum();
    assert!(count >= 100, "{count} cases");
    for (group, cases) in GROUPS {
        let mut names: Vec<&str> = cases.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), cases.len(), "two cases of {group} have one name");
    }
}

fn show(case: &Case, outcome: &support::Outcome) -> String {
    let mut text = format!("#### {}\n", case.name);
    for (name, content) in case.files {
        match content {
            Content::Text("") => text.push_str(&format!("-- {name}: empty\n")),
            Content::Text(content) => {
                text.push_str(&format!("-- {name}\n{content}{}", if content.ends_with('\n') { "" } else { "\n" }));
            }
            Content::Bytes(bytes) => text.push_str(&format!("-- {name}: \"{}\"\n", bytes.escape_ascii())),
            Content::Npy(header, data) => text.push_str(&format!("-- {name}: {header} and {} bytes\n", data.len())),
            Content::Nested { start, times, open, inner, close } => {
                text.push_str(&format!(
                    "-- {name}: {start:?}, {open:?} {times} times, {inner:?}, {close:?} {times} times\n"
                ));
            }
            Content::Folder => text.push_str(&format!("-- {name}: a folder\n")),
        }
    }
    let args: Vec<String> = case.args.iter().map(|arg| quote(arg)).collect();
    text.push_str(&format!("$ chainrule {}\n", args.join(" ")));
    let code = outcome.code.map_or_else(|| "ended by a signal".to_string(), |code| format!("exit code {code}"));
    text.push_str(&format!("[{code}]\n"));
    for (name, stream) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        if !stream.is_empty() {
            text.push_str(&format!("[{name}]\n{}\n", shorten(stream.trim_end())));
        }
    }
    text.push('\n');
    text
}

/// As one types it into a shell.
fn quote(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=@,:".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_string() } else { format!("'{arg}'") }
}

/// Lines that no page has room for are cut, visibly, and so is the list of strategies; zeros are
/// spelt out, so that snapshots are text.
fn shorten(text: &str) -> String {
    let line = |line: &str| match line.char_indices().nth(160) {
        // Strategies are added now and then.
        _ if line.starts_with("  help: choose one of auto, ") => "  help: choose one of auto, [...]\n".to_string(),
        Some((at, _)) => format!("{} [... {} characters more]\n", &line[..at], line[at..].chars().count()),
        None => format!("{line}\n"),
    };
    text.replace('\0', "\\0").lines().map(line).collect::<String>().trim_end().to_string()
}
