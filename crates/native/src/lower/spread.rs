//! What a loop in lanes has from outside, in all lanes: put there before the loop, or before the one right around it, once for all
//! rounds and for all loops in lanes in that.
//!
//! A call outside of lanes keeps only as many lanes of a register as run there: where the loop around calls something, the
//! loop in lanes spreads what it has by itself.

use super::homes::Homes;
use super::lanes::{LanePlan, shape};
use super::plan::{Home, Number};
use super::{Result, Writer, bug};
use chainrule_base::Id;
use chainrule_kernel::{Liveness, Reg};
use std::collections::BTreeMap;

/// A value from outside in all lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uniform {
    pub place: Number,
    /// Whether the loop around spreads it, once for all rounds.
    pub early: bool,
}

/// A loop around one that runs in lanes, which may spread what both have from outside.
#[derive(Clone, Copy)]
pub(super) struct Around {
    pub begin: u32,
    pub end: u32,
}

/// What loops spread for those in them that run in lanes: by the opening event, each value with its place.
pub(super) type Early = BTreeMap<u32, BTreeMap<Reg, Number>>;

impl LanePlan {
    /// Has the loop around spread what it has from outside too, each once for all loops in it.
    pub(super) fn spread_early(
        &mut self,
        outer: Around,
        lives: &Liveness,
        homes: &mut Homes<'_>,
        spread: &mut BTreeMap<Reg, Number>,
    ) {
        for (r, uniform) in self.uniform.iter_mut().filter(|(r, _)| lives.def[r.index()] < outer.begin) {
            let place = *spread.entry(*r).or_insert(uniform.place);
            homes.keep_over(place, uniform.place, outer.begin, outer.end);
            *uniform = Uniform { place, early: true };
        }
    }
}

impl Writer<'_> {
    /// Puts a value from outside of a loop into its place in lanes.
    pub(super) fn spread(&mut self, r: Reg, place: Number) -> Result<()> {
        let shape = shape(self.level);
        let (to, slot) = match self.plan.home(place) {
            Home::Xmm(x) => (x, None),
            Home::Slot(slot) => (self.temporary()?, Some(slot)),
            _ => return Err(bug("a value has no place in lanes")),
        };
        match self.plan.home(r.index()) {
            Home::Xmm(x) => self.asm.broadcast(shape, to, x),
            Home::Slot(slot) => {
                let mem = self.frame.slot(slot);
                self.asm.broadcast(shape, to, mem);
            }
            _ => return Err(bug("a value from outside has no place")),
        }
        if let Some(slot) = slot {
            let mem = self.frame.slot(slot);
            self.asm.store(shape, mem, to);
            self.registers.give_back(to);
            self.registers.unlock(to);
        }
        Ok(())
    }
}
