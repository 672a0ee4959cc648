//! Calls: operators without an instruction, integer operators, user functions, copies.
//!
//! The System V convention preserves no vector register, so all live values are stored before a call. Addresses of
//! functions are constants.

use super::frame::{Header, lanes};
use super::plan::{Home, Kind, NEVER, Number};
use super::{Result, SCRATCH, Site, Writer};
use crate::asm::{Condition, Gpr, Mem, Shape, Xmm};
use crate::support;
use chainrule_base::Id;
use chainrule_kernel::{BufferId, Instr, Reg};
use chainrule_mathfun::{Form, Function};
use chainrule_ops::Op;

/// The sine of a cosine, or the cosine of a sine.
#[derive(Clone, Copy)]
struct Partner {
    at: u32,
    /// Next use of the argument after it.
    next: u32,
}

/// Sine or cosine that is computed together with its partner.
#[derive(Clone, Copy)]
struct SinCos {
    dst: Reg,
    op: Op,
    argument: Reg,
    partner: Partner,
}

/// Vector registers of globals, one bit each.
struct Soon {
    /// Read or written registers.
    needed: u32,
    written: u32,
}

impl Writer<'_> {
    fn call_address(&mut self, address: usize) {
        // SSE code is slow while the upper lanes are dirty.
        if self.lanes.shape == Shape::One && self.plan.is_wide() {
            self.asm.vzeroupper();
        }
        let at = self.asm.constant(address as u64);
        self.asm.call_m(Mem::Constant(at));
    }

    /// Stores live values that the call of event `at` destroys, unless they are in memory; arguments in registers also
    /// stay there.
    fn before_call(&mut self, at: u32) -> Result<()> {
        let (asm, frame, shape) = (&mut self.asm, self.frame, self.lanes.shape);
        self.registers.spill_all(|x, slot| asm.store(shape, frame.slot(slot), x));
        self.calls.live = self.plan.vectors_over(at);
        for x in each(self.calls.live & !self.calls.in_memory) {
            let slot = match self.calls.pinned_slots[x.0 as usize] {
                Some(slot) => slot,
                None => {
                    let slot = self.registers.reserve_slots(1);
                    self.calls.pinned_slots[x.0 as usize] = Some(slot);
                    slot
                }
            };
            let mem = self.frame.slot(slot);
            self.asm.store(self.lanes.shape, mem, x);
        }
        self.calls.in_memory = self.calls.live;
        Ok(())
    }

    /// Reloads the values needed before the next call, after a call with result `dst`; `after` are the following
    /// instructions of the block.
    fn after_call(&mut self, dst: Option<Reg>, after: &[Instr]) {
        self.registers.clear();
        self.registers.end();
        if self.calls.live != 0 {
            let Soon { needed, written } = self.before_next_call(after);
            for x in each(self.calls.live & needed) {
                if let Some(slot) = self.calls.pinned_slots[x.0 as usize] {
                    let mem = self.frame.slot(slot);
                    self.asm.load(self.lanes.shape, x, mem);
                }
            }
            self.calls.in_memory &= !(written | dst.map_or(0, |dst| self.plan.vector_of(dst)));
        }
        self.addresses.spares.after_call();
        self.pointers_again();
        self.set_mask();
    }

    /// Returns the registers used by the instructions up to the next call; all may be used if there is none.
    fn before_next_call(&self, after: &[Instr]) -> Soon {
        let mut soon = Soon { needed: 0, written: 0 };
        for instr in after {
            let is_known = match instr {
                // One call computes both sine and cosine.
                Instr::Op { op: Op::Sin | Op::Cos, .. } => false,
                Instr::Op { .. } | Instr::MulAdd { .. } | Instr::Const { .. } => true,
                // Partial sums in registers are read and written like this.
                Instr::Load { .. } | Instr::Store { .. } => !self.plan.accumulators.are_some(),
                _ => false,
            };
            if !is_known {
                break;
            }
            let mut add = |r: Reg| soon.needed |= self.registers.register(r).map_or(0, |x| 1 << x.0);
            instr.for_each_use(&mut add);
            instr.dst().into_iter().for_each(&mut add);
            if super::plan::calls(instr) {
                return soon;
            }
            soon.written |= instr.dst().map_or(0, |dst| self.plan.vector_of(dst));
        }
        Soon { needed: u32::MAX, written: u32::MAX }
    }

    /// Stores the arguments in consecutive slots; returns the first.
    fn arguments_to_slots(&mut self, args: &[Reg]) -> Result<u32> {
        let first = self.call_slots(args.len().max(1) as u32);
        let left = self.uses.left;
        for (i, r) in (0..).zip(args) {
            let next = self.next_use();
            let x = self.in_register(*r, next)?;
            let mem = self.frame.packed(first, i, self.lanes.shape);
            self.asm.store(self.lanes.shape, mem, x);
            // There may be more arguments than registers.
            self.registers.unlock(x);
        }
        for (i, r) in args.iter().enumerate() {
            let next = self.plan.next_when(left.saturating_sub(i)).unwrap_or(NEVER);
            self.release(*r, next);
        }
        Ok(first)
    }

    /// Returns `n` consecutive slots for arguments, shared by all calls that need no more.
    fn call_slots(&mut self, n: u32) -> u32 {
        if let Some((first, len)) = self.calls.argument_slots
            && len >= n
        {
            return first;
        }
        let first = self.registers.reserve_slots(n);
        self.calls.argument_slots = Some((first, n));
        first
    }

    /// Loads a result from the slot in which a call left it.
    fn result_from_slot(&mut self, dst: Reg, slot: u32) -> Result<()> {
        let next = self.next_use();
        if self.plan.home(dst.index()) == Home::Local && next == NEVER {
            return Ok(());
        }
        let d = self.destination(dst, next)?;
        let mem = self.frame.slot(slot);
        self.asm.load(self.lanes.shape, d, mem);
        self.defined(dst, d, next);
        Ok(())
    }

    /// Emits an operator that is a function: one of ours in this form, or by its row.
    pub(super) fn call_op(&mut self, at: u32, dst: Reg, op: Op, args: &[Reg], after: &[Instr]) -> Result<()> {
        if let Some((_, slot)) = self.calls.pending.take_if(|(partner, _)| *partner == at) {
            // It was computed with its partner, which also released the argument if that was the last use.
            let next = self.next_use();
            self.release(args[0], next);
            return self.result_from_slot(dst, slot);
        }
        self.save_masks()?;
        let form = match self.lanes.shape {
            Shape::One => Form::One,
            Shape::Four => Form::Lanes4,
            Shape::Eight => Form::Lanes8,
        };
        if matches!(op, Op::Sin | Op::Cos)
            && let Some(partner) = self.partner(at, op, args[0], after)
            && let Some(entry) = Function::SinCos.entry(form)
        {
            let pair = SinCos { dst, op, argument: args[0], partner };
            return self.call_sin_cos(at, after, pair, entry as usize);
        }
        if let Some(entry) = op.row().elementary.and_then(|function| function.entry(form)) {
            let from = self.arguments_to_registers(args)?;
            self.before_call(at)?;
            self.place(&from);
            self.call_address(entry as usize);
            self.after_call(Some(dst), after);
            return self.result_from(dst);
        }
        let row = op as i64;
        if self.lanes.shape == Shape::One && args.len() <= 2 {
            let from = self.arguments_to_registers(args)?;
            self.before_call(at)?;
            self.place(&from);
            self.asm.mov_ri(Gpr::RDI, row);
            self.call_address(if args.len() == 1 {
                support::call1 as *const () as usize
            } else {
                support::call2 as *const () as usize
            });
            self.after_call(Some(dst), after);
            return self.result_from(dst);
        }
        let first = self.arguments_to_slots(args)?;
        self.before_call(at)?;
        let mem = self.frame.slot(first);
        self.asm.mov_ri(Gpr::RDI, row);
        self.asm.mov_ri(Gpr::RSI, args.len() as i64);
        self.asm.mov_ri(Gpr::RDX, lanes(self.lanes.shape) as i64);
        self.asm.lea(Gpr::RCX, mem);
        self.leave_lanes();
        self.call_address(support::call_row as *const () as usize);
        self.after_call(Some(dst), after);
        self.result_from_slot(dst, first)
    }

    /// Returns the event among those `after` number `at` that computes the other one of sine and cosine of `argument`,
    /// if there are only stores between, with its next uses.
    fn partner(&self, at: u32, op: Op, argument: Reg, after: &[Instr]) -> Option<Partner> {
        let other = if op == Op::Sin { Op::Cos } else { Op::Sin };
        // The uses of this argument and of this result.
        let mut left = self.uses.left.saturating_sub(2);
        for (at, instr) in (at + 1..).zip(after) {
            match instr {
                Instr::Op { op, args, .. } if *op == other && args[0] == argument => {
                    return Some(Partner { at, next: self.plan.next_when(left)? });
                }
                Instr::Store { value, .. } if self.plan.kinds[value.index()] == Kind::Real => {
                    left = left.saturating_sub(1);
                }
                _ => return None,
            }
        }
        None
    }

    /// Computes sine and cosine of one argument in one call: the sine is returned in the first vector register, the
    /// cosine in memory. The one needed later is kept in a slot.
    fn call_sin_cos(
        &mut self,
        at: u32,
        after: &[Instr],
        SinCos { dst, op, argument, partner }: SinCos,
        entry: usize,
    ) -> Result<()> {
        let _ = self.next_use();
        let x = self.in_register(argument, partner.next)?;
        self.release(argument, partner.next);
        let slots = match self.calls.sin_cos_slots {
            Some(slots) => slots,
            None => self.registers.reserve_slots(2),
        };
        self.calls.sin_cos_slots = Some(slots);
        let (sine, cosine) = (self.frame.slot(slots), self.frame.slot(slots + 1));
        self.before_call(at)?;
        self.place(&[x]);
        self.asm.lea(Gpr::RDI, cosine);
        self.call_address(entry);
        if op == Op::Sin {
            self.calls.pending = Some((partner.at, slots + 1));
            self.after_call(Some(dst), after);
            return self.result_from(dst);
        }
        self.calls.pending = Some((partner.at, slots));
        self.asm.store(self.lanes.shape, sine, Xmm(0));
        self.after_call(Some(dst), after);
        self.result_from_slot(dst, slots + 1)
    }

    /// Takes a result from the first vector register.
    fn result_from(&mut self, dst: Reg) -> Result<()> {
        let next = self.next_use();
        let result = Xmm(0);
        match self.plan.home(dst.index()) {
            Home::Xmm(x) => self.asm.mov(self.lanes.shape, x, result),
            Home::Local if next == NEVER => {}
            _ => {
                // All registers of the pool are free, and the first is one of them.
                let d = self.take(dst, next)?;
                if d != result {
                    self.asm.mov(self.lanes.shape, d, result);
                }
                self.defined(dst, d, next);
            }
        }
        Ok(())
    }

    /// Loads the arguments into any registers.
    fn arguments_to_registers(&mut self, args: &[Reg]) -> Result<Vec<Xmm>> {
        let mut next = Vec::new();
        let mut from = Vec::new();
        for r in args {
            let after = self.next_use();
            next.push(after);
            from.push(self.in_register(*r, after)?);
        }
        for (r, after) in args.iter().zip(next) {
            self.release(*r, after);
        }
        Ok(from)
    }

    /// Moves arguments, at most two, to the first vector registers.
    fn place(&mut self, from: &[Xmm]) {
        match *from {
            [a] if a != Xmm(0) => self.asm.mov(self.lanes.shape, Xmm(0), a),
            [a, b] => {
                let mut b = b;
                if b == Xmm(0) && a != Xmm(0) {
                    // All others are free: their values are in memory.
                    let spare = if a == Xmm(2) { Xmm(3) } else { Xmm(2) };
                    self.asm.mov(self.lanes.shape, spare, b);
                    b = spare;
                }
                if a != Xmm(0) {
                    self.asm.mov(self.lanes.shape, Xmm(0), a);
                }
                if b != Xmm(1) {
                    self.asm.mov(self.lanes.shape, Xmm(1), b);
                }
            }
            _ => {}
        }
    }

    /// Calls a user function.
    pub(super) fn call_external(&mut self, at: u32, dst: Reg, function: usize, args: &[Reg]) -> Result<()> {
        self.save_masks()?;
        let first = self.arguments_to_slots(args)?;
        self.before_call(at)?;
        let (calls, mem) = (self.frame.word(Header::CALLS), self.frame.slot(first));
        self.asm.mov_rm(Gpr::RDI, calls);
        self.asm.mov_ri(Gpr::RSI, function as i64);
        self.asm.mov_ri(Gpr::RDX, lanes(self.lanes.shape) as i64);
        self.asm.lea(Gpr::RCX, mem);
        self.leave_lanes();
        self.call_address(support::call_external as *const () as usize);
        let label = self.site(Site::Panic, &[]);
        self.asm.test_rr(Gpr::RAX, Gpr::RAX);
        self.asm.jcc(Condition::Equal, label);
        self.after_call(None, &[]);
        self.result_from_slot(dst, first)
    }

    /// Calls an integer operator by its row.
    pub(super) fn call_int_op(&mut self, at: u32, dst: Reg, op: Op, args: &[Reg], failure: usize) -> Result<()> {
        let [rax, ..] = SCRATCH;
        self.save_masks()?;
        self.before_call(at)?;
        for (i, r) in (0..).zip(args) {
            let from = self.number(r.index(), rax);
            let mem = self.frame.word(Header::NUMBERS + i);
            self.asm.mov_mr(mem, from);
        }
        let numbers = self.frame.word(Header::NUMBERS);
        self.asm.mov_ri(Gpr::RDI, op as i64);
        self.asm.mov_ri(Gpr::RSI, args.len() as i64);
        self.asm.lea(Gpr::RDX, numbers);
        self.leave_lanes();
        self.call_address(support::call_int as *const () as usize);
        // The numbers are already in the words for failures.
        let label = self.site(Site::NoResult { failure, op }, &[]);
        self.asm.test_rr(Gpr::RAX, Gpr::RAX);
        self.asm.jcc(Condition::Equal, label);
        self.after_call(None, &[]);
        self.set_number(dst.index(), Gpr::RDX);
        Ok(())
    }

    /// Copies elements as described by the numbers of the frame: destination, source, length.
    pub(super) fn call_copy(&mut self, at: u32, to: BufferId, from: BufferId) -> Result<()> {
        self.before_call(at)?;
        let word = |this: &Self, word: u32| this.frame.word(word);
        let (to_at, from_at) = (word(self, self.plan.words.pointer(to)), word(self, self.plan.words.pointer(from)));
        let (to_len, from_len) = (word(self, self.plan.words.length(to)), word(self, self.plan.words.length(from)));
        let numbers = word(self, Header::NUMBERS);
        self.asm.mov_rm(Gpr::RDI, to_at);
        self.asm.mov_rm(Gpr::RSI, from_at);
        self.asm.lea(Gpr::RDX, numbers);
        self.asm.mov_rm(Gpr::RCX, to_len);
        self.asm.mov_rm(Gpr::R8, from_len);
        self.asm.mov_ri(Gpr::R9, lanes(self.lanes.shape) as i64);
        self.leave_lanes();
        self.call_address(support::copy as *const () as usize);
        let label = self.site(Site::Outside, &[]);
        self.asm.test_rr(Gpr::RAX, Gpr::RAX);
        self.asm.jcc(Condition::Equal, label);
        self.after_call(None, &[]);
        Ok(())
    }

    /// Clears the upper lanes: SSE code is slow while they are dirty.
    fn leave_lanes(&mut self) {
        if self.lanes.shape != Shape::One {
            self.asm.vzeroupper();
        }
    }

    /// For stubs: writes numbers into the words of the frame for failures.
    pub(super) fn report(&mut self, numbers: &[Number]) {
        let [rax, ..] = SCRATCH;
        for (i, number) in (0..).zip(numbers) {
            let from = self.number(*number, rax);
            let mem = self.frame.word(Header::NUMBERS + i);
            self.asm.mov_mr(mem, from);
        }
    }
}

/// Returns the vector registers of these bits.
fn each(mut bits: u32) -> impl Iterator<Item = Xmm> {
    std::iter::from_fn(move || {
        let x = (bits != 0).then(|| Xmm(bits.trailing_zeros() as u8))?;
        bits &= bits - 1;
        Some(x)
    })
}
