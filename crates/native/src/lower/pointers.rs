//! Pointers of buffers in general registers.
//!
//! Each pointer is in the frame. A loop that uses it often has it in a register of its own, which is loaded before the
//! loop. Inner loops use that register; if the outer loop has none, they may have theirs.

use super::Writer;
use super::accumulators::Accumulators;
use super::assign::survives_calls;
use super::homes::Homes;
use super::plan::{Home, Kept, KeptAt, LoopPlan, Number};
use super::spares::Part;
use super::survey::weight;
use crate::asm::Gpr;
use chainrule_base::Id;
use chainrule_kernel::{BufferId, Event, Instr, Liveness, Reg};
use std::collections::BTreeMap;

/// Requests locations for the pointers of buffers in the loops that access them, by their opening events. The loops of
/// `once` do not count as loops; partial sums in vectors need no pointer.
pub(super) fn wishes(
    events: &[Event<'_>],
    lives: &Liveness,
    once: &BTreeMap<u32, Reg>,
    (accumulators, loops): (&Accumulators, &BTreeMap<u32, LoopPlan>),
    homes: &mut Homes<'_>,
) -> BTreeMap<u32, Vec<(BufferId, Number)>> {
    // Number of uses of each pointer directly in each loop.
    let mut uses: BTreeMap<(u32, BufferId), u64> = BTreeMap::new();
    let mut open: Vec<u32> = Vec::new();
    let mut lane: Option<Reg> = None;
    // Outer loop and depth of each loop, by its opening event.
    let mut around: BTreeMap<u32, (Option<u32>, u8)> = BTreeMap::new();
    for (at, event) in (1u32..).zip(events) {
        match event {
            Event::Instr(Instr::Load { buffer, .. } | Instr::Store { buffer, .. }) => {
                if let Some(begin) = open.last()
                    && !accumulators.holds(*buffer)
                {
                    *uses.entry((*begin, *buffer)).or_insert(0) += 1;
                }
                continue;
            }
            Event::Instr(_) => continue,
            Event::For { index, .. } if once.contains_key(&at) => lane = Some(*index),
            Event::EndFor { index, .. } if lane == Some(*index) => lane = None,
            Event::For { .. } | Event::While { .. } => {
                around.insert(at, (open.last().copied(), open.len().min(usize::from(u8::MAX)) as u8));
                open.push(at);
            }
            Event::EndFor { .. } | Event::EndWhile { .. } => drop(open.pop()),
            _ => {}
        }
    }
    // Those that follow an address have no other pointer.
    for (at, plan) in loops {
        for Kept { at: KeptAt { within, after, .. }, accesses, .. } in &plan.kept {
            if let Some(n) = within.filter(|_| after.is_some()).and_then(|buffer| uses.get_mut(&(*at, buffer))) {
                *n = n.saturating_sub(*accesses);
            }
        }
    }
    // Outer loops need it at the start of inner loops.
    for (at, (outer, _)) in around.iter().rev() {
        let inner: Vec<BufferId> =
            uses.range((*at, BufferId::new(0))..(*at + 1, BufferId::new(0))).map(|((_, b), _)| *b).collect();
        for buffer in inner {
            outer.iter().for_each(|outer| *uses.entry((*outer, buffer)).or_insert(0) += 1);
        }
    }
    let mut wishes: BTreeMap<u32, Vec<(BufferId, Number)>> = BTreeMap::new();
    for ((at, buffer), n) in uses {
        let (outer, depth) = around[&at];
        let of_outer = outer.and_then(|outer| wishes[&outer].iter().find(|(other, _)| *other == buffer));
        let of_outer = of_outer.map(|(_, number)| *number);
        let number = homes.pointer(at, lives.end_of_loop[at as usize], n * weight(depth + 1), of_outer);
        wishes.entry(at).or_default().push((buffer, number));
    }
    wishes
}

/// Makes cached addresses of `loops` numbers of elements if the pointers of their buffers are in registers, which costs
/// nothing then, and pointers otherwise.
pub(super) fn spared(
    loops: &mut BTreeMap<u32, LoopPlan>,
    pointers: &BTreeMap<u32, Vec<(BufferId, Number)>>,
    lives: &Liveness,
    homes: &[Home],
) {
    // Ends of the enclosing loops, and the number of pointers before each.
    let mut open: Vec<(u32, usize)> = Vec::new();
    let mut held: Vec<BufferId> = Vec::new();
    for (at, plan) in loops {
        while let Some((_, before)) = open.pop_if(|(end, _)| *end < *at) {
            held.truncate(before);
        }
        open.push((lives.end_of_loop[*at as usize], held.len()));
        let in_register = |(_, number): &&(BufferId, Number)| matches!(homes[*number], Home::Gpr(_));
        held.extend(pointers.get(at).into_iter().flatten().filter(in_register).map(|(buffer, _)| *buffer));
        for kept in plan.kept.iter_mut().filter(|kept| kept.at.after.is_none()) {
            kept.at.within = kept.at.within.filter(|buffer| !held.contains(buffer));
        }
    }
}

/// Pointers in registers.
pub(super) struct Pointers {
    now: Vec<Option<Gpr>>,
    /// Pointers loaded by loops; the last opened loop's are last.
    taken: Vec<(BufferId, Gpr)>,
    /// Number of pointers at the start of each open loop.
    begins: Vec<usize>,
}

impl Pointers {
    pub(super) fn new(n_buffers: usize) -> Self {
        Self { now: vec![None; n_buffers], taken: Vec::new(), begins: Vec::new() }
    }

    /// Returns the register with the pointer of a buffer.
    #[inline]
    pub(super) fn of(&self, buffer: BufferId) -> Option<Gpr> {
        self.now[buffer.index()]
    }
}

impl Writer<'_> {
    /// Returns a register with the address of a buffer's first element: one that caches it, or `scratch`.
    pub(super) fn pointer(&mut self, buffer: BufferId, scratch: Gpr) -> Gpr {
        if let Some(g) = self.addresses.pointers.of(buffer) {
            return g;
        }
        let (g, is_there) = self.spare(Part::Pointer(buffer)).unwrap_or((scratch, false));
        if !is_there {
            self.load_pointer(buffer, g);
        }
        g
    }

    /// As [`Self::pointer`], between blocks, where no register is spare.
    pub(super) fn pointer_now(&mut self, buffer: BufferId, scratch: Gpr) -> Gpr {
        if let Some(g) = self.addresses.pointers.of(buffer) {
            return g;
        }
        self.load_pointer(buffer, scratch);
        scratch
    }

    fn load_pointer(&mut self, buffer: BufferId, g: Gpr) {
        let mem = self.frame.word(self.plan.words.pointer(buffer));
        self.asm.mov_rm(g, mem);
    }

    /// Loads pointers into their registers in the loop opened by this event, unless they are in one already.
    pub(super) fn take_pointers(&mut self, at: u32) {
        self.addresses.pointers.begins.push(self.addresses.pointers.taken.len());
        for (buffer, number) in self.plan.pointers.get(&at).into_iter().flatten() {
            self.take_pointer(*buffer, *number);
        }
    }

    /// Loads all pointers of straight-line code into their registers.
    pub(super) fn take_all_pointers(&mut self) {
        self.know_all_pointers();
        for i in 0..self.addresses.pointers.taken.len() {
            let (buffer, g) = self.addresses.pointers.taken[i];
            self.load_pointer(buffer, g);
        }
    }

    /// Records that all pointers of straight-line code are in their registers.
    pub(super) fn know_all_pointers(&mut self) {
        for (buffer, number) in self.kernel.buffers.ids().zip(self.kernel.regs.len()..) {
            self.know_pointer(buffer, number);
        }
    }

    fn take_pointer(&mut self, buffer: BufferId, number: Number) {
        if let Some(g) = self.know_pointer(buffer, number) {
            self.load_pointer(buffer, g);
        }
    }

    /// Records that a pointer is in its register, if it has one and is in none yet; returns the register.
    fn know_pointer(&mut self, buffer: BufferId, number: Number) -> Option<Gpr> {
        match self.plan.home(number) {
            Home::Gpr(g) if self.addresses.pointers.of(buffer).is_none() => {
                self.addresses.pointers.now[buffer.index()] = Some(g);
                self.addresses.pointers.taken.push((buffer, g));
                Some(g)
            }
            _ => None,
        }
    }

    /// Ends the effect of [`Self::take_pointers`] after a loop.
    pub(super) fn leave_pointers(&mut self) {
        let before = self.addresses.pointers.begins.pop().unwrap_or(0);
        for (buffer, _) in self.addresses.pointers.taken.drain(before..) {
            self.addresses.pointers.now[buffer.index()] = None;
        }
    }

    /// Reloads pointers destroyed by a call.
    pub(super) fn pointers_again(&mut self) {
        for i in 0..self.addresses.pointers.taken.len() {
            let (buffer, g) = self.addresses.pointers.taken[i];
            if !survives_calls(g) {
                self.load_pointer(buffer, g);
            }
        }
    }
}
