//! Linearisation: the linearised graph of given rows and columns of a scalar graph.
//!
//! In: a scalar graph, rows and columns. Out: a [`LinearGraph`] whose labels are nodes added to the same graph.
//!
//! Rows are roots or weighted sums of roots, columns are inputs or directions. One mechanism therefore yields the
//! Jacobian, its product with a vector from either side, and the gradient:
//!
//! | requested | rows | columns |
//! | --- | --- | --- |
//! | J | roots | inputs |
//! | J v | roots | one direction: a source with an edge labelled v(i) to each input |
//! | uT J | one weighted sum: a sink with an edge labelled u(i) from each root | inputs |
//!
//! A root that other nodes depend on, that is an input, or that is also weighted, is an intermediate with an edge of
//! label 1 to a sink of its own. The same holds for an input that occurs in a direction.
//!
//! If an argument occurs several times (`x*x`), its edges are merged into one edge whose label is the sum, here and
//! nowhere else. At this stage they serve the same (root, variable) pairs, and the sum costs an addition where separate
//! products would cost a multiplication more.
//!
//! Labels inside branches are masked (`branch_masks.rs`), and slopes of roots and exponentials that are
//! infinite where they are multiplied by zeros (`masked_slopes.rs`).

use crate::branch_masks;
use crate::linear::{Edge, Label, LinearGraph, VertexId};
use crate::masked_slopes::{self, Masked};
use chainrule_base::{Diagnostic, Id};
use chainrule_graph::{Graph, Node, NodeId, NodeSet, Origin, Semantics, partial};
use chainrule_ops::{Factor, Formula, Op, Slope, Zero};
use rustc_hash::FxHashMap;

/// A requested row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Row {
    /// A root.
    Root(NodeId),
    /// The sum of (root, weight). Weights are held fixed.
    Weighted(Vec<(NodeId, NodeId)>),
}

/// A requested column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Column {
    /// Derivative by an input.
    Input(NodeId),
    /// Derivative by t, where each (input, weight) moves the input to input + t * weight. Weights are held fixed.
    Direction(Vec<(NodeId, NodeId)>),
}

impl LinearGraph {
    /// Returns the linearised graph of `roots` by `inputs`. A root or an input may occur several times.
    ///
    /// # Errors
    /// Fails if one of `inputs` is not an input of the graph, or an operator on a path has no derivative.
    ///
    /// ```
    /// use chainrule_accumulate::{Budget, LinearGraph, reverse};
    /// use chainrule_graph::{Graph, Semantics};
    /// let mut g = Graph::new(Semantics::Algebraic);
    /// let (x, y) = (g.input("x"), g.input("y"));
    /// let xy = g.mul(x, y);
    /// let linear = LinearGraph::new(&mut g, &[xy], &[x, y])?;
    /// let program = reverse::run(&linear, &Budget::default()).program.unwrap();
    /// assert_eq!(program.replay(&linear, &mut g)?, [y, x]);
    /// # Ok::<(), chainrule_base::Diagnostic>(())
    /// ```
    pub fn new(graph: &mut Graph, roots: &[NodeId], inputs: &[NodeId]) -> Result<Self, Diagnostic> {
        let rows: Vec<Row> = roots.iter().map(|r| Row::Root(*r)).collect();
        let columns: Vec<Column> = inputs.iter().map(|x| Column::Input(*x)).collect();
        Self::build(graph, &rows, &columns)
    }

