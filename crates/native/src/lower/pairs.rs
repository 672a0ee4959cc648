//! Store pairs: two adjacent numbers in one store.
//!
//! Processors store one vector or one number in each cycle; code with many results is bound by that.

use super::{Result, Writer};
use crate::asm::{Mem, Shape, Xmm};
use chainrule_kernel::{Class, Instr};

impl Writer<'_> {
    /// Emits the first two stores of `instrs`, if they are to adjacent elements of one buffer; returns their number, or
    /// 0.
    pub(super) fn pair(&mut self, instrs: &[Instr]) -> Result<usize> {
        let [Instr::Store { buffer, at, value }, Instr::Store { buffer: b, at: second, value: other }, ..] = instrs
        else {
            return Ok(0);
        };
        if b != buffer || self.lanes.shape != Shape::One || self.mode.points != Shape::One {
            return Ok(0);
        }
        let step = match (at.as_constant(), second.as_constant()) {
            (Some(first), Some(second)) => second.checked_sub(first),
            _ => second.sub(at).as_constant(),
        };
        let is_real = |r| self.kernel.regs[r] == Class::Real;
        let stays = [at, second].into_iter().any(|at| self.accumulator(*buffer, at).is_some());
        let (Some(step @ (1 | -1)), true, false) = (step, is_real(*value) && is_real(*other), stays) else {
            return Ok(0);
        };
        let first_next = self.next_use();
        let x = self.in_register(*value, first_next)?;
        let second_next = self.next_use();
        let y = self.in_register(*other, second_next)?;
        let both = self.temporary()?;
        let ((low, first), (high, last)) = if step == 1 { ((x, at), (y, second)) } else { ((y, second), (x, at)) };
        // Checks both ends.
        let _ = self.address(*buffer, last)?;
        let mem = self.address(*buffer, first)?;
        self.store_both(mem, both, low, high);
        self.release(*value, first_next);
        self.release(*other, second_next);
        Ok(2)
    }

    /// Stores `low` and `high` through the [temporary](Self::temporary) `both`, which is released.
    pub(super) fn store_both(&mut self, mem: Mem, both: Xmm, low: Xmm, high: Xmm) {
        self.asm.unpack_low(Shape::One, both, low, high);
        self.asm.store_pair(mem, both);
        self.registers.give_back(both);
        self.registers.unlock(both);
    }
}
