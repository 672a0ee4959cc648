//! Subgraph edges as sums of products of parts.
//!
//! D*, section 4: "the subgraphs contained in subgraph edges are completely isolated from the rest of the original
//! graph". Inside a subgraph, every path ends at the factor base: nodes with other exits have none here, and more can
//! be factored than in the derivative graph. An isolated subgraph is a derivative graph of one pair, which is factored
//! smallest first until it is a bundle of separate chains; these are its terms.
//!
//! In: factored derivative graphs. Out: the product on the path of each graph, and the terms of every needed subgraph
//! edge.

use super::derivative_graph::{DerivativeGraph, Ends, Region, Way};
use super::factor::{Change, factor_subgraphs};
use super::parts::{Kind, PartId, Parts};
use super::separate::Separated;
use crate::VertexId;
use chainrule_base::Id;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// A product of parts.
pub(super) type Product = Vec<PartId>;

/// All values to be computed, as sums of products of parts.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    /// Derivative of each pair.
    pub(super) results: Vec<Product>,
    /// Terms of each needed subgraph part; empty for other parts.
    pub(super) terms: Vec<Vec<Product>>,
}

/// Isolates the needed subgraphs; returns `None` if more than `visits` edges were visited.
pub(super) fn isolate(separated: &mut Separated, visits: u64) -> Option<Sums> {
    let results: Vec<Product> = separated.graphs.iter().map(|graph| chain(graph, graph.root(), None)).collect();
    let mut terms: Vec<Vec<Product>> = vec![Vec::new(); separated.parts.len()];
    let mut open: Vec<PartId> = results.iter().flatten().copied().collect();
    let mut isolation = Isolation::default();
    while let Some(part) = open.pop() {
        let Kind::Subgraph(set) = &separated.parts.get(part).kind else { continue };
        if !terms[part.index()].is_empty() {
            continue;
        }
        let set = Rc::clone(set);
        let made = isolation.terms(&mut separated.parts, &set);
        open.extend(made.iter().flatten());
        terms.resize(separated.parts.len(), Vec::new());
        terms[part.index()] = made;
        if isolation.region.visits > visits {
            return None;
        }
    }
    Some(Sums { results, terms })
}

/// Returns the parts from a node down to the variable, with the first one given.
fn chain(graph: &DerivativeGraph, from: u32, first: Option<PartId>) -> Product {
    let mut product: Product = first.into_iter().collect();
    let mut node = from;
    while let Some((part, child)) = graph.edges(node, Way::Down).next() {
        product.push(part);
        node = child;
    }
    product
}

#[derive(Default)]
struct Isolation {
    region: Region,
    change: Change,
}

impl Isolation {
    /// Returns the terms of the subgraph of these parts.
    fn terms(&mut self, parts: &mut Parts, set: &[PartId]) -> Vec<Product> {
        let mut graph = alone(parts, set);
        let whole = Ends { upper: graph.root(), lower: 0 };
        let distance = |ends: Ends| Reverse((ends.upper - ends.lower, ends.lower));
        let mut queue: BinaryHeap<_> = factor_subgraphs(&graph).into_iter().map(|e| (distance(e), e)).collect();
        while let Some((_, ends)) = queue.pop() {
            // Inner subgraphs are smaller and already factored: the whole is a bundle of chains.
            if ends == whole {
                break;
            }
            let Some(way) = graph.way_of(ends) else { continue };
            graph.region(ends, way, &mut self.region);
            self.region.parts.sort_unstable();
            let (upper, lower) = (graph.vertex(ends.upper), graph.vertex(ends.lower));
            let inner = parts.subgraph(&self.region.parts, upper, lower);
            self.change.before(&graph, ends, &self.region);
            graph.contract(ends, way, &mut self.region, inner);
            self.change.after(&graph, ends, &self.region);
            queue.extend(self.change.found.iter().map(|e| (distance(*e), *e)));
        }
        self.region.visits += graph.n_nodes() as u64;
        graph.edges(graph.root(), Way::Down).map(|(first, child)| chain(&graph, child, Some(first))).collect()
    }
}

/// Returns these parts as a derivative graph.
fn alone(parts: &Parts, set: &[PartId]) -> DerivativeGraph {
    let ends = |p: &PartId| (parts.get(*p).upper, parts.get(*p).lower);
    let mut vertices: Vec<VertexId> = set.iter().map(ends).flat_map(|(upper, lower)| [upper, lower]).collect();
    vertices.sort_unstable();
    vertices.dedup();
    let place = |v: VertexId| vertices.partition_point(|u| *u < v) as u32;
    let edges: Vec<(PartId, u32, u32)> = set
        .iter()
        .map(|p| {
            let (upper, lower) = ends(p);
            (*p, place(upper), place(lower))
        })
        .collect();
    DerivativeGraph::new(vertices, edges.into_iter())
}
