//! Shape of functions and structs in the sources of crates: numbers of parameters and fields, `true` or `false` passed
//! for `bool` parameters, and lengths of functions.
//!
//! A function has at most `MAX_PARAMETERS` parameters besides `self` and the token of Python's interpreter, where a
//! tuple counts as its elements; a struct has at most `MAX_FIELDS` fields. A literal `true` or `false` in a call does
//! not say what it selects, while a computed `bool` has a name (decision 0072). [`LIMITS`] are the numbers of
//! exceptions that remain: more of them are a fault.
//! A change that removes exceptions lowers the limits.
//!
//! A function has at most `MAX_LINES` lines, unless it is a table: one `match` with short arms and little around it.
//! `LONG` lists the exceptions with their reasons.

use crate::walk::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of parameters of a function.
const MAX_PARAMETERS: usize = 6;

/// Maximum number of fields of a struct.
const MAX_FIELDS: usize = 15;

/// Maximum number of lines of a function, from its name to its closing brace.
const MAX_LINES: usize = 80;

/// Maximum number of lines of an arm of a table.
const MAX_ARM: usize = 30;

/// Maximum number of lines before a table in a function, and after it.
const MAX_AROUND: usize = 10;

/// Functions above `MAX_LINES` by file and name, with the reason.
const LONG: &[(&str, &str, &str)] = &[
    ("chainrule/src/straight.rs", "unroll_now", "checks in a fixed order, then one construction"),
    ("interpret/src/lanes.rs", "run_lanes", "the loop of an interpreter: its registers stay local"),
    ("kernel/src/from_ir/offers.rs", "spread", "a table by expression in a loop over statements"),
    ("kernel/src/lanes/distribute/find.rs", "walk", "a table by event in a loop over events"),
    ("kernel/src/lanes/distribute/write.rs", "write", "one nest, written from the outside in"),
    ("kernel/src/loops/split.rs", "candidates", "a table by event in a loop over events"),
    ("native/src/lower/lanes.rs", "plan", "one walk that gives up at the first obstacle"),
    ("native/src/lower/plan.rs", "new", "steps that pass on most of their results"),
    ("native/src/lower/plan.rs", "next_uses", "the longest walk of short compilations: its state stays local"),
    ("rewrite/src/fusion.rs", "stmt", "a table by expression after the rules for operands"),
    ("rewrite/src/merge.rs", "grouped", "one walk whose tables refer to each other"),
    ("rewrite/src/rebuild/group.rs", "merge_any", "one loop, written from the outside in"),
    ("rewrite/src/rebuild/read.rs", "narrow", "a table by expression after definitions that its arms share"),
    ("rewrite/src/rebuild/read.rs", "write", "a table by expression after definitions that its arms share"),
];

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
    /// Long functions, with file, name and number of lines.
    long: Vec<(String, String, usize)>,
    n_functions: usize,
    /// Positions of `bool` parameters, without `self`, by crate and function.
    flags: BTreeMap<(String, String), BTreeSet<usize>>,
}

