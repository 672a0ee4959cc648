//! Edge elimination: an edge is taken out by connecting what is around it, until only edges from sources
//! to sinks remain. Finer than vertex elimination, and cheaper on some graphs.
//!
//! | Naumann 1999 | here |
//! | --- | --- |
//! | forward elimination of (i,j): c(j,l) += c(j,i) c(i,l) for all predecessors l of i (section 2.1) | [`Direction::Front`] |
//! | backward elimination of (i,j): c(k,i) += c(k,j) c(j,i) for all successors k of j (section 2.2) | [`Direction::Back`] |
//! | forward, backward Markowitz degree of an edge, OPS_F, OPS_B (section 2.5) | [`EdgeElimination::cost`] |
//! | elimination of v(j): all its out-edges forward, or all its in-edges backward | [`EdgeElimination::eliminate_vertex`] |
//!
//! In: a linearised graph, a history of steps. Out: a program. Greedy histories are made by
//! `edge_greedy.rs`, better ones by `edge_annealing.rs`.
//!
//! Correct in any order: each path through (i,j) goes on through the edge that replaces it and its
//! predecessor (front) or successor (back), and each such path is one product of that edge's label. An
//! intermediate that loses its last out-edge is on no path any more, and goes with its in-edges; so does
//! one that loses its last in-edge. Every step shortens a path or joins two, so there is an end (section 2.3).
//! Edges with equal ends are merged because they serve the same pairs, as in `vertex.rs`.

use crate::serving::Serving;
use crate::vertex::Degree;
use crate::{Budget, Builder, Counting, Label, LabelId, LinearGraph, Outcome, Program, StopReason, VertexId};
use chainrule_base::Id;
use std::collections::{BTreeMap, BTreeSet};

/// Which way an edge is eliminated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Forward: its source is an intermediate, whose predecessors are connected with its target.
    Front,
    /// Backward: its target is an intermediate, with whose successors its source is connected.
    Back,
}

/// One step of a history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// An edge, by its source and target, is eliminated this way.
    Edge(VertexId, VertexId, Direction),
    /// All out-edges of an intermediate are eliminated forward.
    Vertex(VertexId),
}

/// Eliminates in the order given. A step that cannot be done when its turn comes is passed over;
/// intermediates that are left follow in ascending order.
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

/// A graph of which some edges are eliminated.
#[derive(Clone, Debug)]
pub struct EdgeElimination<'a> {
    linear: &'a LinearGraph,
    builder: Builder,
    sizes: Option<&'a [u64]>,
    serving: Option<Serving>,
    /// By vertex, the edges out of it: target and label.
    successors: Vec<BTreeMap<VertexId, LabelId>>,
    /// By vertex, the sources of the edges into it.
    predecessors: Vec<BTreeSet<VertexId>>,
    in_degrees: Vec<Degree>,
    out_degrees: Vec<Degree>,
    /// The ends of edges that were made, changed or taken out, where somebody wants to know.
    touched: Option<Vec<VertexId>>,
}

impl<'a> EdgeElimination<'a> {
    /// Nothing eliminated yet. Parallel edges are added up.
    #[must_use]
    pub fn new(linear: &'a LinearGraph) -> Self {
        Self::start(linear, None)
    }

    /// The same for a vector graph; `sizes` are those of the vertices.
    ///
    /// # Panics
    /// When there are fewer sizes than vertices.
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
            serving: Serving::new(linear),
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

    /// The graph that it started from.
    #[must_use]
    pub fn linear(&self) -> &'a LinearGraph {
        self.linear
    }

    /// How many scalars `v` stands for: 1 but in vector graphs.
    #[must_use]
    pub fn size(&self, v: VertexId) -> u64 {
        self.sizes.map_or(1, |sizes| sizes[v.index()])
    }

    /// The vertices with an edge to `v`, ascending.
    pub fn predecessors(&self, v: VertexId) -> impl Iterator<Item = VertexId> {
        self.predecessors[v.index()].iter().copied()
    }

    /// The vertices with an edge from `v`, ascending.
    pub fn successors(&self, v: VertexId) -> impl Iterator<Item = VertexId> {
        self.successors[v.index()].keys().copied()
    }

    /// What is known of the label of the edge from `i` to `k`; `None` where there is no edge.
    #[must_use]
    pub fn label(&self, i: VertexId, k: VertexId) -> Option<Label> {
        self.successors.get(i.index())?.get(&k).map(|label| self.builder.kind(*label))
    }

    /// Whether there is an edge from `i` to `j` that can be eliminated this way.
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

    /// The Markowitz degree of an edge: how many multiplications its elimination takes. In a scalar graph,
    /// all of them counted, the predecessors of its source or the successors of its target; 0 where there is
    /// no edge.
    #[must_use]
    pub fn cost(&self, i: VertexId, j: VertexId, direction: Direction, counting: Counting) -> u64 {
        let Some(label) = self.label(i, j) else { return 0 };
        let (through, end, other_side) = match direction {
            Direction::Front => (i, j, self.in_degrees[i.index()]),
            Direction::Back => (j, i, self.out_degrees[j.index()]),
        };
        self.size(through) * Degree::of(label, self.size(end)).products(other_side, counting)
    }

    /// How many multiplications the elimination of a vertex takes.
    #[must_use]
    pub fn vertex_cost(&self, v: VertexId, counting: Counting) -> u64 {
        self.size(v) * self.in_degrees[v.index()].products(self.out_degrees[v.index()], counting)
    }

    /// How many products there are by now.
    #[must_use]
    pub fn n_products(&self) -> u64 {
        self.builder.n_products()
    }

    /// Takes a step; whether it could be done.
    pub fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Edge(i, j, direction) => self.eliminate(i, j, direction),
            Step::Vertex(v) => self.eliminate_vertex(v),
        }
    }

    /// Eliminates an edge; whether it could be done. O((Markowitz degree + edges that go) log degree).
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

    /// Eliminates an intermediate: all of its out-edges forward. Whether it was there.
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

    /// The ends of edges that were made, changed or taken out since the last call, ascending; the first call
    /// says that they are wanted.
    pub(crate) fn take_touched(&mut self) -> Vec<VertexId> {
        let mut touched = self.touched.replace(Vec::new()).unwrap_or_default();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Whether an edge from `i` to `k` would be kept, were it made.
    pub(crate) fn serves(&self, i: VertexId, k: VertexId) -> bool {
        self.serving.as_ref().is_none_or(|serving| serving.serves(i, k))
    }

    /// Ends the elimination; intermediates that are left are eliminated in ascending order.
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

    /// Adds a product to the edge from `i` to `k`, which is made if it is not there.
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

    /// Takes out what is on no path any more once the edge from `i` to `j` is gone.
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
