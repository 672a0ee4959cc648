//! Vertex elimination: the edges around an intermediate are replaced by edges from its predecessors to its successors,
//! until only edges from sources to sinks remain.
//!
//! | Naumann 1999, section 2 | here |
//! | --- | --- |
//! | elimination of v(j): c(k,i) += c(k,j) c(j,i), i in P(j), k in S(j) | [`Elimination::eliminate`] |
//! | fill-in | an edge that did not exist |
//! | absorption | an existing edge, whose label gets one more product |
//! | Markowitz degree | [`Elimination::markowitz_degree`] |
//! | vector c-graph: sizes d(j) (section 2.5) | [`Elimination::with_sizes`] |
//! | OPS{v(j)} = d(j) (sum of d(i)) (sum of d(k)) | [`Elimination::cost`] |
//!
//! In: a linearised graph, an elimination order of its intermediates. Out: a program. Orders are made by `greedy.rs`
//! and by the searches.
//!
//! Correct in any order: every path through v is a path i -> v -> k continued, and each such pair of edges contributes
//! its product to the single edge i -> k. Edges are merged by their ends here because every edge serves every pair of a
//! source before it and a sink behind it.

use crate::reachability::Reachability;
use crate::{Budget, Builder, Counting, Label, LabelId, LinearGraph, Outcome, Program, StopReason, VertexId};
use chainrule_base::Id;
use rustc_hash::FxHashMap;
use std::ops::{AddAssign, Sub, SubAssign};

/// Eliminates in the given order. Remaining intermediates follow in ascending order; other vertices and repetitions are
/// skipped.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, order: &[VertexId]) -> Outcome {
    let mut elimination = Elimination::new(linear);
    for v in order.iter().copied().chain(linear.intermediates()) {
        if !elimination.can_eliminate(v) {
            continue;
        }
        elimination.eliminate(v);
        if elimination.n_products() > budget.products {
            return Outcome::stopped(StopReason::ProductBudget);
        }
    }
    Outcome::done(elimination.finish())
}

/// Degree of a vertex on one side, by the kinds of labels. In a vector graph, neighbours count with their sizes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Degree {
    /// Neighbours by labels 1 and -1.
    pub unit: u64,
    /// Neighbours by other constant labels.
    pub constant: u64,
    /// Neighbours by labels that depend on the point.
    pub var: u64,
}

impl Degree {
    /// Returns the degree of one neighbour of this size.
    #[must_use]
    pub fn of(label: Label, size: u64) -> Self {
        let mut degree = Self::default();
        match label {
            Label::One | Label::MinusOne => degree.unit = size,
            Label::Const => degree.constant = size,
            Label::Var => degree.var = size,
        }
        degree
    }

    /// Returns the number of multiplications of all labels of one side by all of the other.
    #[must_use]
    pub fn products(self, other: Self, counting: Counting) -> u64 {
        match counting {
            Counting::Plain => self.all() * other.all(),
            Counting::UnitFree => self.paid() * other.paid(),
            Counting::Folded => self.paid() * other.paid() - self.constant * other.constant,
        }
    }

    fn all(self) -> u64 {
        self.unit + self.paid()
    }

    fn paid(self) -> u64 {
        self.constant + self.var
    }
}

impl AddAssign for Degree {
    fn add_assign(&mut self, other: Self) {
        self.unit += other.unit;
        self.constant += other.constant;
        self.var += other.var;
    }
}

impl SubAssign for Degree {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sub for Degree {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { unit: self.unit - other.unit, constant: self.constant - other.constant, var: self.var - other.var }
    }
}

/// Returns the kind of a product of two labels.
pub fn product_label(a: Label, b: Label) -> Label {
    match (a, b) {
        (Label::Var, _) | (_, Label::Var) => Label::Var,
        (Label::Const, _) | (_, Label::Const) => Label::Const,
        (Label::One | Label::MinusOne, _) => {
            if a == b {
                Label::One
            } else {
                Label::MinusOne
            }
        }
    }
}

/// Returns the kind of a sum of two labels; the sum of two units may be any number.
pub fn sum_label(a: Label, b: Label) -> Label {
    if a == Label::Var || b == Label::Var { Label::Var } else { Label::Const }
}

