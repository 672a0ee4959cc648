//! The last step: sums of products become an accumulation program.
//!
//! Factors of 1 are left out and those of -1 become signs; labels that are the same node of the scalar
//! graph are one factor; then common pairs are shared (`subproducts.rs`), and what is needed is computed
//! in order, everything once.

use super::isolate::Sums;
use super::parts::{PartId, Value};
use super::separate::Separated;
use super::subproducts;
use crate::{Budget, Builder, EdgeId, Label, LabelId, LinearGraph, Outcome, StopReason};
use chainrule_base::Id;
use chainrule_graph::NodeId;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The program.
pub(super) fn emit(linear: &LinearGraph, budget: &Budget, separated: &Separated, sums: &Sums) -> Outcome {
    let n_parts = separated.parts.len();
    let mut factors = Factors { linear, separated, by_node: FxHashMap::default() };
    // All products: the results, then the terms of each part.
    let mut signs = Vec::new();
    let mut products = Vec::new();
    let mut starts = Vec::with_capacity(n_parts + 1);
    let terms = sums.terms.iter().map(Some).chain([None]);
    for product in &sums.results {
        factors.push(product, &mut signs, &mut products);
    }
    for of_part in terms {
        starts.push(products.len());
        for product in of_part.into_iter().flatten() {
            factors.push(product, &mut signs, &mut products);
        }
    }
    let pairs = subproducts::share(&mut products, n_parts as u32);

    let mut emission = Emission {
        builder: Builder::new(linear),
        labels: vec![None; n_parts + pairs.len()],
        separated,
        starts: &starts,
        signs: &signs,
        products: &products,
        pairs: &pairs,
    };
    let mut ends = Vec::with_capacity(separated.pairs.len());
    for (idx, &(root, variable)) in separated.pairs.iter().enumerate() {
        emission.make(&products[idx]);
        ends.push((root, variable, emission.sum(idx..idx + 1)));
        if emission.builder.n_products() > budget.products {
            return Outcome::stopped(StopReason::ProductBudget);
        }
    }
    Outcome::done(emission.builder.finish(linear, &ends))
}

/// Parts as factors: which are 1, -1, or equal to another.
struct Factors<'a> {
    linear: &'a LinearGraph,
    separated: &'a Separated,
    /// The first part with the label of a node. Looked up only.
    by_node: FxHashMap<NodeId, u32>,
}

impl Factors<'_> {
    fn push(&mut self, product: &[PartId], signs: &mut Vec<bool>, products: &mut Vec<Vec<u32>>) {
        let mut negative = false;
        let mut factors = Vec::with_capacity(product.len());
        for part in product {
            let idx = part.index() as u32;
            let Value::Edge(e) = self.separated.parts.get(*part).value else {
                factors.push(idx);
                continue;
            };
            let edge = self.linear.edge(e);
            match (edge.label, edge.node) {
                (Label::One, _) => {}
                (Label::MinusOne, _) => negative = !negative,
                (_, None) => factors.push(idx),
                (_, Some(node)) => factors.push(*self.by_node.entry(node).or_insert(idx)),
            }
        }
        signs.push(negative);
        products.push(factors);
    }
}

/// A program in the making. Factors are the parts, then the pairs.
struct Emission<'a> {
    builder: Builder,
    labels: Vec<Option<LabelId>>,
    separated: &'a Separated,
    /// The terms of part p are products `starts[p]..starts[p + 1]`.
    starts: &'a [usize],
    signs: &'a [bool],
    products: &'a [Vec<u32>],
    pairs: &'a [(u32, u32)],
}

/// What a factor is.
enum Meaning {
    /// The label of this edge.
    Edge(EdgeId),
    /// The product of two factors.
    Pair(u32, u32),
    /// The sum of these products.
    Sum(Range<usize>),
}

impl Emission<'_> {
    /// Makes the labels of these factors, and before them of all that they need.
    fn make(&mut self, factors: &[u32]) {
        let mut stack: Vec<u32> = factors.iter().rev().copied().collect();
        while let Some(&factor) = stack.last() {
            let idx = factor as usize;
            if self.labels[idx].is_some() {
                stack.pop();
                continue;
            }
            let n_open = stack.len();
            let needs = |f: &u32| self.labels[*f as usize].is_none();
            match self.meaning(idx) {
                Meaning::Edge(_) => {}
                Meaning::Pair(a, b) => stack.extend([b, a].into_iter().filter(needs)),
                Meaning::Sum(terms) => {
                    let factors = self.products[terms].iter().rev().flat_map(|t| t.iter().rev());
                    stack.extend(factors.copied().filter(needs));
                }
            }
            if stack.len() > n_open {
                continue;
            }
            stack.pop();
            let label = match self.meaning(idx) {
                Meaning::Edge(e) => self.builder.edge(e),
                Meaning::Pair(a, b) => {
                    let pair: Vec<LabelId> = [a, b].iter().filter_map(|f| self.labels[*f as usize]).collect();
                    self.builder.add(&pair);
                    self.builder.close()
                }
                Meaning::Sum(terms) => self.sum(terms),
            };
            self.labels[idx] = Some(label);
        }
    }

    fn meaning(&self, factor: usize) -> Meaning {
        let n_parts = self.separated.parts.len();
        if factor >= n_parts {
            let (a, b) = self.pairs[factor - n_parts];
            return Meaning::Pair(a, b);
        }
        match self.separated.parts.get(PartId::new(factor)).value {
            Value::Edge(e) => Meaning::Edge(e),
            Value::Subgraph(_) => Meaning::Sum(self.starts[factor]..self.starts[factor + 1]),
        }
    }

    /// The sum of these products, whose factors are made.
    fn sum(&mut self, products: Range<usize>) -> LabelId {
        for idx in products {
            let factors: Vec<LabelId> = self.products[idx].iter().filter_map(|f| self.labels[*f as usize]).collect();
            self.builder.add_signed(self.signs[idx], &factors);
        }
        self.builder.close()
    }
}
