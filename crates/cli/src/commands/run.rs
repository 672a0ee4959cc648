//! `chainrule run`.

use crate::arguments::{Arguments, Given};
use crate::data::{self, Format, Program};
use crate::pipeline::Pipeline;
use crate::request::{Arithmetic, Derivative, Unrolling, What, Which};
use crate::{Outcome, explain, print, progress, tell};
use chainrule::{
    Backend, Checks, CompileOptions, Compiled, Diagnostic, Function, InRange, Name, Semantics, SparseForm, SparseWay,
    Type, Value, time_run,
};
use clap::{Args, ValueEnum};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Once;

/// Run a function, or derivatives of it, on data
#[derive(Args)]
#[command(
    after_help = "Values are JSON (`[1, 2, 3]`), or files: `x=@points.json`, `.npy`, `.csv`, other names as numbers
separated by white space. Records are JSON objects.

Examples:
  chainrule run model.ft --arg x='[1, 2, 3]'
  chainrule run model.ft --what value --what gradient --by x --arg x=@x.npy --arg n=3
  chainrule run model.ft --args arguments.json --format table
  chainrule run model.ft --args arguments.json --threads 4
  chainrule run model.ft --arg x=@x.txt --format npy --out result.npy
  chainrule run model.ft --what jacobian --sparse --form csr --args arguments.json
  chainrule run gradient.chainrule --arg x='[1, 2, 3]'      (from chainrule compile)"
)]
pub struct Options {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    derivative: Derivative,
    #[command(flatten)]
    arithmetic: Arithmetic,
    #[command(flatten)]
    arguments: Arguments,
    #[command(flatten)]
    pipeline: Pipeline,
    /// Maximum memory of saved loop states in reverse mode, such as 64MiB; states that do not fit are recomputed. Only
    /// for functions that keep their loops
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "checkpoints")]
    checkpoint_memory: Option<usize>,
    /// Number of threads; 0: one for each processor. Results are the same for any number
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Omit index checks that memory safety does not need: an index out of range is an error, or reads another element
    /// of its array
    #[arg(long)]
    no_checks: bool,
    /// Omit all index checks. You promise that every index is in range; otherwise the code reads or writes arbitrary
    /// memory
    #[arg(long, conflicts_with = "no_checks")]
    promise_in_range: bool,
    /// Form of sparse matrices
    #[arg(long, value_enum)]
    form: Option<Form>,
    /// Format of results
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
    /// File for the results (default: standard output)
    #[arg(long, short)]
    out: Option<PathBuf>,
}

/// A form of sparse matrices.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Rows, columns and values of the entries, row by row
    Coo,
    /// Compressed rows: start of each row, columns and values of the entries
    Csr,
    /// Compressed columns: start of each column, rows and values of the entries
    Csc,
    /// Dense blocks, which add where they overlap; single entries in straight-line code
    Blocks,
}

/// Runs the function.
pub fn run(options: &Options) -> Outcome {
    options.pipeline.watch(|| run_function(options))
}

fn run_function(options: &Options) -> Outcome {
    let (compiled, derived, given) = match data::read_program(&options.which.file)? {
        Program::Saved(bytes) => (saved(options, &bytes)?, None, Given::default()),
        Program::Text(text) => {
            let function = options.which.load_text(&text)?;
            if options.pipeline.stop_after.is_some() {
                let requested = progress::during("deriving", || options.derivative.programs(&function))?;
                let requested: Vec<&Function> = requested.iter().collect();
                return options.pipeline.stop(&requested, &settings(options)).unwrap_or(Ok(()));
            }
            // Deriving may take seconds: errors in arguments are reported before.
            let given = options.arguments.early(&function.signature().params)?;
            if options.form.is_some() && !options.derivative.is_sparse() {
                return Err("error: --form is the form of sparse matrices\n  help: add --sparse".into());
            }
            if options.derivative.is_sparse() && options.derivative.what.iter().any(|what| what.is_matrix()) {
                return run_sparse(options, &given, &function);
            }
            let derived = progress::during("deriving", || options.derivative.explain(&function))?;
            let compile = || match options.checkpoint_memory {
                Some(bytes) => within(options, given.clone(), &function, &derived.function, bytes),
                None => derived.function.compile_with(&settings(options)).map_err(|e| explain(&e)),
            };
            (progress::during("compiling", compile)?, Some(derived), given)
        }
    };
    let results = evaluate(&compiled, &options.arguments, given)?;
    let results = match &derived {
        Some(derived) if !derived.paths.is_empty() => record(&derived.paths, results),
        _ => results,
    };
    write(options, &leaves(&results))
}

/// Evaluates the function at these arguments.
pub fn evaluate(compiled: &Compiled, arguments: &Arguments, given: Given) -> Result<Vec<Named>, String> {
    let signature = compiled.signature();
    let args = arguments.read(&signature.params, given)?;
    tell_refusal(compiled.backend(), compiled.refusal());
    let values = progress::during("running", || time_run(|| compiled.call(&args))).map_err(|e| explain(&e))?;
    let results = signature.results.iter().zip(values);
    Ok(results.map(|((name, ty), value)| (name.to_string(), ty.clone(), value)).collect())
}

