//! Passes over scalar graphs: of functions whose loops are unrolled, and of derivatives of straight-line code.

use super::trace::{Pass, PassLevel, Program, Watch};
use super::{Passes, Rewrite};
use crate::function::Body;
use crate::{Derived, Function, Result};
use chainrule_accumulate::GraphPasses;
use chainrule_accumulate::passes::{ACCUMULATE, FACTOR, LINEARISE, NUMBER, REPLAY};
use chainrule_graph::Semantics;

/// Name of the pass that unrolls loops.
pub(crate) const UNROLL: &str = "unroll";

/// Returns the passes over scalar graphs, in order.
pub(super) fn passes() -> [Pass; 6] {
    let graph = |name, does, runs_under, optional| Pass { name, does, level: PassLevel::Graph, runs_under, optional };
    let at = |level, name, does| Pass { name, does, level, runs_under: Semantics::Strict, optional: false };
    [
        graph(UNROLL, "loops are unrolled into a scalar graph, if straight-line code pays", Semantics::Strict, false),
        at(PassLevel::Linear, LINEARISE, "operations become edges, labelled with their partial derivatives"),
        at(PassLevel::Accumulation, ACCUMULATE, "strategies compete for the cheapest program of sums of products"),
        graph(REPLAY, "the operations of accumulation programs are added to the graph", Semantics::Strict, false),
        graph(NUMBER, "nodes with equal values become one", Semantics::Algebraic, true),
        graph(FACTOR, "sums and products are factored, for fewer operations", Semantics::Algebraic, true),
    ]
}

impl Rewrite {
    /// Returns the passes over the scalar graph of results that are not left out.
    pub(super) fn graph_passes(self) -> GraphPasses {
        let runs = |pass: &'static str| self != Self::Without(pass);
        GraphPasses { number: runs(NUMBER), factor: runs(FACTOR) }
    }
}

impl Passes {
    /// Shows `watch` the straight-line code after each pass over graphs, in order, for `function` with the final code
    /// `form`; nothing if it keeps its loops. Derives the code again for each pass.
    pub(super) fn watch_graphs(&self, function: &Function, form: &Function, watch: &mut Watch<'_>) -> Result<()> {
        let Body::Scalar(body) = &form.body else { return Ok(()) };
        if matches!(function.body, Body::Array(_))
            && let Body::Scalar(body) = &function.decided()?.body
        {
            watch.see(UNROLL, Program::Graph(body));
        }
        if watch.is_at_end() {
            return Ok(());
        }
        let Some(derivation) = &body.derivation else { return Ok(()) };
        let with = |number: bool| {
            let passes = GraphPasses { number, factor: false };
            derivation.as_ref().clone().graph_passes(passes).list_steps().explain()
        };
        if derivation.differentiates() {
            let Derived { function, reports, .. } = with(false)?;
            for steps in reports.into_iter().filter_map(|report| report.steps) {
                watch.see(LINEARISE, Program::Linear(&steps.linearised));
                watch.see(ACCUMULATE, Program::Accumulation(&steps.program));
            }
            if let Body::Scalar(body) = &function.body {
                watch.see(REPLAY, Program::Graph(body));
            }
        }
        let GraphPasses { number, factor } = self.rewrite.graph_passes();
        if form.semantics() == Semantics::Strict {
            return Ok(());
        }
        if number
            && !watch.is_at_end()
            && let Body::Scalar(body) = &with(true)?.function.body
        {
            watch.see(NUMBER, Program::Graph(body));
        }
        if factor && !watch.is_at_end() {
            watch.see(FACTOR, Program::Graph(body));
        }
        Ok(())
    }
}
