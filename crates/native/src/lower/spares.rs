//! General registers that no value lives in: pointers of buffers and offsets of elements stay there from address to address.
//!
//! A block reads many elements that differ by a constant only, and of the same buffers again and again. What an address is
//! made of stays in a spare register until control may come from elsewhere, a call destroys it, or something else needs
//! the register; what was asked for last stays longest.

use super::assign::survives_calls;
use crate::asm::Gpr;
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Reg};

/// What a spare register holds.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Part {
    /// The address of a buffer's first element.
    Pointer(BufferId),
    /// So many elements, times the number of points.
    Offset(Poly<Reg>),
}

/// A spare register.
#[derive(Debug)]
struct Spare {
    register: Gpr,
    holds: Option<Part>,
    /// The instruction that asked last.
    asked: u32,
}

/// The spare registers of the current block.
#[derive(Default, Debug)]
pub(super) struct Spares {
    all: Vec<Spare>,
    /// Those of before, while others are set.
    before: Vec<Spare>,
    /// Counts instructions.
    now: u32,
}

impl Spares {
    /// These are the spare registers from now on; those that were so before keep what they hold.
    pub(super) fn set(&mut self, registers: impl Iterator<Item = Gpr>) {
        let Self { all, before, .. } = self;
        std::mem::swap(all, before);
        all.clear();
        all.extend(registers.map(|register| {
            let same = before.iter().position(|spare| spare.register == register);
            same.map_or(Spare { register, holds: None, asked: 0 }, |i| before.swap_remove(i))
        }));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// A new instruction begins: the addresses of the one before are not needed any more.
    #[inline]
    pub(super) fn step(&mut self) {
        self.now += 1;
    }

    /// Forgets what they hold.
    pub(super) fn clear(&mut self) {
        self.all.iter_mut().for_each(|spare| spare.holds = None);
    }

    /// Forgets what a call destroys.
    pub(super) fn after_call(&mut self) {
        self.all.iter_mut().filter(|spare| !survives_calls(spare.register)).for_each(|spare| spare.holds = None);
    }

    /// The register that holds `part`.
    pub(super) fn find(&mut self, part: &Part) -> Option<Gpr> {
        let spare = self.all.iter_mut().find(|spare| spare.holds.as_ref() == Some(part))?;
        spare.asked = self.now;
        Some(spare.register)
    }

    /// A register to put `part` into; none where the current instruction needs them all.
    pub(super) fn take(&mut self, part: Part) -> Option<Gpr> {
        let now = self.now;
        let key = |spare: &Spare| (spare.holds.is_some(), spare.asked);
        let usable = self.all.iter_mut().filter(|spare| spare.holds.is_none() || spare.asked != now);
        let spare = usable.min_by_key(|spare| key(spare))?;
        (spare.holds, spare.asked) = (Some(part), now);
        Some(spare.register)
    }
}
