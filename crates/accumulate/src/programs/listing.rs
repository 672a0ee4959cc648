//! Listings of linearised graphs, a line for each edge, and of accumulation programs: a line for each step, and one for
//! each derivative.
//!
//! `e3` is the label of edge 3, as in the pictures of `draw.rs`; `t5` is the label of step 5; `d(1, 0)` is the
//! derivative of row 1 by column 0.

use crate::{LabelId, LinearGraph, Program, VertexId};
use chainrule_base::Id;
use chainrule_graph::Graph;
use std::fmt::{self, Write};

impl LinearGraph {
    /// Returns the vertices of the columns, a line for each edge with its label, `e3: v0 -> v2 = 2.0 * x`, and the
    /// vertices of the rows. `graph` is the scalar graph that was linearised.
    pub(crate) fn listing(&self, graph: &Graph) -> String {
        let list = |name: &str, vertices: &[VertexId]| {
            let vertices: Vec<String> = vertices.iter().map(|v| format!(" {v}")).collect();
            format!("{name}{}\n", vertices.concat())
        };
        let mut out = list("columns", self.columns());
        for (id, edge) in self.edges() {
            let label = edge.node.map_or_else(|| format!("{:?}", edge.label), |node| graph.short(node));
            let _ = writeln!(out, "{id}: {} -> {} = {label}", edge.source, edge.target);
        }
        out + &list("rows", self.rows())
    }
}

/// Prints the listing. Linear in the program.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |label: LabelId| match label.index().checked_sub(self.n_edges()) {
            None => format!("e{}", label.index()),
            Some(step) => format!("t{step}"),
        };
        for idx in 0..self.n_steps() {
            write!(f, "t{idx} =")?;
            for (place, product) in self.step(idx).enumerate() {
                f.write_str(match (place, product.negative) {
                    (0, false) => " ",
                    (0, true) => " -",
                    (_, false) => " + ",
                    (_, true) => " - ",
                })?;
                let factors: Vec<String> = product.factors.iter().map(|factor| name(*factor)).collect();
                f.write_str(if factors.is_empty() { "1" } else { "" })?;
                f.write_str(&factors.join("*"))?;
            }
            writeln!(f)?;
        }
        for entry in self.results() {
            writeln!(f, "d({}, {}) = {}", entry.row, entry.column, name(entry.label))?;
        }
        Ok(())
    }
}
