//! `chainrule derive`.

use super::run;
use crate::arguments::{Arguments, Given};
use crate::data::{self, Format};
use crate::pipeline::Pipeline;
use crate::request::{Arithmetic, Derivative, Which};
use crate::{Outcome, explain, print, progress};
use chainrule::{Compiled, Counts, Derived, Function, OperationsByLine, SparsePrograms, Value, shown_time};
use clap::{Args, ValueEnum};
use std::time::Instant;

/// Differentiate; print operation counts and the program
#[derive(Args)]
#[command(after_help = "Examples:
  chainrule derive model.ft --what gradient --by x --size n=4
  chainrule derive model.ft --what hessian --size n=4 --strategy markowitz --show counts
  chainrule derive model.ft --what jacobian --unroll never
  chainrule derive model.ft --what gradient --show counts --explain
  chainrule derive model.ft --what gradient --size n=100 --show counts --explain --measure
  chainrule derive model.ft --what gradient --size n=3 --show counts --arg x='[1, 2, 3]'
  chainrule derive model.ft --what gradient --size n=3 --show dot | dot -Tsvg > graph.svg")]
pub struct Options {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    derivative: Derivative,
    #[command(flatten)]
    arithmetic: Arithmetic,
    #[command(flatten)]
    pipeline: Pipeline,
    // With arguments, results follow, as from `chainrule run`.
    #[command(flatten)]
    arguments: Arguments,
    /// Output besides the counts
    #[arg(long, value_enum, default_value = "program", conflicts_with = "stop_after")]
    show: Show,
    /// Report the size of the derivative graph, the strategies with their costs, merged operations, and operations by
    /// result and source line. With loops: the rules that the optimiser applied, by line, and the savings of its
    /// passes. Also the predicted time of a call, and of each loop in each form
    #[arg(long)]
    explain: bool,
    /// With --explain: measure the time of a call at the arguments, or at made-up numbers if all sizes are known
    #[arg(long, requires = "explain")]
    measure: bool,
}

/// Printed output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Show {
    /// Nothing
    Counts,
    /// The program, one operation a line
    Program,
    /// The kernel, which backends compile
    Kernel,
    /// The graph in Graphviz's language
    Dot,
}

/// Derives and prints.
pub fn run(options: &Options) -> Outcome {
    options.pipeline.watch(|| derive(options))
}

fn derive(options: &Options) -> Outcome {
    let function = options.which.load()?;
    if options.pipeline.stop_after.is_some() {
        let requested = progress::during("deriving", || options.derivative.programs(&function))?;
        let requested: Vec<&Function> = requested.iter().collect();
        return options.pipeline.stop(&requested, &options.arithmetic.settings()).unwrap_or(Ok(()));
    }
    let is_run = options.arguments.are_given();
    if is_run && options.show == Show::Dot {
        return Err("error: results are no part of a graph
  help: leave out --arg, or --show dot"
            .into());
    }
    if let Some(sparse) = progress::during("deriving", || options.derivative.sparse_loops(&function))? {
        let way = if is_run { sparse_way(options, &function)? } else { String::new() };
        return show_sparse(options, &sparse, way);
    }
    // The statistics of an explanation take time.
    let (derived, account) = if options.explain {
        let derived = progress::during("deriving", || options.derivative.explain(&function))?;
        (derived.function.clone(), Some(derived))
    } else {
        (progress::during("deriving", || options.derivative.derive(&function))?, None)
    };
    let mut text = String::new();
    if options.show != Show::Dot {
        let is_straight = !function.keeps_loops() && !derived.keeps_loops();
        if is_straight || options.show == Show::Counts {
            for function in [&function, &derived] {
                text.push_str(&format!("// {}: {}\n", function.name(), counted(function)?));
            }
        }
        if let Some(account) = account {
            let explanation = explanation(&function, &account)? + &times(options, &derived)?;
            text.extend(explanation.lines().map(|line| format!("// {line}\n")));
        }
    }
    match options.show {
        Show::Counts => {}
        Show::Program => text.push_str(&derived.listing()),
        Show::Kernel => text.push_str(&kernel(options, &derived)?),
        Show::Dot => text.push_str(&derived.dot()),
    }
    if is_run {
        let compiled = progress::during("compiling", || compile(options, &derived))?;
        let results = run::evaluate(&compiled, &options.arguments, Given::default())?;
        text.push_str(&String::from_utf8_lossy(&data::write(&run::leaves(&results), Format::Json)?));
    }
    print(&text)
}

/// Returns operation counts: numbers, or polynomials in the sizes if loops are kept.
fn counted(function: &Function) -> Result<String, String> {
    match function.loop_counts().map_err(|e| explain(&e))? {
        Some(counts) => Ok(counts.to_string()),
        None => Ok(function.counts().unwrap_or_default().to_string()),
    }
}

fn compile(options: &Options, function: &Function) -> Result<Compiled, String> {
    function.compile_with(&options.arithmetic.settings()).map_err(|e| explain(&e))
}

/// Returns the executed kernel as text.
fn kernel(options: &Options, function: &Function) -> Result<String, String> {
    Ok(compile(options, function)?.listing())
}

