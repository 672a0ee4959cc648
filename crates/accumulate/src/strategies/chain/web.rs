//! The graph during the replacement of chains and blocks: at most one edge between two vertices, with a label of the
//! program under construction.
//!
//! | the notes, section 3 | here |
//! | --- | --- |
//! | reference edge, substitute edge | an edge whose label is made by a step |
//! | direct simple chain (definition 3.2) | a vertex with one edge in and one out; removed by [`Web::reduce`] |
//! | simple block (definition 3.3) | edges with equal ends; added up by [`Web::add`] |
//!
//! Innermost chains and blocks are replaced first, so indirect ones become direct ones and are replaced too.

use crate::reachability::Reachability;
use crate::{Builder, LabelId, LinearGraph, StopReason, VertexId};
use chainrule_base::Id;
use std::collections::{BTreeMap, BTreeSet};

/// The graph. Sources, intermediates and sinks are those of the linearised graph.
#[derive(Clone, Debug)]
pub(super) struct Web<'a> {
    pub linear: &'a LinearGraph,
    reachability: Option<&'a Reachability>,
    /// Label of each out-edge, by vertex.
    behind: Vec<BTreeMap<VertexId, LabelId>>,
    /// Sources of the in-edges, by vertex.
    before: Vec<BTreeSet<VertexId>>,
}

impl<'a> Web<'a> {
    /// Returns a web without edges.
    pub fn empty(linear: &'a LinearGraph, reachability: Option<&'a Reachability>) -> Self {
        let n = linear.n_vertices();
        Self { linear, reachability, behind: vec![BTreeMap::new(); n], before: vec![BTreeSet::new(); n] }
    }

    /// Returns the web of all edges that serve a requested pair, with parallel ones added up.
    pub fn new(linear: &'a LinearGraph, reachability: Option<&'a Reachability>, builder: &mut Builder) -> Self {
        let mut web = Self::empty(linear, reachability);
        for (e, edge) in linear.edges() {
            let label = builder.edge(e);
            web.add(builder, edge.source, edge.target, label);
        }
        web
    }

    /// Returns the same vertices without edges.
    pub fn without_edges(&self) -> Self {
        Self::empty(self.linear, self.reachability)
    }

    /// Returns the edges as (source, target, label), ascending.
    pub fn edges(&self) -> impl Iterator<Item = (VertexId, VertexId, LabelId)> {
        let lists = self.behind.iter().enumerate();
        lists.flat_map(|(u, list)| list.iter().map(move |(v, label)| (VertexId::new(u), *v, *label)))
    }

    pub fn behind(&self, u: VertexId) -> impl DoubleEndedIterator<Item = (VertexId, LabelId)> {
        self.behind[u.index()].iter().map(|(v, label)| (*v, *label))
    }

    pub fn before(&self, v: VertexId) -> impl DoubleEndedIterator<Item = VertexId> {
        self.before[v.index()].iter().copied()
    }

    pub fn label(&self, u: VertexId, v: VertexId) -> Option<LabelId> {
        self.behind[u.index()].get(&v).copied()
    }

    /// Returns the in-degree and the out-degree.
    pub fn degrees(&self, v: VertexId) -> (usize, usize) {
        (self.before[v.index()].len(), self.behind[v.index()].len())
    }

    /// Returns whether an edge between these vertices would serve a requested pair.
    pub fn serves(&self, u: VertexId, v: VertexId) -> bool {
        self.reachability.is_none_or(|reachability| reachability.serves(u, v))
    }

    /// Adds a label to the edge from `u` to `v`; makes the edge if it does not exist.
    pub fn add(&mut self, builder: &mut Builder, u: VertexId, v: VertexId, label: LabelId) {
        if !self.serves(u, v) {
            return;
        }
        let sum = match self.label(u, v) {
            None => label,
            Some(old) => {
                builder.add(&[old]);
                builder.add(&[label]);
                builder.close()
            }
        };
        self.behind[u.index()].insert(v, sum);
        self.before[v.index()].insert(u);
    }

    /// Makes an edge, or replaces the label of one.
    pub fn set(&mut self, u: VertexId, v: VertexId, label: LabelId) {
        self.behind[u.index()].insert(v, label);
        self.before[v.index()].insert(u);
    }

    pub fn remove(&mut self, u: VertexId, v: VertexId) {
        self.behind[u.index()].remove(&v);
        self.before[v.index()].remove(&u);
    }

