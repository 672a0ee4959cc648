//! `straightline`: straight-line code, compiled and run: native code compared with the interpreter, with Cranelift if
//! the benchmarks are built with the feature `cranelift`, and with C compilers on emitted C.
//!
//! All alternatives run in this process in turn, round by round: ours, then each rival. The output is medians, and for
//! a pair the median of the rounds' ratios, so that disturbances affect both sides. `native` is one point in owned
//! memory ([`Bound`](chainrule::Bound)), as the rivals' is; `eval_into` takes slices, which it checks.

use crate::measure::{Runner, geometric_mean, median};
use crate::rival::{Many, Rival};
use crate::{memory, problems};
use chainrule::{
    Backend, BatchOptions, CompileOptions, Compiled, Expr, Function, Level, Slice, SliceMut, Strided, StridedMut, vars,
};
use chainrule_cases::Marsaglia as Random;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::hint::black_box;
use std::time::Instant;

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// Largest random program, in operations; sizes grow tenfold from 100.
    #[arg(long, default_value_t = 1_000_000)]
    operations: usize,
    /// Additional derivative programs of `counts`; `none` for none.
    #[arg(
        long = "problem",
        value_delimiter = ',',
        default_value = "sh5,sh10,sh15,sh20,idf6_par,idf6_gen,idj6_par,idj6_gen,st6_par,st12_gen,st40_par,ba"
    )]
    problems: Vec<String>,
    /// C compilers with their flags, if installed.
    #[arg(
        long = "rival",
        value_delimiter = ',',
        default_value = "gcc -O2 -march=native,clang -O1 -march=native -ffp-contract=fast"
    )]
    rivals: Vec<String>,
    /// C compilers with their flags for the functions over many points, which are compared with native lanes.
    #[arg(long = "vector-rival", value_delimiter = ',', default_value = "gcc -O2 -march=native")]
    vector_rivals: Vec<String>,
    /// Largest program for rivals, in operations: their compile time grows to minutes.
    #[arg(long, default_value_t = 20_000)]
    rival_operations: usize,
    /// Largest program for Cranelift, in operations. Its column exists if the benchmarks are built with `--features
    /// cranelift`.
    #[arg(long, default_value_t = 50_000)]
    cranelift_operations: usize,
    /// Native code with these vector instructions (default: the best of the machine). Rivals follow their flags.
    #[arg(long, value_enum)]
    level: Option<Vectors>,
    /// Rounds; medians count.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Vector instructions.
#[derive(Clone, Copy, ValueEnum)]
enum Vectors {
    Avx2,
    Avx512,
}

/// Returns a random program of about `n` operations: means and products of earlier values, one percent sines and
/// cosines.
fn random_program(n: usize) -> Result<Function, chainrule::Error> {
    let mut random = Random::default();
    let x = vars("x", 32);
    let mut values: Vec<Expr> = (0..32).map(|i| x[i].clone()).collect();
    let mut used = vec![false; 32];
    for i in 0..(2 * n).div_ceil(5) {
        let near = |random: &mut Random, values: &Vec<Expr>| values.len() - 1 - random.below(values.len().min(100));
        let (a, b) = (near(&mut random, &values), near(&mut random, &values));
        used[a] = true;
        let (p, q) = (&values[a], &values[b]);
        // A distinct constant, so that no two values are equal, and none is known to be zero.
        let c = 0.25 + 0.25 * (i % 10_007) as f64 / 10_007.0;
        let value = match random.below(100) {
            0 if i % 2 == 0 => p.sin(),
            0 => p.cos(),
            k => {
                used[b] = true;
                // Operands between -1 and 1, so that all numbers stay in that range.
                match k % 3 {
                    0 => (p + q) * c,
                    1 => p * q - c,
                    _ => p * c + q * 0.5,
                }
            }
        };
        values.push(value);
        used.push(false);
    }
    let results: Vec<Expr> = values.into_iter().zip(used).skip(32).filter(|(_, used)| !used).map(|(v, _)| v).collect();
    Function::new(&format!("random{n}"), &x, &chainrule::Vector::new(results).named("y"))
}

