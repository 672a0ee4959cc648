//! `chainrule passes`.

use crate::arguments::{Arguments, Given};
use crate::data::write_file;
use crate::pipeline::Pipeline;
use crate::request::{Arithmetic, Derivative, Which};
use crate::{Outcome, explain, print};
use chainrule::bisect::{Bisection, Wrong, flatten};
use chainrule::{CompileOptions, Function, Pass, PassLevel, Rewrite, Semantics, Snapshot, Value, bisect, passes};
use clap::Args;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Show the effect of each compiler pass on a function, or find the pass that breaks it
#[derive(Args)]
#[command(
    after_help = "Without --after, prints a line for each pass that ran: the time it took, the length of the program after it, and
with arguments whether the program still computes the same.

Examples:
  chainrule passes --list
  chainrule passes model.ft --what gradient
  chainrule passes model.ft --what gradient --after vectorise
  chainrule passes model.ft --what gradient --after all --out listings
  chainrule passes model.ft --what gradient --arg x='[1, 2, 3]'
  chainrule passes model.ft --what gradient --arg x='[1, 2, 3]' --without split
  chainrule passes model.ft --what gradient --arg x='[1, 2, 3]' --shrink found"
)]
pub struct Options {
    /// List the passes, in order
    #[arg(long, exclusive = true)]
    list: bool,
    #[command(flatten)]
    which: Option<Which>,
    #[command(flatten)]
    derivative: Derivative,
    #[command(flatten)]
    arithmetic: Arithmetic,
    #[command(flatten)]
    arguments: Arguments,
    #[command(flatten)]
    pipeline: Pipeline,
    /// Print the program after the last run of this pass; `all`: after every pass; `written`: before the first pass
    #[arg(long, value_name = "PASS", conflicts_with = "stop_after")]
    after: Option<String>,
    /// Leave out this pass, or this rule or step of the array optimiser
    #[arg(long, value_name = "NAME")]
    without: Option<String>,
    /// Tolerated rounding: maximum difference of a result, relative to the largest result
    #[arg(long, value_name = "NUMBER", default_value_t = 1e-9)]
    tolerance: f64,
    /// Folder for the listings, a numbered file for each pass
    #[arg(long, value_name = "FOLDER", requires = "after")]
    out: Option<PathBuf>,
    /// If a pass changes the results, shrink the program and write it to this folder, with the listings before and
    /// after the pass and a test
    #[arg(long, value_name = "FOLDER", conflicts_with = "after")]
    shrink: Option<PathBuf>,
}

/// Name of the program before the first pass.
const WRITTEN: &str = "written";

/// Executed pass.
struct Row {
    name: String,
    level: PassLevel,
    took: Duration,
    listing: String,
    /// Results, or the reason why there are none; `None` without arguments, and for programs that have no results.
    results: Option<Result<Vec<f64>, String>>,
}

/// Runs the passes.
pub fn run(options: &Options) -> Outcome {
    let Some(which) = options.which.as_ref().filter(|_| !options.list) else {
        return match options.list {
            true => print(&list()),
            false => Err("error: no file is given\n  help: name an F~ file, or list the passes with --list".into()),
        };
    };
    if let Some(after) = options.after.as_deref().filter(|name| ![WRITTEN, "all"].contains(name)) {
        Pass::by_name(after).map_err(|e| explain(&e))?;
    }
    options.pipeline.watch(|| trace(options, which))
}

