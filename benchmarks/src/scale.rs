//! `scale`: chains and random graphs of a thousand to a million nodes, through every stage.

use crate::memory;
use chainrule::{Expr, Function, Vector, vars};
use chainrule_cases::Marsaglia as Random;
use clap::Args;
use std::time::Instant;

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// Largest number of nodes.
    #[arg(long, default_value_t = 1_000_000)]
    nodes: usize,
}

fn chain(n: usize, x: &Vector) -> Expr {
    let mut e = x[0].clone();
    for i in 0..n / 2 {
        e = e.sin() + &x[i % x.len()];
    }
    e
}

/// Returns a graph in which each node joins two earlier ones, mostly recent ones.
fn random(n: usize, x: &Vector) -> Expr {
    let mut nodes: Vec<Expr> = x.iter().cloned().collect();
    let mut random = Random::default();
    let mut draw = |bound: usize| random.below(bound);
    for _ in 0..n {
        let (a, b) = (nodes.len() - 1 - draw(nodes.len().min(50)), draw(nodes.len()));
        let e = match draw(4) {
            0 => &nodes[a] + &nodes[b],
            1 => 0.5 * (&nodes[a] * &nodes[b]),
            2 => nodes[a].sin(),
            _ => &nodes[a] - &nodes[b],
        };
        nodes.push(e);
    }
    nodes.pop().unwrap_or_else(|| x[0].clone())
}

/// Prints the table.
///
/// # Errors
/// Fails if a stage fails.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:<8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9}",
        "graph", "nodes", "build s", "derive s", "lower s", "run s", "operations", "peak MiB"
    );
    for (name, make) in [("chain", chain as fn(usize, &Vector) -> Expr), ("random", random)] {
        let mut n = 1000;
        while n <= options.nodes {
            memory::forget_peak();
            let start = Instant::now();
            let x = vars("x", 10);
            let f = Function::new(name, &x, &make(n, &x))?;
            let built = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let gradient = f.gradient().strategy("reverse").with_value().function()?;
            let derived = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let compiled = gradient.compile()?;
            let lowered = start.elapsed().as_secs_f64();
            let point: Vec<f64> = (0..10).map(|i| 0.1 * f64::from(i)).collect();
            let start = Instant::now();
            let results = compiled.eval(&[&point])?;
            let ran = start.elapsed().as_secs_f64();
            std::hint::black_box(results);
            let operations = gradient.counts().map_or(0, |c| c.arithmetic() + c.call);
            let peak = memory::peak().map_or_else(|| "?".into(), |m| m.to_string());
            println!(
                "{name:<8} {n:>9} {built:>9.3} {derived:>9.3} {lowered:>9.3} {ran:>9.4} {operations:>10} {peak:>9}"
            );
            n *= 10;
        }
    }
    Ok(())
}
