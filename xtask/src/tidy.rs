//! Checks of the structure: dependencies among crates, in the manifests and in `ARCHITECTURE.md`; length of files.

use crate::walk::files;
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeSet;
use std::path::Path;

/// Crates from the bottom up, each with the crates of the workspace that it may use. The same table
/// stands in `ARCHITECTURE.md`.
pub const LAYERS: &[(&str, &[&str])] = &[
    ("chainrule-base", &[]),
    ("chainrule-mathfun", &[]),
    ("chainrule-ops", &["chainrule-base", "chainrule-mathfun"]),
    ("chainrule-syntax", &["chainrule-base"]),
    ("chainrule-ir", &["chainrule-base", "chainrule-ops", "chainrule-syntax"]),
    ("chainrule-autodiff", &["chainrule-base", "chainrule-ops", "chainrule-ir"]),
    ("chainrule-rewrite", &["chainrule-base", "chainrule-ops", "chainrule-ir"]),
    ("chainrule-graph", &["chainrule-base", "chainrule-ops"]),
    ("chainrule-accumulate", &["chainrule-base", "chainrule-ops", "chainrule-graph"]),
    ("chainrule-search", &["chainrule-base", "chainrule-ops", "chainrule-accumulate"]),
    ("chainrule-kernel", &["chainrule-base", "chainrule-ops", "chainrule-ir", "chainrule-graph"]),
    ("chainrule-runtime", &["chainrule-base", "chainrule-ops", "chainrule-kernel"]),
    (
        "chainrule-scalarise",
        &[
            "chainrule-base",
            "chainrule-ops",
            "chainrule-ir",
            "chainrule-autodiff",
            "chainrule-graph",
            "chainrule-accumulate",
            "chainrule-kernel",
        ],
    ),
    (
        "chainrule-native",
        &["chainrule-base", "chainrule-mathfun", "chainrule-ops", "chainrule-kernel", "chainrule-runtime"],
    ),
    (
        "chainrule-interpret",
        &["chainrule-base", "chainrule-mathfun", "chainrule-ops", "chainrule-kernel", "chainrule-runtime"],
    ),
    (
        "chainrule-cranelift",
        &["chainrule-base", "chainrule-mathfun", "chainrule-ops", "chainrule-kernel", "chainrule-runtime"],
    ),
    ("chainrule-text", &["chainrule-base", "chainrule-ops", "chainrule-kernel"]),
    ("chainrule-c", &["chainrule-base", "chainrule-mathfun", "chainrule-ops", "chainrule-kernel", "chainrule-text"]),
    ("chainrule-rust", &["chainrule-base", "chainrule-mathfun", "chainrule-ops", "chainrule-kernel", "chainrule-text"]),
    // For tests only.
    ("chainrule-cases", &[]),
    (
        "chainrule-backend-tests",
        &[
            "chainrule-cases",
            "chainrule-base",
            "chainrule-ops",
            "chainrule-ir",
            "chainrule-graph",
            "chainrule-kernel",
            "chainrule-runtime",
            "chainrule-native",
            "chainrule-interpret",
        ],
    ),
    (
        "chainrule",
        &[
            "chainrule-base",
            "chainrule-mathfun",
            "chainrule-ops",
            "chainrule-syntax",
            "chainrule-ir",
            "chainrule-autodiff",
            "chainrule-rewrite",
            "chainrule-graph",
            "chainrule-accumulate",
            "chainrule-search",
            "chainrule-kernel",
            "chainrule-runtime",
            "chainrule-scalarise",
            "chainrule-native",
            "chainrule-cranelift",
            "chainrule-interpret",
            "chainrule-text",
            "chainrule-c",
            "chainrule-rust",
        ],
    ),
    // For fuzzers only.
    (
        "chainrule-fuzz",
        &[
            "chainrule-ops",
            "chainrule-ir",
            "chainrule-autodiff",
            "chainrule-rewrite",
            "chainrule-graph",
            "chainrule-kernel",
            "chainrule-interpret",
            "chainrule-runtime",
            "chainrule-backend-tests",
            "chainrule",
        ],
    ),
];