/// A partially eliminated graph.
///
/// Adjacency lists keep eliminated vertices until half of a list is stale, so that an elimination costs time in its own
/// edges and not in those of its neighbours.
#[derive(Clone, Debug)]
pub struct Elimination<'a> {
    linear: &'a LinearGraph,
    builder: Builder,
    /// For each vertex, the number of scalars that it stands for; `None` for one each.
    sizes: Option<&'a [u64]>,
    /// Reachability of requested pairs: edges that serve no requested pair are never made.
    reachability: Option<Reachability>,
    /// Label of each edge by source and target. Only looked up, never iterated.
    labels: FxHashMap<(VertexId, VertexId), LabelId>,
    predecessors: Vec<Neighbours>,
    successors: Vec<Neighbours>,
    gone: Vec<bool>,
}

/// Neighbours of a vertex on one side.
#[derive(Clone, Debug, Default)]
struct Neighbours {
    /// In the order in which edges were made; may contain eliminated vertices.
    list: Vec<VertexId>,
    /// Number of neighbours that are not eliminated.
    n_alive: usize,
    /// Degree of the neighbours that are not eliminated.
    degree: Degree,
}

impl<'a> Elimination<'a> {
    /// Returns the graph before any elimination, with parallel edges added up.
    #[must_use]
    pub fn new(linear: &'a LinearGraph) -> Self {
        Self::start(linear, None)
    }

    /// As [`Self::new`], for a vector graph whose vertices have these `sizes`.
    ///
    /// # Panics
    /// Panics if there are fewer sizes than vertices.
    #[must_use]
    pub fn with_sizes(linear: &'a LinearGraph, sizes: &'a [u64]) -> Self {
        assert!(sizes.len() >= linear.n_vertices(), "a size for each vertex");
        Self::start(linear, Some(sizes))
    }

    fn start(linear: &'a LinearGraph, sizes: Option<&'a [u64]>) -> Self {
        let n = linear.n_vertices();
        let mut elimination = Self {
            linear,
            builder: Builder::new(linear),
            sizes,
            reachability: Reachability::new(linear),
            labels: FxHashMap::default(),
            predecessors: vec![Neighbours::default(); n],
            successors: vec![Neighbours::default(); n],
            gone: vec![false; n],
        };
        for (e, edge) in linear.edges() {
            let label = elimination.builder.edge(e);
            elimination.absorb(edge.source, edge.target, &[label]);
        }
        elimination
    }

