//! Where the operations of straight-line code are: by result, and by line of source.

use crate::Function;
use crate::function::{Body, Port};
use chainrule_base::{Id, Sources, Span};
use chainrule_graph::{NodeId, node_counts};
use chainrule_ops::Counts;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which lines of a program the nodes of an unrolled function come from.
#[derive(Clone, Debug)]
pub(crate) struct Origins {
    /// By node.
    pub(crate) spans: Vec<Option<Span>>,
    pub(crate) sources: Arc<Sources>,
}

/// What one result takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultOperations {
    /// The name of the result.
    pub name: String,
    /// All operations that it needs.
    pub all: Counts,
    /// Those that no other result needs.
    pub alone: Counts,
}

/// What one line of source takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineOperations {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What stands on it.
    pub text: String,
    /// The operations that were made for it first; what an earlier line has made already is counted there.
    pub counts: Counts,
}

impl Function {
    /// The operations by result. Linear in the graph for each result; empty for a function that keeps its loops.
    #[must_use]
    pub fn operations_by_result(&self) -> Vec<ResultOperations> {
        let Body::Scalar(body) = &self.body else { return Vec::new() };
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

    /// The operations by line of source, as the function was written: without optimisation. Empty but
    /// for functions unrolled from F~. Linear in the graph.
    #[must_use]
    pub fn operations_by_line(&self) -> Vec<LineOperations> {
        let Body::Scalar(body) = &self.body else { return Vec::new() };
        let Some(origins) = &body.origins else { return Vec::new() };
        let mut lines: BTreeMap<(usize, usize), LineOperations> = BTreeMap::new();
        for id in body.graph.reachable(&body.roots()).iter() {
            let Some(Some(span)) = origins.spans.get(id.index()) else { continue };
            let operation = node_counts(&body.graph, [id]);
            if operation == Counts::default() {
                continue;
            }
            let file = origins.sources.file(span.file);
            let (line, _) = origins.sources.line_column(*span);
            let entry = lines.entry((span.file.index(), line)).or_insert_with(|| LineOperations {
                file: file.name.clone(),
                line,
                text: file.text.lines().nth(line - 1).unwrap_or_default().trim().to_owned(),
                counts: Counts::default(),
            });
            entry.counts += operation;
        }
        lines.into_values().collect()
    }
}
