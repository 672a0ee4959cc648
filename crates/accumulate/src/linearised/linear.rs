//! The linearised graph: dependencies between vertices, with partial derivatives as edge labels.
//!
//! | Naumann 1999, section 1.4 | here |
//! | --- | --- |
//! | independent vertices V~ | sources |
//! | intermediate vertices V^ | intermediates |
//! | dependent vertices V' | sinks |
//! | local partial c(j,i) | label of the edge from i to j |
//!
//! In: edges with the kind of their label ([`LinearGraph::from_edges`]), or a scalar graph with the requested rows and
//! columns (`linearise.rs`). Out: flat arrays that every strategy reads.
//!
//! Invariants:
//! - Vertices are numbered sources first, then intermediates, then sinks. An edge leads from a smaller to a larger
//!   number. Sources have no in-edges, sinks no out-edges; no vertex is both.
//! - Every intermediate lies on a path from a source to a sink, and so does every edge. A source or a sink without
//!   edges stands for a column or row that is zero.
//! - Edges have identities: parallel edges are not merged.

use chainrule_base::{Arena, Diagnostic, Id, define_id};
use chainrule_graph::{NodeId, Origin};
use chainrule_ops::Factor;

define_id! {
    /// A vertex of a [`LinearGraph`].
    pub struct VertexId = "v";
    /// An edge of a [`LinearGraph`].
    pub struct EdgeId = "e";
}

/// Kind of a label: the knowledge about its value at every point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Label {
    /// Always 1.
    One,
    /// Always -1.
    MinusOne,
    /// A number that is the same at every point.
    Const,
    /// A value that depends on the point.
    Var,
}

/// An edge of a [`LinearGraph`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Argument of the differentiated operation.
    pub source: VertexId,
    /// Result of the differentiated operation.
    pub target: VertexId,
    /// Kind of the partial derivative.
    pub label: Label,
    /// Partial derivative in the scalar graph; `None` in a graph made by [`LinearGraph::from_edges`].
    pub node: Option<NodeId>,
    /// Where the partial derivative is infinite, and where it is zero.
    pub factor: Factor,
    /// Origin of the target. Operations on the label get this origin.
    pub origin: Origin,
}

/// The linearised graph. See the module's invariants.
#[derive(Clone, Debug)]
pub struct LinearGraph {
    n_vertices: usize,
    n_sources: usize,
    n_sinks: usize,
    /// Ascending by target; edges with equal targets in the order given.
    edges: Arena<EdgeId, Edge>,
    /// The in-edges of vertex v are edges `in_starts[v]..in_starts[v + 1]`.
    in_starts: Vec<usize>,
    /// The out-edges of vertex v are `out_edges[out_starts[v]..out_starts[v + 1]]`, ascending.
    out_starts: Vec<usize>,
    out_edges: Vec<EdgeId>,
    /// Sink of each requested row; several rows may share a sink.
    rows: Vec<VertexId>,
    /// Source of each requested column; several columns may share a source.
    columns: Vec<VertexId>,
    /// Requested (row, column) pairs, ascending and distinct; `None` for all.
    pairs: Option<Vec<(usize, usize)>>,
    /// Number of nodes of the scalar graph once all labels exist.
    pub(crate) n_nodes: usize,
}

impl LinearGraph {
    /// Returns a graph given by its edges. Vertices are numbered from 0: inputs, intermediates, outputs. An edge is
    /// (argument, function, label). Intermediates on no path from an input to an output are dropped with their edges.
    /// Rows are the outputs, columns the inputs.
    ///
    /// # Errors
    /// Fails if an edge ends at an input, starts at an output, does not lead to a larger number, or has an unknown
    /// vertex.
    ///
    /// ```
    /// use chainrule_accumulate::{Label, LinearGraph};
    /// let chain = LinearGraph::from_edges(1, 1, 1, &[(0, 1, Label::Var), (1, 2, Label::Var)])?;
    /// assert_eq!(chain.edges().count(), 2);
    /// # Ok::<(), chainrule_base::Diagnostic>(())
    /// ```
    pub fn from_edges(
        n_inputs: usize,
        n_intermediates: usize,
        n_outputs: usize,
        edges: &[(usize, usize, Label)],
    ) -> Result<Self, Diagnostic> {
        Self::from_edges_numbered(n_inputs, n_intermediates, n_outputs, edges).map(|(linear, _)| linear)
    }

