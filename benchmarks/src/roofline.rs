//! `roofline`: array problems compared with the bound that memory and arithmetic of this machine set, and with NumPy
//! and JAX if installed.
//!
//! A bound is the larger of two times: of the bytes that must move, at the bandwidth of the cache level of the working
//! set, and of the operations, at the peak of fused multiply-adds, with elementary functions at their measured times in
//! lanes. The work is the mathematical minimum, not that of the code. Value, gradient, and both in one call run in
//! turn, round by round. The best round counts, as for the peers, because other load only adds. The time that the
//! compiler's cost model predicts stands beside the measured one, and the errors of all predictions below the table.

mod further;
mod peaks;
mod problems;

use crate::measure::{Runner, geometric_mean};
use chainrule::{CompileOptions, Compiled, Function, Module, Value};
use clap::Args;
use peaks::Peaks;
use problems::{Problem, Work};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::process::Command;

const PROGRAMS: &str = include_str!("roofline/problems.ft");
const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/roofline.py");

/// Selection of measurements.
#[derive(Args)]
pub struct Options {
    /// Problems by name or the beginning of one: linear, heat, ...
    #[arg(long = "problem", value_delimiter = ',')]
    problems: Vec<String>,
    /// Rounds; the best counts.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Python with NumPy, JAX, or both, for the peers; `none` disables them.
    #[arg(long, default_value = "python3")]
    python: String,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Part of a problem: its work, the code, and its predicted time in microseconds.
struct Part {
    name: &'static str,
    work: Work,
    code: Compiled,
    predicted_us: f64,
}

impl Part {
    fn new(
        name: &'static str,
        work: Work,
        function: &Function,
        args: &[Value<f64>],
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let predicted_us = function.prediction(&CompileOptions::default(), Some(args))?.ns / 1e3;
        Ok(Self { name, work, code: function.compile()?, predicted_us })
    }
}

/// Prints the table.
///
/// # Errors
/// Fails if a program is wrong.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let peaks = Peaks::measure()?;
    print_peaks(&peaks, options.json);
    let module = Module::from_text("problems.ft", PROGRAMS)?;
    let wanted = |p: &Problem| {
        options.problems.is_empty() || options.problems.iter().any(|name| p.name.starts_with(name.as_str()))
    };
    let mut peers = peers(options);
    if !options.json {
        println!(
            "{:<19}{:<9}{:>9}{:>10}{:>9}{:>9}{:>11}{:>11}{:>9}{:>10}{:>10}",
            "problem", "part", "KiB", "k fused", "bound us", "of", "us", "predicted", "of bound", "NumPy us", "JAX us"
        );
    }
    let (mut errors, mut dropped) = (Vec::new(), Vec::new());
    let all = problems::all();
    for problem in all.iter().filter(|p| wanted(p)) {
        let times = one(&module, problem, &peaks, options, &mut peers)?;
        errors.extend(times.iter().map(|time| time.predicted_us / time.us));
        if let [value, gradient, both] = times[..] {
            dropped.push((problem.name.as_str(), value.us.max(gradient.us) / both.us));
        }
    }
    print_errors(&errors, options.json);
    print_dropped(&dropped, options.json);
    Ok(())
}

/// Times of a part in microseconds.
#[derive(Clone, Copy)]
struct Times {
    us: f64,
    predicted_us: f64,
}

/// Prints the problems in which the value or the gradient alone takes longer than both together, with the ratio.
fn print_dropped(dropped: &[(&str, f64)], as_json: bool) {
    let longer: Vec<_> = dropped.iter().filter(|(_, ratio)| *ratio > 1.05).collect();
    if as_json {
        let longer: BTreeMap<&str, f64> = longer.into_iter().copied().collect();
        println!("{}", json!({"problems": dropped.len(), "part_longer_than_both": longer}));
        return;
    }
    print!("a part takes more than 1.05 of the time of both in {} of {} problems", longer.len(), dropped.len());
    longer.iter().for_each(|(name, ratio)| print!("; {name} {ratio:.2}"));
    println!();
}

/// Prints how far predictions are from measured times. `errors` are predicted times over measured ones.
fn print_errors(errors: &[f64], as_json: bool) {
    let mean = geometric_mean(errors);
    let squares: f64 = errors.iter().map(|error| (error / mean).ln().powi(2)).sum();
    let spread = (squares / errors.len().max(1) as f64).sqrt().exp();
    let within = |most: f64| errors.iter().filter(|error| error.ln().abs() <= most.ln()).count();
    let [close, near, twice] = [1.15, 1.5, 2.0].map(within);
    if as_json {
        println!(
            "{}",
            json!({"predictions": errors.len(), "geometric_mean": mean, "spread": spread,
                "within_15_percent": close, "within_50_percent": near, "within_twice": twice})
        );
        return;
    }
    println!(
        "predicted / measured: geometric mean {mean:.2}, geometric standard deviation {spread:.2}; \
         of {} parts {close} within 15 %, {near} within 50 %, {twice} within a factor of 2",
        errors.len()
    );
}