/// Returns results in the form in which they are written.
pub fn leaves<N: Deref<Target = str>>(results: &[(N, Type, Value<f64>)]) -> Vec<(&str, &Type, &Value<f64>)> {
    results.iter().map(|(name, ty, value)| (&**name, ty, value)).collect()
}

/// Reports, once, why the interpreter runs instead of machine code.
fn tell_refusal(backend: Backend, refusal: Option<&Diagnostic>) {
    static TOLD: Once = Once::new();
    if let (Backend::Interpreter, Some(why)) = (backend, refusal) {
        let reason = why.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        TOLD.call_once(|| tell(&format!("note: the interpreter runs this, which takes longer: {}{reason}", why.title)));
    }
}

/// Returns results as one record.
fn tuple(results: Vec<Entry>) -> Typed {
    let names = results.iter().map(|(name, ..)| name.clone()).collect();
    let (types, values) = results.into_iter().map(|(_, ty, value)| (ty, value)).unzip();
    (Type::Tuple(types, Some(names)), Value::Tuple(values))
}

impl Form {
    /// Returns the form of the entries; `None` for blocks.
    fn entries(self) -> Option<SparseForm> {
        match self {
            Self::Coo => Some(SparseForm::Coo),
            Self::Csr => Some(SparseForm::Csr),
            Self::Csc => Some(SparseForm::Csc),
            Self::Blocks => None,
        }
    }
}

fn write(options: &Options, results: &[(&str, &Type, &Value<f64>)]) -> Outcome {
    let bytes = data::write(results, options.format)?;
    match &options.out {
        Some(path) => data::write_file(path, &bytes),
        None => match String::from_utf8(bytes) {
            Ok(text) => print(&text),
            Err(_) => Err("error: NPY is not text\n  help: name a file with --out".into()),
        },
    }
}

/// Runs a request with sparse matrices: each is its shape, and row, column and value of each entry, or what `--form`
/// says. Several parts form a record.
fn run_sparse(options: &Options, given: &Given, function: &Function) -> Outcome {
    let all = &options.derivative.what;
    let others: Vec<What> = all.iter().copied().filter(|what| !what.is_matrix()).collect();
    let mut dense = if others.is_empty() {
        options.arguments.read(&function.signature().params, given.clone())?;
        Vec::new()
    } else {
        let request = Derivative { sparse: false, triangle: None, ..options.derivative.of_parts(others.clone()) };
        let derived = progress::during("deriving", || request.derive(function))?;
        let compiled = progress::during("compiling", || derived.compile_with(&settings(options)));
        let results = evaluate(&compiled.map_err(|e| explain(&e))?, &options.arguments, given.clone())?;
        fields(results, others.len())
    }
    .into_iter();
    let mut parts: Vec<Entry> = Vec::new();
    for what in all {
        let name = what.to_possible_value().map_or_else(String::new, |value| value.get_name().replace('-', "_"));
        let part = match what.is_matrix() {
            true => Some(tuple(sparse_matrix(options, &options.derivative.of_parts(vec![*what]), given, function)?)),
            false => dense.next(),
        };
        parts.extend(part.map(|(ty, value)| (Name::from(name), ty, value)));
    }
    let results = match <[Entry; 1]>::try_from(parts) {
        Ok([(_, Type::Tuple(types, Some(names)), Value::Tuple(values))]) => {
            names.iter().cloned().zip(types).zip(values).map(|((name, ty), value)| (name, ty, value)).collect()
        }
        Ok([one]) => vec![one],
        Err(several) => several,
    };
    write(options, &leaves(&results))
}

/// Returns the `n` parts of the result of a request.
fn fields(results: Vec<Named>, n: usize) -> Vec<Typed> {
    let mut results: Vec<Typed> = results.into_iter().map(|(_, ty, value)| (ty, value)).collect();
    match results.pop() {
        Some((Type::Tuple(types, _), Value::Tuple(values))) if n > 1 => types.into_iter().zip(values).collect(),
        one => one.into_iter().collect(),
    }
}

/// Runs one sparse matrix.
fn sparse_matrix(
    options: &Options,
    request: &Derivative,
    given: &Given,
    function: &Function,
) -> Result<Vec<Entry>, String> {
    let Some(derivation) = request.on(function) else { return Ok(Vec::new()) };
    let args = given.values();
    let compile = || derivation.matrix_with(&settings(options));
    let matrix = progress::during("compiling", compile).map_err(|e| explain(&e))?;
    tell_refusal(matrix.backend(), matrix.refusal());
    let run = || {
        let mut prepared = matrix.prepare(&args)?;
        time_run(|| prepared.run())?;
        Ok(prepared)
    };
    let prepared = progress::during("running", run).map_err(|e: chainrule::Error| explain(&e))?;
    if prepared.way() == SparseWay::Indices {
        matrix.notes().iter().for_each(|note| tell(&format!("note: dense columns: {note}")));
    }
    match options.form.unwrap_or(Form::Coo).entries() {
        Some(form) => Ok(prepared.results(form)),
        None => prepared.block_results().map_err(|e| explain(&e)),
    }
}