fn trace(options: &Options, which: &Which) -> Outcome {
    let function = which.load()?;
    let derived = options.derivative.explain(&function)?.function;
    let args = match options.arguments.are_given() {
        true => Some(options.arguments.read(&derived.signature().params, Given::default())?),
        false => None,
    };
    let rewrite = match &options.without {
        Some(name) => Rewrite::Without(Box::leak(name.clone().into_boxed_str())),
        None => Rewrite::All,
    };
    let settings = CompileOptions { rewrite, ..options.arithmetic.settings() };
    if let Some(outcome) = options.pipeline.stop(&[&derived], &settings) {
        return outcome;
    }
    if let Some(folder) = &options.shrink {
        let Some(args) = &args else {
            return Err("error: --shrink needs arguments to compare results\n  help: give them with --arg".into());
        };
        let load = |text: &str| {
            let function = which.load_text_quietly(text).ok()?;
            Some(options.derivative.explain(&function).ok()?.function)
        };
        let bisection = Bisection { load: &load, args, options: settings, tolerance: options.tolerance, seed: None };
        return shrink(&bisection, which, &derived, folder);
    }
    let mut rows = Vec::new();
    let mut before = Instant::now();
    let watch = &mut |snapshot: &Snapshot<'_>| {
        let took = before.elapsed();
        rows.push(row(snapshot, took, args.as_deref()));
        before = Instant::now();
    };
    derived.trace(&settings, watch).map_err(|e| explain(&e))?;
    match &options.after {
        Some(after) => show(&rows, after, options.out.as_deref()),
        None => {
            print(&table(&rows, options.tolerance))?;
            verdict(&rows, options.tolerance)
        }
    }
}

fn row(snapshot: &Snapshot<'_>, took: Duration, args: Option<&[Value<f64>]>) -> Row {
    let results = args.filter(|_| snapshot.has_results()).map(|args| {
        let values = snapshot.call(args).map_err(|error| explain(&error))?;
        Ok(flatten(&values))
    });
    let name = if snapshot.pass.is_empty() { WRITTEN } else { snapshot.pass };
    Row { name: name.to_owned(), level: snapshot.level(), took, listing: snapshot.listing(), results }
}

fn level(level: PassLevel) -> &'static str {
    match level {
        PassLevel::Array => "array program",
        PassLevel::Graph => "scalar graph",
        PassLevel::Linear => "linearised",
        PassLevel::Accumulation => "accumulation",
        PassLevel::Kernel => "kernel",
    }
}

fn list() -> String {
    let passes = passes();
    let width = passes.iter().map(|pass| pass.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for pass in passes {
        let form = level(pass.level);
        let strict = if pass.runs_under == Semantics::Strict { "" } else { " (not with --strict)" };
        let _ = writeln!(text, "{:<width$}  {form:<13}  {}{strict}", pass.name, pass.does);
    }
    text
}

/// Returns the largest difference of results, relative to the largest of them, or why they cannot be compared.
fn difference(expected: &Row, found: &Row) -> Result<f64, String> {
    match (&expected.results, &found.results) {
        (Some(Ok(expected)), Some(Ok(found))) => {
            bisect::difference(expected, found).ok_or_else(|| "another number of results".to_owned())
        }
        (_, Some(Err(why))) => Err(why.lines().next().unwrap_or_default().to_owned()),
        _ => Err(String::new()),
    }
}

/// Returns the first row with results, with which the others are compared.
fn first_with_results(rows: &[Row]) -> Option<&Row> {
    rows.iter().find(|row| row.results.is_some())
}

fn table(rows: &[Row], tolerance: f64) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut before = "";
    for row in rows {
        let lines = row.listing.lines().count();
        let changed = if before.is_empty() || row.listing == before { "" } else { "changed" };
        let results = match (&row.results, first_with_results(rows)) {
            (Some(_), Some(first)) => match difference(first, row) {
                Ok(0.0) => "  same results".to_owned(),
                Ok(d) if d <= tolerance => format!("  results differ by {d:.1e}"),
                Ok(d) => format!("  WRONG: results differ by {d:.1e}"),
                Err(why) => format!("  {why}"),
            },
            _ => String::new(),
        };
        let (form, ms) = (level(row.level), row.took.as_secs_f64() * 1e3);
        let line = format!("{:<width$}  {form:<13}  {ms:>9.3} ms  {lines:>6} lines  {changed:<7}{results}", row.name);
        let _ = writeln!(text, "{}", line.trim_end());
        before = &row.listing;
    }
    text
}

