//! Direct and indirect multiplication relations, and whether face elimination can follow a set of expressions (the
//! notes, section 5, lemmas 1 and 2, proposition 1).
//!
//! | the notes | here |
//! | --- | --- |
//! | direct: s1 s2 are adjacent | [`Relations::direct`] |
//! | s1 \| s2 s3: s1 (s2 s3 + ...) | [`Relations::behind`] |
//! | s3 s1 \| s2: (... + s3 s1) s2 | [`Relations::before`] |
//! | the elimination of (s1, s2) depends on that of (s2, s3), or of (s3, s1) (lemma 2) | [`Relations::dependencies`] |
//! | circular dependencies | [`Relations::cycle`] |
//!
//! In: a program, which is a set of expressions connected by references; its labels are the edges and reference edges.
//! Out: the relations between labels.
//!
//! Proposition 1: if there is no cycle, the faces can be eliminated in an order that preserves all parentheses
//! ([`Relations::order`]), so face elimination needs no more multiplications than the expressions.

use crate::{LabelId, Program};
use chainrule_base::Id;
use std::collections::{BTreeMap, BTreeSet};

/// A face: two consecutive labels.
pub type Face = (LabelId, LabelId);

/// Relations between labels. See the module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Relations {
    /// Adjacent labels in a product.
    pub direct: BTreeSet<Face>,
    /// s1 \| s2 s3 as (s1, s2, s3).
    pub behind: BTreeSet<(LabelId, LabelId, LabelId)>,
    /// s3 s1 \| s2 as (s3, s1, s2).
    pub before: BTreeSet<(LabelId, LabelId, LabelId)>,
}

/// Maximum number of factors and relations.
pub const MAX_SIZE: usize = 1_000_000;

/// Returns the relations of a program whose factors are in the order of paths. `None` if there are more than
/// [`MAX_SIZE`] of them after expanding products.
#[must_use]
pub fn of(program: &Program) -> Option<Relations> {
    let written = Written::new(program)?;
    let mut relations = Relations::default();
    let mut work = 0;
    for product in written.sums.iter().flatten() {
        for pair in product.windows(2) {
            relations.direct.insert((pair[0], pair[1]));
            // The first labels inside the parentheses on the right, and the last ones inside those on the left.
            let mut open = vec![pair[1]];
            while let Some(sum) = open.pop() {
                for product in written.sum(sum) {
                    work += 1;
                    if let [first, second, ..] = product.as_slice() {
                        relations.behind.insert((pair[0], *first, *second));
                    }
                    open.extend(product.first());
                }
            }
            let mut open = vec![pair[0]];
            while let Some(sum) = open.pop() {
                for product in written.sum(sum) {
                    work += 1;
                    if let [.., second, last] = product.as_slice() {
                        relations.before.insert((*second, *last, pair[1]));
                    }
                    open.extend(product.last());
                }
            }
            if work > MAX_SIZE {
                return None;
            }
        }
    }
    Some(relations)
}

/// A program with expanded products: a factor that is a single product is replaced by its factors.
struct Written {
    n_edges: usize,
    /// Products of each step; none for a step that is a single product, unless it is a result.
    sums: Vec<Vec<Vec<LabelId>>>,
}

impl Written {
    fn new(program: &Program) -> Option<Self> {
        let n_edges = program.n_edges();
        let mut chains: Vec<Option<Vec<LabelId>>> = Vec::with_capacity(program.n_steps());
        let mut sums = Vec::with_capacity(program.n_steps());
        let mut is_result = vec![false; program.n_labels()];
        for entry in program.results() {
            is_result[entry.label.index()] = true;
        }
        let mut size = 0;
        for step in 0..program.n_steps() {
            let products: Vec<Vec<LabelId>> = program
                .step(step)
                .map(|product| {
                    let mut factors = Vec::new();
                    for factor in product.factors {
                        match factor.index().checked_sub(n_edges).and_then(|step| chains[step].as_ref()) {
                            Some(chain) => factors.extend_from_slice(chain),
                            None => factors.push(*factor),
                        }
                    }
                    factors
                })
                .collect();
            size += products.iter().map(Vec::len).sum::<usize>();
            if size > MAX_SIZE {
                return None;
            }
            let is_chain = products.len() == 1;
            chains.push(is_chain.then(|| products[0].clone()));
            sums.push(if is_chain && !is_result[n_edges + step] { Vec::new() } else { products });
        }
        Some(Self { n_edges, sums })
    }

    /// Returns the products whose sum a factor is; none for an edge.
    fn sum(&self, factor: LabelId) -> &[Vec<LabelId>] {
        let step = factor.index().checked_sub(self.n_edges);
        step.map_or(&[], |step| &self.sums[step])
    }
}

impl Relations {
    /// Returns, for each face with both direct and indirect relations, the faces to be eliminated before it.
    #[must_use]
    pub fn dependencies(&self) -> BTreeMap<Face, BTreeSet<Face>> {
        let mut dependencies: BTreeMap<Face, BTreeSet<Face>> = BTreeMap::new();
        let behind = self.behind.iter().map(|&(s1, s2, s3)| ((s1, s2), (s2, s3)));
        let before = self.before.iter().map(|&(s3, s1, s2)| ((s1, s2), (s3, s1)));
        for (face, first) in behind.chain(before) {
            if self.direct.contains(&face) {
                dependencies.entry(face).or_default().insert(first);
            }
        }
        dependencies
    }

    /// Returns faces each of which depends on the next one, and the last on the first; `None` if there is no cycle.
    #[must_use]
    pub fn cycle(&self) -> Option<Vec<Face>> {
        self.order().err()
    }

    /// Returns the faces in an order of elimination that preserves all parentheses. O(n log n).
    ///
    /// # Errors
    /// The faces of a cycle.
    pub fn order(&self) -> Result<Vec<Face>, Vec<Face>> {
        let dependencies = self.dependencies();
        let mut order = Vec::with_capacity(self.direct.len());
        let mut done: BTreeSet<Face> = BTreeSet::new();
        for &face in &self.direct {
            // Faces on the path from `face`, each with its unvisited dependencies.
            let mut way: Vec<(Face, Vec<Face>)> = Vec::new();
            let mut on_way: BTreeSet<Face> = BTreeSet::new();
            let mut next = Some(face);
            loop {
                if let Some(face) = next.take().filter(|face| !done.contains(face)) {
                    if !on_way.insert(face) {
                        let start = way.iter().position(|(other, _)| *other == face).unwrap_or(0);
                        return Err(way[start..].iter().map(|(face, _)| *face).collect());
                    }
                    let first = dependencies.get(&face).map(|faces| faces.iter().rev().copied().collect());
                    way.push((face, first.unwrap_or_default()));
                }
                let Some((face, open)) = way.last_mut() else { break };
                next = open.pop();
                if next.is_none() {
                    order.push(*face);
                    done.insert(*face);
                    on_way.remove(face);
                    way.pop();
                }
            }
        }
        Ok(order)
    }
}
