//! Shape of functions and structs in the sources of crates: numbers of parameters, `bool` parameters, and fields.
//!
//! A function has at most `MAX_PARAMETERS` parameters besides `self`, where a tuple counts as its elements; a struct
//! has at most `MAX_FIELDS` fields. [`LIMITS`] are the numbers of exceptions that remain: more of them are a fault.
//! A change that removes exceptions lowers the limits.

use crate::walk::files;
use std::path::Path;

/// Maximum number of parameters of a function.
const MAX_PARAMETERS: usize = 6;

/// Maximum number of fields of a struct.
const MAX_FIELDS: usize = 15;

/// Structs that are rows of a table, or options that users set by name: any number of fields.
const TABLES: &[&str] = &["CompileOptions", "Row"];

/// Number of remaining exceptions.
pub const LIMITS: Shape = Shape { parameters: 27, fields: 5, bools: 189 };

/// Numbers of exceptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Functions with more than `MAX_PARAMETERS` parameters.
    pub parameters: usize,
    /// Structs with more than `MAX_FIELDS` fields.
    pub fields: usize,
    /// Parameters that are a `bool`.
    pub bools: usize,
}

/// Exceptions, one line each.
#[derive(Default)]
pub struct Report {
    parameters: Vec<String>,
    fields: Vec<String>,
    bools: Vec<String>,
}

impl Report {
    /// Returns the numbers of exceptions.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape { parameters: self.parameters.len(), fields: self.fields.len(), bools: self.bools.len() }
    }

    /// Returns all exceptions: functions, structs, then `bool` parameters.
    pub fn lines(&self) -> impl Iterator<Item = &String> {
        self.parameters.iter().chain(&self.fields).chain(&self.bools)
    }

    fn file(&mut self, name: &str, text: &str) {
        let text = without_comments(text);
        // Test modules come last.
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
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
        let mut n = 0;
        for (pattern, ty) in pieces(list).into_iter().filter_map(|piece| piece.split_once(':')) {
            let (pattern, ty) = (pattern.trim(), ty.trim());
            if pattern == "self" || pattern == "mut self" {
                continue;
            }
            n += inside(ty, '(').map_or(1, |tuple| pieces(tuple).len().max(1));
            if ty == "bool" {
                self.bools.push(format!("{file}: `{item}` has the parameter `{pattern}: bool`"));
            }
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

/// Returns the pieces between commas outside of brackets, without empty ones.
fn pieces(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut before) = (0usize, 0, ' ');
    let mut all = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' && before != '=' => depth -= 1,
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
    for path in files(&crates, "rs")? {
        let name = path.strip_prefix(&crates).unwrap_or(&path);
        if name.iter().nth(1).is_some_and(|folder| folder == "src") {
            report.file(&name.display().to_string(), &std::fs::read_to_string(&path)?);
        }
    }
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
        ("`bool` parameters", found.bools, LIMITS.bools),
    ];
    let faults = kinds.into_iter().filter(|(_, found, limit)| found > limit);
    Ok(faults
        .map(|(kind, found, limit)| format!("{found} {kind}, at most {limit}: `cargo xtask shape` lists them"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::{Report, check};
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
        report.file("f.rs", text);
        assert_eq!(report.parameters.len() + report.fields.len(), 0);
        assert_eq!(report.bools, ["f.rs: `f` has the parameter `g: bool`"]);
        report.file("g.rs", "fn g(a: (u8, u8), b: u8, c: (u8, u8), d: u8, e: T<(u8, u8)>) {}");
        assert_eq!(report.parameters, ["g.rs: `g` has 7 parameters"]);
    }
}
