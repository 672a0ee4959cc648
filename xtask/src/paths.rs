//! Checks of the names of code in the Markdown pages: a module path or a file in backticks exists.
//!
//! | in backticks | checked |
//! | --- | --- |
//! | `kernel::lanes::cost` | the modules exist; the last name may be an item that the module's file mentions |
//! | `native/tests/tiles.rs` | a file of the repository, or of a folder in `crates` |
//!
//! Names of a single segment, and paths that start with no crate of `crates`, are not checked.

use crate::links::prose;
use crate::walk::files;
use std::path::{Path, PathBuf};

/// Extensions of the files that pages name.
const SOURCES: &[&str] = &[".rs", ".ft", ".py"];

/// Returns the names in the pages below `root` that lead nowhere, one line each.
///
/// # Errors
/// A folder or a page that cannot be read.
pub fn check(root: &Path) -> std::io::Result<Vec<String>> {
    let mut pages = files(&root.join("docs"), "md")?;
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    let mut faults = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page)?;
        for (number, line) in prose(&text) {
            for name in line.split('`').skip(1).step_by(2) {
                if is_path(name) && !has_module(root, name) || is_file(name) && !has_file(root, name) {
                    faults.push(format!("{}:{number}: `{name}` is not in the repository", page.display()));
                }
            }
        }
    }
    Ok(faults)
}

/// Returns whether `name` is a path of modules in lower case, perhaps to an item.
fn is_path(name: &str) -> bool {
    name.contains("::") && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
}

/// Returns whether `name` is a file in a folder.
fn is_file(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    name.contains('/') && name.chars().all(plain) && SOURCES.iter().any(|end| name.ends_with(end))
}

/// Returns the files that may define the module at `path` below the folder `crates`.
fn candidates(crates: &Path, path: &[&str]) -> Vec<PathBuf> {
    let folder = crates.join(path[0]).join("src");
    let stem = path[1..].iter().fold(folder.clone(), |folder, part| folder.join(part));
    if path.len() == 1 { vec![folder.join("lib.rs")] } else { vec![stem.with_extension("rs"), stem.join("mod.rs")] }
}

fn has_module(root: &Path, name: &str) -> bool {
    let crates = root.join("crates");
    let parts: Vec<&str> = name.trim_start_matches("chainrule_").split("::").collect();
    if !crates.join(parts[0]).is_dir() {
        return true;
    }
    for n in (1..=parts.len()).rev() {
        let Some(file) = candidates(&crates, &parts[..n]).into_iter().find(|file| file.is_file()) else { continue };
        let rest = &parts[n..];
        let mentions = |item: &&str| std::fs::read_to_string(&file).is_ok_and(|text| text.contains(*item));
        return rest.len() <= 2 && rest.iter().all(mentions);
    }
    false
}

fn has_file(root: &Path, name: &str) -> bool {
    if root.join(name).exists() || root.join("crates").join(name).exists() {
        return true;
    }
    // A file named by its last folders: `optimise/extract/local.rs`.
    let extension = name.rsplit('.').next().unwrap_or_default();
    files(root, extension).is_ok_and(|all| all.iter().any(|file| file.ends_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn names_of_code_in_the_pages_exist() {
        assert_eq!(check(&root()).expect("the pages can be read"), Vec::<String>::new());
    }

    #[test]
    fn missing_modules_items_and_files_are_found() {
        for name in ["kernel::verify", "chainrule::Module", "std::mem::swap", "chainrule_ir::verify", "syntax::tree"] {
            assert!(is_path(name) && has_module(&root(), name), "{name}");
        }
        for name in ["kernel::nowhere", "kernel::verify::nowhere", "chainrule_ir::nowhere"] {
            assert!(is_path(name) && !has_module(&root(), name), "{name}");
        }
        for name in ["xtask/src/paths.rs", "kernel/src/lib.rs", "src/paths.rs"] {
            assert!(is_file(name) && has_file(&root(), name), "{name}");
        }
        assert!(is_file("kernel/src/nowhere.rs") && !has_file(&root(), "kernel/src/nowhere.rs"));
        assert!(!is_file("a/b") && !is_file("lib.rs") && !is_path("verify"));
    }
}