    fn is_intermediate(&self, v: VertexId) -> bool {
        !self.linear.is_source(v) && !self.linear.is_sink(v)
    }

    /// Eliminates a vertex; returns its former neighbours.
    pub fn eliminate(&mut self, builder: &mut Builder, v: VertexId) -> Vec<VertexId> {
        let before: Vec<VertexId> = self.before(v).collect();
        let behind: Vec<(VertexId, LabelId)> = self.behind(v).collect();
        for &u in &before {
            if let Some(first) = self.label(u, v) {
                for &(w, second) in &behind {
                    if self.serves(u, w) {
                        builder.add(&[first, second]);
                        let product = builder.close();
                        self.add(builder, u, w, product);
                    }
                }
            }
            self.remove(u, v);
        }
        for &(w, _) in &behind {
            self.remove(v, w);
        }
        before.into_iter().chain(behind.into_iter().map(|(w, _)| w)).collect()
    }

    /// Replaces simple chains and simple blocks by reference edges until there are none, and removes everything that
    /// lies on no path. Returns the number of removed vertices. O(n log n).
    ///
    /// A vertex with one edge in and one out has one path through it, whatever pairs it serves; so the product of the
    /// two is a factor of every derivative that contains one of them.
    pub fn reduce(&mut self, builder: &mut Builder) -> usize {
        let mut n_gone = 0;
        let mut queue: BTreeSet<VertexId> = self.linear.intermediates().collect();
        while let Some(v) = queue.pop_first() {
            let (n_before, n_behind) = self.degrees(v);
            let is_chain = n_before == 1 && n_behind == 1;
            let is_dead = (n_before == 0) != (n_behind == 0);
            if is_chain || is_dead {
                n_gone += 1;
                let around = self.eliminate(builder, v);
                queue.extend(around.into_iter().filter(|u| self.is_intermediate(*u)));
            }
        }
        n_gone
    }

    /// Eliminates all intermediates by lowest Markowitz degree, the highest number on ties.
    ///
    /// # Errors
    /// Fails if there are more products than `budget`.
    pub fn finish(&mut self, builder: &mut Builder, budget: u64) -> Result<(), StopReason> {
        let key = |web: &Self, v: VertexId| {
            let (n_before, n_behind) = web.degrees(v);
            (n_before * n_behind, std::cmp::Reverse(v))
        };
        let mut keys: Vec<_> = (0..self.linear.n_vertices()).map(|v| key(self, VertexId::new(v))).collect();
        let mut queue: BTreeSet<_> = self.linear.intermediates().map(|v| keys[v.index()]).collect();
        while let Some((_, std::cmp::Reverse(v))) = queue.pop_first() {
            for u in self.eliminate(builder, v) {
                if queue.remove(&keys[u.index()]) {
                    keys[u.index()] = key(self, u);
                    queue.insert(keys[u.index()]);
                }
            }
            if builder.n_products() > budget {
                return Err(StopReason::ProductBudget);
            }
        }
        Ok(())
    }

    /// Returns the edges from sources to sinks as (sink, source, label).
    pub fn ends(&self) -> Vec<(VertexId, VertexId, LabelId)> {
        let ends = self.edges().filter(|(u, v, _)| self.linear.is_source(*u) && self.linear.is_sink(*v));
        ends.map(|(u, v, label)| (v, u, label)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counting, Label, check};

    /// Figure 4.1 (a) of the notes: two simple blocks in a chain, expression 4.1, 5 multiplications.
    #[test]
    fn simple_blocks_in_a_chain_are_one_edge() {
        let v = Label::Var;
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)];
        let edges: Vec<_> = edges.iter().map(|(s, t)| (*s, *t, v)).collect();
        let linear = LinearGraph::from_edges(1, 5, 1, &edges).unwrap();
        let mut builder = Builder::new(&linear);
        let mut web = Web::new(&linear, None, &mut builder);
        assert_eq!(web.reduce(&mut builder), 5);
        assert_eq!(web.edges().count(), 1);
        let ends = web.ends();
        let program = builder.finish(&linear, &ends);
        assert!(check::program(&linear, &program, 1).agrees());
        let counts = program.count(Counting::Plain);
        assert_eq!((counts.mul, counts.add), (5, 2));
    }
}
