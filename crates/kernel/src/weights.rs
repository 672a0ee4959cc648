//! Measured weights of the cost model, one table per machine class.
//!
//! `cargo xtask calibrate CLASS` measures the weights on the machine at hand and writes the table of its class; the
//! record of the run is in `benchmarks/records/<class>/weights`. [`WEIGHTS`] names the table that the compiler uses.
//! The table is fixed at compile time and not by the processor at hand, because the choice of loops determines the
//! order of sums, and results do not depend on the machine.
//!
//! To add a class: calibrate on it, and declare the new module here. The test `weights` checks every table of
//! [`CLASSES`].

mod amd_zen4;

use crate::kernel::Computed;
use chainrule_ops::{CostClass, Op};

/// Table that the cost model uses.
pub const WEIGHTS: &Weights = &amd_zen4::AMD_ZEN4;

/// All tables.
pub const CLASSES: &[&Weights] = &[WEIGHTS];

/// Times of work, relative to that of a fused multiply-add in the same form.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Weight {
    /// Without lanes.
    pub plain: f64,
    /// In the lanes of a block.
    pub lanes: f64,
}

/// Measured weights of a machine class.
#[derive(Debug)]
pub struct Weights {
    /// Name of the machine class, a folder of `benchmarks/records`.
    pub class: &'static str,
    /// Time of a fused multiply-add in the lanes of a block, in nanoseconds.
    pub unit_ns: f64,
    /// Time of a fused multiply-add without lanes, in units.
    pub plain_unit: f64,
    /// Caches: room in bytes, and time of a cache line from the next cache or memory, in units.
    pub levels: [(f64, f64); 3],
    /// A sum, product, selection or adjacent element: the mean of these.
    pub cheap: Weight,
    /// An element of each third number, in lanes, from the first-level cache.
    pub strided: f64,
    /// An element of each 40th number, in lanes, from the second-level cache.
    pub strided_far: f64,
    /// The element beside a strided one, in lanes.
    pub beside: f64,
    /// An index from memory, in lanes.
    pub index: f64,
    /// An element at such an index, in lanes.
    pub indexed: f64,
    /// Operators that [`is_costly`], in the order of their rows.
    pub operators: &'static [(Op, Weight)],
}

/// Returns whether an operator on doubles has a measured weight of its own. All other operators are cheap; composite
/// ones are replaced by their steps.
#[must_use]
pub fn is_costly(op: Op) -> bool {
    let row = op.row();
    let is_call = matches!(row.cost, CostClass::Call | CostClass::Div) || op == Op::Sign;
    is_call && row.steps.is_none() && op.is_numeric()
}

/// Weights of operators of [`WEIGHTS`], by row; `None` for cheap ones.
static BY_ROW: [Option<Weight>; Computed::END] = by_row(WEIGHTS.operators);

const fn by_row(operators: &[(Op, Weight)]) -> [Option<Weight>; Computed::END] {
    let mut table = [None; Computed::END];
    let mut at = 0;
    while at < operators.len() {
        let (op, weight) = operators[at];
        table[op as usize] = Some(weight);
        at += 1;
    }
    table
}

/// Returns the weight of `op` on doubles, if it is costly.
pub(crate) fn of(op: Op) -> Option<Weight> {
    BY_ROW[op as usize]
}
