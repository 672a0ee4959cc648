//! Patterns of sparse results: where their entries are, as static arrays beside a function.

use crate::Scope;
use chainrule_base::Name;

/// The pattern of a sparse matrix that is a result of a function: row and column of each entry, row by row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The result that has the entries.
    pub result: Name,
    /// Number of rows.
    pub n_rows: usize,
    /// Number of columns.
    pub n_columns: usize,
    /// Row of each entry.
    pub rows: Vec<usize>,
    /// Column of each entry.
    pub columns: Vec<usize>,
}

/// Names of the arrays of a pattern.
pub struct PatternNames {
    /// The array of rows.
    pub rows: String,
    /// The array of columns.
    pub columns: String,
    /// The number of entries.
    pub nnz: String,
}

impl PatternNames {
    /// Takes names for the pattern of `result` of the function called `function`, which has `n_patterns`: `f_rows`,
    /// `f_columns` and `f_nnz`, with the name of the result if there are several.
    pub fn take(function: &str, result: &str, n_patterns: usize, file: &mut Scope, reserved: fn(&str) -> bool) -> Self {
        let stem = if n_patterns == 1 { function.to_owned() } else { format!("{function}_{result}") };
        let mut take = |what: &str| {
            let name = crate::names::spell(&format!("{stem}_{what}"), reserved);
            // Macros and constants have the name in capitals.
            let is_free = |scope: &Scope, name: &str| {
                !reserved(name) && scope.is_free(name) && scope.is_free(&name.to_ascii_uppercase())
            };
            let name = file.pick(&name, "", is_free);
            file.reserve(name.clone());
            file.reserve(name.to_ascii_uppercase());
            name
        };
        Self { rows: take("rows"), columns: take("columns"), nnz: take("nnz") }
    }
}

/// `items` separated by commas, in lines of a readable length.
#[must_use]
pub fn lines(items: &[usize]) -> String {
    const PER_LINE: usize = 16;
    let line = |items: &[usize]| {
        let items: Vec<String> = items.iter().map(ToString::to_string).collect();
        format!("    {},\n", items.join(", "))
    };
    items.chunks(PER_LINE).map(line).collect()
}
