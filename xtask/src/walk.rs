//! Files below a folder, for the checks of sources and pages.

use std::path::{Path, PathBuf};

/// Folders that hold no files of the project.
const SKIPPED: &[&str] = &[".git", "target", "node_modules"];

/// Returns the regular files below `folder` with this extension, sorted. Follows no links.
///
/// # Errors
/// A folder that cannot be read.
pub fn files(folder: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                open.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
