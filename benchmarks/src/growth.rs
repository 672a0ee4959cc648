//! `growth`: growth of time and memory of a derivation with the problem: spherical harmonics, space-time gradients,
//! random layered graphs. For long array programs: the time from text to running code of the function and its gradient,
//! by lines; and the memory of a gradient, by iterations of a loop, with all states saved and within a memory budget.

use crate::{memory, problems};
use chainrule::{CompileOptions, Derivation, Error, Expr, Function, Module, Value, Vector, vars};
use chainrule_cases::Marsaglia as Random;
use clap::Args;
use serde_json::json;
use std::time::Instant;

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// The strategy.
    #[arg(long, default_value = "auto")]
    strategy: String,
    /// Largest random layered graph, in edges.
    #[arg(long, default_value_t = 1_000_000)]
    edges: usize,
    /// Longest array program, in lines.
    #[arg(long, default_value_t = 20_000)]
    lines: usize,
    /// Longest loop of the array program whose memory is measured, in iterations.
    #[arg(long, default_value_t = 100_000)]
    steps: usize,
    /// Only these families: sh, st, layered, lines, scalars, steps.
    #[arg(long = "family", value_delimiter = ',')]
    families: Vec<String>,
    /// Print one JSON object a line: family, size, operations, seconds, peak_mib, exponent.
    #[arg(long)]
    json: bool,
}

/// Repetitions of a measurement; the minimum is taken, because other work of the machine only adds time.
const REPEATS: usize = 3;
/// Maximum duration of derivations that are repeated.
const LONG: f64 = 2.0;

/// A family, its sizes in ascending order, and the constructor of a member.
type Family<'a> = (&'static str, Vec<usize>, Box<dyn Fn(usize) -> Result<Derivation, Box<dyn std::error::Error>> + 'a>);

/// Prints the table.
///
/// # Errors
/// Fails if a derivation fails.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let named =
        |name: String| problems::problem(&name)?.derivation.ok_or_else(|| format!("{name} has no derivative").into());
    let layers = (0..).map(|k| 1000 * 10_usize.pow(k)).take_while(|edges| *edges <= options.edges).collect();
    let families: Vec<Family<'_>> = vec![
        ("sh", vec![5, 10, 20, 40], Box::new(|n| named(format!("sh{n}")))),
        ("st", vec![2, 5, 10, 20, 40, 80], Box::new(|n| named(format!("st{n}_par")))),
        ("layered", layers, Box::new(|edges| Ok(layered(edges)?))),
    ];
    let is_text = |f: &String| f == "steps" || TEXTS.iter().any(|text| text.0 == f);
    let known = |f: &String| is_text(f) || families.iter().any(|family| family.0 == f);
    if let Some(unknown) = options.families.iter().find(|f| !known(f)) {
        return Err(
            format!("there is no family `{unknown}`; the families are sh, st, layered, lines, scalars, steps").into()
        );
    }
    if !options.json {
        println!(
            "{:<8} {:>8} {:>11} {:>10} {:>9} {:>9}",
            "family", "size", "operations", "seconds", "peak MiB", "exponent"
        );
    }
    for (family, sizes, make) in families {
        if !options.families.is_empty() && !options.families.iter().any(|f| f == family) {
            continue;
        }
        let mut last: Option<(f64, f64)> = None;
        for size in sizes {
            let derivation = make(size)?.strategy(&options.strategy);
            memory::forget_peak();
            let mut seconds = f64::INFINITY;
            let mut operations = 0;
            for _ in 0..REPEATS {
                let start = Instant::now();
                let derived = derivation.function()?;
                seconds = seconds.min(start.elapsed().as_secs_f64());
                operations = derived.counts().map_or(0, |c| c.arithmetic() + c.call);
                if seconds > LONG {
                    break;
                }
            }
            // Exponent of the time in the operations of the result; n log n is slightly above 1.
            let work = operations.max(1) as f64;
            let exponent = last.map(|(t, w)| (seconds / t).ln() / (work / w).ln());
            last = Some((seconds, work));
            let peak = memory::peak();
            if options.json {
                println!(
                    "{}",
                    json!({"family": family, "size": size, "operations": operations, "seconds": seconds,
                        "peak_mib": peak, "exponent": exponent})
                );
            } else {
                let peak = peak.map_or_else(|| "?".into(), |m| m.to_string());
                let exponent = exponent.map_or_else(String::new, |e| format!("{e:.2}"));
                println!("{family:<8} {size:>8} {operations:>11} {seconds:>10.4} {peak:>9} {exponent:>9}");
            }
        }
    }
    for (family, program) in TEXTS {
        if options.families.is_empty() || options.families.iter().any(|f| f == family) {
            lines(family, program, options)?;
        }
    }
    if options.families.is_empty() || options.families.iter().any(|f| f == "steps") {
        steps(options)?;
    }
    Ok(())
}

