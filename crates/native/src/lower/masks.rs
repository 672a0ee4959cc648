//! Truth values in the mask registers of AVX-512.
//!
//! A truth value is defined in a mask register. If those run out, or a call destroys them, it moves to a vector, with
//! all bits of a lane or none, and is a value like others; where it is used again, it moves back.

use super::plan::{Home, Kind, NEVER};
use super::registers::Copy;
use super::{Result, SCRATCH, Writer};

use crate::asm::{Alu, Logic, Mask, MaskLogic, Shape};
use chainrule_base::Id;
use chainrule_kernel::Reg;

/// `k0` means "no mask" for optional masks, so it is not used.
const FIRST: usize = 1;

/// Contents of the mask registers.
#[derive(Default)]
pub(super) struct Masks {
    held: [Option<Reg>; 8],
    next: [u32; 8],
    locked: u8,
    /// Registers that are dead after the current instruction.
    ended: u8,
    /// A register that is not allocated.
    kept: Option<Mask>,
}

impl Masks {
    fn find(&self, r: Reg) -> Option<usize> {
        (FIRST..8).find(|k| self.held[*k] == Some(r))
    }

    /// Ends an instruction.
    #[inline]
    pub(super) fn end(&mut self) {
        if self.locked | self.ended != 0 {
            self.locked = 0;
            for k in FIRST..8 {
                if self.ended & (1 << k) != 0 {
                    self.held[k] = None;
                }
            }
            self.ended = 0;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self { kept: self.kept, ..Self::default() };
    }

    /// Reserves this register; no register holds a value.
    pub(super) fn keep(&mut self, kept: Option<Mask>) {
        *self = Self { kept, ..Self::default() };
    }

    fn is_usable(&self, k: usize) -> bool {
        self.locked & (1 << k) == 0 && self.kept != Some(Mask(k as u8))
    }
}

pub(super) fn mask_logic(logic: Logic) -> MaskLogic {
    match logic {
        Logic::And => MaskLogic::And,
        Logic::AndNot => MaskLogic::AndNot,
        Logic::Or => MaskLogic::Or,
        Logic::Xor => MaskLogic::Xor,
    }
}

impl Writer<'_> {
    /// Allocates a mask register, for `r` if it has a name.
    pub(super) fn take_mask(&mut self, r: Option<Reg>, next: u32) -> Result<Mask> {
        let free = (FIRST..8).find(|k| self.truths.masks.is_usable(*k) && self.truths.masks.held[*k].is_none());
        let k = match free {
            Some(k) => k,
            None => {
                let victim =
                    (FIRST..8).filter(|k| self.truths.masks.is_usable(*k)).max_by_key(|k| self.truths.masks.next[*k]);
                let victim = victim.ok_or_else(super::no_register)?;
                self.save_mask(victim)?;
                victim
            }
        };
        self.truths.masks.held[k] = r;
        self.truths.masks.next[k] = next;
        self.truths.masks.locked |= 1 << k;
        if r.is_none() {
            self.truths.masks.ended |= 1 << k;
        }
        Ok(Mask(k as u8))
    }

    /// Ensures that the value of a mask register is also in a vector.
    fn save_mask(&mut self, k: usize) -> Result<()> {
        let Some(r) = self.truths.masks.held[k] else { return Ok(()) };
        if self.registers.register(r).is_none() && self.registers.copy(r) == Copy::None {
            let x = self.take(r, self.truths.masks.next[k])?;
            self.asm.mask_spread(self.lanes.shape, x, Mask(k as u8));
            self.registers.unlock(x);
        }
        Ok(())
    }

    /// Saves all mask registers before a call.
    pub(super) fn save_masks(&mut self) -> Result<()> {
        (FIRST..8).try_for_each(|k| self.save_mask(k))?;
        self.truths.masks.clear();
        Ok(())
    }

    /// Records that `r` was written to `k`.
    pub(super) fn defined_mask(&mut self, r: Reg, k: Mask, next: u32) -> Result<()> {
        if let Home::Slot(slot) = self.plan.home(r.index()) {
            let x = self.temporary()?;
            self.asm.mask_spread(self.lanes.shape, x, k);
            let mem = self.frame.slot(slot);
            self.asm.store(self.lanes.shape, mem, x);
            self.registers.give_back(x);
        }
        if next == NEVER {
            self.truths.masks.ended |= 1 << k.0;
        }
        Ok(())
    }

    /// Returns a mask register with the truth value of `r`. Consumes the next use if `r` is a truth value.
    pub(super) fn truth_mask(&mut self, r: Reg) -> Result<Mask> {
        if self.plan.kinds[r.index()] == Kind::Int {
            let k = self.take_mask(None, NEVER)?;
            let [rax, ..] = SCRATCH;
            let from = if self.plan.facts.is_bit(r.index()) && self.lanes.shape == Shape::One {
                self.number(r.index(), rax)
            } else {
                self.all_bits(r.index());
                rax
            };
            self.asm.mask_from(k, from);
            return Ok(k);
        }
        let next = self.next_use();
        let k = match self.truths.masks.find(r) {
            Some(k) => {
                self.truths.masks.next[k] = next;
                self.truths.masks.locked |= 1 << k;
                Mask(k as u8)
            }
            None => {
                let x = self.in_register(r, next)?;
                let k = self.take_mask(Some(r), next)?;
                self.asm.mask_of_signs(self.lanes.shape, k, x);
                k
            }
        };
        if next == NEVER {
            self.truths.masks.ended |= 1 << k.0;
            self.release(r, NEVER);
        }
        Ok(k)
    }

    /// Puts 1 or 0 into the first scratch register, by the first lane.
    pub(super) fn mask_number(&mut self, k: Mask) {
        let [rax, ..] = SCRATCH;
        self.asm.mask_to(rax, k);
        self.asm.alu_ri(Alu::And, rax, 1);
    }
}