    /// Returns the linearised graph of any rows by any columns. Linear in the nodes below the rows.
    ///
    /// # Errors
    /// As [`LinearGraph::new`].
    pub fn build(graph: &mut Graph, rows: &[Row], columns: &[Column]) -> Result<Self, Diagnostic> {
        let roots: Vec<NodeId> = rows.iter().flat_map(Row::roots).collect();
        let inputs: Vec<NodeId> = columns.iter().flat_map(Column::inputs).collect();
        if let Some(x) = inputs.iter().find(|x| !matches!(graph.node(**x), Node::Input(_))) {
            return Err(Diagnostic::error(format!("cannot differentiate by {}", graph.short(*x)))
                .with_reason("it is not an input")
                .with_help(
                    "differentiate by inputs; make an input for what is to vary, and substitute it afterwards",
                ));
        }
        graph.settle_origins(&roots);
        let active = active(graph, &roots, &inputs);
        let mut arcs = partials(graph, &active)?;
        // Strict code executes the chain rule as the table states it.
        let masked = match graph.semantics() {
            Semantics::Algebraic => masked_slopes::mask(graph, &active, &mut arcs, &roots),
            Semantics::Strict => Masked::default(),
        };
        branch_masks::mask(graph, &active, &mut arcs, &roots);
        arcs.retain(|arc| graph.as_const(arc.2) != Some(0.0));
        let ends = Ends::new(graph, rows, columns, &active, &arcs);
        let mut linear = ends.assemble(graph, &active, &arcs, &masked);
        linear.n_nodes = graph.len();
        debug_assert_eq!(linear.verify(), Ok(()), "linearisation made a wrong graph:\n{}", linear.listing(graph));
        Ok(linear)
    }
}

impl Row {
    pub(crate) fn roots(&self) -> Vec<NodeId> {
        match self {
            Self::Root(root) => vec![*root],
            Self::Weighted(terms) => terms.iter().map(|(root, _)| *root).collect(),
        }
    }
}

impl Column {
    fn inputs(&self) -> Vec<NodeId> {
        match self {
            Self::Input(x) => vec![*x],
            Self::Direction(terms) => terms.iter().map(|(x, _)| *x).collect(),
        }
    }
}

/// An edge between nodes: argument, function, label.
pub(crate) type Arc = (NodeId, NodeId, NodeId);

/// Returns whether the operator's partial by this argument is zero: a condition, the argument of `floor`.
fn is_inert(graph: &Graph, id: NodeId, idx: usize) -> bool {
    matches!(graph.node(id), Node::Apply(op, _) if op.partials()[idx] == Formula::ZERO)
}

/// Returns the nodes on a path from an input to a root through arguments with a nonzero partial.
fn active(graph: &Graph, roots: &[NodeId], inputs: &[NodeId]) -> NodeSet {
    let inputs: NodeSet = inputs.iter().copied().collect();
    let mut varied = NodeSet::default();
    for id in graph.reachable(roots).iter() {
        let depends =
            graph.args(id).iter().enumerate().any(|(idx, a)| varied.contains(*a) && !is_inert(graph, id, idx));
        if depends || inputs.contains(id) {
            varied.insert(id);
        }
    }
    let mut active: NodeSet = roots.iter().copied().filter(|r| varied.contains(*r)).collect();
    let last = roots.iter().map(|r| r.index() + 1).max().unwrap_or(0);
    for id in (0..last).rev().map(NodeId::new) {
        if active.contains(id) {
            for (idx, arg) in graph.args(id).iter().enumerate() {
                if varied.contains(*arg) && !is_inert(graph, id, idx) {
                    active.insert(*arg);
                }
            }
        }
    }
    active
}

/// Returns the edges between active nodes, ascending by function.
fn partials(graph: &mut Graph, active: &NodeSet) -> Result<Vec<Arc>, Diagnostic> {
    let mut arcs: Vec<Arc> = Vec::new();
    for id in active.iter() {
        let args = graph.args(id).to_vec();
        let first = arcs.len();
        graph.make_for(graph.origin(id));
        for (idx, arg) in args.iter().enumerate() {
            if !active.contains(*arg) || is_inert(graph, id, idx) {
                continue;
            }
            let label = partial(graph, id, idx)?;
            match arcs[first..].iter_mut().find(|arc| arc.0 == *arg) {
                Some(arc) => arc.2 = graph.add(arc.2, label),
                None => arcs.push((*arg, id, label)),
            }
        }
    }
    graph.make_for(Origin::Nowhere);
    Ok(arcs)
}