/// Returns the arguments of one point.
fn point(function: &Function) -> Vec<Vec<f64>> {
    let element = |i: usize| 0.3 + 0.4 / (1.0 + i as f64);
    let len = |s: &chainrule::Shape| s.extents.iter().map(|e| e.unwrap_or(1)).product::<usize>();
    function.inputs().iter().map(|s| (0..len(s)).map(element).collect()).collect()
}

/// Returns a runner of one point.
fn single<'a>(
    compiled: &'a Compiled,
    function: &Function,
    point: &'a [Vec<f64>],
) -> Result<Runner<'a>, chainrule::Error> {
    let inputs: Vec<&[f64]> = point.iter().map(Vec::as_slice).collect();
    let mut results = compiled.eval(&inputs)?;
    let mut workspace = workspace(compiled, function)?;
    Ok(Runner::new(1, move || {
        let run = match results.as_mut_slice() {
            // The rivals make no list of results either.
            [only] => compiled.eval_into(&inputs, &mut [only], &mut workspace),
            all => {
                let mut outputs: Vec<&mut [f64]> = all.iter_mut().map(Vec::as_mut_slice).collect();
                compiled.eval_into(&inputs, &mut outputs, &mut workspace)
            }
        };
        black_box(run.is_ok());
    }))
}

/// Returns a runner of one point in owned memory, as the rivals have it.
fn bound<'a>(compiled: &'a Compiled, function: &Function, point: &[Vec<f64>]) -> Result<Runner<'a>, chainrule::Error> {
    let extents = extents(function);
    let extents: Vec<&[usize]> = extents.iter().map(Vec::as_slice).collect();
    let mut bound = compiled.bound(&extents)?;
    point.iter().enumerate().for_each(|(i, x)| bound.input_mut(i).copy_from_slice(x));
    Ok(Runner::new(1, move || {
        assert!(bound.eval().is_ok(), "nothing in these programs fails");
    }))
}

fn extents(function: &Function) -> Vec<Vec<usize>> {
    function.inputs().iter().map(|s| s.extents.iter().map(|e| e.unwrap_or(1)).collect()).collect()
}

fn workspace(compiled: &Compiled, function: &Function) -> Result<chainrule::Workspace, chainrule::Error> {
    let extents = extents(function);
    let extents: Vec<&[usize]> = extents.iter().map(Vec::as_slice).collect();
    compiled.workspace(&extents)
}

/// Returns a runner of a batch of `n` points, an array of structures.
fn batch<'a>(
    compiled: &'a Compiled,
    function: &Function,
    point: &[Vec<f64>],
    n: usize,
) -> Result<Runner<'a>, chainrule::Error> {
    let inputs: Vec<&[f64]> = point.iter().map(Vec::as_slice).collect();
    let lens: Vec<usize> = compiled.eval(&inputs)?.iter().map(Vec::len).collect();
    let all: Vec<Vec<f64>> = point.iter().map(|x| x.repeat(n)).collect();
    let mut results: Vec<Vec<f64>> = lens.iter().map(|len| vec![0.0; n * len]).collect();
    let mut workspace = workspace(compiled, function)?;
    let widths: Vec<usize> = point.iter().map(Vec::len).collect();
    Ok(Runner::new(n, move || {
        let inputs: Vec<Strided<'_>> = all
            .iter()
            .zip(&widths)
            .map(|(x, width)| Strided { data: Slice::Real(x), point: *width, element: 1 })
            .collect();
        let mut outputs: Vec<StridedMut<'_>> = results
            .iter_mut()
            .zip(&lens)
            .map(|(y, len)| StridedMut { data: SliceMut::Real(y), point: *len, element: 1 })
            .collect();
        let options = BatchOptions::default();
        black_box(compiled.eval_batch_with(n, &inputs, &mut outputs, &mut workspace, &options).is_ok());
    }))
}

