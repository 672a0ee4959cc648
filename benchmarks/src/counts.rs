//! `counts`: additions, multiplications, divisions, negations and calls for each problem and strategy.

use crate::problems::{ALL, problem};
use chainrule::{Counts, Function};
use clap::Args;
use serde_json::json;
use std::time::Instant;

/// What to count.
#[derive(Args)]
pub struct Options {
    /// Only these problems.
    #[arg(long = "problem")]
    problems: Vec<String>,
    /// Only these strategies.
    #[arg(long = "strategy")]
    strategies: Vec<String>,
    /// One JSON object a line: problem, strategy, add, mul, div, neg, call, seconds.
    #[arg(long)]
    json: bool,
    /// Check every derivative against forward mode in extended precision; adds the largest relative
    /// error, and how many times that of plain forward mode in doubles it is, to each row.
    #[arg(long)]
    verify: bool,
}

/// Strategies of the table: those that end in reasonable time on every problem.
const STRATEGIES: &[&str] = &["forward", "reverse", "markowitz", "auto"];

/// Prints the table.
///
/// # Errors
/// When a problem or a strategy is unknown, or a derivative fails its check.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let all: Vec<String> = ALL.iter().map(ToString::to_string).collect();
    let names = if options.problems.is_empty() { &all } else { &options.problems };
    let known: Vec<String> = STRATEGIES.iter().map(ToString::to_string).collect();
    let strategies = if options.strategies.is_empty() { &known } else { &options.strategies };
    if !options.json {
        println!(
            "{:<10} {:<10} {:>7} {:>7} {:>6} {:>6} {:>6} {:>8} {:>9}{}",
            "problem",
            "strategy",
            "add",
            "mul",
            "div",
            "neg",
            "call",
            "total",
            "seconds",
            if options.verify { "     error" } else { "" }
        );
    }
    for name in names {
        let start = Instant::now();
        let problem = problem(name)?;
        let value = start.elapsed().as_secs_f64();
        row(options, name, "function", &problem.function, value, None);
        let Some(derivation) = &problem.derivation else { continue };
        for strategy in strategies {
            let start = Instant::now();
            let derived = derivation.clone().strategy(strategy).function()?;
            let seconds = start.elapsed().as_secs_f64();
            let error = options
                .verify
                .then(|| chainrule::check::derivative_error(&problem.function, derivation, &derived, &problem.points))
                .transpose()?;
            row(options, name, strategy, &derived, seconds, error);
            if let Some(error) = error
                && error > 1e-9
            {
                return Err(format!("{name} by {strategy} is wrong: relative error {error:e}").into());
            }
        }
    }
    Ok(())
}

fn row(options: &Options, problem: &str, strategy: &str, function: &Function, seconds: f64, error: Option<f64>) {
    let counts: Counts = function.counts().unwrap_or_default();
    let Counts { add, mul, div, neg, call, .. } = counts;
    if options.json {
        let mut line = json!({
            "problem": problem, "strategy": strategy, "add": add, "mul": mul, "div": div, "neg": neg, "call": call,
            "seconds": seconds,
        });
        if let Some(error) = error {
            line["error"] = json!(error);
        }
        println!("{line}");
    } else {
        let error = error.map_or_else(String::new, |e| format!("  {e:>8.1e}"));
        println!(
            "{problem:<10} {strategy:<10} {add:>7} {mul:>7} {div:>6} {neg:>6} {call:>6} {:>8} {seconds:>9.3}{error}",
            counts.arithmetic()
        );
    }
}