/// Result with its name.
type Entry = (Name, Type, Value<f64>);

/// Loads the function that `chainrule compile` has saved as `bytes`.
fn saved(options: &Options, bytes: &[u8]) -> Result<Compiled, String> {
    let derivative = &options.derivative;
    let asked = [
        ("--function", options.which.function.is_some()),
        ("--size", !options.which.sizes.is_empty()),
        ("--unroll", options.which.unroll != Unrolling::Auto),
        ("--strict", options.which.semantics != Semantics::default()),
        ("--what", !derivative.what.is_empty()),
        ("--by", !derivative.by.is_empty()),
        ("--of", !derivative.of.is_empty()),
        ("--strategy", derivative.strategy != "auto"),
        ("--no-optimise", derivative.no_optimise),
        ("--sparse", derivative.sparse),
        ("--triangle", derivative.triangle.is_some()),
        ("--form", options.form.is_some()),
        ("--checkpoints", derivative.checkpoints.is_some()),
        ("--checkpoint-memory", options.checkpoint_memory.is_some()),
        ("--stop-after", options.pipeline.stop_after.is_some()),
        ("--time-passes", options.pipeline.time_passes),
    ];
    if let Some((option, _)) = asked.into_iter().chain(options.arithmetic.given()).find(|(_, given)| *given) {
        let file = data::shown(&options.which.file);
        return Err(format!(
            "error: {file} is compiled: {option} comes too late\n  \
             help: leave {option} out, or give it to chainrule compile, with the program"
        ));
    }
    Compiled::from_bytes_with(bytes, &[], &settings(options)).map_err(|e| explain(&e))
}

fn settings(options: &Options) -> CompileOptions {
    CompileOptions {
        threads: options.threads,
        checkpoints: options.derivative.checkpoints,
        checks: match (options.promise_in_range, options.no_checks) {
            (true, _) => unchecked(),
            (false, true) => Checks::Memory,
            (false, false) => Checks::All,
        },
        ..options.arithmetic.settings()
    }
}

/// Returns the setting without any checks of indices.
#[allow(unsafe_code, reason = "the promise is that of the person who types `--promise-in-range`")]
fn unchecked() -> Checks {
    // SAFETY: the caller promises it with `--promise-in-range`, as its help says.
    Checks::None(unsafe { InRange::promised() })
}

/// Compiles `derived`, the requested derivative of `function`, with loop states in at most so many bytes.
fn within(
    options: &Options,
    given: Given,
    function: &Function,
    derived: &Function,
    bytes: usize,
) -> Result<Compiled, String> {
    let args = options.arguments.read(&derived.signature().params, given)?;
    let settings = settings(options);
    let made = match options.derivative.on(function) {
        Some(derivation) => derivation.compile_within(bytes, &args, &settings),
        None => derived.compile_within(bytes, &args, &settings),
    };
    made.map(|within| within.compiled).map_err(|e| explain(&e))
}

/// Parses a number of bytes: `64MiB`, `1.5GB`, `4096`.
fn memory(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, f64); 7] =
        [("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("B", 1.0)];
    let found = UNITS.iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, bytes)));
    let (number, unit) = found.unwrap_or((text, &1.0));
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..1e15).contains(&(number * unit)) => Ok((number * unit) as usize),
        _ => Err("write it as a number of bytes, or as 512KiB, 64MiB, 1.5GB".to_owned()),
    }
}

/// Result, without and with its name.
type Typed = (Type, Value<f64>);
pub type Named = (String, Type, Value<f64>);

/// Returns the results of straight-line code in the form of a function that keeps its loops: one result, or a record of
/// several.
fn record(paths: &[Vec<Name>], results: Vec<Named>) -> Vec<Named> {
    let results = results.into_iter().map(|(_, ty, value)| (ty, value));
    let leaves = paths.iter().map(Vec::as_slice).zip(results).collect();
    let (ty, value) = assemble(leaves);
    vec![("result".to_string(), ty, value)]
}

/// Recursive on the length of paths.
fn assemble(mut leaves: Vec<(&[Name], Typed)>) -> Typed {
    if let [(path, _)] = leaves.as_slice()
        && path.is_empty()
        && let Some((_, leaf)) = leaves.pop()
    {
        return leaf;
    }
    let mut names: Vec<Name> = Vec::new();
    let mut fields: Vec<Vec<_>> = Vec::new();
    for (path, leaf) in leaves {
        let Some((name, rest)) = path.split_first() else { continue };
        match names.iter().position(|other| other == name) {
            Some(k) => fields[k].push((rest, leaf)),
            None => {
                names.push(name.clone());
                fields.push(vec![(rest, leaf)]);
            }
        }
    }
    let (types, values) = fields.into_iter().map(assemble).unzip();
    let numbered = names.iter().enumerate().all(|(k, name)| **name == *k.to_string());
    (Type::Tuple(types, (!numbered).then(|| names.into())), Value::Tuple(values))
}