    /// As [`Self::from_edges`], with the new id of each given vertex; `None` for dropped vertices.
    ///
    /// # Errors
    /// As [`Self::from_edges`].
    pub fn from_edges_numbered(
        n_inputs: usize,
        n_intermediates: usize,
        n_outputs: usize,
        edges: &[(usize, usize, Label)],
    ) -> Result<(Self, Vec<Option<VertexId>>), Diagnostic> {
        let first_output = n_inputs + n_intermediates;
        let n_vertices = first_output + n_outputs;
        for (idx, &(source, target, _)) in edges.iter().enumerate() {
            let reason = if source >= n_vertices || target >= n_vertices {
                format!("there are {n_vertices} vertices")
            } else if target < n_inputs {
                "an input depends on nothing".to_owned()
            } else if source >= first_output {
                "nothing depends on an output".to_owned()
            } else if source >= target {
                "an argument has a smaller number than what depends on it".to_owned()
            } else {
                continue;
            };
            return Err(Diagnostic::error(format!("edge {idx}, from {source} to {target}, cannot be"))
                .with_reason(reason)
                .with_help("number the vertices inputs, intermediates in topological order, outputs"));
        }
        let edges: Vec<Edge> = edges
            .iter()
            .map(|&(source, target, label)| Edge {
                source: VertexId::new(source),
                target: VertexId::new(target),
                label,
                node: None,
                factor: Factor::constant(1.0),
                origin: Origin::Nowhere,
            })
            .collect();
        let rows = (0..n_outputs).collect();
        let columns = (0..n_inputs).collect();
        Ok(Self::assemble_numbered(n_inputs, n_intermediates, n_outputs, edges, rows, columns))
    }

    /// Prunes and sorts. `rows` are counted from the first sink, `columns` from the first source.
    pub(crate) fn assemble(
        n_sources: usize,
        n_intermediates: usize,
        n_sinks: usize,
        edges: Vec<Edge>,
        rows: Vec<usize>,
        columns: Vec<usize>,
    ) -> Self {
        Self::assemble_numbered(n_sources, n_intermediates, n_sinks, edges, rows, columns).0
    }

    /// As [`Self::assemble`], with the new id of each given vertex; `None` for dropped vertices.
    fn assemble_numbered(
        n_sources: usize,
        n_intermediates: usize,
        n_sinks: usize,
        mut edges: Vec<Edge>,
        rows: Vec<usize>,
        columns: Vec<usize>,
    ) -> (Self, Vec<Option<VertexId>>) {
        let n_given = n_sources + n_intermediates + n_sinks;
        let first_sink = n_sources + n_intermediates;
        // Edges ascend by target, so one forward and one backward sweep find the edges on paths.
        edges.sort_by_key(|edge| edge.target);
        let mut from_source: Vec<bool> = (0..n_given).map(|v| v < n_sources).collect();
        for edge in &edges {
            from_source[edge.target.index()] |= from_source[edge.source.index()];
        }
        let mut to_sink: Vec<bool> = (0..n_given).map(|v| v >= first_sink).collect();
        for edge in edges.iter().rev() {
            to_sink[edge.source.index()] |= to_sink[edge.target.index()];
        }
        let mut renumbered = vec![0; n_given];
        let mut kept = vec![None; n_given];
        let mut n_vertices = 0;
        for v in 0..n_given {
            renumbered[v] = n_vertices;
            let end = v < n_sources || v >= first_sink;
            if end || (from_source[v] && to_sink[v]) {
                kept[v] = Some(VertexId::new(n_vertices));
                n_vertices += 1;
            }
        }
        edges.retain(|edge| from_source[edge.source.index()] && to_sink[edge.target.index()]);
        for edge in &mut edges {
            edge.source = VertexId::new(renumbered[edge.source.index()]);
            edge.target = VertexId::new(renumbered[edge.target.index()]);
        }
        let in_starts = starts(n_vertices, edges.iter().map(|edge| edge.target.index()));
        let out_starts = starts(n_vertices, edges.iter().map(|edge| edge.source.index()));
        let mut free = out_starts.clone();
        let mut out_edges = vec![EdgeId::new(0); edges.len()];
        for (idx, edge) in edges.iter().enumerate() {
            let slot = &mut free[edge.source.index()];
            out_edges[*slot] = EdgeId::new(idx);
            *slot += 1;
        }
        let linear = Self {
            n_vertices,
            n_sources,
            n_sinks,
            edges: edges.into_iter().collect(),
            in_starts,
            out_starts,
            out_edges,
            rows: rows.into_iter().map(|r| VertexId::new(n_vertices - n_sinks + r)).collect(),
            columns: columns.into_iter().map(VertexId::new).collect(),
            pairs: None,
            n_nodes: 0,
        };
        (linear, kept)
    }

