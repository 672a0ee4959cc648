//! Folder of a page's reader: the F~ files of the examples, and the files of the page.

use crate::page::{Page, root};
use std::path::Path;

/// Creates the folder. A file that both the page and the examples contain must be equal.
pub fn of(page: &Page) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut folders = vec![root().join("examples")];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ft") {
                write(
                    &folder.path().join(path.strip_prefix(root()).unwrap()),
                    &std::fs::read_to_string(&path).unwrap(),
                );
            }
        }
    }
    for block in &page.blocks {
        if let Some(file) = &block.file {
            let path = folder.path().join(file);
            if let Ok(text) = std::fs::read_to_string(&path) {
                assert_eq!(text, block.text, "{}: {file} is another one", page.place(block));
            }
            write(&path, &block.text);
        }
    }
    folder
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