/// Sources and sinks, with their nodes.
struct Ends<'a> {
    columns: &'a [Column],
    rows: &'a [Row],
    /// The source or sink of each column or row.
    source_of: Vec<usize>,
    sink_of: Vec<usize>,
    n_sources: usize,
    n_sinks: usize,
    /// Nodes that are sources or sinks themselves.
    source_nodes: FxHashMap<NodeId, usize>,
    sink_nodes: FxHashMap<NodeId, usize>,
}

impl<'a> Ends<'a> {
    fn new(graph: &Graph, rows: &'a [Row], columns: &'a [Column], active: &NodeSet, arcs: &[Arc]) -> Self {
        let moved: NodeSet =
            columns.iter().filter(|c| matches!(c, Column::Direction(_))).flat_map(Column::inputs).collect();
        let mut not_sink: NodeSet =
            rows.iter().filter(|r| matches!(r, Row::Weighted(_))).flat_map(Row::roots).collect();
        for arc in arcs {
            not_sink.insert(arc.0);
        }
        let (mut source_nodes, mut sink_nodes) = (FxHashMap::default(), FxHashMap::default());
        let (mut first_source, mut first_sink) = (FxHashMap::default(), FxHashMap::default());
        let (mut n_sources, mut n_sinks) = (0, 0);
        let mut source_of = Vec::with_capacity(columns.len());
        for column in columns {
            let fresh = n_sources;
            let source = match column {
                Column::Input(x) => *first_source.entry(*x).or_insert(fresh),
                Column::Direction(_) => fresh,
            };
            n_sources += usize::from(source == fresh);
            source_of.push(source);
            if let Column::Input(x) = column
                && active.contains(*x)
                && !moved.contains(*x)
            {
                source_nodes.insert(*x, source);
            }
        }
        let mut sink_of = Vec::with_capacity(rows.len());
        for row in rows {
            let fresh = n_sinks;
            let sink = match row {
                Row::Root(root) => *first_sink.entry(*root).or_insert(fresh),
                Row::Weighted(_) => fresh,
            };
            n_sinks += usize::from(sink == fresh);
            sink_of.push(sink);
            if let Row::Root(root) = row
                && active.contains(*root)
                && !not_sink.contains(*root)
                && !matches!(graph.node(*root), Node::Input(_))
            {
                sink_nodes.insert(*root, sink);
            }
        }
        Self { columns, rows, source_of, sink_of, n_sources, n_sinks, source_nodes, sink_nodes }
    }

    /// Returns the graph: its vertices are the sources, the active nodes that are neither source nor sink, the sinks.
    fn assemble(self, graph: &mut Graph, active: &NodeSet, arcs: &[Arc], masked: &Masked) -> LinearGraph {
        let n_intermediates = active.len() - self.source_nodes.len() - self.sink_nodes.len();
        let first_sink = self.n_sources + n_intermediates;
        let mut next = self.n_sources;
        let mut vertex = vec![None; active.iter().next_back().map_or(0, |id| id.index() + 1)];
        for id in active.iter() {
            let v = if let Some(source) = self.source_nodes.get(&id) {
                *source
            } else if let Some(sink) = self.sink_nodes.get(&id) {
                first_sink + sink
            } else {
                next += 1;
                next - 1
            };
            vertex[id.index()] = Some(v);
        }
        let vertex_of = |id: NodeId| vertex.get(id.index()).copied().flatten();
        let mut edges = Vec::with_capacity(arcs.len());
        let one = graph.constant(1.0);
        for (column, source) in self.columns.iter().zip(&self.source_of) {
            let terms = match column {
                Column::Input(x) => vec![(*x, one)],
                Column::Direction(terms) => summed(graph, terms),
            };
            for (x, weight) in terms {
                if let Some(v) = vertex_of(x).filter(|v| v != source) {
                    edges.extend(edge(graph, *source, v, (weight, chosen()), x));
                }
            }
        }
        for arc in arcs {
            if let (Some(source), Some(target)) = (vertex_of(arc.0), vertex_of(arc.1)) {
                edges.extend(edge(graph, source, target, (arc.2, factor(graph, arc.0, arc.1, masked)), arc.1));
            }
        }
        for (row, sink) in self.rows.iter().zip(&self.sink_of) {
            let terms = match row {
                Row::Root(root) => vec![(*root, one)],
                Row::Weighted(terms) => summed(graph, terms),
            };
            for (root, weight) in terms {
                if let Some(v) = vertex_of(root).filter(|v| *v != first_sink + sink) {
                    edges.extend(edge(graph, v, first_sink + sink, (weight, chosen()), root));
                }
            }
        }
        // A root or input that is requested twice repeats its edge.
        edges.sort_by_key(|e| (e.target, e.source));
        edges.dedup();
        LinearGraph::assemble(self.n_sources, n_intermediates, self.n_sinks, edges, self.sink_of, self.source_of)
    }
}

