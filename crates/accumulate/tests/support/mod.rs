//! Random linearised graphs, and the settings of random tests.
#![allow(dead_code, missing_docs, clippy::unwrap_used)]

pub mod graphs;

use arbitrary::Unstructured;
use chainrule_accumulate::{Label, LinearGraph};
use proptest::test_runner::{Config, RngSeed};

pub fn config(cases: u32, seed: u64) -> Config {
    let cases = chainrule_cases::cases(cases);
    Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() }
}

/// Returns a graph of up to 3 inputs, 8 intermediates, 3 outputs, with parallel edges and labels of all kinds.
pub fn linear(u: &mut Unstructured<'_>) -> arbitrary::Result<LinearGraph> {
    let n_inputs = u.int_in_range(1..=3)?;
    let n_intermediates = u.int_in_range(0..=8)?;
    let n_outputs = u.int_in_range(1..=3)?;
    let mut edges = Vec::new();
    for target in n_inputs..n_inputs + n_intermediates + n_outputs {
        let last = target.min(n_inputs + n_intermediates) - 1;
        for _ in 0..u.int_in_range(0..=3)? {
            let label = *u.choose(&[Label::Var, Label::Var, Label::One, Label::MinusOne, Label::Const])?;
            edges.push((u.int_in_range(0..=last)?, target, label));
        }
    }
    Ok(LinearGraph::from_edges(n_inputs, n_intermediates, n_outputs, &edges).unwrap())
}

/// Returns some of the pairs of a small graph, one for each bit of `ask`.
pub fn some_pairs(linear: &LinearGraph, ask: u64) -> Vec<(usize, usize)> {
    let n_columns = linear.columns().len();
    let pairs = (0..linear.rows().len()).flat_map(|r| (0..n_columns).map(move |c| (r, c)));
    pairs.filter(|(r, c)| ask >> (3 * r + c) & 1 == 1).collect()
}

/// Returns the graph with all its pairs requested, and with some of them.
pub fn whole_and_part(linear: LinearGraph, ask: u64) -> [LinearGraph; 2] {
    let some = some_pairs(&linear, ask);
    [linear.clone(), linear.ask_only(&some).unwrap()]
}

/// Returns the graph without parallel edges; the last of several is kept.
pub fn merged(linear: &LinearGraph) -> LinearGraph {
    use chainrule_base::Id;
    let mut edges: Vec<(usize, usize, Label)> = Vec::new();
    for (_, edge) in linear.edges() {
        let ends = (edge.source.index(), edge.target.index());
        edges.retain(|e| (e.0, e.1) != ends);
        edges.push((ends.0, ends.1, edge.label));
    }
    let (n_sources, n_sinks) = (linear.sources().len(), linear.sinks().len());
    LinearGraph::from_edges(n_sources, linear.intermediates().len(), n_sinks, &edges).unwrap()
}
