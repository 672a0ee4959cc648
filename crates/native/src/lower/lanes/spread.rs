//! Lane broadcasts: values from outside a lane loop are broadcast before the loop, or before the loop directly around
//! it, once for all rounds and all lane loops in it.
//! rounds and for all loops in lanes in that.
//!
//! A call outside lanes only preserves as many lanes of a register as run there: if the outer loop has a call, the lane
//! loop broadcasts its values itself.

use crate::lower::homes::Homes;
use crate::lower::lanes::{LanePlan, shape};
use crate::lower::plan::{Home, Number};
use crate::lower::{Result, Writer, bug};
use chainrule_base::Id;
use chainrule_kernel::{Liveness, Reg};
use std::collections::BTreeMap;

/// Broadcast of a value from outside the loop.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Uniform {
    pub place: Number,
    /// Whether the outer loop broadcasts it, once for all rounds.
    pub early: bool,
}

/// A loop around a lane loop, which may broadcast values from outside both.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Around {
    pub begin: u32,
    pub end: u32,
}

/// Broadcasts for inner lane loops: values with their locations, by the opening event of the outer loop.
pub(in crate::lower) type Early = BTreeMap<u32, BTreeMap<Reg, Number>>;

impl LanePlan {
    /// Moves broadcasts of values from outside both loops to the outer loop, once for all its lane loops.
    pub(in crate::lower) fn spread_early(
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
    /// Broadcasts a value from outside a loop into its location.
    pub(in crate::lower) fn spread(&mut self, r: Reg, place: Number) -> Result<()> {
        let shape = shape(self.mode.level);
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
