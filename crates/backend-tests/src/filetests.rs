//! Kernels as text, with arguments and outcomes: file tests that all backends share.
//!
//! ```text
//! ; Why the case exists.
//! kernel f
//! size n r0 = extent 0 of x
//! input x: real[r0] in b0
//! ...
//! ; run: [1.0, 2.0], 3
//! ; result: [3.0, 6.0]
//! ; run: [], -1
//! ; fails: failure 0: the index is -1, the length 0
//! ```
//!
//! A file has one or more kernels, each with its runs. A run has one argument for each input: a number, or nested lists
//! in row-major order. External functions return the sum of their arguments. The interpreter's tests write outcomes
//! anew; other backends only compare.

use crate::case::Case;
use crate::data::{Array, Data};
use chainrule_cases::files;
use chainrule_kernel::{Class, Kernel, Port, parse, verify};
use chainrule_runtime::RunError;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RUN: &str = "; run: ";
const RESULT: &str = "; result: ";
const FAILS: &str = "; fails: ";
const OPTIONS: &str = "; options: ";

/// Results or failure of a backend; or a difference between ways to run a case.
pub type Found = Result<Result<Vec<Data>, RunError>, String>;

/// Returns the folder of the kernels that all backends share.
#[must_use]
pub fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests")
}

/// A kernel of a file, with its arguments.
#[derive(Debug)]
pub struct Entry {
    /// Comments before the kernel.
    comments: String,
    /// Kernel of all cases.
    pub kernel: Kernel,
    /// One case for each run.
    pub cases: Vec<Case>,
}

/// Returns the kernels of a file.
///
/// # Errors
/// A listing or an argument that cannot be read, or a kernel that is not valid.
pub fn read(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<(String, String, Vec<&str>)> = Vec::new();
    let mut comments = String::new();
    for line in text.lines() {
        let current = entries.last_mut();
        match (line.strip_prefix(RUN), current) {
            (Some(run), Some((.., runs))) => runs.push(run),
            _ if line.starts_with(RESULT) || line.starts_with(FAILS) => {}
            _ if line.starts_with(';') => comments += &format!("{line}\n"),
            _ if line.starts_with("kernel ") => {
                entries.push((std::mem::take(&mut comments), format!("{line}\n"), Vec::new()));
            }
            (_, Some((_, listing, _))) => *listing += &format!("{line}\n"),
            _ => return Err(format!("`{line}` precedes the kernel")),
        }
    }
    entries.into_iter().map(|(comments, listing, runs)| entry(comments, &listing, &runs)).collect()
}

fn entry(comments: String, listing: &str, runs: &[&str]) -> Result<Entry, String> {
    let mut kernel = parse(listing).map_err(|error| format!("{error}, in\n{listing}"))?;
    for external in &mut kernel.externals {
        external.call = Some(Arc::new(|args: &[f64]| args.iter().sum()));
    }
    verify(&kernel).map_err(|errors| format!("{}\n{kernel}", errors[0]))?;
    let case = |run: &&str| {
        let inputs = arguments(&kernel, run).map_err(|reason| format!("`{run}`: {reason}"))?;
        Ok(Case { kernel: kernel.clone(), inputs })
    };
    let cases = runs.iter().map(case).collect::<Result<_, String>>()?;
    Ok(Entry { comments, kernel, cases })
}

/// Returns the text of a file with the outcomes that `run` returns.
///
/// # Errors
/// As [`read`]; a difference that `run` reports.
pub fn with_outcomes(text: &str, run: &mut dyn FnMut(&Case) -> Found) -> Result<String, String> {
    let mut written = String::new();
    for Entry { comments, kernel, cases } in read(text)? {
        written += &format!("{comments}{kernel}");
        for case in cases {
            let inputs: Vec<String> = case.inputs.iter().map(|a| show(&a.shape, &a.data)).collect();
            let _ = writeln!(written, "{RUN}{}", inputs.join(", "));
            match run(&case).map_err(|fault| format!("at {}: {fault}", inputs.join(", ")))? {
                Ok(results) => {
                    let ports = kernel.outputs.iter().zip(&results);
                    let results: Vec<String> = ports.map(|(port, data)| show(&shape(&case, port), data)).collect();
                    let _ = writeln!(written, "{RESULT}{}", results.join(", "));
                }
                Err(error) => {
                    let _ = writeln!(written, "{FAILS}{error}");
                }
            }
        }
    }
    Ok(written)
}

