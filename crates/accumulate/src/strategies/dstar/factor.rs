//! Factoring of all derivative graphs: the most frequent factor subgraph first (D*, section 4.1).
//!
//! In: derivative graphs. Out: the same graphs, each a single path. The subgraphs that a step creates and removes are
//! found at the nodes of its region, because nothing else changes.

use super::Ties;
use super::derivative_graph::{DerivativeGraph, Ends, Region, Way};
use super::queue::{Place, Queue};
use super::separate::Separated;

/// Factors until no branch is left; returns false if more than `visits` edges were visited.
pub(super) fn factor(separated: &mut Separated, ties: Ties, visits: u64) -> bool {
    let mut queue = Queue::new(ties);
    for (idx, graph) in separated.graphs.iter().enumerate() {
        for ends in factor_subgraphs(graph) {
            queue.found(Place { graph: idx as u32, ends }, graph.vertex(ends.upper), graph.vertex(ends.lower));
        }
    }
    let mut region = Region::default();
    let mut change = Change::default();
    while let Some(places) = queue.next() {
        for place in places {
            let graph = &mut separated.graphs[place.graph as usize];
            let ends = place.ends;
            let Some(way) = graph.way_of(ends) else { continue };
            graph.region(ends, way, &mut region);
            region.parts.sort_unstable();
            let part = separated.parts.subgraph(&region.parts, graph.vertex(ends.upper), graph.vertex(ends.lower));
            change.before(graph, ends, &region);
            graph.contract(ends, way, &mut region, part);
            change.after(graph, ends, &region);
            for lost in &change.lost {
                queue.lost(graph.vertex(lost.upper), graph.vertex(lost.lower));
            }
            for found in &change.found {
                let place = Place { graph: place.graph, ends: *found };
                queue.found(place, graph.vertex(found.upper), graph.vertex(found.lower));
            }
        }
        if region.visits > visits {
            return false;
        }
    }
    true
}

/// Returns all factor subgraphs, each once. Linear.
pub(super) fn factor_subgraphs(graph: &DerivativeGraph) -> Vec<Ends> {
    let mut all: Vec<Ends> = (0..graph.n_nodes() as u32)
        .flat_map(|node| Way::BOTH.into_iter().filter_map(move |way| graph.factor_of(node, way)))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Change of the factor subgraphs of a derivative graph by a contraction.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    pub(super) lost: Vec<Ends>,
    pub(super) found: Vec<Ends>,
    old: Vec<Ends>,
    new: Vec<Ends>,
}

impl Change {
    /// Records the factor subgraphs before the contraction of a region.
    pub(super) fn before(&mut self, graph: &DerivativeGraph, ends: Ends, region: &Region) {
        collect(graph, ends, region, &mut self.old);
    }

    /// Records them after the contraction. A subgraph can have a base at each end; it appears or disappears only if the
    /// other end is not a base of it.
    pub(super) fn after(&mut self, graph: &DerivativeGraph, ends: Ends, region: &Region) {
        collect(graph, ends, region, &mut self.new);
        self.lost.clear();
        self.found.clear();
        for old in &self.old {
            if graph.way_of(*old).is_none() {
                self.lost.push(*old);
            }
        }
        let outside = |node: u32| node != ends.upper && node != ends.lower && !region.contains(node);
        for new in &self.new {
            let held = (outside(new.lower) && graph.factor_of(new.lower, Way::Up) == Some(*new))
                || (outside(new.upper) && graph.factor_of(new.upper, Way::Down) == Some(*new));
            if !held && self.old.binary_search(new).is_err() {
                self.found.push(*new);
            }
        }
    }
}

/// Collects the factor subgraphs whose bases are the ends or inner nodes of a region, ascending.
fn collect(graph: &DerivativeGraph, ends: Ends, region: &Region, into: &mut Vec<Ends>) {
    into.clear();
    for node in [ends.upper, ends.lower].into_iter().chain(region.inner.iter().copied()) {
        into.extend(Way::BOTH.into_iter().filter_map(|way| graph.factor_of(node, way)));
    }
    into.sort_unstable();
    into.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dstar::separate::separate;
    use crate::{Label, LinearGraph};
    use arbitrary::Unstructured;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn random(u: &mut Unstructured<'_>) -> arbitrary::Result<LinearGraph> {
        let (n_inputs, n_intermediates, n_outputs) = (u.int_in_range(1..=3)?, u.int_in_range(0..=12)?, 2);
        let mut edges = Vec::new();
        for target in n_inputs..n_inputs + n_intermediates + n_outputs {
            for _ in 0..u.int_in_range(0..=3)? {
                let source = u.int_in_range(0..=target.min(n_inputs + n_intermediates) - 1)?;
                edges.push((source, target, Label::Var));
            }
        }
        Ok(LinearGraph::from_edges(n_inputs, n_intermediates, n_outputs, &edges).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: chainrule_cases::cases(2000), rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default()
        })]
        /// For any order of factorisations, trees and changes agree with those computed from scratch.
        #[test]
        fn dominance_stays_right(
            bytes in proptest::collection::vec(any::<u8>(), 0..150),
            choices in proptest::collection::vec(any::<u8>(), 60),
        ) {
            let linear = random(&mut Unstructured::new(&bytes)).unwrap();
            let mut separated = separate(&linear, 10_000).unwrap();
            let (mut region, mut change) = (Region::default(), Change::default());
            for graph in &mut separated.graphs {
                graph.assert_consistent();
                for choice in &choices {
                    let mut known = factor_subgraphs(graph);
                    if known.is_empty() {
                        break;
                    }
                    let ends = known[usize::from(*choice) % known.len()];
                    let way = graph.way_of(ends).unwrap();
                    graph.region(ends, way, &mut region);
                    region.parts.sort_unstable();
                    let part = separated.parts.subgraph(&region.parts, graph.vertex(ends.upper), graph.vertex(ends.lower));
                    change.before(graph, ends, &region);
                    graph.contract(ends, way, &mut region, part);
                    change.after(graph, ends, &region);
                    graph.assert_consistent();
                    known.retain(|e| change.lost.binary_search(e).is_err());
                    prop_assert!(change.found.iter().all(|e| !known.contains(e)));
                    known.extend(&change.found);
                    known.sort_unstable();
                    prop_assert_eq!(known, factor_subgraphs(graph));
                }
            }
        }
    }
}
