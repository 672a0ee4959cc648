//! `counts`: additions, multiplications, divisions, negations and calls for each problem, for the function, the
//! derivative, and both in one call, compared with the best known counts.

use crate::problems::{ALL, Problem, problem};
use crate::targets::{Part, Target, target};
use chainrule::{Counts, Derivation, Function};
use clap::Args;
use serde_json::json;
use std::time::Instant;

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// Only these problems.
    #[arg(long = "problem", value_delimiter = ',')]
    problems: Vec<String>,
    /// Compare `auto` with these strategies.
    #[arg(long = "strategy", value_delimiter = ',')]
    strategies: Vec<String>,
    /// Print a row with separate counts for each strategy, instead of the table of best known counts.
    #[arg(long)]
    detail: bool,
    /// Do not optimise derivatives after accumulation: counts of the strategies themselves.
    #[arg(long)]
    no_optimise: bool,
    /// Search shortly for few operations.
    #[arg(long)]
    quick: bool,
    /// Print one JSON object a line: problem, part, strategy, add, mul, div, neg, call, seconds.
    #[arg(long)]
    json: bool,
    /// Check every derivative against forward mode and central differences in extended precision; print the largest
    /// relative error, and its ratio to that of plain forward mode in doubles.
    #[arg(long)]
    verify: bool,
}

/// Strategies compared with `auto` by default: each is the best one on some row.
const COMPARED: &[&str] = &["forward", "reverse", "reduction", "damage", "dstar", "dstar-highest"];

/// Maximum relative rounding error; a derivative with a larger error is wrong.
const WRONG: f64 = 1e-9;

/// Maximum ratio of the error of the derivative by `auto` to that of plain forward mode.
const SANE: f64 = 4.0;

/// Counts of one strategy on one part of a problem.
struct Measured {
    strategy: String,
    counts: Counts,
    seconds: f64,
    /// Relative error, if requested.
    error: Option<f64>,
}

/// Prints the table.
///
/// # Errors
/// Fails if a problem or a strategy is unknown, or a derivative fails its check.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let all: Vec<String> = ALL.iter().map(ToString::to_string).collect();
    let names = if options.problems.is_empty() { &all } else { &options.problems };
    let known: Vec<String> = COMPARED.iter().map(ToString::to_string).collect();
    let mut strategies = if options.strategies.is_empty() { known } else { options.strategies.clone() };
    strategies.retain(|name| name != "auto");
    strategies.insert(0, "auto".into());
    if !options.json {
        println!("{}", if options.detail { DETAIL_HEAD } else { TABLE_HEAD });
    }
    let mut insane = Vec::new();
    for name in names {
        let problem = problem(name)?;
        let plain = plain_forward_error(options, &problem)?;
        for (part, request) in parts(&problem) {
            let rows = measure(options, &problem, part, &request, &strategies)?;
            for row in &rows {
                if let (Some(error), Some(plain)) = (row.error, plain) {
                    if error > WRONG {
                        return Err(format!("{name} by {} is wrong: relative error {error:e}", row.strategy).into());
                    }
                    if row.strategy == "auto" && error > SANE * plain {
                        insane.push(format!("{name}: {error:.1e} against {plain:.1e}"));
                    }
                }
                if options.json {
                    println!("{}", json_line(name, part, row, plain));
                } else if options.detail {
                    println!("{}", detail_line(name, part, row, plain));
                }
            }
            if !options.json && !options.detail {
                println!("{}", table_line(name, part, &rows, plain));
            }
        }
    }
    if !insane.is_empty() {
        return Err(format!(
            "relative errors above {SANE} times that of plain forward mode:\n  {}",
            insane.join("\n  ")
        )
        .into());
    }
    Ok(())
}

/// Returns the parts of a problem to be counted, with their requests.
fn parts(problem: &Problem) -> Vec<(Part, Derivation)> {
    let function = (Part::Function, problem.function.value());
    match &problem.derivation {
        None => vec![function],
        Some(derivation) => {
            vec![function, (Part::Derivative, derivation.clone()), (Part::Both, derivation.clone().with_value())]
        }
    }
}

/// Returns the relative error of the derivative by forward mode without any optimisation, in doubles.
fn plain_forward_error(options: &Options, problem: &Problem) -> Result<Option<f64>, Box<dyn std::error::Error>> {
    let Some(derivation) = problem.derivation.as_ref().filter(|_| options.verify) else { return Ok(None) };
    let plain = derivation.clone().strategy("forward").without_optimisation().function()?;
    Ok(Some(error_of(problem, derivation, &plain)?))
}

