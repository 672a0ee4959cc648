//! Passes over scalar graphs: of functions whose loops are unrolled, and of derivatives of straight-line code.

use super::trace::{Pass, PassLevel};
use super::{Passes, Rewrite};
use crate::function::Body;
use crate::{Derived, Function, Result};
use chainrule_accumulate::GraphPasses;
use chainrule_graph::Semantics;

const UNROLL: &str = "unroll";
const LINEARISE: &str = "linearise";
const ACCUMULATE: &str = "accumulate";
const REPLAY: &str = "replay";
const NUMBER: &str = "value-numbering";
const FACTOR: &str = "factoring";

/// Returns the passes over scalar graphs, in order.
pub(super) fn passes() -> [Pass; 6] {
    let graph = |name, does, strict, optional| Pass { name, does, level: PassLevel::Graph, strict, optional };
    let at = |level, name, does| Pass { name, does, level, strict: true, optional: false };
    [
        graph(UNROLL, "loops are unrolled into a scalar graph, if straight-line code pays", true, false),
        at(PassLevel::Linear, LINEARISE, "operations become edges, labelled with their partial derivatives"),
        at(PassLevel::Accumulation, ACCUMULATE, "strategies compete for the cheapest program of sums of products"),
        graph(REPLAY, "the operations of accumulation programs are added to the graph", true, false),
        graph(NUMBER, "nodes with equal values become one", false, true),
        graph(FACTOR, "sums and products are factored, for fewer operations", false, true),
    ]
}

impl Rewrite {
    /// Returns the passes over the scalar graph of results that are not left out.
    pub(super) fn graph_passes(self) -> GraphPasses {
        let runs = |pass: &'static str| self != Self::Without(pass);
        GraphPasses { number: runs(NUMBER), factor: runs(FACTOR) }
    }
}

/// Program after a pass over scalar graphs.
pub(super) enum Step {
    Graph(Function),
    /// Listing of a linearised graph.
    Linear(String),
    /// Listing of an accumulation program.
    Accumulation(String),
}

impl Passes {
    /// Returns the straight-line code after each pass over graphs, in order, for `function` with the final code `form`;
    /// nothing if it keeps its loops. Derives the code again for each pass.
    pub(super) fn stages(&self, function: &Function, form: &Function) -> Result<Vec<(&'static str, Step)>> {
        let Body::Scalar(body) = &form.body else { return Ok(Vec::new()) };
        let mut stages = Vec::new();
        if matches!(function.body, Body::Array(_)) {
            stages.push((UNROLL, Step::Graph(function.decided()?.clone())));
        }
        let Some(derivation) = &body.derivation else { return Ok(stages) };
        let with = |number: bool| {
            let passes = GraphPasses { number, factor: false };
            derivation.as_ref().clone().graph_passes(passes).list_steps().explain()
        };
        if derivation.differentiates() {
            let Derived { function, reports, .. } = with(false)?;
            for steps in reports.into_iter().filter_map(|report| report.steps) {
                stages.push((LINEARISE, Step::Linear(steps.linearised)));
                stages.push((ACCUMULATE, Step::Accumulation(steps.program)));
            }
            stages.push((REPLAY, Step::Graph(function)));
        }
        let GraphPasses { number, factor } = self.rewrite.graph_passes();
        if form.semantics() == Semantics::Strict {
            return Ok(stages);
        }
        if number {
            stages.push((NUMBER, Step::Graph(with(true)?.function)));
        }
        if factor {
            stages.push((FACTOR, Step::Graph(form.clone())));
        }
        Ok(stages)
    }
}