/// Returns whether a package on top of the library (interface, example, benchmark) may use `dependency`: the library
/// and the examples, but no crate below; benchmarks also measure the crates in [`MEASURED`].
fn allowed_on_top(package: &str, dependency: &str) -> bool {
    dependency == "chainrule"
        || dependency.starts_with("chainrule-example-")
        || (package == "chainrule-bench" && MEASURED.contains(&dependency))
}

/// Crates below the library that benchmarks measure on their own, and the one with random arguments for them.
const MEASURED: &[&str] = &["chainrule-cases", "chainrule-mathfun", "chainrule-ops"];

/// Maximum length of a file in lines. A longer file gives the reason in its module documentation, after `Long:`.
const LONG_FILE: usize = 800;

/// Returns all faults, one line each.
///
/// # Errors
/// The workspace cannot be read.
pub fn check() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let ours: Vec<String> = metadata.packages.iter().map(|p| p.name.to_string()).collect();
    let mut faults = Vec::new();
    for package in &metadata.packages {
        let name = package.name.to_string();
        let allowed = LAYERS.iter().find(|(layer, _)| *layer == name).map(|(_, uses)| *uses);
        for dependency in package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            if !ours.contains(&dependency.name) {
                continue;
            }
            let fine = match allowed {
                Some(uses) => uses.contains(&dependency.name.as_str()),
                None => allowed_on_top(&name, &dependency.name),
            };
            if !fine {
                faults.push(format!("{name} may not use {}", dependency.name));
            }
        }
        if let Some(folder) = package.manifest_path.parent() {
            long_files(&folder.join("src").into_std_path_buf(), &mut faults)?;
        }
    }
    for (layer, _) in LAYERS {
        if !ours.iter().any(|name| name == layer) {
            faults.push(format!("{layer} stands in the table of layers but not in the workspace"));
        }
    }
    let page = metadata.workspace_root.join("ARCHITECTURE.md");
    faults.extend(table_faults(&std::fs::read_to_string(page)?));
    Ok(faults)
}

/// Returns the differences between [`LAYERS`] and the table of crates in `ARCHITECTURE.md`. A row "all above" stands
/// for any crates.
fn table_faults(page: &str) -> Vec<String> {
    let short = |name: &str| name.strip_prefix("chainrule-").unwrap_or(name).to_owned();
    let layers = LAYERS.iter().filter(|(layer, _)| *layer != "chainrule-fuzz");
    let fault = |(layer, uses): &(&str, &[&str])| {
        let name = short(layer);
        let start = format!("| `{name}` |");
        let Some(row) = page.lines().find(|line| line.starts_with(&start)) else {
            return Some(format!("ARCHITECTURE.md has no row for the crate `{name}`"));
        };
        let cell = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default().trim();
        let written: BTreeSet<String> = match row.trim_end().ends_with("| |") {
            true => BTreeSet::new(),
            false => cell.split(", ").map(str::to_owned).collect(),
        };
        let right: BTreeSet<String> = uses.iter().map(|name| short(name)).collect();
        let is_right = cell == "all above" || written == right;
        (!is_right).then(|| format!("ARCHITECTURE.md: the row of `{name}` does not list the crates that it may use"))
    };
    layers.filter_map(fault).collect()
}

fn long_files(folder: &Path, faults: &mut Vec<String>) -> std::io::Result<()> {
    for path in files(folder, "rs")? {
        let text = std::fs::read_to_string(&path)?;
        let says_why = text.lines().take_while(|l| l.starts_with("//!")).any(|l| l.contains("Long:"));
        if text.lines().count() > LONG_FILE && !says_why {
            faults.push(format!("{} is longer than {LONG_FILE} lines and does not say why", path.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_in_order() {
        assert_eq!(super::check().expect("the workspace can be read"), Vec::<String>::new());
    }

    #[test]
    fn rows_of_crates_are_compared() {
        let faults =
            super::table_faults("| `base` | ids | |\n| `syntax` | parser | base |\n| `graph` | nodes | base |\n");
        assert!(!faults.iter().any(|fault| fault.contains("`base`") || fault.contains("`syntax`")), "{faults:?}");
        assert!(faults.contains(&"ARCHITECTURE.md has no row for the crate `ir`".to_owned()));
        assert!(faults.iter().any(|fault| fault.contains("the row of `graph`")));
    }
}