/// Fails if a pass changes the results.
fn verdict(rows: &[Row], tolerance: f64) -> Outcome {
    let Some(first) = first_with_results(rows) else { return Ok(()) };
    if let Some(Err(why)) = &first.results {
        return Err(format!("error: the function has no value there\n  reason: {why}\n  help: give other arguments"));
    }
    let is_right = |row: &Row| difference(first, row).is_ok_and(|d| d <= tolerance);
    match rows.iter().position(|row| row.results.is_some() && !is_right(row)) {
        None => Ok(()),
        Some(at) => {
            let (name, before) = (&rows[at].name, &rows[at.saturating_sub(1)].name);
            let is_optional = passes().iter().any(|pass| pass.name == name && pass.optional);
            let without = if is_optional { format!("; leave it out with --without {name}") } else { String::new() };
            Err(format!(
                "error: the pass `{name}` changes the results\n  \
                 help: see the program before it with --after {before}, after it with --after {name}{without}"
            ))
        }
    }
}

/// Finds the first wrong pass, shrinks the program, and writes the program and a test into `folder`.
fn shrink(bisection: &Bisection<'_>, which: &Which, derived: &Function, folder: &Path) -> Outcome {
    let Some(wrong) = bisection.first_wrong(derived).map_err(|e| explain(&e))? else {
        return print("no pass changes the results\n");
    };
    let (program, found) = bisection.shrink(&which.text()?, &wrong).map_err(|e| explain(&e))?;
    std::fs::create_dir_all(folder).map_err(|error| {
        format!("error: the folder {} cannot be made: {error}\n  help: name another one", folder.display())
    })?;
    let test = filetest(&found);
    let mut files = vec![("program.ft", &program), ("before.txt", &found.before), ("after.txt", &found.after)];
    files.extend(test.as_ref().map(|text| ("case.kernel", text)));
    for (name, text) in &files {
        write_file(&folder.join(name), text.as_bytes())?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    print(&format!("{}\n{} has {}\n", report(&found, &program), folder.display(), names.join(", ")))?;
    Err(format!("error: the pass `{}` changes the results", found.pass))
}

/// Returns the pass, the program and the results in words.
fn report(found: &Wrong, program: &str) -> String {
    let numbers = |numbers: &[f64]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let wrong = found.found.as_ref().map_or_else(Clone::clone, |found| numbers(found));
    format!(
        "first wrong pass: {} ({})\nexpected: {}\nfound:    {wrong}\n\n== program ==\n{program}\n== before {} ==\n{}\n\
         == after {} ==\n{}",
        found.pass,
        level(found.level),
        numbers(&found.expected),
        found.pass,
        found.before,
        found.pass,
        found.after
    )
}

/// Returns a case for `crates/kernel/filetests`, for a pass over kernels. Its expected listing is empty:
/// `UPDATE_FILETESTS=1` writes it once the pass is right, because the runner accepts no wrong one.
fn filetest(found: &Wrong) -> Option<String> {
    let both = (found.level_before, found.level);
    (both == (PassLevel::Kernel, PassLevel::Kernel)).then(|| {
        format!("; pass: {}\n; The results stay the same.\n{}\n; expected\n", found.pass, found.before.trim_end())
    })
}

fn show(rows: &[Row], after: &str, out: Option<&Path>) -> Outcome {
    let chosen: Vec<(usize, &Row)> = match after {
        "all" => rows.iter().enumerate().collect(),
        name => rows.iter().enumerate().rfind(|(_, row)| row.name == name).into_iter().collect(),
    };
    if chosen.is_empty() {
        return Err(format!(
            "error: the pass `{after}` does not run on this function\n  help: see which do without --after"
        ));
    }
    for (at, row) in chosen {
        match out {
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| {
                    format!("error: the folder {} cannot be made: {error}\n  help: name another one", folder.display())
                })?;
                write_file(&folder.join(format!("{at:02}-{}.txt", row.name)), row.listing.as_bytes())?;
            }
            None if after == "all" => print(&format!("== {} ==\n{}\n", row.name, row.listing))?,
            None => print(&format!("{}\n", row.listing.trim_end()))?,
        }
    }
    Ok(())
}
