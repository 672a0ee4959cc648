//! `batch`: many points, on one thread and on several: native code compared with a C compiler on the emitted functions
//! over many points, whose blocks run in vectors of GNU C.
//!
//! Both sides take and return arrays of structures, compute the same points, and run in this process in turn; their
//! results are compared before they are timed. If the results of all points do not fit into the caches, both sides
//! measure the speed of writing memory: the table has the size of a point's results, and `--points 64` measures
//! arithmetic.

use crate::measure::{Runner, geometric_mean};
use crate::problems::{self, Problem};
use crate::rival::{Many, Rival};
use crate::targets::{Published, published_time};
use chainrule::{
    Backend, BatchOptions, CompileOptions, Compiled, Function, Slice, SliceMut, Strided, StridedMut, Workspace,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::hint::black_box;
use std::time::Duration;

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// Derivative programs of `counts`.
    #[arg(
        long = "problem",
        value_delimiter = ',',
        default_value = "sh5,sh10,sh15,sh20,idf6_par,idf6_gen,idj6_par,idj6_gen,st6_par,st12_gen,st40_par,ba"
    )]
    problems: Vec<String>,
    /// Points of a batch; JAX's published rows are of 4096.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    points: u32,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// The C compiler with its flags; `-fopenmp` is added for more than one thread.
    #[arg(long, default_value = "gcc -O2 -march=native")]
    rival: String,
    /// Rounds; medians count.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Maximum difference between the two sides, relative to the largest result: the C compiler fuses other products.
const TOLERANCE: f64 = 1e-9;

/// Pause between two samples: the threads of OpenMP spin for some milliseconds after their work, on processors that the
/// other side needs.
const REST: Duration = Duration::from_millis(80);

/// Prints the table.
///
/// # Errors
/// Fails if a program cannot be made or compiled, or the two sides differ.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    if !options.json {
        println!("{} points, arrays of structures; ns a point; rival: {}", options.points, options.rival);
        println!(
            "{:<10} {:>8} {:>8} {:>6} {:>8} {:>8} {:>7} {:>8} {:>10} {:>9} {:>10}",
            "program", "ops", "results", "lanes", "threads", "native", "GB/s", "rival", "by hand", "JAX", "ours/rival"
        );
    }
    // Nothing is drawn if standard error is no terminal.
    let bar = ProgressBar::new((options.problems.len() * options.threads.len()) as u64);
    bar.set_style(ProgressStyle::with_template("{bar:20} {pos}/{len} {msg} {elapsed}")?);
    let mut ratios = vec![Vec::new(); options.threads.len()];
    for name in &options.problems {
        bar.set_message(format!("{name}: deriving"));
        let problem = problems::problem(name)?;
        let function = match &problem.derivation {
            Some(derivation) => derivation.function()?,
            None => problem.function.clone(),
        };
        let ours = Ours::new(&function, &problem, options.points as usize)?;
        for (&threads, ratios) in options.threads.iter().zip(&mut ratios) {
            bar.set_message(format!("{name}: {threads} threads"));
            let row = measure(name, &function, &problem, &ours, threads as usize, options)?;
            ratios.extend(row.ratio);
            bar.suspend(|| println!("{}", if options.json { row.json() } else { row.text() }));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    for (threads, ratios) in options.threads.iter().zip(&ratios) {
        if !ratios.is_empty() && !options.json {
            let (mean, worst) = (geometric_mean(ratios), ratios.iter().copied().fold(0.0, f64::max));
            println!("ours / rival, threads: {threads}: geometric mean {mean:.3}, largest {worst:.3}");
        }
    }
    Ok(())
}

/// A row of the table.
struct Row {
    program: String,
    ops: u64,
    results: usize,
    points: u32,
    lanes: usize,
    threads: usize,
    native: f64,
    rival: Option<f64>,
    ratio: Option<f64>,
    published: Published,
}

impl Row {
    /// Returns the bytes written a second, in units of 10^9.
    fn written(&self) -> f64 {
        (8 * self.results) as f64 / self.native
    }

    fn text(&self) -> String {
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.1}"));
        format!(
            "{:<10} {:>8} {:>8} {:>6} {:>8} {:>8.1} {:>7.1} {:>8} {:>10} {:>9} {:>10}",
            self.program,
            self.ops,
            self.results,
            self.lanes,
            self.threads,
            self.native,
            self.written(),
            number(self.rival),
            number(self.published.lanes_by_hand),
            self.published.jax.map_or_else(String::new, |x| format!("{x:.0}")),
            self.ratio.map_or_else(|| "no rival".to_owned(), |x| format!("{x:.2}"))
        )
        .trim_end()
        .to_owned()
    }

    fn json(&self) -> String {
        json!({"program": self.program, "operations": self.ops, "results": self.results, "points": self.points,
            "lanes": self.lanes, "threads": self.threads, "native_ns": self.native, "written_gb_per_s": self.written(),
            "rival_ns": self.rival, "by_hand_ns": self.published.lanes_by_hand, "jax_ns": self.published.jax,
            "ratio": self.ratio})
        .to_string()
    }
}