impl Report {
    /// Returns the numbers of exceptions.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape { parameters: self.parameters.len(), fields: self.fields.len(), literals: self.literals.len() }
    }

    /// Returns all exceptions: functions with many parameters, structs, calls, then long functions.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let long = self.long.iter().map(|(file, item, n)| format!("{file}: `{item}` has {n} lines"));
        self.parameters.iter().chain(&self.fields).chain(&self.literals).cloned().chain(long)
    }

    /// Returns the numbers of functions, and of those that are longer than `MAX_LINES` and no table.
    #[must_use]
    pub fn lengths(&self) -> (usize, usize) {
        (self.n_functions, self.long.len())
    }

    /// Returns the differences between the long functions and `LONG`.
    fn length_faults(&self) -> Vec<String> {
        let is_listed = |file: &str, item: &str| LONG.iter().any(|row| row.0 == file && row.1 == item);
        let is_long =
            |row: &&(&str, &str, &str)| self.long.iter().any(|(file, item, _)| row.0 == file && row.1 == item);
        let more = self.long.iter().filter(|(file, item, _)| !is_listed(file, item));
        let gone = LONG.iter().filter(|row| !is_long(row));
        more.map(|(file, item, n)| format!("{file}: `{item}` has {n} lines, above {MAX_LINES}"))
            .chain(gone.map(|(file, item, _)| format!("`{item}` of {file} is no longer long: remove it from `LONG`")))
            .collect()
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
                self.length(name, item, &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..]);
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

    /// Records the length of a function in formatted code, whose first line is that of `text`.
    fn length(&mut self, file: &str, item: &str, text: &str) {
        let mut lines = text.lines();
        let Some(first) = lines.next() else { return };
        let indent = &first[..first.len() - first.trim_start().len()];
        let (end, inner) = (format!("{indent}}}"), format!("{indent}    "));
        let is_signature = |line: &&str| !line.ends_with('{') && !line.ends_with(['}', ';']);
        let n_signature = std::iter::once(first).chain(lines.clone()).take_while(is_signature).count() + 1;
        if text.lines().nth(n_signature - 1).is_none_or(|line| !line.ends_with('{')) {
            // A declaration, or all in one line.
            self.n_functions += usize::from(first.ends_with('}'));
            return;
        }
        self.n_functions += 1;
        let body: Vec<&str> = text.lines().skip(n_signature).take_while(|line| *line != end).collect();
        let n_lines = n_signature + body.len() + 1;
        if n_lines > MAX_LINES && !is_table(&body, &inner) {
            self.long.push((file.to_owned(), item.to_owned(), n_lines));
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

/// Returns whether the body of a function, indented by `indent`, is a table.
fn is_table(body: &[&str], indent: &str) -> bool {
    let starts = |line: &&str| {
        ["match ", "Ok(match "].iter().any(|word| line.strip_prefix(indent).is_some_and(|rest| rest.starts_with(word)))
    };
    let Some(begin) = body.iter().position(starts) else { return false };
    let ends = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}'));
    let Some(n_inside) = body[begin + 1..].iter().position(ends) else { return false };
    let n_after = body.len() - begin - n_inside - 2;
    let arms = body[begin + 1..begin + 1 + n_inside].chunk_by(|_, line| {
        let arm = line.strip_prefix(indent).and_then(|rest| rest.strip_prefix("    "));
        arm.is_none_or(|arm| arm.is_empty() || arm.starts_with([' ', '}', '|']))
    });
    begin <= MAX_AROUND && n_after <= MAX_AROUND && arms.map(<[&str]>::len).all(|n| n <= MAX_ARM)
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
    let report = report(root)?;
    let found = report.shape();
    let kinds = [
        ("functions with more than 6 parameters", found.parameters, LIMITS.parameters),
        ("structs with more than 15 fields", found.fields, LIMITS.fields),
        ("calls with a literal for a `bool` parameter", found.literals, LIMITS.literals),
    ];
    let faults = kinds.into_iter().filter(|(_, found, limit)| found > limit);
    Ok(faults
        .map(|(kind, found, limit)| format!("{found} {kind}, at most {limit}: `cargo xtask shape` lists them"))
        .chain(report.length_faults())
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
    fn long_functions_are_found_unless_they_are_tables_of_short_arms() {
        let mut report = Report::default();
        let filled = |line: &str| format!("{line}\n").repeat(79);
        let plain = format!("impl S {{\n    fn f(\n        a: u8,\n    ) {{\n{}    }}\n}}\n", filled("        g();"));
        let table = format!("fn h() {{\n    let a = 1;\n    match a {{\n{}    }}\n}}\n", filled("        1 => 2,"));
        let long_arm = table.replace("1 => 2", "    g()").replace("fn h", "fn k");
        report.items("a.rs", &format!("{plain}trait T {{\n    fn declared();\n}}\n{table}{long_arm}fn short() {{}}\n"));
        assert_eq!(report.lines().collect::<Vec<_>>(), ["a.rs: `f` has 83 lines", "a.rs: `k` has 84 lines"]);
        assert_eq!(report.lengths(), (4, 2));
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
