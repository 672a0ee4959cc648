//! Edge elimination: an edge is removed by connecting its neighbourhood, until only edges from sources to sinks remain.
//! Finer than vertex elimination, and cheaper on some graphs.
//!
//! | Naumann 1999 | here |
//! | --- | --- |
//! | forward elimination of (i,j): c(j,l) += c(j,i) c(i,l), l in P(i) (section 2.1) | [`Direction::Front`] |
//! | backward elimination of (i,j): c(k,i) += c(k,j) c(j,i), k in S(j) (section 2.2) | [`Direction::Back`] |
//! | forward, backward Markowitz degree of an edge, OPS_F, OPS_B (section 2.5) | [`EdgeElimination::cost`] |
//! | elimination of v(j): all out-edges forward, or all in-edges backward | [`EdgeElimination::eliminate_vertex`] |
//!
//! In: a linearised graph, a history of steps. Out: a program. Greedy histories come from `edge_greedy.rs`, annealed
//! ones from `edge_annealing.rs`.
//!
//! Correct in any order: each path through (i,j) continues through the edge that replaces it and its predecessor
//! (front) or successor (back), and each such path is one product of that edge's label. An intermediate that loses its
//! last out-edge lies on no path any more and is removed with its in-edges, and conversely. Every step shortens a path
//! or joins two, so elimination terminates (section 2.3). Edges with equal ends are merged because they serve the same
//! pairs, as in `vertex.rs`.

use crate::reachability::Reachability;
use crate::vertex::Degree;
use crate::{Budget, Builder, Counting, Label, LabelId, LinearGraph, Outcome, Program, StopReason, VertexId};
use chainrule_base::Id;
use std::collections::{BTreeMap, BTreeSet};

/// Direction of an edge elimination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Forward: the source is an intermediate; its predecessors are connected with the target.
    Front,
    /// Backward: the target is an intermediate; the source is connected with its successors.
    Back,
}

/// A step of a history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// Eliminates an edge, given by source and target, in this direction.
    Edge(VertexId, VertexId, Direction),
    /// Eliminates all out-edges of an intermediate forward.
    Vertex(VertexId),
}

/// Eliminates in the given order. Steps that are impossible at their turn are skipped; remaining intermediates follow
/// in ascending order.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, history: &[Step]) -> Outcome {
    let mut elimination = EdgeElimination::new(linear);
    for step in history.iter().copied().chain(linear.intermediates().map(Step::Vertex)) {
        elimination.step(step);
        if elimination.n_products() > budget.products {
            return Outcome::stopped(StopReason::ProductBudget);
        }
    }
    Outcome::done(elimination.finish())
}

/// A partially eliminated graph.
#[derive(Clone, Debug)]
pub struct EdgeElimination<'a> {
    linear: &'a LinearGraph,
    builder: Builder,
    sizes: Option<&'a [u64]>,
    reachability: Option<Reachability>,
    /// Out-edges of each vertex: target and label.
    successors: Vec<BTreeMap<VertexId, LabelId>>,
    /// Sources of the in-edges of each vertex.
    predecessors: Vec<BTreeSet<VertexId>>,
    in_degrees: Vec<Degree>,
    out_degrees: Vec<Degree>,
    /// Ends of edges that were made, changed or removed; `None` until [`Self::take_touched`] is called.
    touched: Option<Vec<VertexId>>,
}

impl<'a> EdgeElimination<'a> {
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
            successors: vec![BTreeMap::new(); n],
            predecessors: vec![BTreeSet::new(); n],
            in_degrees: vec![Degree::default(); n],
            out_degrees: vec![Degree::default(); n],
            touched: None,
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

    /// Returns the number of scalars that `v` stands for: 1 except in vector graphs.
    #[must_use]
    pub fn size(&self, v: VertexId) -> u64 {
        self.sizes.map_or(1, |sizes| sizes[v.index()])
    }

    /// Returns the vertices with an edge to `v`, ascending.
    pub fn predecessors(&self, v: VertexId) -> impl Iterator<Item = VertexId> {
        self.predecessors[v.index()].iter().copied()
    }

    /// Returns the vertices with an edge from `v`, ascending.
    pub fn successors(&self, v: VertexId) -> impl Iterator<Item = VertexId> {
        self.successors[v.index()].keys().copied()
    }

    /// Returns the kind of the label of the edge from `i` to `k`; `None` if there is no edge.
    #[must_use]
    pub fn label(&self, i: VertexId, k: VertexId) -> Option<Label> {
        self.successors.get(i.index())?.get(&k).map(|label| self.builder.kind(*label))
    }

    /// Returns whether there is an edge from `i` to `j` that can be eliminated in this direction.
    #[must_use]
    pub fn can_eliminate(&self, i: VertexId, j: VertexId, direction: Direction) -> bool {
        let through = match direction {
            Direction::Front => i,
            Direction::Back => j,
        };
        i.index() < self.successors.len()
            && self.successors[i.index()].contains_key(&j)
            && !self.linear.is_source(through)
            && !self.linear.is_sink(through)
    }

