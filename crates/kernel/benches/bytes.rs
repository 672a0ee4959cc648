//! Benchmark of saving and loading kernels: `cargo bench -p chainrule-kernel --bench bytes`.
//!
//! Random straight lines of 100 to 1,000,000 operations. Each time is the least of many runs; loading is
//! reading and verifying.
#![allow(clippy::unwrap_used)] // a program for people who work on Chainrule

use chainrule_base::Name;
use chainrule_graph::Semantics;
use chainrule_graph::generate::layered;
use chainrule_kernel::bytes::{from_bytes, to_bytes};
use chainrule_kernel::{GraphPort, lower_graph, verify};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn least<T>(mut run: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    let mut least = Duration::MAX;
    for _ in 0..1000 {
        let before = Instant::now();
        let result = black_box(run());
        least = least.min(before.elapsed());
        drop(result);
        if start.elapsed() > Duration::from_secs(1) {
            break;
        }
    }
    least
}

fn main() {
    println!("operations  bytes each   save us  load us  of that verifying us  ns each to save  to load");
    for n in [150, 1_500, 15_000, 150_000, 1_500_000] {
        let (graph, roots) = layered(Semantics::Strict, n, 30, (n / 100).max(1), 1);
        let inputs = graph.inputs().iter().map(|(_, id)| *id).collect::<Vec<_>>();
        let port = |name: &str, nodes: Vec<_>| GraphPort {
            name: Name::new(name),
            shape: vec![nodes.len()].into(),
            nodes: nodes.into(),
        };
        let kernel = lower_graph("f", &graph, &[port("x", inputs)], &[port("y", roots)]).unwrap();
        let n = kernel.regs.len();
        let bytes = to_bytes(&kernel).unwrap();
        let save = least(|| to_bytes(&kernel));
        let load = least(|| from_bytes(&bytes, &|_, _| None));
        let verifying = least(|| verify(&kernel));
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let each = |time: Duration| time.as_secs_f64() * 1e9 / n as f64;
        println!(
            "{n:>10}  {:>10.2}  {:>8.1} {:>8.1}  {:>20.1}  {:>15.1}  {:>7.1}",
            bytes.len() as f64 / n as f64,
            us(save),
            us(load),
            us(verifying),
            each(save),
            each(load)
        );
    }
}