/// Returns the factor of a component of a direction, or of a weight of a root.
fn chosen() -> Factor {
    Factor::direction(Slope::Finite, false)
}

/// Returns the factor of the partial derivative of `function` by `arg`, the sum over all arguments that are `arg`.
/// Zeros of partial derivatives mask the infinities of all operators except exponentials, and roots that meet no zero:
/// for them, see `masked_slopes.rs` and `docs/decisions/0061`. A root of a product or a quotient has an infinite slope
/// wherever one of the partial derivatives of its argument is zero.
fn factor(graph: &Graph, arg: NodeId, function: NodeId, masked: &Masked) -> Factor {
    let args = graph.args(function);
    let Node::Apply(op, _) = graph.node(function) else {
        return Factor { zero: Zero::Somewhere, ..Factor::constant(1.0) };
    };
    let places = args.iter().enumerate().filter(|(_, a)| **a == arg);
    let partials = places.map(|(idx, _)| Factor::partial(op, idx, |k| graph.as_const(args[k])));
    let factor = partials.reduce(Factor::plus).unwrap_or(Factor::constant(1.0));
    let is_algebraic = graph.semantics() == Semantics::Algebraic;
    let slope = match factor.slope {
        _ if masked.slopes.contains(function) => Slope::Finite,
        Slope::Overflow if is_algebraic => Slope::Finite,
        Slope::Border
            if is_algebraic && op == Op::Sqrt && !is_composed(graph, arg) && !masked.products.contains(function) =>
        {
            Slope::Root
        }
        slope => slope,
    };
    Factor { slope, ..factor }
}

/// Returns whether `x` is a product or a quotient of nodes that are not constants.
fn is_composed(graph: &Graph, x: NodeId) -> bool {
    matches!(graph.node(x), Node::Apply(Op::Mul | Op::Div, [a, b, _])
        if graph.as_const(a).is_none() && graph.as_const(b).is_none())
}

/// Returns the edge with the kind of its label and the origin of `of`; `None` if the label is zero.
fn edge(graph: &Graph, source: usize, target: usize, label: (NodeId, Factor), of: NodeId) -> Option<Edge> {
    let (node, factor) = label;
    let (label, factor) = match graph.as_const(node) {
        Some(0.0) => return None,
        Some(1.0) => (Label::One, Factor::constant(1.0)),
        Some(-1.0) => (Label::MinusOne, Factor::constant(-1.0)),
        Some(c) => (Label::Const, Factor::constant(c)),
        None => (Label::Var, factor),
    };
    let (source, target, origin) = (VertexId::new(source), VertexId::new(target), graph.origin(of));
    Some(Edge { source, target, label, node: Some(node), factor, origin })
}

/// Returns the terms with the weights of equal nodes added up.
fn summed(graph: &mut Graph, terms: &[(NodeId, NodeId)]) -> Vec<(NodeId, NodeId)> {
    let mut sums: Vec<(NodeId, NodeId)> = Vec::with_capacity(terms.len());
    let mut sorted = terms.to_vec();
    sorted.sort_by_key(|(node, _)| *node);
    for (node, weight) in sorted {
        match sums.last_mut() {
            Some(last) if last.0 == node => last.1 = graph.add(last.1, weight),
            _ => sums.push((node, weight)),
        }
    }
    sums
}
