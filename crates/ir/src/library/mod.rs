//! M~, the linear algebra of the dF~ paper (figure 4) with additions, written in F~.
//!
//! Every program sees it without an import, and may shadow its names. A module is read if a program mentions one of its
//! names, so that a program only pays for modules that it may use. Names that start with `_` are private to the module.

use rustc_hash::FxHashSet;
use std::sync::OnceLock;

/// A module of the library.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// Name.
    pub name: &'static str,
    /// Text.
    pub text: &'static str,
}

/// Modules of the library; each sees the previous ones. The first is always read.
pub const MODULES: [Module; 3] = [
    Module { name: "linalg", text: include_str!("linalg.ft") },
    Module { name: "matrices", text: include_str!("matrices.ft") },
    Module { name: "sorting", text: include_str!("sorting.ft") },
];

/// Returns the public names of each module, in the order of the text.
pub fn names() -> &'static [Vec<&'static str>; MODULES.len()] {
    static NAMES: OnceLock<[Vec<&str>; MODULES.len()]> = OnceLock::new();
    NAMES.get_or_init(|| {
        MODULES.map(|module| {
            let defined = module.text.lines().filter_map(|line| line.strip_prefix("let "));
            defined.filter_map(|rest| rest.split(' ').next()).filter(|name| !name.starts_with('_')).collect()
        })
    })
}

/// Returns whether `text` may use definitions of module `idx`: whether one of its names occurs in it as a word. Linear.
pub(crate) fn mentions(text: &str, idx: usize) -> bool {
    static SETS: OnceLock<[FxHashSet<&str>; MODULES.len()]> = OnceLock::new();
    let sets = SETS.get_or_init(|| names().each_ref().map(|names| names.iter().copied().collect()));
    let word = |c: char| c.is_alphanumeric() || c == '_';
    idx == 0 || sets.get(idx).is_some_and(|set| text.split(|c| !word(c)).any(|word| set.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_read_where_their_names_occur() {
        assert!(names()[0].contains(&"vectorMap") && names()[1].contains(&"cholesky"));
        assert!(mentions("", 0) && mentions("let f = fun a -> det(a)", 1));
        assert!(!mentions("let f = fun details -> determinant", 1));
    }
}
