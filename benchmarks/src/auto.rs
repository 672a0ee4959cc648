//! `auto`: small and medium functions of fixed size, with loops unrolled if that pays, always, and never, in turns.
//!
//! Definitions are in `auto/small.ft`: every function in it whose sizes are all known is timed. For each its value, its
//! gradient or Jacobian, and of scalar functions the Hessian, by all arguments. A row has the least time of one
//! evaluation in ns, the ratio of `auto` to the better of the others, operation counts, and the least time of
//! deriving and compiling in ms. Where `auto` yields the kernel of another setting, the code is the same, and so is its
//! time.

use crate::measure::{Runner, geometric_mean};
use chainrule::{Compiled, Counts, Derivation, Function, Module, Unroll};
use clap::Args;
use std::time::Instant;

/// Timed functions, and number of rounds.
#[derive(Args)]
pub struct Options {
    /// Number of rounds, in each of which all settings are timed.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Filters: functions whose names contain one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

const PROGRAMS: &str = include_str!("auto/small.ft");

const SETTINGS: [Unroll; 3] = [Unroll::Auto, Unroll::Always, Unroll::Never];

/// Number of times that a function is derived and compiled; the minimum time counts.
const DERIVED: usize = 3;

/// Derivation of a function.
type Request = fn(&Function) -> Derivation;

/// Derivative with a setting.
struct Engine {
    compiled: Compiled,
    counts: Option<Counts>,
    n_outputs: usize,
    /// Time of deriving and compiling, in ms.
    ms: f64,
}

fn engine(function: &Function, request: fn(&Function) -> Derivation, unroll: Unroll) -> Option<Engine> {
    let mut ms = f64::INFINITY;
    let mut made = None;
    for _ in 0..DERIVED {
        // Earlier decisions are not reused.
        let function = function.clone().unroll(unroll);
        let start = Instant::now();
        let derived = request(&function).function().ok()?;
        let compiled = derived.compile().ok()?;
        ms = f64::min(ms, start.elapsed().as_secs_f64() * 1e3);
        made = Some((derived.counts(), derived.outputs().len(), compiled));
    }
    made.map(|(counts, n_outputs, compiled)| Engine { compiled, counts, n_outputs, ms })
}

/// Returns pseudorandom arguments between 0.3 and 1.2.
fn fill(x: &mut [f64], seed: usize) {
    for (k, x) in x.iter_mut().enumerate() {
        *x = 0.3 + 0.9 * ((k * 7 + seed * 5 + 3) as f64 * 0.618_033_988_749_895).fract();
    }
}

/// Prints the table.
///
/// # Errors
/// Fails if a program is wrong, or the settings disagree.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let module = Module::from_text("small.ft", PROGRAMS)?;
    println!(
        "{:<18} {:<8} {:>9} {:>9} {:>9} {:>6} {:<6} {:>8} {:>8}  operations",
        "function", "what", "auto ns", "always", "never", "ratio", "code", "auto ms", "never ms"
    );
    let (mut ratios, mut over, mut n_functions) = (Vec::new(), 0, 0);
    for definition in module.definitions().into_iter().filter(|d| d.is_first_order) {
        let name = definition.name;
        if !options.only.is_empty() && !options.only.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let function = module.function(&name)?;
        if function.inputs().iter().any(|input| input.extents.iter().any(Option::is_none)) {
            continue;
        }
        n_functions += 1;
        let is_scalar = function.outputs().iter().all(|output| output.extents.is_empty());
        let mut requests: Vec<(&str, Request)> = vec![("value", Function::value)];
        if is_scalar {
            requests.extend([
                ("gradient", Function::gradient as fn(&Function) -> Derivation),
                ("hessian", Function::hessian),
            ]);
        } else {
            requests.push(("jacobian", Function::jacobian));
        }
        for (what, request) in requests {
            let engines = SETTINGS.map(|unroll| engine(&function, request, unroll));
            let shapes: Vec<Vec<usize>> =
                function.inputs().iter().map(|input| input.extents.iter().flatten().copied().collect()).collect();
            let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
            let mut results: Vec<Vec<f64>> = Vec::new();
            let mut runners: Vec<Option<Runner<'_>>> = Vec::new();
            for engine in &engines {
                let Some(engine) = engine else {
                    runners.push(None);
                    continue;
                };
                let mut bound = engine.compiled.bound(&shapes)?;
                (0..shapes.len()).for_each(|i| fill(bound.input_mut(i), i));
                bound.eval()?;
                results.push((0..engine.n_outputs).flat_map(|i| bound.output(i).to_vec()).collect());
                runners.push(Some(Runner::new(1, move || {
                    bound.eval().expect("it ran before");
                    std::hint::black_box(bound.output(0));
                })));
            }
            for other in &results[1..] {
                let scale = results[0].iter().fold(1.0, |scale: f64, x| scale.max(x.abs()));
                if results[0].iter().zip(other).any(|(a, b)| (a - b).abs() > 1e-9 * scale) {
                    return Err(format!("{what} of {name}: {:?} is not {other:?}", results[0]).into());
                }
            }
            for _ in 0..options.rounds.max(1) {
                runners.iter_mut().flatten().for_each(Runner::sample);
            }
            let [auto, always, never] = [0, 1, 2].map(|k| runners[k].as_ref().map_or(f64::NAN, Runner::best));
            let listing = |k: usize| engines[k].as_ref().map(|engine| engine.compiled.listing());
            let is_same = [1, 2].map(|k| listing(k).is_some() && listing(k) == listing(0));
            let others = [(always, is_same[0]), (never, is_same[1])];
            let better = others.iter().filter(|(ns, same)| !same && !ns.is_nan()).map(|(ns, _)| *ns);
            let better = better.fold(if is_same.contains(&true) { auto } else { f64::INFINITY }, f64::min);
            let ratio = auto / better;
            ratios.push(ratio);
            over += usize::from(ratio > 1.05);
            let code = match is_same {
                [true, true] => "all",
                [true, false] => "always",
                [false, true] => "never",
                [false, false] => "own",
            };
            let counts = engines[0].as_ref().and_then(|engine| engine.counts);
            let counts = counts.map_or_else(|| "loops".to_owned(), |counts| counts.to_string());
            let ms = |k: usize| engines[k].as_ref().map_or(f64::NAN, |engine| engine.ms);
            println!(
                "{name:<18} {what:<8} {auto:>9.1} {always:>9.1} {never:>9.1} {ratio:>6.2} {code:<6} {:>8.2} {:>8.2}  {counts}",
                ms(0),
                ms(2)
            );
        }
    }
    println!(
        "{n_functions} functions, {} rows: geometric mean of ratios {:.3}, above 1.05 in {over}",
        ratios.len(),
        geometric_mean(&ratios)
    );
    Ok(())
}
