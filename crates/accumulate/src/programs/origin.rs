//! Origins of the operations of a derivative: the place in the function that each operation belongs to.
//!
//! In: a program and a scalar graph that tracks origins. Out: the results in the graph, with marked operations.
//!
//! A label c(k,i) belongs to a path from i to k, an edge of the graph to the place that computes k. A product c(k,j)
//! c(j,i), with the addition that it enters, gets the origin of:
//!
//! | c(k,j) | c(j,i) | origin of | reason |
//! | --- | --- | --- | --- |
//! | edge | path | k | forward mode: the tangent of k from that of j |
//! | path | edge | j | reverse mode: the cotangent of i from that of j |
//! | edge | edge | k, but j if k is a result and i no argument | as in forward mode; a cotangent starts at a result |
//! | path | path | k, the end of the path | as in forward mode |
//!
//! Products of more factors get the origin of the edge that leads farthest, or of the next one.
//!
//! The graph may already have a node of an earlier program; it is marked again. Nodes older than the labels belong to
//! the function and keep their origins.

use crate::program::{Hiding, LabelId, Product};
use crate::{EdgeId, LinearGraph, Program, VertexId};
use chainrule_base::Id;
use chainrule_graph::{Graph, NodeId, NodeSet, Origin};
use chainrule_ops::{Algebra, Factor, Op};

/// End of a label: the last vertex of its paths, and the vertex's origin.
#[derive(Clone, Copy, PartialEq)]
struct End {
    vertex: Option<VertexId>,
    origin: Origin,
}

/// Returns the results of `program`. Linear in the program.
pub(crate) fn replay(
    program: &Program,
    linear: &LinearGraph,
    graph: &mut Graph,
    labels: &[(NodeId, Factor)],
) -> Vec<NodeId> {
    let edge_end = |e: &crate::Edge| End { vertex: Some(e.target), origin: e.origin };
    let mut ends: Vec<End> = linear.edges().map(|(_, edge)| edge_end(edge)).collect();
    for idx in 0..program.n_steps() {
        let farthest = program.step(idx).flat_map(|p| p.factors).map(|f| ends[f.index()]).max_by_key(|end| end.vertex);
        ends.push(farthest.unwrap_or(End { vertex: None, origin: Origin::Nowhere }));
    }
    let place = |product: &Product<'_>| {
        let is_edge = |label: &&LabelId| label.index() < program.n_edges();
        let of = |label: &LabelId| ends[label.index()];
        let mut edges: Vec<&LabelId> = product.factors.iter().filter(is_edge).collect();
        edges.sort_by_key(|label| of(label).vertex);
        if let [first, ..] = edges[..]
            && let [.., next, last] = edges[..]
        {
            let is_argument = linear.is_source(linear.edge(EdgeId::new(first.index())).source);
            let is_result = of(last).vertex.is_some_and(|v| linear.is_sink(v));
            return if is_result && !is_argument { of(next).origin } else { of(last).origin };
        }
        let one = edges.pop().map(of);
        one.or_else(|| product.factors.iter().map(of).max_by_key(|end| end.vertex))
            .map_or(Origin::Nowhere, |e| e.origin)
    };
    graph.next_origin_round();
    let mut marking = Marking { first_new: linear.n_nodes, marked: NodeSet::default(), origin: Origin::Nowhere, graph };
    let mut hiding = Hiding(&mut marking);
    let results = program.evaluate_observed(labels, &mut hiding, |hiding, product| hiding.0.origin = place(product));
    marking.graph.make_for(Origin::Nowhere);
    results.into_iter().map(|(node, _)| node).collect()
}

/// Marker of new nodes.
struct Marking<'a> {
    graph: &'a mut Graph,
    /// First node of the derivative; older nodes keep their origins.
    first_new: usize,
    /// Nodes marked by this program; the first maker of a node marks it.
    marked: NodeSet,
    origin: Origin,
}

impl Algebra for Marking<'_> {
    type Value = NodeId;

    fn constant(&mut self, c: f64) -> NodeId {
        self.graph.constant(c)
    }

    fn apply(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        self.graph.make_for(self.origin);
        let node = self.graph.apply(op, args);
        let is_operation = !self.graph.args(node).is_empty();
        if node.index() >= self.first_new && is_operation && self.origin != Origin::Nowhere && self.marked.insert(node)
        {
            self.graph.set_origin(node, self.origin);
        }
        node
    }
}
