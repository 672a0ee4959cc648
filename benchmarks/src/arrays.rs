//! `arrays`: array programs that keep their loops: objectives and derivatives, native and as C through a C compiler,
//! compared with the objective written by hand in C++.
//!
//! All alternatives run in this process in turn, round by round; medians count, and for a pair the median of the
//! rounds' ratios.

mod choices;
mod in_c;
mod problems;
mod threads;

use crate::measure::Runner;
use chainrule::{CompileOptions, Compiled, Function, Rewrite};
use clap::Args;
use in_c::InC;
use problems::Problem;
use serde_json::json;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// Problems by name or prefix: gmm, gmm_d10, ...
    #[arg(long = "problem", value_delimiter = ',')]
    problems: Vec<String>,
    /// Rounds; medians count.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Disable lanes (`lanes`), the optimiser of array programs (`off`), or one of its passes or rules.
    #[arg(long)]
    without: Option<String>,
    /// Instead: one evaluation on this many threads, compared with one thread.
    #[arg(long)]
    threads: Option<usize>,
    /// Instead: with index checks, and without.
    #[arg(long, conflicts_with = "threads")]
    checks: bool,
    /// Instead: derivatives with all loop states saved, and with checkpoints.
    #[arg(long, conflicts_with_all = ["threads", "checks"])]
    checkpoints: bool,
    /// C compiler for emitted code, with its flags.
    #[arg(long, default_value = "gcc -O3 -march=native")]
    c: String,
    /// Print the kernels.
    #[arg(long)]
    listing: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// An objective written by hand.
struct ByHand {
    objective: unsafe extern "C" fn(*const *const f64, *const i64) -> f64,
    _library: ManuallyDrop<libloading::Library>,
}

impl ByHand {
    /// Compiles `source` by g++ -O3; `None` if there is no such compiler.
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
        // SAFETY: the library was just compiled from C++ whose only code at load time is constructors of empty vectors.
        let library = unsafe { libloading::Library::new(library)? };
        // SAFETY: each source defines `objective` with this type.
        let objective =
            unsafe { *library.get::<unsafe extern "C" fn(*const *const f64, *const i64) -> f64>(b"objective\0")? };
        Ok(Self { objective, _library: ManuallyDrop::new(library) })
    }

    #[allow(unsafe_code)]
    fn run(&self, arguments: &[*const f64], integers: &[i64]) -> f64 {
        // SAFETY: number and lengths of the arguments are those of the problem, as the source expects.
        unsafe { (self.objective)(arguments.as_ptr(), integers.as_ptr()) }
    }
}

fn compile(function: &Function, options: &Options) -> Result<Compiled, Box<dyn std::error::Error>> {
    compile_with(function, options, None)
}

fn compile_with(
    function: &Function,
    options: &Options,
    threads: Option<usize>,
) -> Result<Compiled, Box<dyn std::error::Error>> {
    let sequential = options.without.as_deref() == Some("lanes");
    let rewrite = match options.without.as_deref() {
        None | Some("lanes") => Rewrite::All,
        Some("off") => Rewrite::Off,
        Some(name) => Rewrite::Without(Box::leak(name.to_owned().into_boxed_str())),
    };
    let compiled =
        function.compile_with(&CompileOptions { rewrite, sequential, threads, ..CompileOptions::default() })?;
    if options.listing {
        println!("{}", compiled.listing());
    }
    Ok(compiled)
}

/// A column of the table.
const HEAD: [(&str, &str); 13] = [
    ("problem", ""),
    ("by hand", "us"),
    ("value", "us"),
    ("with d", "us"),
    ("value/hand", ""),
    ("d/value", ""),
    ("published", ""),
    ("d/hand", ""),
    ("c/value", ""),
    ("c d/d", ""),
    ("compile", "ms"),
    ("memory", "numbers"),
    ("memory d", "numbers"),
];

fn print_row(cells: &[String]) {
    let text: Vec<String> = cells
        .iter()
        .enumerate()
        .map(|(i, cell)| if i == 0 { format!("{cell:<15}") } else { format!("{cell:>10}") })
        .collect();
    println!("{}", text.join(" "));
}

/// Prints the table.
///
/// # Errors
/// Fails if a program is wrong, a compiler fails, or an objective differs from the hand-written one.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let wanted = |p: &Problem| {
        options.problems.is_empty() || options.problems.iter().any(|name| p.name.starts_with(name.as_str()))
    };
    if let Some(threads) = options.threads {
        threads::pin(threads)?;
        if !options.json {
            threads::print_head(threads);
        }
        return problems::all().iter().filter(|p| wanted(p)).try_for_each(|p| threads::one(p, options, threads));
    }
    if options.checks {
        if !options.json {
            choices::print_head_of_checks();
        }
        return problems::all().iter().filter(|p| wanted(p)).try_for_each(|p| choices::checks(p, options));
    }
    if options.checkpoints {
        if !options.json {
            choices::print_head_of_checkpoints();
        }
        return problems::all().iter().filter(|p| wanted(p)).try_for_each(|p| choices::checkpoints(p, options));
    }
    if !options.json {
        print_row(&HEAD.map(|(name, _)| name.to_owned()));
        print_row(&HEAD.map(|(_, unit)| unit.to_owned()));
    }
    for problem in problems::all().iter().filter(|p| wanted(p)) {
        one(problem, options)?;
    }
    Ok(())
}

