//! Vector registers for the values of one block: what is free goes to what is used soonest.
//!
//! When all are taken, the value that is used furthest in the future gives way (Belady, "A study of replacement
//! algorithms for a virtual-storage computer", 1966), to a slot of the frame unless it can be had again
//! from where it came: an input, a constant, its place as a global. A slot is given back after the last
//! instruction that reads it, not before: what that instruction writes must not take it.

use super::plan::NEVER;
use crate::asm::Xmm;
use chainrule_base::{Id, large};
use chainrule_kernel::Reg;
use std::ops::Range;

/// Where a value can be read but for a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copy {
    /// Nowhere.
    None,
    /// In a slot of its own.
    Slot(u32),
    /// In its place as a global.
    Home(u32),
    /// In the constants, by a number that the writer knows.
    Constant(u32),
    /// Where a load reads, by a number that the writer knows.
    Load(u32),
}

/// In 8 bytes, of which large code takes many.
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

/// The kinds of a [`Copy::Slot`] and a [`Copy::Constant`].
const SLOT: u8 = 1;
const CONSTANT: u8 = 3;

/// A use as far away as is told apart.
const FAR: u32 = (1 << 26) - 1;

/// The registers and what they hold.
pub(super) struct Registers {
    state: Vec<State>,
    /// What each register holds; stale where it is free.
    held: [Reg; 32],
    /// When it is used next.
    next: [u32; 32],
    /// Those that may be handed out, and those of them that are free.
    pool: u32,
    free: u32,
    /// Those that the current instruction reads.
    locked: u32,
    /// Slots to take, the last one first, and behind them those that are given back after the current instruction.
    free_slots: Vec<u32>,
    n_free_slots: usize,
    n_slots: u32,
}

/// The register among `candidates`, of which there is one at least, whose next use is furthest away; of equals the last.
/// Uses so far away that they do not fit are alike.
#[inline]
fn furthest(next: &[u32; 32], candidates: u32) -> u8 {
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        unsafe { furthest_in_lanes(next, candidates) }
    } else {
        furthest_of(next, candidates)
    }
}

/// The same: what is asked for with most operands of code that is short of registers takes a sixth of the instructions.
#[target_feature(enable = "avx2")]
fn furthest_in_lanes(next: &[u32; 32], candidates: u32) -> u8 {
    furthest_of(next, candidates)
}

#[inline(always)]
fn furthest_of(next: &[u32; 32], candidates: u32) -> u8 {
    // Without a branch, which compilers make lanes of.
    let mut best = 0;
    for (x, next) in next.iter().enumerate() {
        let key = ((*next).min(FAR) << 5) as i32 | x as i32;
        best = best.max(if candidates & 1 << x != 0 { key } else { -1 });
    }
    (best & 31) as u8
}

/// What must be written to make room: a register and the slot that takes it.
pub(super) type Spill = Option<(Xmm, u32)>;

impl Registers {
    /// `pinned` are not handed out, nor are the slots `taken`.
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

    /// The register that holds `r`, which is used now and then at `next`: it is locked.
    #[inline]
    pub(super) fn use_at(&mut self, r: Reg, next: u32) -> Option<Xmm> {
        self.use_all([r], [next]).map(|[x]| x)
    }

    /// The same for several at once, where all are in registers; otherwise nothing happens.
    #[inline]
    pub(super) fn use_all<const N: usize>(&mut self, all: [Reg; N], next: [u32; N]) -> Option<[Xmm; N]> {
        let registers = all.map(|r| self.state[r.index()].register);
        // All are looked at: a search that ends with the first one ends where nobody can predict.
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

    /// The number of a copy; whether it is a [`Copy::Slot`], or a [`Copy::Constant`].
    #[inline]
    pub(super) fn slot_or_constant(&self, r: Reg) -> (u32, bool, bool) {
        let State { kind, number, .. } = self.state[r.index()];
        (number, kind == SLOT, kind == CONSTANT)
    }

    #[inline]
    pub(super) fn set_copy(&mut self, r: Reg, copy: Copy) {
        self.state[r.index()].set_copy(copy);
    }

    /// Keeps a register until [`Self::end`].
    #[inline]
    pub(super) fn lock(&mut self, x: Xmm) {
        self.locked |= 1 << x.0;
    }

    pub(super) fn unlock(&mut self, x: Xmm) {
        self.locked &= !(1 << x.0);
    }

    /// Whether the value that would give way is used later than `next`, or nothing has to.
    #[inline]
    pub(super) fn is_worth(&self, next: u32) -> bool {
        self.free != 0 || self.victim().is_some_and(|v| self.next[v as usize] > next)
    }

    /// The register whose value would give way.
    #[inline]
    pub(super) fn victim(&self) -> Option<u8> {
        let candidates = self.pool & !self.free & !self.locked;
        (candidates != 0).then(|| furthest(&self.next, candidates))
    }

    /// The register `x` for `r`, which is used next at `next`, in place of what is in it, locked; the slot that this goes to,
    /// if it is nowhere else.
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

    /// Takes its register from a value; the slot that it goes to, if it is nowhere else.
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

    /// The same where nothing has to give way, locked.
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

    /// How many the current instruction may take.
    pub(super) fn n_usable(&self) -> usize {
        (self.pool & !self.locked).count_ones() as usize
    }

    pub(super) fn is_free(&self, x: Xmm) -> bool {
        self.free & (1 << x.0) != 0
    }

    /// This register, which is free, for `r`.
    pub(super) fn take_this(&mut self, x: Xmm, r: Reg, next: u32) {
        self.free &= !(1 << x.0);
        self.name(x, r, next);
        self.lock(x);
    }

    /// A register for nothing that has a name; [`Self::give_back`] frees it.
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

    /// Puts `r` into `x`, which is not of the pool or was taken without a name.
    #[inline]
    pub(super) fn name(&mut self, x: Xmm, r: Reg, next: u32) {
        self.held[x.0 as usize] = r;
        self.next[x.0 as usize] = next;
        self.state[r.index()].register = x.0;
    }

    /// `r` is in no register from now on.
    pub(super) fn forget(&mut self, r: Reg) {
        self.state[r.index()].register = NOWHERE;
    }

    /// Frees a register without a name.
    pub(super) fn give_back(&mut self, x: Xmm) {
        if self.pool & (1 << x.0) != 0 {
            self.free |= 1 << x.0;
        }
    }

    /// `r` is not used any more in this block: frees its register now, its slot after the instruction.
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

    /// The same where it `ends`, and its register is locked no more. With few branches: whether it ends, and where it is, is
    /// hard to predict.
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

    /// The same for what is in `x`, which is locked no more.
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

    /// After an instruction: nothing is locked, and slots of values that ended are free.
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

    /// `n` slots one after the other, for good.
    pub(super) fn reserve_slots(&mut self, n: u32) -> u32 {
        self.n_slots += n;
        self.n_slots - n
    }

    /// What is in registers of the pool and in no other place, with the slot that takes each: all registers
    /// of the pool are free then.
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

    /// Forgets what is in the registers of the pool: all is elsewhere, or not needed.
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
        let mut random = 88_172_645_463_325_252u64;
        let mut number = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
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
