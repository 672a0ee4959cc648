//! A million nodes, or fewer if fewer random cases run: no recursion, and seconds of time.
#![allow(clippy::unwrap_used)]

use chainrule_accumulate::derive::{Options, gradient, jacobian};
use chainrule_accumulate::{Budget, LinearGraph, STRATEGIES, Strategy, check, markowitz};
use chainrule_graph::generate::{chain, layered};
use chainrule_graph::{NodeId, Semantics};
use std::time::Instant;

/// Returns the number of nodes to run with instead of `n`.
fn sized(n: u32) -> usize {
    chainrule_cases::cases(n).min(n) as usize
}

#[test]
fn a_chain_of_a_million_nodes() {
    let (mut g, root) = chain(Semantics::Algebraic, sized(1_000_000));
    let x = g.inputs()[0].1;
    let start = Instant::now();
    let d = gradient(&mut g, root, &[x], &Options::new(Strategy::find(STRATEGIES, "reverse").unwrap())).unwrap();
    println!("chain: gradient in {:.2} s, {} nodes", start.elapsed().as_secs_f64(), g.len());
    let (value, slope) = (g.f64_at(&[0.3], &[root]).unwrap()[0], g.f64_at(&[0.3], &d.nodes).unwrap()[0]);
    let near = g.f64_at(&[0.3 + 1e-6], &[root]).unwrap()[0];
    assert!((slope - (near - value) / 1e-6).abs() < 1e-4 * slope.abs().max(1.0), "{slope}");
}

#[test]
fn a_random_graph_of_a_million_nodes() {
    let (mut g, roots) = layered(Semantics::Algebraic, sized(1_000_000), 20, 1, 3);
    let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
    let start = Instant::now();
    let d = gradient(&mut g, roots[0], &inputs, &Options::new(Strategy::find(STRATEGIES, "reverse").unwrap())).unwrap();
    println!("layered: gradient in {:.2} s, {} nodes", start.elapsed().as_secs_f64(), g.len());
    assert!(g.f64_at(&[0.5; 20], &d.nodes).unwrap().iter().all(|x| !x.is_nan()));
}

#[test]
fn markowitz_on_a_hundred_thousand_edges() {
    let (mut g, root) = chain(Semantics::Algebraic, sized(80_000));
    let x = g.inputs()[0].1;
    let linear = LinearGraph::new(&mut g, &[root], &[x]).unwrap();
    assert!(linear.n_edges() >= sized(100_000), "{}", linear.n_edges());
    let start = Instant::now();
    let program = markowitz::run(&linear, &Budget::default(), markowitz::Ties::Lowest).program.unwrap();
    println!("markowitz: {} edges in {:.2} s", linear.n_edges(), start.elapsed().as_secs_f64());
    assert!(check::program(&linear, &program, 1).agrees());
}

#[test]
fn auto_on_ten_thousand_nodes() {
    let (mut g, roots) = layered(Semantics::Algebraic, sized(10_000), 8, 8, 5);
    let inputs: Vec<NodeId> = g.inputs().iter().map(|(_, x)| *x).collect();
    let start = Instant::now();
    let derived = jacobian(&mut g, &roots, &inputs, None, &Options::default()).unwrap();
    println!("auto in {:.2} s\n{}", start.elapsed().as_secs_f64(), derived.report);
    assert_eq!(derived.report.rejected().count(), 0);
}