fn print_peaks(peaks: &Peaks, as_json: bool) {
    let levels = peaks.levels.iter().map(|(name, _, bandwidth)| (*name, bandwidth / 1e9));
    let calls = peaks.calls.iter().map(|(_, name, seconds)| (*name, seconds * 1e9));
    if as_json {
        let (levels, calls): (BTreeMap<_, _>, BTreeMap<_, _>) = (levels.collect(), calls.collect());
        println!("{}", json!({"fused_per_ns": peaks.operations / 1e9, "bytes_per_ns": levels, "call_ns": calls}));
        return;
    }
    println!("{:.1} fused multiply-adds a ns", peaks.operations / 1e9);
    levels.for_each(|(name, bandwidth)| println!("{name}: {bandwidth:.1} bytes a ns"));
    calls.for_each(|(name, ns)| println!("{name}: {ns:.2} ns a number"));
}

/// Returns the minimum time of `work` in seconds, and whether memory or arithmetic bounds it.
fn bound(peaks: &Peaks, problem: &Problem, work: &Work) -> (f64, &'static str) {
    let memory = work.bytes / peaks.bandwidth(8.0 * problem.working_set);
    let calls: f64 = work.calls.iter().map(|(call, n)| n * peaks.call(*call)).sum();
    let arithmetic = work.operations / peaks.operations + calls;
    if memory > arithmetic { (memory, "bytes") } else { (arithmetic, "fused") }
}

/// Prints the rows of a problem; returns the times of its parts.
fn one(
    module: &Module,
    problem: &Problem,
    peaks: &Peaks,
    options: &Options,
    peers: &mut BTreeMap<(String, String), Json>,
) -> Result<Vec<Times>, Box<dyn std::error::Error>> {
    let function = module.function(&problem.function)?;
    let (value, gradient) = (problem.value, problem.gradient);
    let derived = || function.gradient().by(problem.by);
    let both = Work {
        operations: gradient.operations,
        bytes: gradient.bytes,
        calls: if value.calls[0].1 + value.calls[1].1 > gradient.calls[0].1 + gradient.calls[1].1 {
            value.calls
        } else {
            gradient.calls
        },
    };
    let parts = [
        Part::new("value", value, &function, &problem.args)?,
        Part::new("gradient", gradient, &derived().function()?, &problem.args)?,
        Part::new("both", both, &derived().with_value().function()?, &problem.args)?,
    ];
    let mut prepared = parts.iter().map(|part| part.code.prepare(&problem.args)).collect::<Result<Vec<_>, _>>()?;
    prepared.iter_mut().try_for_each(chainrule::Prepared::run)?;
    let mut runners: Vec<Runner<'_>> = (prepared.iter_mut())
        .map(|at| {
            Runner::new(1, || {
                let _ = at.run();
            })
        })
        .collect();
    for _ in 0..options.rounds {
        runners.iter_mut().for_each(Runner::sample);
    }
    let mut times = Vec::new();
    for (part, runner) in parts.iter().zip(&runners) {
        let (seconds, of) = bound(peaks, problem, &part.work);
        let (bound_us, us) = (seconds * 1e6, runner.best() / 1e3);
        let peer = |engine: &str| peers.get(&(problem.name.clone(), engine.to_owned()))?.get(part.name)?.as_f64();
        let (numpy, jax) = (peer("numpy"), peer("jax"));
        let predicted_us = part.predicted_us;
        times.push(Times { us, predicted_us });
        let (kib, operations) = (part.work.bytes / 1024.0, part.work.operations / 1e3);
        if options.json {
            println!(
                "{}",
                json!({"problem": problem.name, "part": part.name, "bytes": part.work.bytes,
                    "fused": part.work.operations, "bound_us": bound_us, "bound_by": of, "us": us,
                    "predicted_us": predicted_us, "numpy_us": numpy, "jax_us": jax})
            );
            continue;
        }
        let text = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.1}"));
        println!(
            "{:<19}{:<9}{kib:>9.0}{operations:>10.0}{bound_us:>9.1}{of:>9}{us:>11.1}{predicted_us:>11.1}{:>9.2}{:>10}{:>10}",
            problem.name,
            part.name,
            bound_us / us,
            text(numpy),
            text(jax)
        );
    }
    Ok(times)
}

/// Returns times of the peers in microseconds, by problem and engine; none without Python or if neither is installed.
fn peers(options: &Options) -> BTreeMap<(String, String), Json> {
    let mut all = BTreeMap::new();
    if options.python == "none" {
        return all;
    }
    let Ok(output) = Command::new(&options.python).arg(PEERS).args(&options.problems).output() else { return all };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(row) = serde_json::from_str::<Json>(line) else { continue };
        if let (Some(problem), Some(engine)) = (row["problem"].as_str(), row["engine"].as_str()) {
            all.insert((problem.to_owned(), engine.to_owned()), row.clone());
        }
    }
    all
}
