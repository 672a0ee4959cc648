//! State of the emission of code, by what it describes.

use super::masks::Masks;
use super::plan::Number;
use super::pointers::Pointers;
use super::rows::Rows;
use super::spares::Spares;
use super::{Compared, Literal, OpenLoop, Origin, Stub, lanes};
use crate::asm::{Gpr, Label, Shape, Xmm};
use crate::level::Level;
use chainrule_base::Poly;
use chainrule_kernel::{Kernel, Ranges, Reg};
use chainrule_runtime::{InRange, Site};
use std::collections::HashMap;

/// Decisions that hold for all of the code.
pub(super) struct Mode {
    pub level: Level,
    /// Number of points.
    pub points: Shape,
    /// Promise that no address needs a check.
    pub in_range: Option<InRange>,
    /// Callee-saved registers in use, in the order in which they are pushed.
    pub saved: Vec<Gpr>,
    /// Whether no value outlives its block, and all are scalars.
    pub is_plain: bool,
    /// As `is_plain`, with a single block, so that all addresses are known.
    pub is_line: bool,
}

/// Next uses of operands that remain to be read ([`super::plan::Plan::next`]).
pub(super) struct NextUses<'k> {
    pub next: &'k [u32],
    /// Number of remaining entries.
    pub left: usize,
}

/// Sources of values that are recomputed or loaded instead of kept in registers.
pub(super) struct Sources<'k> {
    /// By the number of a [`super::registers::Copy::Constant`].
    pub literals: Vec<Literal>,
    /// By the number of a [`super::registers::Copy::Load`].
    pub origins: Vec<Origin<'k>>,
}

/// Parts of addresses in general registers.
pub(super) struct Addresses {
    pub pointers: Pointers,
    pub spares: Spares,
    /// Event since which spare registers keep their contents.
    pub spares_since: Option<u32>,
}

/// Knowledge about integers.
pub(super) struct Integers {
    pub ranges: Ranges,
    /// Integers with known values.
    pub known: HashMap<Reg, i64>,
    /// Integer that is computed.
    pub computing: Option<Reg>,
    /// Parts of addresses whose words have been computed in this block.
    pub varying_parts: Vec<Poly<Reg>>,
    /// A number that is replaced by another one when it is read.
    pub instead: Option<(Number, Number)>,
}

impl Integers {
    pub fn new(kernel: &Kernel) -> Self {
        let (known, varying_parts) = (HashMap::new(), Vec::new());
        Self { ranges: Ranges::new(kernel), known, computing: None, varying_parts, instead: None }
    }
}

/// Truth values in vectors.
#[derive(Default)]
pub(super) struct Truths {
    /// Truth values in mask registers.
    pub masks: Masks,
    /// Truth values that the current instruction reads, with their next uses.
    pub next: Vec<(Reg, u32)>,
    pub temporaries: Vec<Xmm>,
}

/// Width of the emitted code.
pub(super) struct Lanes<'k> {
    /// As [`Mode::points`], except in lane loops of one point.
    pub shape: Shape,
    /// Plan of the current lane loop.
    pub plan: Option<&'k lanes::LanePlan>,
    pub rows: Rows<'k>,
    /// Lane for which scalar code computes integers.
    pub current: u32,
}

/// Open loops and branches.
#[derive(Default)]
pub(super) struct Control<'k> {
    pub loops: Vec<OpenLoop<'k>>,
    pub branches: Vec<Label>,
    /// Condition of the following branch.
    pub compared: Option<Compared>,
}

/// Values across calls.
#[derive(Default)]
pub(super) struct Calls {
    /// Slots of vector registers of globals during calls.
    pub pinned_slots: [Option<u32>; 32],
    /// Vector registers that are live across the current call, one bit each.
    pub live: u32,
    /// Those whose values are already in memory at the next call of this block.
    pub in_memory: u32,
    /// Slots for arguments of calls: the first, and their number.
    pub argument_slots: Option<(u32, u32)>,
    /// A slot for a sine and one for a cosine.
    pub sin_cos_slots: Option<u32>,
    /// Event whose result a previous call has left in a slot.
    pub pending: Option<(u32, u32)>,
}

/// Failures that the code reports, and one of the emission itself.
#[derive(Default)]
pub(super) struct Failures<'k> {
    pub sites: Vec<Site>,
    pub stubs: Vec<Stub<'k>>,
    /// Stubs of failures without numbers, shared.
    pub shared: HashMap<Site, Label>,
    /// A bug that was found during emission.
    pub fault: Option<&'static str>,
}