/// Prints the table.
///
/// # Errors
/// Fails if a program cannot be made or compiled.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let mut programs = Vec::new();
    let mut n = 100;
    while n <= options.operations {
        programs.push((format!("random {n}"), random_program(n)?));
        n *= 10;
    }
    for name in options.problems.iter().filter(|name| *name != "none") {
        let problem = problems::problem(name)?;
        let function = match problem.derivation {
            Some(derivation) => derivation.function()?,
            None => problem.function,
        };
        programs.push((name.clone(), function));
    }
    if !options.json {
        println!(
            "{:<15} {:>8} {:>9} {:>9} {:>8} {:>11} {:>10} {:>10} {:>11}  rivals: compile ms, run ns, ours/rival{} | their vectors: compile ms, ns a point, lanes/vectors",
            "program",
            "ops",
            "compile",
            "ns/op",
            "bytes/op",
            "interpreter",
            "eval_into",
            "native",
            "lanes",
            if cfg!(feature = "cranelift") { " | Cranelift: compile ns/op, run ns, ours/its" } else { "" }
        );
    }
    let mut ratios: [Vec<f64>; 2] = Default::default();
    for (name, function) in programs {
        let found = measure(&name, &function, options)?;
        ratios.iter_mut().zip(found).for_each(|(all, ratio)| all.extend(ratio));
    }
    for (ratios, what) in ratios.iter().zip(["one point", "native lanes / their vectors"]) {
        if !ratios.is_empty() && !options.json {
            let mean = geometric_mean(ratios);
            let worst = ratios.iter().copied().fold(0.0, f64::max);
            println!("ours / best compiler, {what}: geometric mean {mean:.3}, largest {worst:.3}");
        }
    }
    Ok(())
}

/// Returns a runner by Cranelift, and the minimum compile time in seconds; `None` if this build has no Cranelift, or
/// the program is too large for it.
fn cranelift(
    function: &Function,
    operations: usize,
    options: &Options,
) -> Result<Option<(Compiled, f64)>, chainrule::Error> {
    if !cfg!(feature = "cranelift") || operations > options.cranelift_operations {
        return Ok(None);
    }
    let by_cranelift = CompileOptions { backend: Backend::Cranelift, ..CompileOptions::default() };
    let begin = Instant::now();
    let mut made: Option<(Compiled, f64)> = None;
    while made.is_none() || begin.elapsed().as_secs_f64() < 0.1 {
        let start = Instant::now();
        let compiled = function.compile_with(&by_cranelift)?;
        let seconds = start.elapsed().as_secs_f64();
        made = Some((compiled, made.map_or(seconds, |(_, least)| least.min(seconds))));
    }
    Ok(made)
}

/// Number of points of a batch.
const POINTS: usize = 64;