    /// Checks the invariants of the module.
    ///
    /// # Errors
    /// Returns the first invariant that does not hold.
    pub(crate) fn verify(&self) -> Result<(), String> {
        let mut from_source: Vec<bool> = (0..self.n_vertices).map(|v| v < self.n_sources).collect();
        let mut to_sink: Vec<bool> = (0..self.n_vertices).map(|v| v >= self.n_vertices - self.n_sinks).collect();
        for (id, edge) in self.edges() {
            let Edge { source, target, .. } = *edge;
            if source >= target || self.is_sink(source) || self.is_source(target) {
                return Err(format!("{id} leads from {source} to {target}"));
            }
            let in_edges = self.in_starts[target.index()]..self.in_starts[target.index() + 1];
            if !in_edges.contains(&id.index()) || self.out_edges(source).binary_search(&id).is_err() {
                return Err(format!("{id} is not an edge of its vertices"));
            }
            if !from_source[source.index()] {
                return Err(format!("{id} is on no path from a source"));
            }
            from_source[target.index()] = true;
        }
        for (id, edge) in self.edges().rev() {
            if !to_sink[edge.target.index()] {
                return Err(format!("{id} is on no path to a sink"));
            }
            to_sink[edge.source.index()] = true;
        }
        let is_connected = |v: &VertexId| from_source[v.index()] && to_sink[v.index()];
        if let Some(v) = self.intermediates().find(|v| !is_connected(v)) {
            return Err(format!("{v} is on no path from a source to a sink"));
        }
        match (self.rows.iter().find(|v| !self.is_sink(**v)), self.columns.iter().find(|v| !self.is_source(**v))) {
            (Some(v), _) => Err(format!("a row is {v}, which is no sink")),
            (_, Some(v)) => Err(format!("a column is {v}, which is no source")),
            (None, None) => Ok(()),
        }
    }

    /// Restricts the requested pairs to these (row, column) pairs; nothing is computed for others.
    ///
    /// # Errors
    /// Fails if a row or column does not exist.
    pub fn ask_only(mut self, pairs: &[(usize, usize)]) -> Result<Self, Diagnostic> {
        if let Some((row, column)) = pairs.iter().find(|(r, c)| *r >= self.rows.len() || *c >= self.columns.len()) {
            return Err(Diagnostic::error(format!("there is no pair ({row}, {column})")).with_reason(format!(
                "there are {} rows and {} columns",
                self.rows.len(),
                self.columns.len()
            )));
        }
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        pairs.dedup();
        self.pairs = Some(pairs);
        Ok(self)
    }

    /// Returns the requested (row, column) pairs, ascending; `None` for all.
    #[must_use]
    pub fn pairs(&self) -> Option<&[(usize, usize)]> {
        self.pairs.as_deref()
    }

    /// Returns the sink of each row.
    #[must_use]
    pub fn rows(&self) -> &[VertexId] {
        &self.rows
    }

    /// Returns the source of each column.
    #[must_use]
    pub fn columns(&self) -> &[VertexId] {
        &self.columns
    }

    /// Returns the number of vertices.
    #[must_use]
    pub fn n_vertices(&self) -> usize {
        self.n_vertices
    }