/// Returns the way in which a sparse matrix is computed at the given arguments, and its number of entries, as a
/// comment.
fn sparse_way(options: &Options, function: &Function) -> Result<String, String> {
    let args = options.arguments.read(&function.signature().params, Given::default())?;
    let Some(derivation) = options.derivative.on(function) else { return Ok(String::new()) };
    let matrix = derivation.matrix_with(&options.arithmetic.settings()).map_err(|e| explain(&e))?;
    let prepared = progress::during("compiling", || matrix.prepare(&args)).map_err(|e| explain(&e))?;
    let (pattern, way) = (prepared.pattern(), prepared.way());
    let (n_rows, n_columns) = pattern.shape();
    Ok(format!("// at these arguments: {} entries of {n_rows} by {n_columns}; {way}\n", pattern.n_entries()))
}

/// Prints the two programs of a sparse derivative, after `text`.
fn show_sparse(options: &Options, sparse: &SparsePrograms, mut text: String) -> Outcome {
    let programs = [
        ("extents, and the indices of the blocks, from sizes and integers", sparse.pattern_program()),
        ("the numbers of the blocks", sparse.values_program()),
    ];
    for note in sparse.notes() {
        text.push_str(&format!("// dense columns: {note}\n"));
    }
    for (what, program) in programs {
        text.push_str(&format!("// {what}\n"));
        text.push_str(&match options.show {
            Show::Program => program.listing(),
            Show::Kernel => kernel(options, &program)?,
            Show::Counts => format!("// {}: {}\n", program.name(), counted(&program)?),
            Show::Dot => program.dot(),
        });
    }
    print(&text)
}

/// Explains the derivation, and the distribution of the operations.
fn explanation(function: &Function, derived: &Derived) -> Result<String, String> {
    let form = derived.form.clone().or_else(|| function.unrolling());
    let mut text = form.map_or_else(String::new, |why| format!("{why}\n"));
    text.extend(derived.reports.iter().map(ToString::to_string));
    text.extend(derived.by_rows_where.iter().map(|condition| {
        format!("the Jacobian: by rows, in reverse mode, where {condition}; by columns, in forward mode, otherwise\n")
    }));
    text.extend(derived.improvement.map(|improvement| format!("{improvement}\n")));
    let results = derived.function.operations_by_result();
    if !results.is_empty() {
        text.push_str("operations by result, and of these what no other result needs:\n");
        for result in results {
            text.push_str(&format!("  {:<18} {}; alone {}\n", result.name, result.all, result.alone));
        }
    }
    for function in [function, &derived.function] {
        text.extend(function.operations_by_line().map(|operations| by_line(function.name(), &operations)));
    }
    let optimisation = derived.function.optimisation().map_err(|e| explain(&e))?;
    text.extend(optimisation.map(|optimisation| optimisation.to_string()));
    Ok(text)
}

/// Returns the predicted time of a call and of its loops, and the measured time if requested.
fn times(options: &Options, function: &Function) -> Result<String, String> {
    let params = &function.signature().params;
    let args = match options.arguments.are_given() {
        true => Some(options.arguments.read(params, Given::default())?),
        false => params.iter().map(|(_, ty)| data::made_up(ty)).collect(),
    };
    let settings = options.arithmetic.settings();
    let prediction = function.prediction(&settings, args.as_deref()).map_err(|e| explain(&e))?;
    let mut text = prediction.to_string();
    if options.measure {
        let Some(args) = args else {
            return Err(
                "error: --measure needs arguments\n  help: give them with --arg, or all sizes with --size".into()
            );
        };
        let compiled = compile(options, function)?;
        let ns = progress::during("measuring", || measured(&compiled, &args)).map_err(|e| explain(&e))?;
        text.push_str(&format!("measured: {}\n", shown_time(ns)));
    }
    Ok(text)
}

/// Samples of a measurement, the least of which counts because other load only adds, and the duration of a sample.
const SAMPLES: usize = 25;
const SAMPLE_NS: f64 = 1e6;

/// Returns the time of a call in nanoseconds.
fn measured(compiled: &Compiled, args: &[Value<f64>]) -> Result<f64, chainrule::Error> {
    let mut at = compiled.prepare(args)?;
    let mut sample = |calls: usize| -> Result<f64, chainrule::Error> {
        let start = Instant::now();
        (0..calls).try_for_each(|_| at.run())?;
        Ok(start.elapsed().as_secs_f64() * 1e9 / calls as f64)
    };
    let mut least = sample(1)?;
    for _ in 0..SAMPLES {
        least = least.min(sample((SAMPLE_NS / least.max(1.0)).clamp(1.0, SAMPLE_NS) as usize)?);
    }
    Ok(least)
}

/// Prints one row per source line.
fn by_line(name: &str, operations: &OperationsByLine) -> String {
    let mut rows: Vec<(String, &Counts, &str)> = Vec::new();
    for line in &operations.lines {
        rows.push((format!("{}:{}", line.file, line.line), &line.counts, &line.text));
    }
    if operations.shared != Counts::default() {
        rows.push(("of several lines".into(), &operations.shared, ""));
    }
    let width = |cells: &mut dyn Iterator<Item = usize>| cells.max().unwrap_or(0);
    let places = width(&mut rows.iter().map(|row| row.0.len())).max(18);
    let counts = width(&mut rows.iter().map(|row| row.1.to_string().len()));
    let mut text = format!("operations of `{name}` by source line:\n");
    for (place, operations, source) in rows {
        let source = chainrule::report::printable(source);
        let row = format!("  {place:<places$} {:<counts$} | {source}", operations.to_string());
        text.push_str(row.trim_end_matches([' ', '|']));
        text.push('\n');
    }
    text
}
