//! Vertex elimination: the edges around an intermediate are replaced by edges from its predecessors to
//! its successors, until only edges from sources to sinks remain.
//!
//! | Naumann 1999, section 2 | here |
//! | --- | --- |
//! | elimination of v(j): c(k,i) += c(k,j) c(j,i) for all predecessors i and successors k | [`Elimination::eliminate`] |
//! | fill-in | an edge that was not there |
//! | absorption | an edge that was there: its label takes one more product |
//! | Markowitz degree | [`Elimination::markowitz_degree`] |
//!
//! In: a linearised graph, an order of its intermediates. Out: a program.
//!
//! Correct in any order: every path through v is a path i -> v -> k continued, and each such pair of
//! edges gives its product to the one edge i -> k. Edges are merged by their ends here because every
//! edge serves every pair of a source before it and a sink behind it: there are no other sets yet.

use crate::{Budget, Builder, LabelId, LinearGraph, Outcome, Program, StopReason, VertexId};
use chainrule_base::Id;
use rustc_hash::FxHashMap;

/// Eliminates in the order given; intermediates that it leaves out follow in ascending order, and what
/// is no intermediate, or was there before, is passed over.
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

/// A graph of which some intermediates are eliminated.
///
/// Adjacency lists keep entries of eliminated vertices until half of a list is stale, so that an
/// elimination costs its own edges and not those of its neighbours.
#[derive(Clone, Debug)]
pub struct Elimination<'a> {
    linear: &'a LinearGraph,
    builder: Builder,
    /// The label of each edge by source and target. Looked up only, never iterated.
    labels: FxHashMap<(VertexId, VertexId), LabelId>,
    predecessors: Vec<Neighbours>,
    successors: Vec<Neighbours>,
    gone: Vec<bool>,
}

/// One side of a vertex.
#[derive(Clone, Debug, Default)]
struct Neighbours {
    /// In the order in which edges were made; may hold eliminated vertices.
    list: Vec<VertexId>,
    /// How many are not eliminated.
    degree: usize,
}

impl<'a> Elimination<'a> {
    /// Nothing eliminated yet. Parallel edges are added up.
    #[must_use]
    pub fn new(linear: &'a LinearGraph) -> Self {
        let n = linear.n_vertices();
        let mut elimination = Self {
            linear,
            builder: Builder::new(linear),
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

    /// Adds a product to the edge from `i` to `k`, which is made if it is not there.
    fn absorb(&mut self, i: VertexId, k: VertexId, product: &[LabelId]) {
        let old = self.labels.get(&(i, k)).copied();
        if let Some(old) = old {
            self.builder.add(&[old]);
        } else {
            for (neighbours, other) in [(&mut self.successors[i.index()], k), (&mut self.predecessors[k.index()], i)] {
                neighbours.list.push(other);
                neighbours.degree += 1;
            }
        }
        self.builder.add(product);
        let label = self.builder.close();
        self.labels.insert((i, k), label);
    }

    /// Whether `v` is an intermediate that is still there.
    #[must_use]
    pub fn can_eliminate(&self, v: VertexId) -> bool {
        v.index() < self.gone.len() && !self.linear.is_source(v) && !self.linear.is_sink(v) && !self.gone[v.index()]
    }

    /// How many products the elimination of `v` takes: predecessors times successors.
    #[must_use]
    pub fn markowitz_degree(&self, v: VertexId) -> u64 {
        self.predecessors[v.index()].degree as u64 * self.successors[v.index()].degree as u64
    }

    /// The vertices with an edge to `v`.
    pub fn predecessors(&self, v: VertexId) -> impl Iterator<Item = VertexId> {
        self.predecessors[v.index()].list.iter().copied().filter(|u| !self.gone[u.index()])
    }

    /// The vertices with an edge from `v`.
    pub fn successors(&self, v: VertexId) -> impl Iterator<Item = VertexId> {
        self.successors[v.index()].list.iter().copied().filter(|u| !self.gone[u.index()])
    }

    /// How many products there are by now.
    #[must_use]
    pub fn n_products(&self) -> u64 {
        self.builder.n_products()
    }

    /// Eliminates an intermediate; nothing is done where there is none. Returns its former predecessors and
    /// successors. Linear in its Markowitz degree, amortised.
    pub fn eliminate(&mut self, v: VertexId) -> (Vec<VertexId>, Vec<VertexId>) {
        if !self.can_eliminate(v) {
            return (Vec::new(), Vec::new());
        }
        let before: Vec<VertexId> = self.predecessors(v).collect();
        let behind: Vec<VertexId> = self.successors(v).collect();
        self.gone[v.index()] = true;
        let out_labels: Vec<LabelId> = behind.iter().map(|k| self.labels[&(v, *k)]).collect();
        for &i in &before {
            if let Some(in_label) = self.labels.remove(&(i, v)) {
                for (&k, &out_label) in behind.iter().zip(&out_labels) {
                    self.absorb(i, k, &[in_label, out_label]);
                }
            }
        }
        for &k in &behind {
            self.labels.remove(&(v, k));
            self.predecessors[k.index()].forget_one(&self.gone);
        }
        for &i in &before {
            self.successors[i.index()].forget_one(&self.gone);
        }
        self.predecessors[v.index()] = Neighbours::default();
        self.successors[v.index()] = Neighbours::default();
        (before, behind)
    }

    /// Ends the elimination; intermediates that are left are eliminated in ascending order.
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
    /// One of the list was eliminated.
    fn forget_one(&mut self, gone: &[bool]) {
        self.degree -= 1;
        if self.list.len() > 2 * self.degree + 8 {
            self.list.retain(|u| !gone[u.index()]);
        }
    }
}
