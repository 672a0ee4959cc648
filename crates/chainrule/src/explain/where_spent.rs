//! Distribution of the operations of straight-line code: by result, and by source line.

use crate::Function;
use crate::function::{Body, Port};
use chainrule_base::{Arena, FileId, Id, Sources, Span};
use chainrule_graph::{Graph, NodeId, Origin, OriginId, node_counts};
use chainrule_ops::Counts;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Source lines of the nodes of an unrolled function.
#[derive(Clone, Debug)]
pub(crate) struct Origins {
    /// Location on each line: the meaning of the graph's origins.
    lines: Arena<OriginId, Span>,
    sources: Arc<Sources>,
}

impl Origins {
    /// Enables tracking of origins in the graph; `spans` are the source locations of its nodes.
    pub(crate) fn track(graph: &mut Graph, spans: &[Option<Span>], sources: &Arc<Sources>) -> Self {
        let mut lines = Arena::default();
        let mut known: BTreeMap<(FileId, usize), OriginId> = BTreeMap::new();
        let mut of_span: FxHashMap<Span, OriginId> = FxHashMap::default();
        // Start of each line except the first: counting them for each location would be quadratic.
        let mut begins: BTreeMap<FileId, Vec<usize>> = BTreeMap::new();
        let begins_of = |file: FileId| sources.file(file).text.match_indices('\n').map(|(at, _)| at + 1).collect();
        let mut mark = |span: Span| {
            *of_span.entry(span).or_insert_with(|| {
                let begins = begins.entry(span.file).or_insert_with(|| begins_of(span.file));
                let line = 1 + begins.partition_point(|begin| *begin <= span.start as usize);
                *known.entry((span.file, line)).or_insert_with(|| lines.push(span))
            })
        };
        let is_operation = |node: usize| !graph.args(NodeId::new(node)).is_empty();
        let marks = spans.iter().enumerate().map(|(node, span)| match span {
            Some(span) if is_operation(node) => Origin::One(mark(*span)),
            _ => Origin::Nowhere,
        });
        let marks = marks.collect();
        graph.track_origins(marks);
        Self { lines, sources: sources.clone() }
    }
}

/// Operations of one result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultOperations {
    /// Name of the result.
    pub name: String,
    /// All operations that it needs.
    pub all: Counts,
    /// Operations that no other result needs.
    pub alone: Counts,
}

/// Operations of one source line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineOperations {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Text of the line.
    pub text: String,
    /// Operations that are first created for it; those shared with an earlier line are counted there.
    pub counts: Counts,
}

/// Operations by source line: together they are all operations.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OperationsByLine {
    /// Lines, by file, then by line.
    pub lines: Vec<LineOperations>,
    /// Operations of no line: created by optimisation from values of several lines, or from arguments alone.
    pub shared: Counts,
}

impl Function {
    /// Returns the operations by result. Linear in the graph for each result; empty for a function that keeps its
    /// loops.
    #[must_use]
    pub fn operations_by_result(&self) -> Vec<ResultOperations> {
        let Body::Scalar(body) = &self.decided_or_self().body else { return Vec::new() };
        let of = |(idx, port): (usize, &Port)| {
            let others = body.outputs.iter().enumerate().filter(|(other, _)| *other != idx);
            let others: Vec<NodeId> = others.flat_map(|(_, port)| port.nodes.iter().copied()).collect();
            let shared = body.graph.reachable(&others);
            let all = body.graph.reachable(&port.nodes);
            ResultOperations {
                name: port.name.to_string(),
                all: node_counts(&body.graph, all.iter()),
                alone: node_counts(&body.graph, all.iter().filter(|id| !shared.contains(*id))),
            }
        };
        body.outputs.iter().enumerate().map(of).collect()
    }

    /// Returns the operations by source line; `None` except for functions unrolled from F~, and their derivatives by
    /// [`Derivation::explain`](crate::Derivation::explain). In a derivative an operation belongs to the line that it
    /// differentiates, and operations shared by derivative and function to the line that computes them. Linear in the
    /// graph.
    #[must_use]
    pub fn operations_by_line(&self) -> Option<OperationsByLine> {
        let Body::Scalar(body) = &self.decided_or_self().body else { return None };
        let origins = body.origins.as_ref()?;
        let mut counts: Arena<OriginId, Counts> = Arena::filled(origins.lines.len(), Counts::default());
        let mut shared = Counts::default();
        for id in body.graph.reachable(&body.roots()).iter() {
            let operation = node_counts(&body.graph, [id]);
            match body.graph.origin(id) {
                Origin::One(line) => counts[line] += operation,
                Origin::Several | Origin::Nowhere => shared += operation,
            }
        }
        let line_operations = |(id, counts): (OriginId, &Counts)| {
            let span = origins.lines[id];
            let sources = &origins.sources;
            let (line, _) = sources.line_column(span);
            let text = sources.line(span.file, line).trim().to_owned();
            LineOperations { file: sources.file(span.file).name.clone(), line, text, counts: *counts }
        };
        let made = counts.iter().filter(|(_, counts)| **counts != Counts::default());
        let mut lines: Vec<LineOperations> = made.map(line_operations).collect();
        lines.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        Some(OperationsByLine { lines, shared })
    }
}
