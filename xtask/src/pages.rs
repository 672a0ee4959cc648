//! Checks of the wording of Markdown pages: length of decisions, terms of the glossary, and the rate of everyday words
//! that stand where the field has a term.

use crate::links::prose;
use crate::walk::files;
use crate::words::RATED;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum length of a decision, in lines. Measurements and attempts belong to `docs/notebook`.
const DECISION: usize = 60;

/// Groups of pages whose wording is checked: a name, and the files or folders in it, relative to the repository.
const GROUPS: &[(&str, &[&str])] = &[
    ("top pages", &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]),
    ("docs/guide", &["docs/guide"]),
    ("docs/decisions", &["docs/decisions"]),
    ("docs/contributing", &["docs/contributing"]),
    ("docs/glossary.md", &["docs/glossary.md"]),
];

/// Returns all faults of the pages of the repository at `root`, one line each.
///
/// # Errors
/// A folder or a page that cannot be read.
pub fn check(root: &Path) -> std::io::Result<Vec<String>> {
    let mut faults = decisions(&root.join("docs/decisions"))?;
    faults.extend(repeated_terms(&std::fs::read_to_string(root.join("docs/glossary.md"))?));
    for (group, members) in GROUPS {
        let mut text = String::new();
        for member in *members {
            let path = root.join(member);
            let pages = if path.is_dir() { files(&path, "md")? } else { vec![path] };
            for page in pages {
                text.push_str(&std::fs::read_to_string(page)?);
            }
        }
        faults.extend(frequent_words(group, &text));
    }
    Ok(faults)
}

/// Returns the decisions that are too long, or that the list of decisions does not link.
fn decisions(folder: &Path) -> std::io::Result<Vec<String>> {
    let list = std::fs::read_to_string(folder.join("README.md"))?;
    let mut faults = Vec::new();
    for page in files(folder, "md")? {
        let Some(name) = page.file_name().and_then(|name| name.to_str()).filter(|name| *name != "README.md") else {
            continue;
        };
        let n_lines = std::fs::read_to_string(&page)?.lines().count();
        if n_lines > DECISION {
            faults.push(format!("{}: {n_lines} lines, more than {DECISION}", page.display()));
        }
        if !list.contains(&format!("]({name})")) {
            faults.push(format!("{}: not listed in the README of its folder", page.display()));
        }
    }
    Ok(faults)
}

/// Returns the terms that the tables of a glossary define twice. Terms of one row are separated by commas.
fn repeated_terms(glossary: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (_, line) in prose(glossary) {
        let Some(row) = line.strip_prefix("| ") else { continue };
        let terms = row.split(" | ").next().unwrap_or_default();
        if terms != "term" && !terms.starts_with("---") {
            for term in terms.split(", ") {
                *seen.entry(term.to_lowercase()).or_insert(0) += 1;
            }
        }
    }
    let repeated = seen.into_iter().filter(|(_, n)| *n > 1);
    repeated.map(|(term, n)| format!("docs/glossary.md: `{term}` is defined {n} times")).collect()
}

/// Returns the words of [`RATED`] that are more frequent in the prose of `text` than their goal. One occurrence is
/// always allowed.
fn frequent_words(group: &str, text: &str) -> Vec<String> {
    let (mut n_words, mut found) = (0_u32, vec![0_u32; RATED.len()]);
    for (_, line) in prose(text) {
        // Every second part is code.
        for part in line.split('`').step_by(2) {
            for word in part.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
                n_words += 1;
                if let Some(at) = RATED.iter().position(|(rated, _)| word.eq_ignore_ascii_case(rated)) {
                    found[at] += 1;
                }
            }
        }
    }
    let rates = RATED.iter().zip(found).map(|((word, goal), n)| (word, goal, n, 1000.0 * f64::from(n)));
    let frequent = rates.filter(|(_, goal, n, thousand)| *n > 1 && *thousand > **goal * f64::from(n_words));
    frequent.map(|(word, goal, n, _)| format!("{group}: `{word}` {n} times, more than {goal} in 1,000 words")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_the_rules() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root).expect("the pages can be read"), Vec::<String>::new());
    }

    #[test]
    fn terms_that_are_defined_twice_are_found() {
        let glossary = "| term | meaning |\n| --- | --- |\n| tape | a |\n| lane, Tape | b |\n| mask | c |\n";
        assert_eq!(repeated_terms(glossary), ["docs/glossary.md: `tape` is defined 2 times"]);
    }

    #[test]
    fn frequent_words_are_found_in_prose_only() {
        let text = "What is told is told.\n```text\ndear dear dear\n```\nA `dear` word.\n";
        assert_eq!(frequent_words("a", text), ["a: `told` 2 times, more than 0.1 in 1,000 words"]);
    }

    #[test]
    fn long_and_unlisted_decisions_are_found() {
        let folder = std::env::temp_dir().join(format!("chainrule-decisions-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("README.md"), "[1](0001-a.md)\n").expect("a page");
        std::fs::write(folder.join("0001-a.md"), "line\n".repeat(61)).expect("a page");
        std::fs::write(folder.join("0002-b.md"), "line\n".repeat(60)).expect("a page");
        let faults = decisions(&folder);
        std::fs::remove_dir_all(&folder).expect("the folder is removed");
        let faults = faults.expect("the pages can be read");
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("0001-a.md: 61 lines") && faults[1].contains("0002-b.md: not listed"), "{faults:?}");
    }
}