fn one(problem: &Problem, options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let (objective, derivative_of) = (problem.make)(None)?;
    let (value, derivative) = (compile(&objective, options)?, compile(&derivative_of, options)?);
    let beside = problem.beside.map(|make| compile(&make()?, options)).transpose()?;
    let compile_ms = start.elapsed().as_secs_f64() * 1e3;
    let (mut at, mut derived_at) = (value.prepare(&problem.args)?, derivative.prepare(&problem.args)?);
    let mut beside = beside.as_ref().map(|beside| beside.prepare(&problem.args)).transpose()?;
    let (memory, memory_derivative) = (at.workspace_len(), derived_at.workspace_len());
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
    // The same kernels in C.
    let mut value_in_c = InC::compile(&objective, &at, &options.c)?;
    let mut derivative_in_c = InC::compile(&derivative_of, &derived_at, &options.c)?;
    for (c, at, what) in [(&mut value_in_c, &at, "value"), (&mut derivative_in_c, &derived_at, "derivative")] {
        let Some(c) = c else { continue };
        c.run().map_err(|code| format!("{}: the C of its {what} fails with code {code}", problem.name))?;
        let largest = at.result(0).iter().fold(1.0f64, |m, x| m.max(x.abs()));
        if c.result(0).iter().zip(at.result(0)).any(|(a, b)| (a - b).abs() > 1e-9 * largest) {
            return Err(format!("{}: the C of its {what} computes something else", problem.name).into());
        }
    }
    let mut of_value_in_c = value_in_c.as_mut().map(|c| {
        Runner::new(1, || {
            let _ = c.run();
        })
    });
    let mut of_derivative_in_c = derivative_in_c.as_mut().map(|c| {
        Runner::new(1, || {
            let _ = c.run();
        })
    });
    let mut of_value = Runner::new(1, || {
        let _ = at.run();
    });
    let mut of_derivative = Runner::new(1, || {
        let _ = derived_at.run();
    });
    let mut of_beside = beside.as_mut().map(|beside| {
        Runner::new(1, || {
            let _ = beside.run();
        })
    });
    let mut of_hand = by_hand.as_ref().map(|by_hand| {
        Runner::new(1, || {
            std::hint::black_box(by_hand.run(&pointers, integers));
        })
    });
    for _ in 0..options.rounds {
        of_value.sample();
        of_derivative.sample();
        for runner in [&mut of_beside, &mut of_hand, &mut of_value_in_c, &mut of_derivative_in_c].into_iter().flatten()
        {
            runner.sample();
        }
    }
    let us = |runner: &Runner<'_>| runner.median() / 1e3;
    let hand = of_hand.as_ref();
    // With the functions computed besides.
    let derived_by =
        |other: &Runner<'_>| of_derivative.ratio(other) + of_beside.as_ref().map_or(0.0, |beside| beside.ratio(other));
    let derivative_us = us(&of_derivative) + of_beside.as_ref().map_or(0.0, us);
    let (value_by_hand, derivative_by_hand) = (hand.map(|hand| of_value.ratio(hand)), hand.map(derived_by));
    let derivative_by_value = derived_by(&of_value);
    let value_in_c = of_value_in_c.as_ref().map(|c| c.ratio(&of_value));
    let derivative_in_c = of_derivative_in_c.as_ref().map(|c| c.ratio(&of_derivative));
    if options.json {
        println!(
            "{}",
            json!({
                "problem": problem.name, "by_hand_us": hand.map(us), "value_us": us(&of_value),
                "derivative_us": derivative_us, "value_by_hand": value_by_hand,
                "derivative_by_value": derivative_by_value, "published": problem.published,
                "derivative_by_hand": derivative_by_hand, "c_by_value": value_in_c,
                "c_derivative_by_derivative": derivative_in_c, "compile_ms": compile_ms,
                "memory": memory, "memory_derivative": memory_derivative,
            })
        );
        return Ok(());
    }
    let text = |x: Option<f64>, digits: usize| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.digits$}"));
    print_row(&[
        problem.name.clone(),
        text(hand.map(us), 1),
        text(Some(us(&of_value)), 1),
        text(Some(derivative_us), 1),
        text(value_by_hand, 2),
        text(Some(derivative_by_value), 2),
        text(problem.published, 2),
        text(derivative_by_hand, 2),
        text(value_in_c, 2),
        text(derivative_in_c, 2),
        text(Some(compile_ms), 1),
        memory.to_string(),
        memory_derivative.to_string(),
    ]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The first problem of each kind has the value of the one written by hand, and its C compiles and runs.
    #[test]
    fn problems_of_each_kind_run() {
        let mut kinds = BTreeSet::new();
        for problem in problems::all() {
            let kind = problem.name.split('_').next().unwrap_or_default().to_owned();
            if !kinds.insert(kind) {
                continue;
            }
            let options = Options {
                problems: Vec::new(),
                rounds: 1,
                without: None,
                threads: None,
                checks: false,
                checkpoints: false,
                c: "gcc -O0".to_owned(),
                listing: false,
                json: false,
            };
            if let Err(error) = one(&problem, &options) {
                panic!("{}: {error}", problem.name);
            }
        }
        assert!(kinds.len() > 15, "{kinds:?}");
    }
}