fn measure(
    options: &Options,
    problem: &Problem,
    part: Part,
    request: &Derivation,
    strategies: &[String],
) -> Result<Vec<Measured>, Box<dyn std::error::Error>> {
    let strategies = if part == Part::Function { &strategies[..1] } else { strategies };
    let mut rows = Vec::new();
    for strategy in strategies {
        let start = Instant::now();
        let request = request.clone().strategy(strategy);
        let request = match (options.no_optimise, options.quick) {
            (true, _) => request.without_optimisation(),
            (false, true) => request.quick(),
            (false, false) => request,
        };
        let derived = match request.function() {
            Ok(derived) => derived,
            // A costly strategy may exceed its budget; `auto` may not.
            Err(error) if strategy != "auto" && error.is_limitation() => continue,
            Err(error) => return Err(error.into()),
        };
        let seconds = start.elapsed().as_secs_f64();
        let error = match (part, options.verify) {
            (Part::Derivative, true) => Some(error_of(problem, &request, &derived)?),
            _ => None,
        };
        let counts = derived.counts().unwrap_or_default();
        rows.push(Measured { strategy: strategy.clone(), counts, seconds, error });
    }
    Ok(rows)
}

fn error_of(problem: &Problem, request: &Derivation, derived: &Function) -> Result<f64, chainrule::Error> {
    chainrule::check::compare_at(&problem.function, request, derived, &problem.points)
        .map(|agreement| agreement.worst())
}

const TABLE_HEAD: &str = "\
problem    part       |    add    mul    div    neg   call    auto |   best by              |     D*   peer              proto   goal     N-E | seconds   error  /plain";

const DETAIL_HEAD: &str = "\
problem    part       strategy                 add     mul    div    neg   call    total   seconds   error  /plain";

/// Returns the row of `auto`, the best strategy and the best known count.
fn table_line(problem: &str, part: Part, rows: &[Measured], plain: Option<f64>) -> String {
    let auto = &rows[0];
    let Counts { add, mul, div, neg, call, .. } = auto.counts;
    let best = rows.iter().min_by_key(|row| row.counts.arithmetic()).unwrap_or(auto);
    let Target { dstar, peer, prototype, goal, newton_euler } = target(problem, part);
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let (peer, by) = peer.map_or_else(Default::default, |(n, by)| (n.to_string(), by));
    format!(
        "{problem:<10} {:<10} | {add:>6} {mul:>6} {div:>6} {neg:>6} {call:>6} {:>7} | {:>6} {:<15} | {:>6} {peer:>6} {by:<10} {:>6} {:>6} {:>7} | {:>7.3}{}",
        part.name(),
        auto.counts.arithmetic(),
        best.counts.arithmetic(),
        best.strategy,
        number(dstar),
        number(prototype),
        number(goal),
        number(newton_euler),
        auto.seconds,
        error_columns(auto, plain)
    )
}

fn detail_line(problem: &str, part: Part, row: &Measured, plain: Option<f64>) -> String {
    let Counts { add, mul, div, neg, call, .. } = row.counts;
    format!(
        "{problem:<10} {:<10} {:<20} {add:>7} {mul:>7} {div:>6} {neg:>6} {call:>6} {:>8} {:>9.3}{}",
        part.name(),
        row.strategy,
        row.counts.arithmetic(),
        row.seconds,
        error_columns(row, plain)
    )
}

fn error_columns(row: &Measured, plain: Option<f64>) -> String {
    match (row.error, plain) {
        (Some(error), Some(plain)) => format!(" {error:>8.1e} {:>6.2}", error / plain),
        _ => String::new(),
    }
}

fn json_line(problem: &str, part: Part, row: &Measured, plain: Option<f64>) -> serde_json::Value {
    let Counts { add, mul, div, neg, call, .. } = row.counts;
    let mut line = json!({
        "problem": problem, "part": part.name(), "strategy": row.strategy, "add": add, "mul": mul, "div": div,
        "neg": neg, "call": call, "seconds": row.seconds,
    });
    if let (Some(error), Some(plain)) = (row.error, plain) {
        line["error"] = json!(error);
        line["times_plain_forward"] = json!(error / plain);
    }
    line
}
