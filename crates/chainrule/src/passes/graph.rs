//! Passes over scalar graphs: of functions whose loops are unrolled, and of derivatives of straight-line code.

use super::trace::{Pass, PassLevel};
use super::{Passes, Rewrite};
use crate::function::Body;
use crate::{Function, Result};
use chainrule_accumulate::GraphPasses;
use chainrule_graph::Semantics;

const UNROLL: &str = "unroll";
const ACCUMULATE: &str = "accumulate";
const NUMBER: &str = "value-numbering";
const FACTOR: &str = "factoring";

/// Returns the passes over scalar graphs, in order.
pub(super) fn passes() -> [Pass; 4] {
    let graph = |name, does, strict, optional| Pass { name, does, level: PassLevel::Graph, strict, optional };
    [
        graph(UNROLL, "loops are unrolled into a scalar graph, if straight-line code pays", true, false),
        graph(ACCUMULATE, "derivatives are accumulated on the graph, by the cheapest strategy", true, false),
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

impl Passes {
    /// Returns the straight-line code after each pass over graphs, in order, for `function` with the final code `form`;
    /// nothing if it keeps its loops. Derives the code again for each pass.
    pub(super) fn stages(&self, function: &Function, form: &Function) -> Result<Vec<(&'static str, Function)>> {
        let Body::Scalar(body) = &form.body else { return Ok(Vec::new()) };
        let mut stages = Vec::new();
        if matches!(function.body, Body::Array(_)) {
            stages.push((UNROLL, function.decided()?.clone()));
        }
        let Some(derivation) = &body.derivation else { return Ok(stages) };
        let with = |number: bool| {
            let passes = GraphPasses { number, factor: false };
            derivation.as_ref().clone().graph_passes(passes).function()
        };
        if derivation.differentiates() {
            stages.push((ACCUMULATE, with(false)?));
        }
        let GraphPasses { number, factor } = self.rewrite.graph_passes();
        if form.semantics() == Semantics::Strict {
            return Ok(stages);
        }
        if number {
            stages.push((NUMBER, with(true)?));
        }
        if factor {
            stages.push((FACTOR, form.clone()));
        }
        Ok(stages)
    }
}
