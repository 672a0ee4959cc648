//! Checks of the Markdown pages: relative links lead to a file, anchors to a heading, and no page shows a command that
//! cannot work.

use crate::walk::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Commands that fail for everybody, each with the reason.
const IMPOSSIBLE: &[(&str, &str)] = &[
    ("cargo add chainrule", "no package of that name is published: give a path or a git address"),
    ("cargo install chainrule", "no package of that name is published: give a path or a git address"),
];

/// Returns all faults of the Markdown pages below `root`, one line each. Linear in the size of the pages.
///
/// # Errors
/// A folder or a page that cannot be read.
pub fn check(root: &Path) -> std::io::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for page in files(root, "md")? {
        let text = std::fs::read_to_string(&page)?;
        pages.insert(page, text);
    }
    let mut faults = Vec::new();
    for (path, text) in &pages {
        for (line, target) in links(text) {
            if let Some(reason) = broken(path, target, &pages) {
                faults.push(format!("{}:{line}: link `{target}`: {reason}", path.display()));
            }
        }
        for (line, text) in text.lines().enumerate() {
            for (command, reason) in IMPOSSIBLE.iter().filter(|(command, _)| text.contains(command)) {
                faults.push(format!("{}:{}: `{command}` cannot work: {reason}", path.display(), line + 1));
            }
        }
    }
    Ok(faults)
}

/// Lines outside of fenced blocks, with their numbers from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((i + 1, line))
    })
}

/// Targets of inline links and pictures, with their line numbers.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (start, _) in line.match_indices("](") {
            let target = &line[start + 2..];
            if let Some(end) = target.find(')') {
                found.push((number, &target[..end]));
            }
        }
    }
    found
}

/// Returns why a link leads nowhere, or `None` if it leads somewhere or out of the repository.
fn broken(page: &Path, target: &str, pages: &BTreeMap<PathBuf, String>) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { page.to_path_buf() } else { page.parent()?.join(file) };
    let Ok(path) = path.canonicalize() else { return Some("there is no such file".to_owned()) };
    let anchor = anchor?;
    let page = pages.iter().find(|(p, _)| p.canonicalize().is_ok_and(|p| p == path));
    let Some((_, text)) = page else { return Some("an anchor into a file that is no page".to_owned()) };
    (!anchors(text).iter().any(|a| a == anchor)).then(|| "the page has no such heading".to_owned())
}

/// Anchors of a page's headings, by the rule of GitHub: lower case, punctuation left out, spaces as hyphens, repeated
/// headings numbered.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (_, line) in prose(text) {
        let Some(title) = line.starts_with('#').then(|| line.trim_start_matches('#')) else { continue };
        let Some(title) = title.strip_prefix(' ') else { continue };
        let slug: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let count = seen.entry(slug.clone()).or_insert(0);
        found.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_all_pages_lead_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root).expect("the pages can be read"), Vec::<String>::new());
    }

    #[test]
    fn broken_links_anchors_and_commands_are_found() {
        let folder = std::env::temp_dir().join(format!("chainrule-links-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let page = "# One `F~` title\n## Twice\n## Twice\n\
                    [a](#one-f-title) [b](#twice-1) [c](b.md) [d](#nothing) [e](none.md) ![f](none.svg)\n\
                    ```text\n[g](none.md)\n```\nrun `cargo add chainrule`\n";
        std::fs::write(folder.join("a.md"), page).expect("a page");
        std::fs::write(folder.join("b.md"), "[a](a.md#twice) [b](a.md#thrice)\n").expect("a page");
        let faults = check(&folder);
        std::fs::remove_dir_all(&folder).expect("the folder is removed");
        let faults = faults.expect("the pages can be read").join("\n");
        for expected in ["`#nothing`", "`none.md`", "`none.svg`", "`a.md#thrice`", "`cargo add chainrule` cannot work"]
        {
            assert!(faults.contains(expected), "{expected} in\n{faults}");
        }
        assert_eq!(faults.lines().count(), 5, "{faults}");
    }
}
