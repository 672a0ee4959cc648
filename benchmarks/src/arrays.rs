//! `arrays`: array programs that keep their loops: objectives and derivatives, native and as C through a C compiler,
//! beside the objective written by hand in C++.
//!
//! All that is compared runs in this process in turn, round by round; medians count, and of a pair the median of the
//! rounds' ratios.

mod problems;

use crate::measure::{Runner, median};
use chainrule::{CompileOptions, Compiled, Function, Rewrite};
use clap::Args;
use problems::Problem;
use serde_json::json;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Problems by name or the beginning of one: gmm, gmm_d10, ...
    #[arg(long = "problem", value_delimiter = ',')]
    problems: Vec<String>,
    /// Rounds; medians count.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Without the optimiser of array programs, or without one of its passes or rules; `off` for all.
    #[arg(long)]
    without: Option<String>,
    /// Print the kernels.
    #[arg(long)]
    listing: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// An objective written by hand.
struct ByHand {
    objective: unsafe extern "C" fn(*const *const f64, *const i64) -> f64,
    _library: ManuallyDrop<libloading::Library>,
}

impl ByHand {
    /// `source` compiled by g++ -O3; `None` where there is none.
    #[allow(unsafe_code)]
    fn compile(source: &str) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        if Command::new("g++").arg("--version").output().is_err() {
            return Ok(None);
        }
        let dir = tempfile::tempdir()?;
        let (file, library) = (dir.path().join("objective.cpp"), dir.path().join("objective.so"));
        std::fs::write(&file, source)?;
        let output = Command::new("g++")
            .args(["-O3", "-march=native", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&file)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Self::load(&library).map(Some)
    }

    #[allow(unsafe_code)]
    fn load(library: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        // SAFETY: the library was just made from C++ that has nothing that runs when it is loaded but constructors
        // of empty vectors.
        let library = unsafe { libloading::Library::new(library)? };
        // SAFETY: each source defines `objective` with this type.
        let objective =
            unsafe { *library.get::<unsafe extern "C" fn(*const *const f64, *const i64) -> f64>(b"objective\0")? };
        Ok(Self { objective, _library: ManuallyDrop::new(library) })
    }

    #[allow(unsafe_code)]
    fn run(&self, arguments: &[*const f64], integers: &[i64]) -> f64 {
        // SAFETY: the arguments are as many and as long as the problem says and the source expects.
        unsafe { (self.objective)(arguments.as_ptr(), integers.as_ptr()) }
    }
}

fn compile(function: &Function, options: &Options) -> Result<(Compiled, f64), Box<dyn std::error::Error>> {
    let rewrite = match options.without.as_deref() {
        None => Rewrite::All,
        Some("off") => Rewrite::Off,
        Some(name) => Rewrite::Without(Box::leak(name.to_owned().into_boxed_str())),
    };
    let start = Instant::now();
    let compiled = function.compile_with(&CompileOptions { rewrite, ..CompileOptions::default() })?;
    let seconds = start.elapsed().as_secs_f64();
    if options.listing {
        println!("{}", compiled.listing());
    }
    Ok((compiled, seconds))
}

/// Runs it.
///
/// # Errors
/// When a program is wrong or a compiler fails.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let wanted =
        |p: &Problem| options.problems.is_empty() || options.problems.iter().any(|n| p.name.starts_with(n.as_str()));
    if !options.json {
        println!(
            "{:>16} {:>10} {:>10} {:>10} {:>7} {:>7} {:>8} {:>9}",
            "problem", "by hand", "value", "with d", "value/c", "d/value", "d/byhand", "compile"
        );
        println!("{:>16} {:>10} {:>10} {:>10} {:>7} {:>7} {:>8} {:>9}", "", "us", "us", "us", "", "", "", "ms");
    }
    for problem in problems::all()?.iter().filter(|p| wanted(p)) {
        one(problem, options)?;
    }
    Ok(())
}

fn one(problem: &Problem, options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let (value, _) = compile(&problem.objective, options)?;
    let start = Instant::now();
    let derivative = (problem.derive)(&problem.objective)?;
    let (derivative, seconds) = compile(&derivative, options)?;
    let whole = start.elapsed().as_secs_f64();
    let (mut at, mut derived_at) = (value.prepare(&problem.args)?, derivative.prepare(&problem.args)?);
    at.run()?;
    derived_at.run()?;
    let by_hand = ByHand::compile(problem.by_hand)?;
    let (arguments, integers) = (&problem.by_hand_arguments, &problem.by_hand_integers);
    let pointers: Vec<*const f64> = arguments.iter().map(Vec::as_ptr).collect();
    if let Some(by_hand) = &by_hand {
        let (expected, found) = (by_hand.run(&pointers, integers), at.result(0)[0]);
        if (expected - found).abs() > 1e-9 * expected.abs().max(1.0) {
            return Err(format!("{}: {found}, by hand {expected}", problem.name).into());
        }
    }
    let mut runners = vec![
        Runner::new(1, || {
            let _ = at.run();
        }),
        Runner::new(1, || {
            let _ = derived_at.run();
        }),
    ];
    if let Some(by_hand) = &by_hand {
        runners.push(Runner::new(1, || {
            std::hint::black_box(by_hand.run(&pointers, integers));
        }));
    }
    for _ in 0..options.rounds {
        runners.iter_mut().for_each(Runner::sample);
    }
    let times: Vec<f64> = runners.iter().map(|runner| median(&runner.samples) / 1e3).collect();
    let ratio = |a: usize, b: usize| -> Option<f64> {
        let (a, b) = (runners.get(a)?, runners.get(b)?);
        let ratios: Vec<f64> = a.samples.iter().zip(&b.samples).map(|(a, b)| a / b).collect();
        Some(median(&ratios))
    };
    let (value_ratio, derivative_ratio, to_hand) = (ratio(0, 2), ratio(1, 0), ratio(1, 2));
    if options.json {
        println!(
            "{}",
            json!({
                "problem": problem.name, "by_hand_us": times.get(2), "value_us": times[0], "derivative_us": times[1],
                "value_by_hand": value_ratio, "derivative_value": derivative_ratio, "derivative_by_hand": to_hand,
                "compile_ms": seconds * 1e3, "derive_and_compile_ms": whole * 1e3,
            })
        );
    } else {
        let text = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.2}"));
        println!(
            "{:>16} {:>10} {:>10.1} {:>10.1} {:>7} {:>7} {:>8} {:>9.1}",
            problem.name,
            times.get(2).map_or_else(|| "-".to_owned(), |x| format!("{x:.1}")),
            times[0],
            times[1],
            text(value_ratio),
            text(derivative_ratio),
            text(to_hand),
            whole * 1e3
        );
    }
    Ok(())
}