    /// Returns the graph before any elimination.
    #[must_use]
    pub fn linear(&self) -> &'a LinearGraph {
        self.linear
    }

    /// Adds a product to the edge from `i` to `k`; makes the edge if it does not exist.
    fn absorb(&mut self, i: VertexId, k: VertexId, product: &[LabelId]) {
        if self.reachability.as_ref().is_some_and(|reachability| !reachability.serves(i, k)) {
            return;
        }
        let (size_i, size_k) = (self.size(i), self.size(k));
        let old = self.labels.get(&(i, k)).copied();
        if let Some(old) = old {
            self.builder.add(&[old]);
        }
        self.builder.add(product);
        let label = self.builder.close();
        let kind = self.builder.kind(label);
        let (out, into) = (&mut self.successors[i.index()], &mut self.predecessors[k.index()]);
        if let Some(old) = old {
            let old_kind = self.builder.kind(old);
            out.degree -= Degree::of(old_kind, size_k);
            into.degree -= Degree::of(old_kind, size_i);
        } else {
            out.list.push(k);
            out.n_alive += 1;
            into.list.push(i);
            into.n_alive += 1;
        }
        out.degree += Degree::of(kind, size_k);
        into.degree += Degree::of(kind, size_i);
        self.labels.insert((i, k), label);
    }

    /// Returns whether `v` is a remaining intermediate.
    #[must_use]
    pub fn can_eliminate(&self, v: VertexId) -> bool {
        v.index() < self.gone.len() && !self.linear.is_source(v) && !self.linear.is_sink(v) && !self.gone[v.index()]
    }

    /// Returns whether an edge from `i` to `k` would be kept.
    pub fn serves(&self, i: VertexId, k: VertexId) -> bool {
        self.reachability.as_ref().is_none_or(|reachability| reachability.serves(i, k))
    }

    /// Returns the number of scalars that `v` stands for: 1 except in vector graphs.
    #[must_use]
    pub fn size(&self, v: VertexId) -> u64 {
        self.sizes.map_or(1, |sizes| sizes[v.index()])
    }

    /// Returns the numbers of predecessors and successors of `v`.
    #[must_use]
    pub fn degrees(&self, v: VertexId) -> (usize, usize) {
        (self.predecessors[v.index()].n_alive, self.successors[v.index()].n_alive)
    }

    /// Returns the in-degree of `v`.
    pub fn in_degree(&self, v: VertexId) -> Degree {
        self.predecessors[v.index()].degree
    }

    /// Returns the out-degree of `v`.
    pub fn out_degree(&self, v: VertexId) -> Degree {
        self.successors[v.index()].degree
    }

    /// Returns the number of multiplications for the elimination of `v`: in a scalar graph predecessors times
    /// successors, in a vector graph size times the sizes of both sides.
    #[must_use]
    pub fn markowitz_degree(&self, v: VertexId) -> u64 {
        self.cost(v, Counting::Plain)
    }

    /// Returns the number of multiplications for the elimination of `v` that are not free. If only some pairs are
    /// requested, products for edges that serve none of them are included.
    #[must_use]
    pub fn cost(&self, v: VertexId, counting: Counting) -> u64 {
        self.size(v) * self.in_degree(v).products(self.out_degree(v), counting)
    }

    /// Returns the kind of the label of the edge from `i` to `k`; `None` if there is no edge.
    #[must_use]
    pub fn label(&self, i: VertexId, k: VertexId) -> Option<Label> {
        self.labels.get(&(i, k)).map(|label| self.builder.kind(*label))
    }

    /// Returns the vertices with an edge to `v`.
    pub fn predecessors(&self, v: VertexId) -> impl Iterator<Item = VertexId> {
        self.predecessors[v.index()].list.iter().copied().filter(|u| !self.gone[u.index()])
    }

    /// Returns the vertices with an edge from `v`.
    pub fn successors(&self, v: VertexId) -> impl Iterator<Item = VertexId> {
        self.successors[v.index()].list.iter().copied().filter(|u| !self.gone[u.index()])
    }

    /// Returns whether `v` has been eliminated.
    #[must_use]
    pub fn is_eliminated(&self, v: VertexId) -> bool {
        self.gone[v.index()]
    }

    /// Returns the number of products so far.
    #[must_use]
    pub fn n_products(&self) -> u64 {
        self.builder.n_products()
    }

    /// Eliminates an intermediate, and returns its former predecessors and successors. Does nothing for other vertices.
    /// Linear in its Markowitz degree, amortised.
    pub fn eliminate(&mut self, v: VertexId) -> (Vec<VertexId>, Vec<VertexId>) {
        if !self.can_eliminate(v) {
            return (Vec::new(), Vec::new());
        }
        let before: Vec<VertexId> = self.predecessors(v).collect();
        let behind: Vec<VertexId> = self.successors(v).collect();
        self.gone[v.index()] = true;
        let size = self.size(v);
        let out_labels: Vec<LabelId> = behind.iter().map(|k| self.labels[&(v, *k)]).collect();
        for &i in &before {
            if let Some(in_label) = self.labels.remove(&(i, v)) {
                for (&k, &out_label) in behind.iter().zip(&out_labels) {
                    self.absorb(i, k, &[in_label, out_label]);
                }
                let kind = self.builder.kind(in_label);
                self.successors[i.index()].forget_one(Degree::of(kind, size), &self.gone);
            }
        }
        for (&k, &out_label) in behind.iter().zip(&out_labels) {
            self.labels.remove(&(v, k));
            let kind = self.builder.kind(out_label);
            self.predecessors[k.index()].forget_one(Degree::of(kind, size), &self.gone);
        }
        self.predecessors[v.index()] = Neighbours::default();
        self.successors[v.index()] = Neighbours::default();
        (before, behind)
    }

    /// Eliminates remaining intermediates in ascending order and returns the program.
    #[must_use]
    pub fn finish(mut self) -> Program {
        for v in self.linear.intermediates() {
            self.eliminate(v);
        }
        let mut ends = Vec::new();
        for sink in self.linear.sinks() {
            for source in self.predecessors(sink) {
                ends.push((sink, source, self.labels[&(source, sink)]));
            }
        }
        self.builder.finish(self.linear, &ends)
    }
}

impl Neighbours {
    /// Updates the list after the elimination of one of its vertices.
    fn forget_one(&mut self, degree: Degree, gone: &[bool]) {
        self.n_alive -= 1;
        self.degree -= degree;
        if self.list.len() > 2 * self.n_alive + 8 {
            self.list.retain(|u| !gone[u.index()]);
        }
    }
}
