//! Cost of each stage from a scalar graph to running code: `cargo bench -p chainrule-native --bench stages`.
//!
//! Random straight-line code of 100 to 1,000,000 operations, one percent sines and cosines. Times are ns for each
//! operation, the minimum of many runs; the results of stages are dropped in `drop`. A number as argument runs only
//! that size, repeatedly, for a profiler.
#![allow(clippy::unwrap_used)] // a program for people who work on Chainrule
#![cfg_attr(not(all(target_arch = "x86_64", unix)), allow(dead_code, unused_imports))]

use chainrule_base::Name;
use chainrule_cases::Marsaglia as Random;
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_kernel::{GraphPort, Kernel, Products, lower_graph_with, verify};
#[cfg(all(target_arch = "x86_64", unix))]
use chainrule_native::{Options, Program};
use chainrule_ops::Op;
use chainrule_runtime::Layout;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Returns the processor time of this process in seconds, if Linux reports it: on a busy machine less than the elapsed
/// time.
fn processor_seconds() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    told.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns * 1e-9)
}

/// Returns a program of about `n` operations on 32 inputs; results are the unused values.
fn program(n: usize) -> (Graph, Vec<NodeId>, Vec<NodeId>) {
    let mut random = Random::default();
    let mut g = Graph::new(Semantics::Algebraic);
    let inputs: Vec<NodeId> = (0..32).map(|i| g.input(format!("x{i}"))).collect();
    let mut values = inputs.clone();
    let mut used = vec![false; 32];
    for i in 0..(2 * n).div_ceil(5) {
        let near = |random: &mut Random, values: &Vec<NodeId>| values.len() - 1 - random.below(values.len().min(100));
        let (a, b) = (near(&mut random, &values), near(&mut random, &values));
        used[a] = true;
        let (p, q) = (values[a], values[b]);
        let c = g.constant(0.25 + 0.25 * (i % 10_007) as f64 / 10_007.0);
        let value = match random.below(100) {
            0 => g.apply(if i % 2 == 0 { Op::Sin } else { Op::Cos }, &[p]),
            k => {
                used[b] = true;
                match k % 3 {
                    0 => {
                        let sum = g.add(p, q);
                        g.mul(sum, c)
                    }
                    1 => {
                        let product = g.mul(p, q);
                        g.sub(product, c)
                    }
                    _ => {
                        let half = g.constant(0.5);
                        let (p, q) = (g.mul(p, c), g.mul(q, half));
                        g.add(p, q)
                    }
                }
            }
        };
        values.push(value);
        used.push(false);
    }
    let results = values.into_iter().zip(used).skip(32).filter(|(_, used)| !used).map(|(v, _)| v).collect();
    (g, inputs, results)
}

const STAGES: [&str; 6] = ["lower", "layout", "compile", "drop", "sum", "of it verify"];

#[cfg(not(all(target_arch = "x86_64", unix)))]
fn main() {
    println!("skipped: there is no native code for this machine");
}

#[cfg(all(target_arch = "x86_64", unix))]
fn main() {
    let only: Option<usize> = std::env::args().skip(1).find_map(|a| a.parse().ok());
    println!(
        "{:>10} {:>8}  {}   mean on the processor, `verify` twice",
        "operations",
        "kernel",
        STAGES.map(|s| format!("{s:>12}")).join("")
    );
    for n in [100, 1_000, 10_000, 100_000, 1_000_000] {
        if only.is_some_and(|only| only != n) {
            continue;
        }
        let (graph, inputs, results) = program(n);
        let port = |name: &str, nodes: &[NodeId]| GraphPort {
            name: Name::new(name),
            shape: vec![nodes.len()].into(),
            nodes: nodes.to_vec().into(),
        };
        let (inputs, outputs) = ([port("x", &inputs)], [port("y", &results)]);
        let mut times: [Vec<Duration>; 6] = Default::default();
        let (begin, processor) = (Instant::now(), processor_seconds());
        let n_operations = graph.len() - graph.ids().filter(|n| graph.args(*n).is_empty()).count();
        let (ops, mut instrs) = (n_operations, 0);
        let seconds = if only.is_some() { 5 } else { 2 };
        while times[0].len() < 5 || begin.elapsed() < Duration::from_secs(seconds) {
            let start = Instant::now();
            let kernel: Kernel = lower_graph_with("f".into(), &graph, &inputs, &outputs, Products::Fused).unwrap();
            let lowered = Instant::now();
            let kernel = Arc::new(kernel);
            let layout = Layout::new(kernel.clone());
            let laid_out = Instant::now();
            let made = Program::with_layout(layout, &Options::default()).unwrap();
            let compiled = Instant::now();
            instrs = kernel.regs.len();
            drop(black_box(made));
            let kernel = Arc::into_inner(kernel).unwrap();
            let before_drop = Instant::now();
            if only.is_none() {
                black_box(verify(&kernel)).unwrap();
            }
            let verified = Instant::now();
            drop(kernel);
            let end = Instant::now();
            let drops = (end - verified) + (before_drop - compiled);
            let all = [lowered - start, laid_out - lowered, compiled - laid_out, drops];
            let sum = all.iter().sum();
            for (all, time) in times.iter_mut().zip(all.into_iter().chain([sum, verified - before_drop])) {
                all.push(time);
            }
        }
        let ns =
            |times: &Vec<Duration>| times.iter().min().map_or(0.0, Duration::as_secs_f64) * 1e9 / ops.max(1) as f64;
        let shown: Vec<String> = times.iter().map(|t| format!("{:>12.1}", ns(t))).collect();
        let processor = (processor_seconds() - processor) * 1e9 / (times[0].len() * ops.max(1)) as f64;
        println!("{ops:>10} {instrs:>8}  {}{processor:>12.1}", shown.join(""));
    }
}
