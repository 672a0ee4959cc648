//! Cached addresses: spare general registers hold pointers of buffers and offsets of elements between accesses.
//!
//! A block accesses many elements that only differ by a constant, and the same buffers repeatedly. A part of an address
//! stays in a spare register until control flow joins, a call destroys it, or the register is needed; least recently
//! used parts are replaced.

use super::assign::survives_calls;
use crate::asm::Gpr;
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Reg};

/// Content of a spare register.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Part {
    /// The address of a buffer's first element.
    Pointer(BufferId),
    /// A number of elements, times the number of points.
    Offset(Poly<Reg>),
}

/// A spare register.
#[derive(Debug)]
struct Spare {
    register: Gpr,
    holds: Option<Part>,
    /// Instruction of the last use.
    asked: u32,
}

/// Spare registers of the current block.
#[derive(Default, Debug)]
pub(super) struct Spares {
    all: Vec<Spare>,
    /// Previous spare registers, while others are set.
    before: Vec<Spare>,
    /// Counter of instructions.
    now: u32,
}

impl Spares {
    /// Sets the spare registers; those that were spare before keep their contents.
    pub(super) fn set(&mut self, registers: impl Iterator<Item = Gpr>) {
        let Self { all, before, .. } = self;
        std::mem::swap(all, before);
        all.clear();
        all.extend(registers.map(|register| {
            let same = before.iter().position(|spare| spare.register == register);
            same.map_or(Spare { register, holds: None, asked: 0 }, |i| before.swap_remove(i))
        }));
    }

    /// Returns the number of spare registers.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Begins an instruction: the addresses of the previous one are not needed any more.
    #[inline]
    pub(super) fn step(&mut self) {
        self.now += 1;
    }

    /// Clears their contents.
    pub(super) fn clear(&mut self) {
        self.all.iter_mut().for_each(|spare| spare.holds = None);
    }

    /// Clears the contents that a call destroys.
    pub(super) fn after_call(&mut self) {
        self.all.iter_mut().filter(|spare| !survives_calls(spare.register)).for_each(|spare| spare.holds = None);
    }

    /// Returns the register that holds `part`.
    pub(super) fn find(&mut self, part: &Part) -> Option<Gpr> {
        let spare = self.all.iter_mut().find(|spare| spare.holds.as_ref() == Some(part))?;
        spare.asked = self.now;
        Some(spare.register)
    }

    /// Returns a register for `part`; `None` if the current instruction needs them all.
    pub(super) fn take(&mut self, part: Part) -> Option<Gpr> {
        let now = self.now;
        let key = |spare: &Spare| (spare.holds.is_some(), spare.asked);
        let usable = self.all.iter_mut().filter(|spare| spare.holds.is_none() || spare.asked != now);
        let spare = usable.min_by_key(|spare| key(spare))?;
        (spare.holds, spare.asked) = (Some(part), now);
        Some(spare.register)
    }
}
