//! Emission: sums of products become an accumulation program.
//!
//! Factors of 1 are dropped and those of -1 become signs. Parts of equal value, wherever they are, become one factor,
//! and so do those of opposite value. Then common pairs are shared (`subproducts.rs`), and the needed factors are
//! computed in order, each once.

use super::Units;
use super::isolate::Sums;
use super::parts::{Kind, PartId};
use super::separate::Separated;
use super::subproducts;
use super::value::Value;
use crate::{Budget, Builder, EdgeId, Label, LabelId, LinearGraph, Outcome, Product, StopReason};
use chainrule_base::Id;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Returns the program.
pub(super) fn emit(linear: &LinearGraph, budget: &Budget, units: Units, separated: &Separated, sums: &Sums) -> Outcome {
    let n_parts = separated.parts.len();
    let factors = Factors::new(linear, units, separated, sums);
    // All products: the results, then the terms of each part that is a factor.
    let (mut signs, mut products): (Vec<bool>, Vec<Vec<u32>>) =
        sums.results.iter().map(|product| factors.of(product)).unzip();
    let mut starts = Vec::with_capacity(n_parts + 1);
    for (part, terms) in sums.terms.iter().enumerate() {
        starts.push(products.len());
        if factors.meaning[part] == Unit::Factor(part as u32, false) {
            for product in terms {
                let (sign, product) = factors.of(product);
                signs.push(sign);
                products.push(product);
            }
        }
    }
    starts.push(products.len());
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

/// Meaning of a part in a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    /// A sign: negative or not.
    One(bool),
    /// A part, possibly another one of equal value, and whether it is negated.
    Factor(u32, bool),
}

/// Meaning of each part in a product. A part replaced by another one has its value up to sign, and the other one only
/// needs parts that are computed earlier: parts are visited in that order.
struct Factors {
    meaning: Vec<Unit>,
}

impl Factors {
    fn new(linear: &LinearGraph, units: Units, separated: &Separated, sums: &Sums) -> Self {
        let mut by_value: FxHashMap<Value, u32> = FxHashMap::default();
        let mut meaning: Vec<Option<Unit>> = vec![None; separated.parts.len()];
        let mut stack: Vec<PartId> = sums.results.iter().rev().flatten().copied().collect();
        while let Some(&part) = stack.last() {
            let idx = part.index();
            if meaning[idx].is_none() {
                let n_open = stack.len();
                let needs = |p: &PartId| meaning[p.index()].is_none();
                stack.extend(sums.terms[idx].iter().flatten().copied().filter(needs));
                if stack.len() > n_open {
                    continue;
                }
                let itself = Unit::Factor(idx as u32, false);
                let label = match separated.parts.get(part).kind {
                    Kind::Edge(e) => linear.edge(e).label,
                    Kind::Subgraph(_) => Label::Var,
                };
                let value = separated.parts.get(part).value;
                meaning[idx] = Some(match label {
                    Label::One | Label::MinusOne if units == Units::Kept => itself,
                    Label::One => Unit::One(false),
                    Label::MinusOne => Unit::One(true),
                    Label::Const | Label::Var => match (by_value.get(&value), by_value.get(&value.negated())) {
                        (Some(other), _) => Unit::Factor(*other, false),
                        (None, Some(other)) => Unit::Factor(*other, true),
                        (None, None) => {
                            by_value.insert(value, idx as u32);
                            itself
                        }
                    },
                });
            }
            stack.pop();
        }
        Self { meaning: meaning.into_iter().map(|unit| unit.unwrap_or(Unit::One(false))).collect() }
    }

    /// Returns whether a product is negative, and its factors.
    fn of(&self, product: &[PartId]) -> (bool, Vec<u32>) {
        let mut negative = false;
        let mut factors = Vec::with_capacity(product.len());
        for part in product {
            match self.meaning[part.index()] {
                Unit::One(sign) => negative ^= sign,
                Unit::Factor(factor, sign) => {
                    negative ^= sign;
                    factors.push(factor);
                }
            }
        }
        (negative, factors)
    }
}

/// A program under construction. Factors are the parts, then the pairs.
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

/// Definition of a factor.
enum Meaning {
    /// The label of this edge.
    Edge(EdgeId),
    /// The product of two factors.
    Pair(u32, u32),
    /// The sum of these products.
    Sum(Range<usize>),
}

impl Emission<'_> {
    /// Computes the labels of these factors, and first those of all factors that they need.
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
        match self.separated.parts.get(PartId::new(factor)).kind {
            Kind::Edge(e) => Meaning::Edge(e),
            Kind::Subgraph(_) => Meaning::Sum(self.starts[factor]..self.starts[factor + 1]),
        }
    }

    /// Returns the sum of these products, whose factors have labels.
    fn sum(&mut self, products: Range<usize>) -> LabelId {
        for idx in products {
            let factors: Vec<LabelId> = self.products[idx].iter().filter_map(|f| self.labels[*f as usize]).collect();
            self.builder.add_product(Product { negative: self.signs[idx], factors: &factors });
        }
        self.builder.close()
    }
}