/// Splits a file of an emitter into its kernels and the text that they are expected to become, which starts at a line
/// such as `; f.c`. Returns the kernels, and the options that the file states.
#[must_use]
pub fn split_expected(text: &str) -> (&str, &str) {
    let is_name = |line: &&str| line.starts_with("; ") && [".h", ".rs"].iter().any(|end| line.ends_with(end));
    let input = match text.lines().find(is_name).and_then(|line| text.find(&format!("{line}\n"))) {
        Some(at) => &text[..at],
        None => text,
    };
    (input, input.lines().find_map(|line| line.strip_prefix(OPTIONS)).unwrap_or_default())
}

/// Returns the options that a line of a file names, separated by commas: `set` sets one with its number, if it has one,
/// and returns whether there is such an option.
///
/// # Errors
/// Fails for the first that is no option.
pub fn options<O: Default>(line: &str, set: impl Fn(&mut O, &str, Option<usize>) -> bool) -> Result<O, String> {
    let mut options = O::default();
    for word in line.split(", ").filter(|word| !word.is_empty()) {
        let (name, number) = match word.split_once(' ') {
            Some((name, number)) => (name, number.parse().ok()),
            None => (word, None),
        };
        if !set(&mut options, name, number) {
            return Err(format!("`{word}` is no option"));
        }
    }
    Ok(options)
}

/// Checks all files of `folder` with a backend of this process.
///
/// # Panics
/// Panics with all differences.
pub fn check(folder: &Path, mut run: impl FnMut(&Case) -> Found) {
    files::check(folder, |text| with_outcomes(text, &mut run));
}

/// Returns the cases of all files of `folder` that emitted text can run: without external functions, and with arguments
/// that fit their kernel.
///
/// # Panics
/// Panics if a file cannot be read.
#[must_use]
pub fn cases(folder: &Path) -> Vec<Case> {
    let entries = files::paths(folder).into_iter().flat_map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        read(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
    });
    entries.filter(|entry| entry.kernel.externals.is_empty()).flat_map(|entry| entry.cases).collect()
}

/// Returns the kernels of a shared file.
///
/// # Panics
/// Panics if there is no such file.
#[must_use]
pub fn kernels(name: &str) -> Vec<Kernel> {
    let text = std::fs::read_to_string(shared().join(name).with_extension("kernel")).unwrap();
    read(&text).unwrap().into_iter().map(|entry| entry.kernel).collect()
}

/// Returns the first kernel of a shared file.
///
/// # Panics
/// Panics if there is no such file.
#[must_use]
pub fn kernel(name: &str) -> Kernel {
    kernels(name).swap_remove(0)
}

fn shape(case: &Case, port: &Port) -> Vec<usize> {
    port.shape.iter().map(|extent| case.len(extent)).collect()
}

/// Returns elements as nested lists.
fn show(shape: &[usize], data: &Data) -> String {
    let Some((n, inner)) = shape.split_first() else {
        return match data {
            Data::Real(x) => format!("{:?}", x[0]),
            Data::Int(x) => format!("{}", x[0]),
        };
    };
    let len: usize = inner.iter().product();
    let items: Vec<String> = (0..*n).map(|i| show(inner, &data.part(i * len, len))).collect();
    format!("[{}]", items.join(", "))
}

