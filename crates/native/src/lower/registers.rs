//! Vector registers of the values of one block, allocated by next use.
//!
//! If all are in use, the value with the furthest next use is spilled (Belady, "A study of replacement algorithms for a
//! virtual-storage computer", 1966), to a slot of the frame unless it can be rematerialised: an input, a constant, a
//! global with a location. A slot is released after the last instruction that reads it, not before, because the result
//! of that instruction must not reuse it.

use super::plan::NEVER;
use crate::asm::Xmm;
use chainrule_base::{Id, large};
use chainrule_kernel::Reg;
use std::ops::Range;

/// Location of a value other than a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copy {
    /// Nowhere.
    None,
    /// In a slot of its own.
    Slot(u32),
    /// In its location as a global.
    Home(u32),
    /// In the constants, by the writer's number.
    Constant(u32),
    /// At the address of a load, by the writer's number.
    Load(u32),
}

/// State of a value, in 8 bytes, because large code has many values.
#[derive(Clone, Copy)]
struct State {
    register: u8,
    kind: u8,
    number: u32,
}

impl State {
    const NEW: Self = Self { register: NOWHERE, kind: 0, number: 0 };

    #[inline]
    fn copy(self) -> Copy {
        match self.kind {
            0 => Copy::None,
            SLOT => Copy::Slot(self.number),
            2 => Copy::Home(self.number),
            CONSTANT => Copy::Constant(self.number),
            _ => Copy::Load(self.number),
        }
    }

    #[inline]
    fn set_copy(&mut self, copy: Copy) {
        (self.kind, self.number) = match copy {
            Copy::None => (0, 0),
            Copy::Slot(slot) => (SLOT, slot),
            Copy::Home(slot) => (2, slot),
            Copy::Constant(number) => (CONSTANT, number),
            Copy::Load(number) => (4, number),
        };
    }
}

const NOWHERE: u8 = u8::MAX;

/// Tags of a [`Copy::Slot`] and a [`Copy::Constant`].
const SLOT: u8 = 1;
const CONSTANT: u8 = 3;

/// Maximum distance of a next use; further ones are equal.
const FAR: u32 = (1 << 26) - 1;

/// Registers and their contents.
pub(super) struct Registers {
    state: Vec<State>,
    /// Value of each register; stale if it is free.
    held: [Reg; 32],
    /// Next use of each register's value.
    next: [u32; 32],
    /// Registers that may be allocated, and the free ones.
    pool: u32,
    free: u32,
    /// Registers that the current instruction reads.
    locked: u32,
    /// Free slots, the next one last; behind them those to be released after the current instruction.
    free_slots: Vec<u32>,
    n_free_slots: usize,
    n_slots: u32,
}

/// Returns the register among `candidates`, which are not empty, with the furthest next use; the last one on ties. Next
/// uses beyond the range are equal.
#[inline]
fn furthest(next: &[u32; 32], candidates: u32) -> u8 {
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        unsafe { furthest_in_lanes(next, candidates) }
    } else {
        furthest_of(next, candidates)
    }
}

/// Vectorised version, because it runs for most operands of code with high register pressure: a sixth of the
/// instructions.
#[target_feature(enable = "avx2")]
fn furthest_in_lanes(next: &[u32; 32], candidates: u32) -> u8 {
    furthest_of(next, candidates)
}

#[inline(always)]
fn furthest_of(next: &[u32; 32], candidates: u32) -> u8 {
    // Branch-free, so that compilers vectorise it.
    let mut best = 0;
    for (x, next) in next.iter().enumerate() {
        let key = ((*next).min(FAR) << 5) as i32 | x as i32;
        best = best.max(if candidates & 1 << x != 0 { key } else { -1 });
    }
    (best & 31) as u8
}

/// Spill before an allocation: a register, and the slot to store it to.
pub(super) type Spill = Option<(Xmm, u32)>;

impl Registers {
    /// Returns registers in which `pinned` ones and the slots `taken` are not allocated.
    pub(super) fn new(n_regs: usize, n_registers: u32, pinned: u32, taken: Range<u32>) -> Self {
        let all = if n_registers == 32 { u32::MAX } else { (1 << n_registers) - 1 };
        let pool = all & !pinned;
        Self {
            state: large::filled(n_regs, State::NEW),
            held: [Reg::new(0); 32],
            next: [NEVER; 32],
            pool,
            free: pool,
            locked: 0,
            free_slots: (0..taken.start).rev().collect(),
            n_free_slots: taken.start as usize,
            n_slots: taken.end,
        }
    }

    pub(super) fn n_slots(&self) -> u32 {
        self.n_slots
    }

    #[inline]
    pub(super) fn register(&self, r: Reg) -> Option<Xmm> {
        let register = self.state[r.index()].register;
        (register != NOWHERE).then_some(Xmm(register))
    }

