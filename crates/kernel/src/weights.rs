//! Measured weights of the cost model, one table per machine class.
//!
//! `cargo xtask calibrate CLASS` measures the weights on the machine at hand and writes the table of its class; the
//! record of the run is in `benchmarks/records/<class>/weights`.
//!
//! Choices are made by one table, [`WEIGHTS`], on all machines, because the choice of loops determines the order of
//! sums, and results do not depend on the machine. Predictions are made by that of the machine at hand,
//! [`of_machine`].
//!
//! To add a class: calibrate on it, and declare the new module here. The test `weights` checks every table of
//! [`CLASSES`].

mod amd_zen4;
mod amd_zen5;

use crate::kernel::Computed;
use chainrule_ops::{CostClass, Op};
use std::sync::LazyLock;

/// Table that choices are made by.
pub const WEIGHTS: &Weights = &amd_zen4::AMD_ZEN4;

/// All tables.
pub const CLASSES: &[&Weights] = &[WEIGHTS, &amd_zen5::AMD_ZEN5];

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
    /// Manufacturer and family of its processors, by CPUID.
    pub processor: (&'static str, u8),
    /// Time of a fused multiply-add in the lanes of a block, in nanoseconds.
    pub unit_ns: f64,
    /// Time of a fused multiply-add without lanes, in units.
    pub plain_unit: f64,
    /// Times that predictions use in addition.
    pub pipeline: Pipeline,
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
    /// A check of such an index, in lanes.
    pub check: f64,
    /// An element at such an index, in lanes.
    pub indexed: f64,
    /// Operators that [`is_costly`].
    pub operators: Operators,
}

/// Times of a processor that does several things at once, in units.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// A cycle of the processor.
    pub cycle: f64,
    /// Latency of a sum.
    pub sum_latency: f64,
    /// An adjacent element that is loaded where nothing else limits, with lanes or without.
    pub load: Weight,
    /// An adjacent element that is stored.
    pub store: Weight,
    /// An element that all lanes share.
    pub broadcast: f64,
}

/// Weights of operators.
#[derive(Debug)]
pub struct Operators([Option<Weight>; Computed::END]);

impl Operators {
    /// Returns a table of these weights.
    const fn new(operators: &[(Op, Weight)]) -> Self {
        let mut table = [None; Computed::END];
        let mut at = 0;
        while at < operators.len() {
            let (op, weight) = operators[at];
            table[op as usize] = Some(weight);
            at += 1;
        }
        Self(table)
    }

    /// Returns the weight of `op` on doubles, if it is costly.
    #[must_use]
    pub fn of(&self, op: Op) -> Option<Weight> {
        self.0[op as usize]
    }
}

/// Returns the table of the machine at hand; [`WEIGHTS`] if its class has none.
#[must_use]
pub fn of_machine() -> &'static Weights {
    static OF_MACHINE: LazyLock<&Weights> = LazyLock::new(|| {
        let Some((manufacturer, family)) = processor() else { return WEIGHTS };
        let is_here = |weights: &&&Weights| weights.processor == (manufacturer.as_str(), family);
        CLASSES.iter().find(is_here).unwrap_or(&WEIGHTS)
    });
    *OF_MACHINE
}

/// Returns the manufacturer and the family of the processor at hand, by CPUID.
#[must_use]
pub fn processor() -> Option<(String, u8)> {
    #[cfg(target_arch = "x86_64")]
    {
        let cpuid = raw_cpuid::CpuId::new();
        Some((cpuid.get_vendor_info()?.as_str().to_owned(), cpuid.get_feature_info()?.family_id()))
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Returns whether an operator on doubles has a measured weight of its own. All other operators are cheap; composite
/// ones are replaced by their steps.
#[must_use]
pub fn is_costly(op: Op) -> bool {
    let row = op.row();
    let is_call = matches!(row.cost, CostClass::Call | CostClass::Div) || op == Op::Sign;
    is_call && row.steps.is_none() && op.is_numeric()
}