    /// Returns the number of edges.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.edges.len()
    }

    /// Returns all sources, ascending.
    pub fn sources(&self) -> impl DoubleEndedIterator<Item = VertexId> + ExactSizeIterator + use<> {
        (0..self.n_sources).map(VertexId::new)
    }

    /// Returns all intermediates, ascending: a topological order.
    pub fn intermediates(&self) -> impl DoubleEndedIterator<Item = VertexId> + ExactSizeIterator + use<> {
        (self.n_sources..self.n_vertices - self.n_sinks).map(VertexId::new)
    }

    /// Returns all sinks, ascending.
    pub fn sinks(&self) -> impl DoubleEndedIterator<Item = VertexId> + ExactSizeIterator + use<> {
        (self.n_vertices - self.n_sinks..self.n_vertices).map(VertexId::new)
    }

    /// Returns whether `v` is a source.
    #[must_use]
    pub fn is_source(&self, v: VertexId) -> bool {
        v.index() < self.n_sources
    }

    /// Returns whether `v` is a sink.
    #[must_use]
    pub fn is_sink(&self, v: VertexId) -> bool {
        v.index() >= self.n_vertices - self.n_sinks
    }

    /// Returns all edges, ascending by target: a forward sweep visits every edge into a vertex before any edge out of
    /// it.
    pub fn edges(&self) -> impl DoubleEndedIterator<Item = (EdgeId, &Edge)> + ExactSizeIterator {
        self.edges.iter()
    }

    /// Returns the edge of this id.
    #[must_use]
    pub fn edge(&self, e: EdgeId) -> &Edge {
        &self.edges[e]
    }

    /// Returns the edges into `v`.
    pub fn in_edges(&self, v: VertexId) -> impl DoubleEndedIterator<Item = EdgeId> + ExactSizeIterator + use<> {
        (self.in_starts[v.index()]..self.in_starts[v.index() + 1]).map(EdgeId::new)
    }

    /// Returns the edges out of `v`.
    #[must_use]
    pub fn out_edges(&self, v: VertexId) -> &[EdgeId] {
        &self.out_edges[self.out_starts[v.index()]..self.out_starts[v.index() + 1]]
    }

    /// Returns the requested pairs of a sink and a source.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let pairs = self.pairs.as_ref().map(|pairs| {
            let mut ends: Vec<(VertexId, VertexId)> =
                pairs.iter().map(|&(r, c)| (self.rows[r], self.columns[c])).collect();
            ends.sort_unstable();
            ends.dedup();
            ends
        });
        Wanted { pairs }
    }
}

/// The requested pairs of a sink and a source.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Ascending; `None` for all.
    pairs: Option<Vec<(VertexId, VertexId)>>,
}

impl Wanted {
    /// Returns the sources requested with `sink`; `None` for all.
    #[must_use]
    pub fn sources(&self, sink: VertexId) -> Option<Vec<VertexId>> {
        let pairs = self.pairs.as_ref()?;
        let start = pairs.partition_point(|p| p.0 < sink);
        Some(pairs[start..].iter().take_while(|p| p.0 == sink).map(|p| p.1).collect())
    }

    /// Returns the sinks requested with each source; `None` for all.
    #[must_use]
    pub fn sinks_by_source(&self, n_sources: usize) -> Option<Vec<Vec<VertexId>>> {
        let pairs = self.pairs.as_ref()?;
        let mut sinks = vec![Vec::new(); n_sources];
        for (sink, source) in pairs {
            sinks[source.index()].push(*sink);
        }
        Some(sinks)
    }
}

/// Returns the start of each of `n` groups of sorted `keys`, with one more entry than groups.
fn starts(n: usize, keys: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0; n + 1];
    for key in keys {
        starts[key + 1] += 1;
    }
    for v in 0..n {
        starts[v + 1] += starts[v];
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_off_every_path_are_left_out() {
        let v = Label::Var;
        // 2 and 3 are intermediates; no output depends on 3, and none on input 1.
        let g = LinearGraph::from_edges(2, 2, 1, &[(0, 2, v), (2, 4, v), (1, 3, v), (0, 3, v)]).unwrap();
        assert_eq!((g.n_vertices(), g.n_edges()), (4, 2));
        assert_eq!(g.intermediates().collect::<Vec<_>>(), [VertexId::new(2)]);
        assert!(g.out_edges(VertexId::new(1)).is_empty());
        assert_eq!(g.verify(), Ok(()));
    }

    #[test]
    fn verification_finds_broken_invariants() {
        let v = Label::Var;
        let g = LinearGraph::from_edges(1, 2, 1, &[(0, 1, v), (0, 2, v), (1, 3, v), (2, 3, v)]).unwrap();
        assert_eq!(g.verify(), Ok(()));
        let broken = |change: fn(&mut LinearGraph)| {
            let mut g = g.clone();
            change(&mut g);
            g.verify().unwrap_err()
        };
        assert_eq!(broken(|g| g.edges[EdgeId::new(1)].source = VertexId::new(2)), "e1 leads from v2 to v2");
        assert_eq!(broken(|g| g.out_edges.swap(0, 2)), "e0 is not an edge of its vertices");
        assert_eq!(broken(|g| g.rows[0] = VertexId::new(1)), "a row is v1, which is no sink");
        assert_eq!(broken(|g| g.columns[0] = VertexId::new(1)), "a column is v1, which is no source");
    }

    #[test]
    fn wrong_edges_are_the_users_errors() {
        for edge in [(0, 0), (1, 0), (2, 1), (0, 9), (3, 1)] {
            let result = LinearGraph::from_edges(1, 1, 1, &[(edge.0, edge.1, Label::One)]);
            assert!(result.is_err(), "{edge:?}");
        }
    }
}
