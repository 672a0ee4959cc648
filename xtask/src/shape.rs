//! Shape of functions and structs in the sources of crates: numbers of parameters and fields, and `true` or `false`
//! passed for `bool` parameters.
//!
//! A function has at most `MAX_PARAMETERS` parameters besides `self` and the token of Python's interpreter, where a
//! tuple counts as its elements; a struct has at most `MAX_FIELDS` fields. A literal `true` or `false` in a call does
//! not say what it selects, while a computed `bool` has a name (decision 0072). [`LIMITS`] are the numbers of
//! exceptions that remain: more of them are a fault.
//! A change that removes exceptions lowers the limits.

use crate::walk::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of parameters of a function.
const MAX_PARAMETERS: usize = 6;

/// Maximum number of fields of a struct.
const MAX_FIELDS: usize = 15;

/// Structs that are rows of a table, or options that users set by name: any number of fields.
const TABLES: &[&str] = &["CompileOptions", "Row"];

/// Names of parameters that are truth values of the compiled program, not choices of its compiler.
const VALUES: &[&str] = &["b", "holds", "mask", "value"];

/// Number of remaining exceptions.
pub const LIMITS: Shape = Shape { parameters: 0, fields: 0, literals: 0 };

/// Numbers of exceptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Functions with more than `MAX_PARAMETERS` parameters.
    pub parameters: usize,
    /// Structs with more than `MAX_FIELDS` fields.
    pub fields: usize,
    /// Calls that pass `true` or `false` for a `bool` parameter.
    pub literals: usize,
}

/// Exceptions, one line each.
#[derive(Default)]
pub struct Report {
    parameters: Vec<String>,
    fields: Vec<String>,
    literals: Vec<String>,
    /// Positions of `bool` parameters, without `self`, by crate and function.
    flags: BTreeMap<(String, String), BTreeSet<usize>>,
}

impl Report {
    /// Returns the numbers of exceptions.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape { parameters: self.parameters.len(), fields: self.fields.len(), literals: self.literals.len() }
    }

    /// Returns all exceptions: functions, structs, then calls.
    pub fn lines(&self) -> impl Iterator<Item = &String> {
        self.parameters.iter().chain(&self.fields).chain(&self.literals)
    }

    /// Records the functions and structs of a file.
    fn items(&mut self, name: &str, text: &str) {
        for (at, keyword) in keywords(text) {
            let rest = &text[at + keyword.len()..];
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (item, rest) = rest.split_at(end);
            let Some(rest) = after_generics(rest) else { continue };
            if keyword == "fn " {
                self.function(name, item, rest);
            } else {
                self.structure(name, item, rest);
            }
        }
    }

    fn function(&mut self, file: &str, item: &str, rest: &str) {
        let Some(list) = inside(rest, '(') else { return };
        let (mut n, mut position) = (0, 0);
        for (pattern, ty) in pieces(list).into_iter().filter_map(|piece| piece.split_once(':')) {
            let (pattern, ty) = (pattern.trim(), ty.trim());
            if pattern == "self" || pattern == "mut self" {
                continue;
            }
            if ty != "Python<'_>" {
                n += inside(ty, '(').map_or(1, |tuple| pieces(tuple).len().max(1));
            }
            if ty == "bool" && !VALUES.contains(&pattern) {
                self.flags.entry((crate_of(file), item.to_owned())).or_default().insert(position);
            }
            position += 1;
        }
        if n > MAX_PARAMETERS {
            self.parameters.push(format!("{file}: `{item}` has {n} parameters"));
        }
    }

    fn structure(&mut self, file: &str, item: &str, rest: &str) {
        let Some(body) = inside(rest.trim_start(), '{') else { return };
        let n = pieces(body).len();
        if n > MAX_FIELDS && !TABLES.contains(&item) {
            self.fields.push(format!("{file}: `{item}` has {n} fields"));
        }
    }
}

impl Report {
    /// Records the calls of a file that pass a literal for a `bool` parameter of a function of the same crate.
    fn calls(&mut self, file: &str, text: &str) {
        let mut found = Vec::new();
        for (open, _) in text.match_indices('(') {
            let before = &text[..open];
            let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
            let item = &before[start..];
            if before[..start].ends_with("fn ") {
                continue;
            }
            let Some(positions) = self.flags.get(&(crate_of(file), item.to_owned())) else { continue };
            let Some(list) = inside(&text[open..], '(') else { continue };
            let is_literal = |piece: &&str| matches!(piece.trim(), "true" | "false");
            let literals = arguments(list).into_iter().enumerate().filter(|(at, piece)| {
                // `Type::method(self, ..)` has one more.
                (positions.contains(at) || at.checked_sub(1).is_some_and(|at| positions.contains(&at)))
                    && is_literal(piece)
            });
            let line = text[..open].matches('\n').count() + 1;
            found.extend(literals.map(|(_, piece)| format!("{file}:{line}: `{item}` gets `{}`", piece.trim())));
        }
        self.literals.append(&mut found);
    }
}

/// Returns the crate of a file below `crates`.
fn crate_of(file: &str) -> String {
    file.split('/').next().unwrap_or_default().to_owned()
}