fn measure(
    name: &str,
    function: &Function,
    problem: &Problem,
    ours: &Ours,
    threads: usize,
    options: &Options,
) -> Result<Row, Box<dyn std::error::Error>> {
    let points = options.points as usize;
    let workspace = ours.workspace()?;
    let lanes = ours.compiled.lanes(&workspace);
    let many = Many { points, threads, lanes: if lanes == 4 { 4 } else { 8 }, samples: &problem.points };
    let rival = Rival::compile_batch(function, &options.rival, &many)?;
    if rival.is_none() && !options.json {
        eprintln!("`{}` is not there", options.rival);
    }
    let mut results = ours.results();
    let mut own_workspace = workspace;
    ours.run(&mut results, &mut own_workspace, threads)?;
    if let Some(rival) = &rival {
        rival.run();
        for (i, own) in results.iter().enumerate() {
            let theirs = rival.results(i, own.len())?;
            let largest = own.iter().fold(0.0, |m: f64, y| m.max(y.abs()));
            let differs = |(a, b): (&f64, &f64)| (a - b).abs().total_cmp(&(TOLERANCE * largest)).is_gt();
            if own.iter().zip(&theirs).any(differs) {
                return Err(format!("{name}: `{}` has other results", options.rival).into());
            }
        }
    }
    let mut native = Runner::new(points, || {
        black_box(ours.run(&mut results, &mut own_workspace, threads).is_ok());
    });
    let mut other = rival.as_ref().map(|rival| Runner::new(points, || rival.run()));
    let rest = || std::thread::sleep(if threads > 1 { REST } else { Duration::ZERO });
    for _ in 0..options.rounds {
        rest();
        native.sample();
        rest();
        other.iter_mut().for_each(Runner::sample);
    }
    Ok(Row {
        program: name.to_owned(),
        ops: function.counts().map_or(0, |c| c.arithmetic() + c.call),
        results: ours.widths.1.iter().sum(),
        points: options.points,
        lanes,
        threads,
        native: native.median(),
        rival: other.as_ref().map(Runner::median),
        ratio: other.as_ref().map(|other| native.ratio(other)),
        published: published_time(name),
    })
}

/// Native code, and points for it: those of the problem, repeated.
struct Ours {
    compiled: Compiled,
    points: usize,
    arguments: Vec<Vec<f64>>,
    /// Number of elements of each argument and of each result of a point.
    widths: (Vec<usize>, Vec<usize>),
    extents: Vec<Vec<usize>>,
}

impl Ours {
    fn new(function: &Function, problem: &Problem, points: usize) -> Result<Self, chainrule::Error> {
        let native = CompileOptions { backend: Backend::Native, ..CompileOptions::default() };
        let compiled = function.compile_with(&native)?;
        let of = |shapes: &[chainrule::Shape]| -> Vec<Vec<usize>> {
            shapes.iter().map(|s| s.extents.iter().map(|e| e.unwrap_or(1)).collect()).collect()
        };
        let widths = |shapes: &[chainrule::Shape]| of(shapes).iter().map(|e| e.iter().product()).collect();
        let arguments = (0..function.inputs().len())
            .map(|i| (0..points).flat_map(|p| problem.points[p % problem.points.len()][i].iter().copied()).collect())
            .collect();
        Ok(Self {
            compiled,
            points,
            arguments,
            widths: (widths(function.inputs()), widths(function.outputs())),
            extents: of(function.inputs()),
        })
    }

    fn workspace(&self) -> Result<Workspace, chainrule::Error> {
        let extents: Vec<&[usize]> = self.extents.iter().map(Vec::as_slice).collect();
        self.compiled.workspace(&extents)
    }

    fn results(&self) -> Vec<Vec<f64>> {
        self.widths.1.iter().map(|width| vec![0.0; self.points * width]).collect()
    }

    fn run(&self, results: &mut [Vec<f64>], workspace: &mut Workspace, threads: usize) -> Result<(), chainrule::Error> {
        let inputs: Vec<Strided<'_>> = (self.arguments.iter().zip(&self.widths.0))
            .map(|(x, width)| Strided { data: Slice::Real(x), point: *width, element: 1 })
            .collect();
        let mut outputs: Vec<StridedMut<'_>> = (results.iter_mut().zip(&self.widths.1))
            .map(|(y, width)| StridedMut { data: SliceMut::Real(y), point: *width, element: 1 })
            .collect();
        let options = BatchOptions { threads, ..BatchOptions::default() };
        self.compiled.eval_batch_with(self.points, &inputs, &mut outputs, workspace, &options)
    }
}
