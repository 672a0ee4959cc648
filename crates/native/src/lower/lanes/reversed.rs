//! Elements that go backwards with the lanes, which are loaded and stored as vectors and reversed.

use crate::asm::{Alu, Half, Mem, Shape, Xmm};
use crate::lower::lanes::Active;
use crate::lower::plan::NEVER;
use crate::lower::{Result, SCRATCH, Writer, n_lanes};
use chainrule_base::Poly;
use chainrule_kernel::{LANES, Reg};

/// Selects the lanes of four in reverse.
const REVERSE: u8 = 0b00_01_10_11;

/// Returns whether each lane is at the element before the previous lane's.
pub(in crate::lower) fn is_reversed(slope: &Poly<Reg>) -> bool {
    slope.as_constant() == Some(-1)
}

impl Writer<'_> {
    /// Loads elements before the one at `mem` into `d`, that one into its first lane. Uses the scratch registers if
    /// some lanes are inactive.
    pub(in crate::lower) fn load_reversed(&mut self, mem: Mem, d: Xmm) -> Result<()> {
        let [rax, rcx, rdx] = SCRATCH;
        let shape = self.lanes.shape;
        let back = |mem: Mem| mem.plus(-8 * (n_lanes(shape) as i32 - 1)).ok_or_else(|| crate::lower::bug("too far"));
        let t = if shape == Shape::Eight { self.temporary()? } else { d };
        match self.lanes.plan.as_ref().map(|lane| lane.active) {
            Some(Active::All) | None => self.asm.load(shape, t, back(mem)?),
            Some(active) => {
                self.asm.lea(rdx, mem);
                // The mask of the last lanes.
                match active {
                    Active::Counted(Some(count)) => {
                        self.number_into(rax, count);
                        self.asm.mov_ri(rcx, LANES);
                        self.asm.alu_rr(Alu::Sub, rcx, rax);
                        self.asm.mov_ri(rax, -1);
                        self.asm.shift_left_by_rcx(rax);
                    }
                    _ => self.asm.mov_ri(rax, 0xff & (0xff << (LANES as usize - self.n_active()))),
                }
                let k = self.take_mask(None, NEVER)?;
                self.asm.mask_from(k, rax);
                self.asm.load_zeroing(shape, t, k, back(Mem::At { base: rdx, disp: 0 })?);
            }
        }
        self.reverse(d, t);
        if t != d {
            self.registers.give_back(t);
            self.registers.unlock(t);
        }
        Ok(())
    }

    /// Stores the lanes of `x`, all of which are active, to elements before the one at `mem`.
    pub(in crate::lower) fn store_reversed(&mut self, mem: Mem, x: Xmm) -> Result<()> {
        let shape = self.lanes.shape;
        let mem = mem.plus(-8 * (n_lanes(shape) as i32 - 1)).ok_or_else(|| crate::lower::bug("too far"))?;
        let (t, u) = (self.temporary()?, self.temporary()?);
        self.asm.mov(shape, t, x);
        self.reverse(u, t);
        self.asm.store(shape, mem, u);
        for x in [t, u] {
            self.registers.give_back(x);
            self.registers.unlock(x);
        }
        Ok(())
    }

    /// Writes the lanes of `t` to `d` in reverse; of eight lanes, `t` is another register and is overwritten.
    fn reverse(&mut self, d: Xmm, t: Xmm) {
        let shape = self.lanes.shape;
        if shape == Shape::Eight {
            self.asm.permute_fours(shape, t, t, REVERSE);
            self.asm.half(shape, d, t, Half::Upper);
            self.asm.insert_half(shape, d, d, t, Half::Upper);
        } else {
            self.asm.permute_fours(shape, d, t, REVERSE);
        }
    }
}