/// Returns the text without comments and test modules, with the same lines.
fn code(text: &str) -> String {
    let text = without_comments(text);
    // Test modules come last.
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

/// Returns the text with each comment line empty.
fn without_comments(text: &str) -> String {
    let line = |line: &str| if line.trim_start().starts_with("//") { String::new() } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the positions of items that begin with `fn` or `struct`, in order of keywords.
fn keywords(text: &str) -> Vec<(usize, &'static str)> {
    let find = |keyword: &'static str| text.match_indices(keyword).map(move |(at, _)| (at, keyword));
    let starts_word = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '"');
    find("fn ").chain(find("struct ")).filter(|(at, _)| starts_word(*at)).collect()
}

/// Returns the text after generic parameters and `where` clauses of a struct, if there are any.
fn after_generics(text: &str) -> Option<&str> {
    if !text.starts_with('<') {
        return Some(text);
    }
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[at + 1..]);
        }
        before = c;
    }
    None
}

/// Returns the text inside the bracket that `text` starts with.
fn inside(text: &str, open: char) -> Option<&str> {
    if !text.starts_with(open) {
        return None;
    }
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[1..at]);
        }
    }
    None
}

/// Returns the pieces of parameters or fields between commas outside of brackets, without empty ones.
fn pieces(text: &str) -> Vec<&str> {
    split(text, "([{<", ")]}>")
}

/// Returns the arguments of a call, in which angles are operators.
fn arguments(text: &str) -> Vec<&str> {
    split(text, "([{", ")]}")
}

fn split<'t>(text: &'t str, opening: &str, closing: &str) -> Vec<&'t str> {
    let (mut depth, mut start, mut before) = (0usize, 0, ' ');
    let mut all = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            _ if opening.contains(c) => depth += 1,
            '>' if before == '-' || before == '=' => {}
            _ if closing.contains(c) => depth -= 1,
            ',' if depth == 0 => {
                all.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    all.push(&text[start..]);
    all.into_iter().filter(|piece| !piece.trim().is_empty()).collect()
}

/// Returns the exceptions in the sources of all crates below `root`.
///
/// # Errors
/// A folder or a file that cannot be read.
pub fn report(root: &Path) -> std::io::Result<Report> {
    let mut report = Report::default();
    let crates = root.join("crates");
    let mut sources = Vec::new();
    for path in files(&crates, "rs")? {
        let name = path.strip_prefix(&crates).unwrap_or(&path);
        if name.iter().nth(1).is_some_and(|folder| folder == "src") {
            sources.push((name.display().to_string(), code(&std::fs::read_to_string(&path)?)));
        }
    }
    sources.iter().for_each(|(name, text)| report.items(name, text));
    sources.iter().for_each(|(name, text)| report.calls(name, text));
    Ok(report)
}

/// Returns a fault for each kind of exceptions that are more than its limit.
///
/// # Errors
/// As [`report`].
pub fn check(root: &Path) -> std::io::Result<Vec<String>> {
    let found = report(root)?.shape();
    let kinds = [
        ("functions with more than 6 parameters", found.parameters, LIMITS.parameters),
        ("structs with more than 15 fields", found.fields, LIMITS.fields),
        ("calls with a literal for a `bool` parameter", found.literals, LIMITS.literals),
    ];
    let faults = kinds.into_iter().filter(|(_, found, limit)| found > limit);
    Ok(faults
        .map(|(kind, found, limit)| format!("{found} {kind}, at most {limit}: `cargo xtask shape` lists them"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::{Report, check, code};
    use std::path::Path;

    #[test]
    fn the_number_of_exceptions_does_not_grow() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root).expect("the workspace can be read"), Vec::<String>::new());
    }

    #[test]
    fn tuples_count_as_their_elements() {
        let mut report = Report::default();
        let text = "/// fn comment(a: bool)\nfn f<T: Fn(u8) -> u8>(&self, (a, b): (u8, Map<u8, u8>), c: &[u8], d: impl Fn(u8, u8), \
                    e: [u8; 2], g: bool) -> u8 {}\nstruct S<'a> { a: &'a u8, b: (u8, u8) }\n#[cfg(test)]\nmod tests { fn t(a: bool) {} }";
        report.items("f.rs", &code(text));
        assert_eq!(report.parameters.len() + report.fields.len(), 0);
        report.items("g.rs", "fn g(a: (u8, u8), b: u8, c: (u8, u8), d: u8, e: T<(u8, u8)>) {}");
        assert_eq!(report.parameters, ["g.rs: `g` has 7 parameters"]);
    }

    #[test]
    fn literals_for_bool_parameters_are_found_in_the_same_crate() {
        let text =
            "fn f(&self, a: u8, is_b: bool) {}\nfn g() {\n    x.f(1, true);\n    f(g(true), b);\n    x.f(2, !true);\n}";
        let mut report = Report::default();
        report.items("a/src/f.rs", text);
        report.calls("a/src/f.rs", text);
        report.calls("b/src/f.rs", text);
        assert_eq!(report.literals, ["a/src/f.rs:3: `f` gets `true`"]);
    }
}