    /// Returns the register that holds `r`, whose next use after this one is `next`; locks it.
    #[inline]
    pub(super) fn use_at(&mut self, r: Reg, next: u32) -> Option<Xmm> {
        self.use_all([r], [next]).map(|[x]| x)
    }

    /// As [`Self::use_at`] for several values, if all are in registers; otherwise does nothing.
    #[inline]
    pub(super) fn use_all<const N: usize>(&mut self, all: [Reg; N], next: [u32; N]) -> Option<[Xmm; N]> {
        let registers = all.map(|r| self.state[r.index()].register);
        // Checks all of them: an early exit would be hard to predict.
        if registers.iter().fold(false, |any, x| any | (*x == NOWHERE)) {
            return None;
        }
        for (x, next) in registers.into_iter().zip(next) {
            self.next[usize::from(x & 31)] = next;
            self.locked |= 1 << (x & 31);
        }
        Some(registers.map(Xmm))
    }

    #[inline]
    pub(super) fn copy(&self, r: Reg) -> Copy {
        self.state[r.index()].copy()
    }

    /// Returns the number of a copy, and whether it is a [`Copy::Slot`] or a [`Copy::Constant`].
    #[inline]
    pub(super) fn slot_or_constant(&self, r: Reg) -> (u32, bool, bool) {
        let State { kind, number, .. } = self.state[r.index()];
        (number, kind == SLOT, kind == CONSTANT)
    }

    #[inline]
    pub(super) fn set_copy(&mut self, r: Reg, copy: Copy) {
        self.state[r.index()].set_copy(copy);
    }

    /// Locks a register until [`Self::end`].
    #[inline]
    pub(super) fn lock(&mut self, x: Xmm) {
        self.locked |= 1 << x.0;
    }

    pub(super) fn unlock(&mut self, x: Xmm) {
        self.locked &= !(1 << x.0);
    }

    /// Returns whether no value has to be spilled, or the spilled value would have a later next use than `next`.
    #[inline]
    pub(super) fn is_worth(&self, next: u32) -> bool {
        self.free != 0 || self.victim().is_some_and(|v| self.next[v as usize] > next)
    }

    /// Returns the register whose value would be spilled.
    #[inline]
    pub(super) fn victim(&self) -> Option<u8> {
        let candidates = self.pool & !self.free & !self.locked;
        (candidates != 0).then(|| furthest(&self.next, candidates))
    }

    /// Replaces the value of register `x` by `r`, whose next use is `next`, and locks it; returns the slot for the old
    /// value if it has no other location.
    #[inline]
    pub(super) fn take_taken(&mut self, x: u8, r: Reg, next: u32) -> Option<u32> {
        let i = usize::from(x & 31);
        let slot = self.evict(self.held[i]);
        self.locked |= 1 << i;
        self.held[i] = r;
        self.next[i] = next;
        self.state[r.index()].register = x;
        slot
    }

    /// Evicts a value; returns its slot if it has no other location.
    #[inline]
    fn evict(&mut self, old: Reg) -> Option<u32> {
        let state = &mut self.state[old.index()];
        state.register = NOWHERE;
        if state.kind != 0 {
            return None;
        }
        let slot = self.take_slot();
        self.state[old.index()].set_copy(Copy::Slot(slot));
        Some(slot)
    }

    /// Allocates a free register and locks it; `None` if there is none.
    #[inline]
    pub(super) fn take_free(&mut self, r: Reg, next: u32) -> Option<Xmm> {
        let available = self.free & !self.locked;
        if available == 0 {
            return None;
        }
        let x = available.trailing_zeros() as u8;
        self.free &= !(1 << x);
        self.locked |= 1 << x;
        self.held[usize::from(x & 31)] = r;
        self.next[usize::from(x & 31)] = next;
        self.state[r.index()].register = x;
        Some(Xmm(x))
    }

    /// Returns the number of registers available to the current instruction.
    pub(super) fn n_usable(&self) -> usize {
        (self.pool & !self.locked).count_ones() as usize
    }

    pub(super) fn is_free(&self, x: Xmm) -> bool {
        self.free & (1 << x.0) != 0
    }

    /// Allocates this register, which is free, for `r`.
    pub(super) fn take_this(&mut self, x: Xmm, r: Reg, next: u32) {
        self.free &= !(1 << x.0);
        self.name(x, r, next);
        self.lock(x);
    }

    /// Allocates a register without a value; [`Self::give_back`] releases it.
    #[inline]
    pub(super) fn take_unnamed(&mut self) -> Option<(Xmm, Spill)> {
        let available = self.free & !self.locked;
        if available != 0 {
            let x = available.trailing_zeros() as u8;
            self.free &= !(1 << x);
            return Some((Xmm(x), None));
        }
        let x = self.victim()?;
        let slot = self.evict(self.held[x as usize]);
        Some((Xmm(x), slot.map(|slot| (Xmm(x), slot))))
    }