/// Parses the arguments of a run.
fn arguments(kernel: &Kernel, text: &str) -> Result<Vec<Array>, String> {
    let mut rest = text;
    let mut inputs = Vec::new();
    for (i, port) in kernel.inputs.iter().enumerate() {
        if i > 0 {
            rest = rest.trim_start().strip_prefix(',').ok_or_else(|| format!("only {i} arguments are given"))?;
        }
        let mut array = Array {
            shape: vec![0; port.shape.len()],
            data: match kernel.buffers[port.buffer].class {
                Class::Real => Data::Real(vec![]),
                Class::Int => Data::Int(vec![]),
            },
        };
        rest = argument(rest, &mut array).map_err(|reason| format!("argument `{}`: {reason}", port.name))?;
        if array.data.len() != array.shape.iter().product::<usize>() {
            return Err(format!("argument `{}`: rows differ in length", port.name));
        }
        inputs.push(array);
    }
    if rest.trim().is_empty() { Ok(inputs) } else { Err(format!("`{rest}` follows the arguments")) }
}

/// Parses an argument, whose shape has its number of dimensions; returns the text after it.
fn argument<'t>(text: &'t str, array: &mut Array) -> Result<&'t str, String> {
    let rank = array.shape.len();
    // Number of items of each list whose end is not reached.
    let mut open: Vec<usize> = Vec::new();
    let mut rest = text.trim_start();
    loop {
        if open.len() < rank {
            rest = rest.strip_prefix('[').ok_or_else(|| format!("a list is expected at `{rest}`"))?;
            open.push(0);
        } else {
            let end = rest.find([',', ']']).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            let fail = || format!("`{number}` is no number");
            match &mut array.data {
                Data::Real(x) => x.push(number.trim().parse().map_err(|_| fail())?),
                Data::Int(x) => x.push(number.trim().parse().map_err(|_| fail())?),
            }
            rest = after;
            if let Some(n) = open.last_mut() {
                *n += 1;
            }
        }
        // Ends of lists, then the comma before the next item.
        rest = rest.trim_start();
        while let Some(after) = rest.strip_prefix(']') {
            let Some(n) = open.pop() else { return Ok(rest) };
            let extent = &mut array.shape[open.len()];
            if *extent != 0 && *extent != n {
                return Err("rows differ in length".to_owned());
            }
            *extent = n;
            rest = after.trim_start();
            if let Some(n) = open.last_mut() {
                *n += 1;
            }
        }
        if open.is_empty() {
            return Ok(rest);
        }
        if open.last() != Some(&0) {
            rest = rest.strip_prefix(',').ok_or_else(|| format!("`,` or `]` is expected at `{rest}`"))?.trim_start();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{arguments, read, show, with_outcomes};
    use crate::case::results;

    const KERNEL: &str = "kernel f\nsize n r0 = extent 0 of A\nsize m r1 = extent 1 of A\ninput A: real[r0][r1] in b0\n\
                          input k: int in b1\noutput y: int in b2\nr2 = load b1[0]\nstore b2[0] = r2\n";

    #[test]
    fn arguments_are_nested_lists() {
        let kernel = &read(KERNEL).unwrap()[0].kernel;
        for text in ["[[1.0, -0.0], [NaN, inf]], 3", "[[], []], -1", "[], 0", "[[1.5]], -9223372036854775808"] {
            let inputs = arguments(kernel, text).unwrap();
            let shown: Vec<String> = inputs.iter().map(|a| show(&a.shape, &a.data)).collect();
            assert_eq!(shown.join(", "), text);
        }
        for (text, reason) in [
            ("[[1.0], [2.0, 3.0]], 1", "argument `A`: rows differ in length"),
            ("[[], [2.0]], 1", "argument `A`: rows differ in length"),
            ("[[1.0]]", "only 1 arguments are given"),
            ("1.0, 2", "argument `A`: a list is expected at `1.0, 2`"),
            ("[[1.0]], x", "argument `k`: `x` is no number"),
            ("[[1.0]], 1, 2", "`, 2` follows the arguments"),
        ] {
            assert_eq!(arguments(kernel, text).unwrap_err(), reason, "{text}");
        }
    }

    #[test]
    fn outcomes_are_written() {
        let mut run = |case: &_| Ok(results(case));
        let text = with_outcomes(&format!("; Why.\n{KERNEL}; run: [[1.0]], 3\n"), &mut run).unwrap();
        assert_eq!(text, format!("; Why.\n{KERNEL}; run: [[1.0]], 3\n; result: 3\n"));
        assert_eq!(with_outcomes(&text, &mut run).unwrap(), text);
    }
}