/// Number of numbers in a state of [`steps`].
const STATE: usize = 100;
/// Memory budget of the states, in bytes.
const STATES_WITHIN: usize = 1 << 20;

/// Measures memory and time of the gradient of a differential equation solved in 100, 1,000, ... steps: with all states
/// saved, and within a budget of a MiB.
fn steps(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    if !options.json {
        println!(
            "{:<8} {:>8} {:>12} {:>12} {:>9} {:>12} {:>12} {:>9} {:>11} {:>9}",
            "family",
            "steps",
            "value",
            "gradient",
            "peak MiB",
            "in a MiB",
            "checkpoints",
            "peak MiB",
            "d/value",
            "in a MiB"
        );
    }
    let f = Module::from_text("ode.ft", chainrule_example_micro::ODE)?.function("odeLast")?;
    let gradient = f.gradient().by(&["x"]);
    let (value, kept) = (f.compile()?, gradient.compile()?);
    for s in (2..).map(|k| 10_usize.pow(k)).take_while(|s| *s <= options.steps) {
        let args = [vec![1.0; STATE].into(), Value::Int(s as i64)];
        let within = gradient.compile_within(STATES_WITHIN, &args, &CompileOptions::default())?;
        let (mut peaks, mut numbers, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
        for code in [&value, &kept, &within.compiled] {
            memory::forget_peak();
            let mut at = code.prepare(&args)?;
            let mut least = f64::INFINITY;
            for _ in 0..REPEATS {
                let start = Instant::now();
                at.run()?;
                least = least.min(start.elapsed().as_secs_f64());
            }
            numbers.push(at.workspace_len());
            peaks.push(memory::peak());
            seconds.push(least);
        }
        let ratios = [seconds[1] / seconds[0], seconds[2] / seconds[0]];
        if options.json {
            println!(
                "{}",
                json!({"family": "steps", "size": s, "numbers": numbers, "peak_mib": peaks,
                    "checkpoints": within.checkpoints, "gradient_by_value": ratios})
            );
        } else {
            let peak = |k: usize| peaks[k].map_or_else(|| "?".into(), |m| m.to_string());
            let checkpoints = within.checkpoints.map_or_else(|| "all".to_owned(), |n| n.to_string());
            println!(
                "{:<8} {s:>8} {:>12} {:>12} {:>9} {:>12} {checkpoints:>12} {:>9} {:>11.2} {:>9.2}",
                "steps",
                numbers[0],
                numbers[1],
                peak(1),
                numbers[2],
                peak(2),
                ratios[0],
                ratios[1]
            );
        }
    }
    Ok(())
}

/// A family of programs by their lines, and the constructor of a member.
type Text = (&'static str, fn(usize) -> String);

const TEXTS: [Text; 2] = [("lines", vectors), ("scalars", scalars)];

/// Measures compile times of programs of 200, 2,000, ... lines.
fn lines(family: &str, program: fn(usize) -> String, options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    if !options.json {
        println!(
            "{:<8} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9}",
            "family", "lines", "read s", "value s", "gradient s", "hvp s", "optimiser", "peak MiB", "exponent"
        );
    }
    let mut last: Option<f64> = None;
    for n in (0..).map(|k| 200 * 10_usize.pow(k)).take_while(|n| *n <= options.lines) {
        let text = program(n);
        memory::forget_peak();
        let mut least = [f64::INFINITY; 5];
        for _ in 0..REPEATS {
            let (mut took, mut start) = ([0.0; 5], Instant::now());
            let mut lap = |k: usize| {
                took[k] = start.elapsed().as_secs_f64();
                start = Instant::now();
            };
            let f = Module::from_text("lines.ft", &text)?.function("f")?;
            lap(0);
            f.compile()?;
            lap(1);
            let gradient = f.gradient().by(&["x"]).with_value().function()?;
            gradient.compile()?;
            lap(2);
            f.hvp().by(&["x"]).function()?.compile()?;
            lap(3);
            // Time that the optimiser takes for the gradient, with its report.
            gradient.optimisation()?;
            lap(4);
            for (least, took) in least.iter_mut().zip(took) {
                *least = least.min(took);
            }
            if took.iter().sum::<f64>() > LONG {
                break;
            }
        }
        let [read, value, gradient, hvp, optimiser] = least;
        let all = read + value + gradient + hvp;
        let exponent = last.map(|before| (all / before).log10());
        last = Some(all);
        let peak = memory::peak();
        if options.json {
            println!(
                "{}",
                json!({"family": family, "size": n, "read_s": read, "value_s": value, "gradient_s": gradient,
                    "hvp_s": hvp, "optimiser_s": optimiser, "peak_mib": peak, "exponent": exponent})
            );
        } else {
            let peak = peak.map_or_else(|| "?".into(), |m| m.to_string());
            let exponent = exponent.map_or_else(String::new, |e| format!("{e:.2}"));
            println!(
                "{family:<8} {n:>8} {read:>10.4} {value:>10.4} {gradient:>10.4} {hvp:>10.4} {optimiser:>10.4} {peak:>9} {exponent:>9}"
            );
        }
    }
    Ok(())
}

/// Returns an array program of `n` lines: four for each step, which compute a vector, a sum over it, the next vector
/// and the next number. The gradient has about 15 statements a line.
fn vectors(n: usize) -> String {
    let mut text = "let f = fun (x : [n]Double) (w : [n]Double) ->\n  let v0 = x\n  let t0 = 0.0\n".to_owned();
    let steps = n.saturating_sub(4) / 4;
    for (k, j) in (0..steps).zip(1..) {
        text.push_str(&format!(
            "  let a{j} = build n (fun i -> sin (v{k}[i]) * w[i] + {j}.5)\n  \
             let s{j} = sum n (fun i -> a{j}[i] * w[i])\n  \
             let v{j} = build n (fun i -> a{j}[i] / (1.0 + s{j} * s{j}))\n  \
             let t{j} = exp (-s{j} * s{j}) * 0.5 + t{k}\n"
        ));
    }
    text.push_str(&format!("  t{steps} + vectorSum v{steps}\n"));
    text
}

/// Returns an array program of `n` lines of numbers, each computed from the previous two and sums over the vector.
fn scalars(n: usize) -> String {
    let mut text = "let f = fun (x : [n]Double) ->\n  let a0 = vectorSum x\n  let a1 = vectorDot x x\n".to_owned();
    let last = n.saturating_sub(3).max(1);
    for j in 2..=last {
        let (a, b) = (format!("a{}", j - 1), format!("a{}", j - 2));
        let line = match j % 3 {
            0 => format!("sin {a} * {b} + a0"),
            1 => format!("{a} * {b} - 0.5 * a1"),
            _ => format!("exp (-{a} * {a}) + {b} / (1.0 + {b} * a0)"),
        };
        text.push_str(&format!("  let a{j} = {line}\n"));
    }
    text.push_str(&format!("  a{last} * a{}\n", last - 1));
    text
}

/// Returns the Jacobian of a random layered graph: 10 inputs, 10 results, layers of 50 products and sums of nodes in
/// the previous layer, about two edges a node.
fn layered(edges: usize) -> Result<Derivation, Error> {
    const WIDTH: usize = 50;
    let x = vars("x", 10);
    let mut random = Random::default();
    let mut draw = |bound: usize| random.below(bound);
    let mut layer: Vec<Expr> = x.iter().cloned().collect();
    for _ in 0..edges / (2 * WIDTH) {
        let next = |_| {
            // Two different ones, so that nothing cancels.
            let first = draw(layer.len());
            let second = (first + 1 + draw(layer.len() - 1)) % layer.len();
            let (a, b) = (&layer[first], &layer[second]);
            if draw(2) == 0 { 0.5 * (a * b) } else { a + b }
        };
        layer = (0..WIDTH).map(next).collect();
    }
    let y = Vector::new(layer.into_iter().take(10).collect()).named("y");
    Ok(Function::new("layered", &x, &y)?.jacobian())
}
