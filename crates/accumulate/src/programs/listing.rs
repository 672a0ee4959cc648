//! Listing of accumulation programs: a line for each step, and one for each derivative.
//!
//! `e3` is the label of edge 3, as in the pictures of `draw.rs`; `t5` is the label of step 5; `d(1, 0)` is the
//! derivative of row 1 by column 0.

use crate::{LabelId, Program};
use chainrule_base::Id;
use std::fmt;

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