    /// Assigns `r` to `x`, which is not in the pool or was allocated without a value.
    #[inline]
    pub(super) fn name(&mut self, x: Xmm, r: Reg, next: u32) {
        self.held[x.0 as usize] = r;
        self.next[x.0 as usize] = next;
        self.state[r.index()].register = x.0;
    }

    /// Records that `r` is in no register.
    pub(super) fn forget(&mut self, r: Reg) {
        self.state[r.index()].register = NOWHERE;
    }

    /// Releases a register without a value.
    pub(super) fn give_back(&mut self, x: Xmm) {
        if self.pool & (1 << x.0) != 0 {
            self.free |= 1 << x.0;
        }
    }

    /// Releases dead value `r`: its register now, its slot after the instruction.
    #[inline]
    pub(super) fn release(&mut self, r: Reg) {
        let state = self.state[r.index()];
        if state.register != NOWHERE && self.pool & (1 << state.register) != 0 {
            self.free |= 1 << state.register;
            self.state[r.index()].register = NOWHERE;
        }
        if let Copy::Slot(slot) = state.copy() {
            self.free_slots.push(slot);
            self.state[r.index()].set_copy(Copy::None);
        }
    }

    /// Releases `r` if it `ends`, and unlocks its register. With few branches, because both conditions are hard to
    /// predict.
    #[inline]
    pub(super) fn release_where(&mut self, ends: bool, r: Reg) {
        let state = &mut self.state[r.index()];
        let bit = u32::from(ends & (state.register != NOWHERE)) << (state.register & 31);
        self.locked &= !bit;
        self.free |= self.pool & bit;
        state.register = if self.pool & bit != 0 { NOWHERE } else { state.register };
        if ends & (state.kind == SLOT) {
            state.kind = 0;
            self.free_slots.push(state.number);
        }
    }

    /// As [`Self::release_where`], for the value in `x`.
    #[inline]
    pub(super) fn release_from(&mut self, r: Reg, x: Xmm) {
        let bit = 1 << (x.0 & 31);
        self.locked &= !bit;
        let state = &mut self.state[r.index()];
        if self.pool & bit != 0 {
            self.free |= bit;
            state.register = NOWHERE;
        }
        if let Copy::Slot(slot) = state.copy() {
            state.set_copy(Copy::None);
            self.free_slots.push(slot);
        }
    }

    /// Ends an instruction: unlocks all registers, and releases slots of dead values.
    #[inline]
    pub(super) fn end(&mut self) {
        self.locked = 0;
        self.n_free_slots = self.free_slots.len();
    }

    fn take_slot(&mut self) -> u32 {
        match self.n_free_slots.checked_sub(1) {
            Some(last) => {
                self.n_free_slots = last;
                self.free_slots.remove(last)
            }
            None => self.reserve_slots(1),
        }
    }

    /// Reserves `n` consecutive slots permanently.
    pub(super) fn reserve_slots(&mut self, n: u32) -> u32 {
        self.n_slots += n;
        self.n_slots - n
    }

    /// Spills all values of the pool without another location, with a slot for each: all registers of the pool are free
    /// afterwards.
    pub(super) fn spill_all(&mut self, mut write: impl FnMut(Xmm, u32)) {
        let mut taken = self.pool & !self.free;
        while taken != 0 {
            let x = taken.trailing_zeros() as u8;
            taken &= taken - 1;
            let r = self.held[x as usize];
            if self.state[r.index()].kind == 0 {
                let slot = self.take_slot();
                self.state[r.index()].set_copy(Copy::Slot(slot));
                write(Xmm(x), slot);
            }
        }
    }

    /// Clears the registers of the pool, whose values are elsewhere or dead.
    pub(super) fn clear(&mut self) {
        let mut taken = self.pool & !self.free;
        while taken != 0 {
            let x = taken.trailing_zeros();
            taken &= taken - 1;
            self.state[self.held[x as usize].index()].register = NOWHERE;
        }
        self.free = self.pool;
    }
}

#[cfg(test)]
mod tests {
    use super::{FAR, furthest, furthest_of};

    #[test]
    fn furthest_is_the_last_of_the_largest_among_the_candidates() {
        let mut random = chainrule_cases::Xorshift::new(1);
        let mut number = || random.bits();
        for _ in 0..10_000 {
            let bits = number() % 32;
            let next: [u32; 32] = std::array::from_fn(|_| (number() as u32) >> bits);
            let candidates = (number() & number()) as u32 | 1 << (number() % 32);
            let all = (0..32u8).filter(|x| candidates & 1 << x != 0);
            let expected = all.max_by_key(|x| next[usize::from(*x)].min(FAR));
            assert_eq!(Some(furthest(&next, candidates)), expected);
            assert_eq!(Some(furthest_of(&next, candidates)), expected);
        }
    }
}