fn measure(name: &str, function: &Function, options: &Options) -> Result<[Option<f64>; 2], Box<dyn std::error::Error>> {
    let level = options.level.map(|level| match level {
        Vectors::Avx2 => Level::Avx2,
        Vectors::Avx512 => Level::Avx512,
    });
    let native = CompileOptions { backend: Backend::Native, level, ..CompileOptions::default() };
    let interpreter = CompileOptions { backend: Backend::Interpreter, ..CompileOptions::default() };
    let ops = function.counts().map_or(0, |c| (c.arithmetic() + c.call) as usize).max(1);
    memory::forget_peak();
    let (mut compile_times, mut spent): (Vec<f64>, f64) = (Vec::new(), 0.0);
    while compile_times.len() < 5 || (compile_times.len() < 1001 && spent < 0.1) {
        let start = Instant::now();
        let compiled = black_box(function.compile_with(&native)?);
        // Until it can be called; unloading is not part of compile time, nor is it for the rivals.
        let seconds = start.elapsed().as_secs_f64();
        compile_times.push(seconds);
        spent += seconds;
        drop(compiled);
    }
    let peak = memory::peak();
    let compiled = function.compile_with(&native)?;
    let slow = function.compile_with(&interpreter)?;
    let at = point(function);
    let code_bytes = compiled.code().map_or(0, <[u8]>::len);
    let mut single_calls = single(&compiled, function, &at)?;
    let mut ours = bound(&compiled, function, &at)?;
    let mut lanes = batch(&compiled, function, &at, POINTS)?;
    let mut interpreted = single(&slow, function, &at)?;
    let mut rivals = Vec::new();
    if ops <= options.rival_operations {
        for flags in &options.rivals {
            match Rival::compile(function, flags, &at)? {
                Some(rival) => rivals.push(rival),
                None if !options.json => eprintln!("`{flags}` is not there"),
                None => {}
            }
        }
    }
    let cranelift = cranelift(function, ops, options)?;
    let mut cranelift_runner = match &cranelift {
        Some((compiled, _)) => Some(bound(compiled, function, &at)?),
        None => None,
    };
    let samples = [at.clone()];
    let lanes_of_rivals = if level == Some(Level::Avx2) { 4 } else { 8 };
    let many = Many { points: POINTS, threads: 1, lanes: lanes_of_rivals, samples: &samples };
    let mut vectors = Vec::new();
    if ops <= options.rival_operations {
        for flags in &options.vector_rivals {
            vectors.extend(Rival::compile_batch(function, flags, &many)?);
        }
    }
    let mut runners: Vec<Runner<'_>> = rivals.iter().map(|rival| Runner::new(1, || rival.run())).collect();
    let mut vector_runners: Vec<Runner<'_>> = vectors.iter().map(|rival| Runner::new(POINTS, || rival.run())).collect();
    let rounds = if ops > 200_000 { 3 } else { options.rounds };
    for _ in 0..rounds {
        ours.sample();
        single_calls.sample();
        runners.iter_mut().for_each(Runner::sample);
        cranelift_runner.iter_mut().for_each(Runner::sample);
        lanes.sample();
        vector_runners.iter_mut().for_each(Runner::sample);
        interpreted.sample();
    }
    let ratios: Vec<f64> = runners.iter().map(|runner| ours.ratio(runner)).collect();
    let vector_ratios: Vec<f64> = vector_runners.iter().map(|runner| lanes.ratio(runner)).collect();
    let beside_cranelift = cranelift.iter().zip(&cranelift_runner);
    let beside_cranelift: Option<[f64; 3]> = beside_cranelift
        .map(|((_, seconds), runner)| [seconds * 1e9 / ops as f64, runner.median(), ours.ratio(runner)])
        .next();
    let largest = [&ratios, &vector_ratios]
        .map(|of| of.iter().copied().fold(None, |m: Option<f64>, r| Some(m.map_or(r, |m| m.max(r)))));
    let compile = median(&compile_times);
    let per_op = compile * 1e9 / ops as f64;
    let (one, many, slow) = (ours.median(), lanes.median(), interpreted.median());
    let checked = single_calls.median();
    let compared = |rivals: &[Rival], runners: &[Runner<'_>], ratios: &[f64]| -> Vec<serde_json::Value> {
        let all = rivals.iter().zip(runners).zip(ratios);
        all.map(|((rival, runner), ratio)| {
            json!({"flags": rival.flags, "compile_s": rival.seconds, "ns": runner.median(), "ratio": ratio})
        })
        .collect()
    };
    if options.json {
        let vectors = compared(&vectors, &vector_runners, &vector_ratios);
        let rivals = compared(&rivals, &runners, &ratios);
        let row = json!({"program": name, "operations": ops, "compile_s": compile, "compile_ns_per_op": per_op,
            "code_bytes": code_bytes, "interpreter_ns": slow, "native_ns": one, "native_checked_ns": checked, "lanes_ns_per_point": many,
            "peak_mib": peak, "rivals": rivals, "vector_rivals": vectors,
            "cranelift": beside_cranelift.map(|[per_op, ns, ratio]| json!({"compile_ns_per_op": per_op, "ns": ns, "ratio": ratio}))});
        println!("{row}");
        return Ok(largest);
    }
    print!(
        "{name:<15} {ops:>8} {:>6.3} ms {per_op:>9.0} {:>8.1} {slow:>11.1} {checked:>10.1} {one:>10.1} {many:>11.1} ",
        compile * 1e3,
        code_bytes as f64 / ops as f64
    );
    let show = |sign: &str, rivals: &[Rival], runners: &[Runner<'_>], ratios: &[f64]| {
        for ((rival, runner), ratio) in rivals.iter().zip(runners).zip(ratios) {
            print!(" {sign} {:.0}, {:.1}, {ratio:.2}", rival.seconds * 1e3, runner.median());
        }
    };
    show("|", &rivals, &runners, &ratios);
    if let Some([per_op, ns, ratio]) = beside_cranelift {
        print!(" | Cranelift {per_op:.0}, {ns:.1}, {ratio:.2}");
    }
    show("| vectors", &vectors, &vector_runners, &vector_ratios);
    println!();
    Ok(largest)
}