    /// Returns the Markowitz degree of an edge: the number of multiplications for its elimination. In a scalar graph
    /// that counts all products, it is the number of predecessors of the source or of successors of the target; 0 if
    /// there is no edge.
    #[must_use]
    pub fn cost(&self, i: VertexId, j: VertexId, direction: Direction, counting: Counting) -> u64 {
        let Some(label) = self.label(i, j) else { return 0 };
        let (through, end, other_side) = match direction {
            Direction::Front => (i, j, self.in_degrees[i.index()]),
            Direction::Back => (j, i, self.out_degrees[j.index()]),
        };
        self.size(through) * Degree::of(label, self.size(end)).products(other_side, counting)
    }

    /// Returns the number of multiplications for the elimination of a vertex.
    #[must_use]
    pub fn vertex_cost(&self, v: VertexId, counting: Counting) -> u64 {
        self.size(v) * self.in_degrees[v.index()].products(self.out_degrees[v.index()], counting)
    }

    /// Returns the number of products so far.
    #[must_use]
    pub fn n_products(&self) -> u64 {
        self.builder.n_products()
    }

    /// Performs a step; returns whether it was possible.
    pub fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Edge(i, j, direction) => self.eliminate(i, j, direction),
            Step::Vertex(v) => self.eliminate_vertex(v),
        }
    }

    /// Eliminates an edge; returns whether it was possible. O((Markowitz degree + removed edges) log degree).
    pub fn eliminate(&mut self, i: VertexId, j: VertexId, direction: Direction) -> bool {
        if !self.can_eliminate(i, j, direction) {
            return false;
        }
        let Some(label) = self.remove(i, j) else { return false };
        match direction {
            Direction::Front => {
                for l in self.predecessors(i).collect::<Vec<_>>() {
                    self.absorb(l, j, &[self.successors[l.index()][&i], label]);
                }
            }
            Direction::Back => {
                for (k, behind) in self.successors[j.index()].clone() {
                    self.absorb(i, k, &[label, behind]);
                }
            }
        }
        self.clear_from(i, j);
        true
    }

    /// Eliminates all out-edges of an intermediate forward; returns whether the intermediate existed.
    pub fn eliminate_vertex(&mut self, v: VertexId) -> bool {
        if v.index() >= self.successors.len() || self.linear.is_source(v) || self.linear.is_sink(v) {
            return false;
        }
        let targets: Vec<VertexId> = self.successors(v).collect();
        for k in &targets {
            self.eliminate(v, *k, Direction::Front);
        }
        !targets.is_empty()
    }

    /// Returns the ends of edges that were made, changed or removed since the last call, ascending. The first call
    /// starts the recording.
    pub(crate) fn take_touched(&mut self) -> Vec<VertexId> {
        let mut touched = self.touched.replace(Vec::new()).unwrap_or_default();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Returns whether an edge from `i` to `k` would be kept.
    pub fn serves(&self, i: VertexId, k: VertexId) -> bool {
        self.reachability.as_ref().is_none_or(|reachability| reachability.serves(i, k))
    }

    /// Eliminates remaining intermediates in ascending order and returns the program.
    #[must_use]
    pub fn finish(mut self) -> Program {
        for v in self.linear.intermediates() {
            self.eliminate_vertex(v);
        }
        let mut ends = Vec::new();
        for source in self.linear.sources() {
            ends.extend(self.successors[source.index()].iter().map(|(sink, label)| (*sink, source, *label)));
        }
        self.builder.finish(self.linear, &ends)
    }

    /// Adds a product to the edge from `i` to `k`; makes the edge if it does not exist.
    fn absorb(&mut self, i: VertexId, k: VertexId, product: &[LabelId]) {
        if !self.serves(i, k) {
            return;
        }
        if let Some(old) = self.remove(i, k) {
            self.builder.add(&[old]);
        }
        self.builder.add(product);
        let label = self.builder.close();
        let kind = self.builder.kind(label);
        let (size_i, size_k) = (self.size(i), self.size(k));
        self.out_degrees[i.index()] += Degree::of(kind, size_k);
        self.in_degrees[k.index()] += Degree::of(kind, size_i);
        if let Some(touched) = &mut self.touched {
            touched.extend([i, k]);
        }
        self.successors[i.index()].insert(k, label);
        self.predecessors[k.index()].insert(i);
    }

    fn remove(&mut self, i: VertexId, k: VertexId) -> Option<LabelId> {
        let label = self.successors[i.index()].remove(&k)?;
        self.predecessors[k.index()].remove(&i);
        let kind = self.builder.kind(label);
        let (size_i, size_k) = (self.size(i), self.size(k));
        self.out_degrees[i.index()] -= Degree::of(kind, size_k);
        self.in_degrees[k.index()] -= Degree::of(kind, size_i);
        if let Some(touched) = &mut self.touched {
            touched.extend([i, k]);
        }
        Some(label)
    }

    /// Removes vertices and edges that lie on no path once the edge from `i` to `j` is removed.
    fn clear_from(&mut self, i: VertexId, j: VertexId) {
        let mut outless = vec![i];
        while let Some(v) = outless.pop() {
            if self.successors[v.index()].is_empty() && !self.linear.is_source(v) {
                for l in self.predecessors(v).collect::<Vec<_>>() {
                    self.remove(l, v);
                    outless.push(l);
                }
            }
        }
        let mut inless = vec![j];
        while let Some(v) = inless.pop() {
            if self.predecessors[v.index()].is_empty() && !self.linear.is_sink(v) {
                for k in self.successors(v).collect::<Vec<_>>() {
                    self.remove(v, k);
                    inless.push(k);
                }
            }
        }
    }
}
