//! Integers: polynomials, operators in integer form, index checks, addresses.
//!
//! Each integer is in a general register or a word of the frame; three registers are scratch. A result may share its
//! location with an operand, so it is written last.

use super::lanes::Last;
use super::plan::{Home, Kept, KeptAt, LoopPlan, Number, Step};
use super::spares::Part;
use super::{Here, Overflow, Result, SCRATCH, Site, Writer};
use crate::asm::{Alu, Condition, Gpr, Mem, Shift};
use chainrule_base::{Id, Poly};
use chainrule_kernel::addresses::split_constant;
use chainrule_kernel::{BufferId, Event, Instr, Reg};
use chainrule_ops::Op;

/// Returns whether the integer form of `op` needs no call.
pub(super) fn is_inline(op: Op) -> bool {
    matches!(
        op,
        Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::Quot | Op::Mod | Op::Lt | Op::Le | Op::Eq | Op::Min | Op::Max
    )
}

/// Returns the condition code under which a comparison of integers holds.
pub(super) fn holds(op: Op) -> Condition {
    match op {
        Op::Lt => Condition::Less,
        Op::Le => Condition::LessEqual,
        _ => Condition::Equal,
    }
}

impl Writer<'_> {
    /// Returns a register with a number: its own, or `scratch`.
    pub(super) fn number(&mut self, number: Number, scratch: Gpr) -> Gpr {
        let number = self.integers.instead.filter(|(this, _)| *this == number).map_or(number, |(_, other)| other);
        let first = match self.plan.home(number) {
            Home::Gpr(g) => g,
            Home::Word(word) => {
                let mem = self.frame.word(word);
                self.asm.mov_rm(scratch, mem);
                scratch
            }
            Home::Local | Home::Xmm(_) | Home::Slot(_) => {
                match self.varying_word(number) {
                    Some(mem) => self.asm.mov_rm(scratch, mem),
                    // It starts at 0.
                    None if self.is_index_of_lanes(number) => self.asm.mov_ri(scratch, 0),
                    None => drop(self.failures.fault.get_or_insert("an integer has no place")),
                }
                scratch
            }
        };
        match self.steps_so_far(number) {
            0 => first,
            disp => {
                self.asm.lea(scratch, Mem::At { base: first, disp });
                scratch
            }
        }
    }

    /// Loads a number into `dst`.
    pub(super) fn number_into(&mut self, dst: Gpr, number: Number) {
        let from = self.number(number, dst);
        if from != dst {
            self.asm.mov_rr(dst, from);
        }
    }

    pub(super) fn set_number(&mut self, number: Number, from: Gpr) {
        match self.plan.home(number) {
            Home::Gpr(g) if g != from => self.asm.mov_rr(g, from),
            Home::Word(word) => {
                let mem = self.frame.word(word);
                self.asm.mov_mr(mem, from);
            }
            // Unused values have no location.
            _ => {}
        }
    }

    /// Computes `scale * poly` in the first scratch register, using the second.
    pub(super) fn poly(&mut self, poly: &Poly<Reg>, scale: i64, overflow: Overflow) -> Result<Gpr> {
        let [rax, ..] = SCRATCH;
        self.poly_into(rax, poly, scale, overflow)?;
        Ok(rax)
    }

    /// As [`Self::poly`], in `dst`, which holds none of the variables.
    fn poly_into(&mut self, dst: Gpr, poly: &Poly<Reg>, scale: i64, overflow: Overflow) -> Result<()> {
        let [_, rcx, rdx] = SCRATCH;
        if let Some(value) = poly.as_constant() {
            self.asm.mov_ri(dst, value.wrapping_mul(scale));
            return Ok(());
        }
        for (i, (monomial, c)) in poly.terms().enumerate() {
            let c = c.wrapping_mul(scale);
            let target = if i == 0 { dst } else { rcx };
            let Some((first, rest)) = monomial.split_first() else {
                self.asm.mov_ri(target, c);
                continue;
            };
            match i32::try_from(c) {
                Ok(1) => self.number_into(target, first.index()),
                Ok(small) => {
                    let from = self.number(first.index(), target);
                    self.asm.imul_rri(target, from, small);
                    self.check_overflow(overflow);
                }
                Err(_) => {
                    self.asm.mov_ri(target, c);
                    let from = self.number(first.index(), rdx);
                    self.asm.imul_rr(target, from);
                    self.check_overflow(overflow);
                }
            }
            for r in rest {
                let from = self.number(r.index(), rdx);
                self.asm.imul_rr(target, from);
                self.check_overflow(overflow);
            }
            if i > 0 {
                self.asm.alu_rr(Alu::Add, dst, rcx);
                self.check_overflow(overflow);
            }
        }
        Ok(())
    }

    fn check_overflow(&mut self, overflow: Overflow) {
        if overflow == Overflow::Fails {
            let label = self.site(Site::Overflow(self.integers.computing), &[]);
            self.asm.jcc(Condition::Overflow, label);
        }
    }

    pub(super) fn instr_int(&mut self, dst: Reg, value: &Poly<Reg>) -> Result<()> {
        if let Some(value) = value.as_constant() {
            self.integers.known.insert(dst, value);
        }
        if self.is_varying(dst) {
            return self.varying_poly(dst, value);
        }
        let operands: Vec<Number> = value.terms().flat_map(|(m, _)| m).map(|r| r.index()).collect();
        if self.steps(dst).is_some() {
            self.last_fits(value)?;
        }
        let to = self.target(dst, &operands);
        self.poly_into(to, value, 1, Overflow::Fails)?;
        self.set_number(dst.index(), to);
        Ok(())
    }

    /// Returns the register in which `dst` is computed: its own, unless an operand is there too, or the first scratch
    /// register.
    pub(super) fn target(&self, dst: Reg, operands: &[Number]) -> Gpr {
        let home = self.plan.home(dst.index());
        match home {
            Home::Gpr(g) if operands.iter().all(|r| self.plan.home(*r) != home) => g,
            _ => SCRATCH[0],
        }
    }

    pub(super) fn int_op(&mut self, at: u32, dst: Reg, op: Op, args: &[Reg; 3], failure: usize) -> Result<()> {
        let args = &args[..op.arity()];
        if !is_inline(op) {
            return self.call_int_op(at, dst, op, args, failure);
        }
        if self.is_varying(dst) {
            return self.compute_varying(dst, |this| {
                this.inline_int_op(dst, op, args, failure);
                Ok(())
            });
        }
        self.inline_int_op(dst, op, args, failure);
        Ok(())
    }

    /// Computes the integer form of an operator that needs no call. A result without a location of its own is in the
    /// first scratch register.
    fn inline_int_op(&mut self, dst: Reg, op: Op, args: &[Reg], failure: usize) {
        let [rax, rcx, rdx] = SCRATCH;
        if matches!(op, Op::Quot | Op::Mod) {
            return self.divide(dst, op, args, failure);
        }
        let numbers: Vec<Number> = args.iter().map(|r| r.index()).collect();
        let b = match args.get(1) {
            Some(b) => self.number(b.index(), rcx),
            None => rcx,
        };
        if let Op::Lt | Op::Le | Op::Eq = op {
            // The whole register is written, so it has no dependency.
            self.asm.mov_ri(rdx, 0);
            let a = self.number(args[0].index(), rax);
            self.asm.alu_rr(Alu::Cmp, a, b);
            self.asm.setcc(holds(op), rdx);
            self.set_number(dst.index(), rdx);
            return;
        }
        let to = self.target(dst, &numbers);
        self.number_into(to, args[0].index());
        match op {
            Op::Add => self.asm.alu_rr(Alu::Add, to, b),
            Op::Sub => self.asm.alu_rr(Alu::Sub, to, b),
            Op::Mul => self.asm.imul_rr(to, b),
            Op::Neg => self.asm.neg(to),
            Op::Min | Op::Max => {
                self.asm.alu_rr(Alu::Cmp, b, to);
                let condition = if op == Op::Min { Condition::Less } else { Condition::Greater };
                self.asm.cmov_rr(condition, to, b);
            }
            _ => {}
        }
        if matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg) {
            let label = self.site(Site::NoResult { failure, op }, &numbers);
            self.asm.jcc(Condition::Overflow, label);
        }
        self.set_number(dst.index(), to);
    }

    /// Computes the quotient or the remainder, rounded down. Fails on a division by zero, and if the quotient does not
    /// fit.
    fn divide(&mut self, dst: Reg, op: Op, args: &[Reg], failure: usize) {
        let [rax, rcx, rdx] = SCRATCH;
        self.number_into(rax, args[0].index());
        if let Some(bits) = self.power_of_two(args[1]) {
            match op {
                Op::Quot => self.asm.shift_ri(Shift::RightSigned, rax, bits),
                _ => {
                    self.asm.mov_ri(rcx, (1 << bits) - 1);
                    self.asm.alu_rr(Alu::And, rax, rcx);
                }
            }
            self.set_number(dst.index(), rax);
            return;
        }
        let b = self.number(args[1].index(), rcx);
        let numbers: Vec<Number> = args.iter().map(|r| r.index()).collect();
        let fails = self.site(Site::NoResult { failure, op }, &numbers);
        let (plain, done) = (self.asm.new_label(), self.asm.new_label());
        self.asm.test_rr(b, b);
        self.asm.jcc(Condition::Equal, fails);
        // The only quotient that does not fit traps.
        self.asm.alu_ri(Alu::Cmp, b, -1);
        self.asm.jcc(Condition::NotEqual, plain);
        self.asm.neg(rax);
        self.asm.jcc(Condition::Overflow, fails);
        if op == Op::Mod {
            self.asm.mov_ri(rax, 0);
        }
        self.asm.jmp(done);
        self.asm.bind(plain);
        self.asm.cqo();
        self.asm.idiv(b);
        match op {
            Op::Quot => {
                // One less if the remainder is not 0 and its sign differs from the divisor's.
                self.asm.test_rr(rdx, rdx);
                self.asm.jcc(Condition::Equal, done);
                self.asm.alu_rr(Alu::Xor, rdx, b);
                self.asm.jcc(Condition::NotNegative, done);
                self.asm.dec(rax);
            }
            _ => {
                self.asm.mov_rr(rax, rdx);
                self.asm.test_rr(rdx, rdx);
                self.asm.jcc(Condition::Equal, done);
                self.asm.alu_rr(Alu::Xor, rdx, b);
                self.asm.jcc(Condition::NotNegative, done);
                self.asm.alu_rr(Alu::Add, rax, b);
            }
        }
        self.asm.bind(done);
        self.set_number(dst.index(), rax);
    }

    /// Returns the exponent if `reg` is a known power of two.
    fn power_of_two(&self, reg: Reg) -> Option<u8> {
        let value = *self.integers.known.get(&reg)?;
        (value > 0 && value.count_ones() == 1).then_some(value.trailing_zeros() as u8)
    }

    /// Fails unless `0 <= index < len`.
    pub(super) fn check_index(&mut self, index: Reg, len: &Poly<Reg>, failure: usize) -> Result<()> {
        let [rax, rcx, _] = SCRATCH;
        if let Some(step) = self.steps(index) {
            return self.check_all(index, step, len, failure);
        }
        if self.is_varying(index) {
            return self.check_varying(index, len, failure);
        }
        // As an unsigned number, a negative number exceeds any length.
        let is_length = self.integers.ranges.is_at_least_zero(len);
        if let Some(known) = len.as_constant().and_then(|n| i32::try_from(n).ok()).filter(|_| is_length) {
            let index = self.number(index.index(), rcx);
            let label = self.site_with(Site::Index { failure }, vec![Here::In(index), Here::Known(known)]);
            self.asm.alu_ri(Alu::Cmp, index, known);
            self.asm.jcc(Condition::AboveEqual, label);
            return Ok(());
        }
        let len = match len.as_var() {
            Some(len) => self.number(len.index(), rax),
            None => self.poly(len, 1, Overflow::Fails)?,
        };
        let index = self.number(index.index(), rcx);
        // The failure finds both in their current locations.
        let label = self.site_with(Site::Index { failure }, vec![Here::In(index), Here::In(len)]);
        if is_length {
            self.asm.alu_rr(Alu::Cmp, index, len);
            self.asm.jcc(Condition::AboveEqual, label);
            return Ok(());
        }
        self.asm.test_rr(index, index);
        self.asm.jcc(Condition::Negative, label);
        self.asm.alu_rr(Alu::Cmp, index, len);
        self.asm.jcc(Condition::GreaterEqual, label);
        Ok(())
    }

    pub(super) fn load_int(&mut self, dst: Reg, buffer: BufferId, at: &Poly<Reg>) -> Result<()> {
        if self.is_varying(dst) {
            return self.load_varying(dst, buffer, at);
        }
        let mem = self.address(buffer, at)?;
        let to = self.target(dst, &[]);
        self.asm.mov_rm(to, mem);
        self.set_number(dst.index(), to);
        Ok(())
    }

    pub(super) fn store_int(&mut self, buffer: BufferId, at: &Poly<Reg>, value: Reg) -> Result<()> {
        let [.., rdx] = SCRATCH;
        let mem = self.address(buffer, at)?;
        let from = self.number(value.index(), rdx);
        self.asm.mov_mr(mem, from);
        Ok(())
    }

    /// Returns the memory operand of an element, for the next instruction; uses at most the first two scratch
    /// registers. The third one is free again.
    #[inline]
    pub(super) fn address(&mut self, buffer: BufferId, at: &Poly<Reg>) -> Result<Mem> {
        match self.known_element(buffer, at) {
            Some(mem) => Ok(mem),
            None => self.address_elsewhere(buffer, at),
        }
    }

    /// As [`Self::address`], if the element or its pointer must be computed.
    #[inline(never)]
    fn address_elsewhere(&mut self, buffer: BufferId, at: &Poly<Reg>) -> Result<Mem> {
        let [rax, rcx, rdx] = SCRATCH;
        let bytes = self.element_bytes();
        let scale = bytes / 8;
        if let Some(disp) = self.element(buffer, at)? {
            let base = self.pointer(buffer, rcx);
            return Ok(Mem::At { base, disp });
        }
        let is_inside = at.as_constant().is_some() || self.is_inside(buffer, at);
        let first = self.first_lane(at);
        let first = first.as_ref().unwrap_or(at);
        if let Some(element) = first.as_constant().filter(|_| is_inside)
            && let Some(disp) = element.checked_mul(bytes).and_then(|d| i32::try_from(d).ok())
        {
            let base = self.pointer(buffer, rcx);
            return Ok(Mem::At { base, disp });
        }
        let (rest, offset) = split_constant(first);
        let disp = i64::from(offset).checked_mul(bytes).and_then(|d| i32::try_from(d).ok());
        let (rest, offset, disp) = match disp {
            Some(disp) => (rest, offset, disp),
            None => (first.clone(), 0, 0),
        };
        let last = if is_inside { None } else { self.last_lane(at) };
        match &last {
            Some(Last::Known(last)) if last.as_constant().is_none() => {
                let from = self.poly(&first.add(last), 1, Overflow::Wraps)?;
                self.check_inside(buffer, from);
            }
            Some(Last::Counted(count, slope)) if slope.as_constant().is_none() => {
                let from = self.poly(first, 1, Overflow::Wraps)?;
                self.counted_last(*count, slope)?;
                self.asm.alu_rr(Alu::Add, from, rcx);
                self.check_inside(buffer, from);
            }
            _ => {}
        }
        let pointer = self.kept(&rest).filter(|kept| kept.within == Some(buffer));
        if let Some(KeptAt { place, after, .. }) = pointer
            && is_inside
        {
            let base = self.number(place, rcx);
            return Ok(match after {
                Some(counter) => Mem::Indexed { base, index: self.number(counter, rax), scale: 8, disp },
                None => Mem::At { base, disp },
            });
        }
        let index = match pointer {
            Some(kept) => {
                self.kept_into(rax, kept);
                self.elements(rax, buffer);
                rax
            }
            None => self.offset(&rest, scale)?,
        };
        if !is_inside {
            self.asm.lea(rdx, Mem::At { base: index, disp: offset.wrapping_mul(scale as i32) });
            self.check_inside(buffer, rdx);
            match last {
                Some(Last::Counted(count, slope)) if slope.as_constant().is_some() => {
                    self.counted_last(count, &slope)?;
                    self.asm.alu_rr(Alu::Add, rdx, rcx);
                    self.check_inside(buffer, rdx);
                }
                Some(Last::Known(last)) => {
                    if let Some(last) = last.as_constant() {
                        self.asm.alu_ri(Alu::Add, rdx, last as i32);
                        self.check_inside(buffer, rdx);
                    }
                }
                Some(Last::Counted(..)) | None => {}
            }
        }
        let base = self.pointer(buffer, rcx);
        Ok(Mem::Indexed { base, index, scale: 8, disp })
    }

    /// Returns the offset of an element in its buffer in bytes, if it is known at compile time and fits into an
    /// instruction. Emits a check if the length is not known.
    pub(super) fn element(&mut self, buffer: BufferId, at: &Poly<Reg>) -> Result<Option<i32>> {
        let [.., rdx] = SCRATCH;
        let Some(element) = at.as_constant() else { return Ok(None) };
        let bytes = self.element_bytes();
        let len = self.kernel.buffers[buffer].len.as_constant();
        if element < 0 || len.is_some_and(|len| element >= len) {
            // Behind a check that always fails.
            let label = self.site(Site::Outside, &[]);
            self.asm.jmp(label);
            return Ok(Some(0));
        }
        if len.is_none() && self.mode.in_range.is_none() {
            self.asm.mov_ri(rdx, element.saturating_mul(bytes / 8));
            self.check_inside(buffer, rdx);
        }
        Ok(element.checked_mul(bytes).and_then(|d| i32::try_from(d).ok()))
    }

    /// Returns whether an address has the same value in the whole block, without recomputation for each use.
    pub(super) fn is_stable(&self, at: &Poly<Reg>) -> bool {
        let first = self.first_lane(at);
        let first = first.as_ref().unwrap_or(at);
        first.as_constant().is_some()
            || self.addresses.spares.len() >= 2
            || self.kept(&split_constant(first).0).is_some()
    }

    fn kept(&self, rest: &Poly<Reg>) -> Option<KeptAt> {
        let open = self.control.loops.iter().rev().find(|open| !open.is_one_round)?;
        open.kept.get(rest).copied()
    }

    /// Returns a register with `scale` times an offset: one that caches it, or the first scratch one.
    fn offset(&mut self, rest: &Poly<Reg>, scale: i64) -> Result<Gpr> {
        let [rax, ..] = SCRATCH;
        let number = match (self.kept(rest), rest.as_var()) {
            (Some(KeptAt { place, within: None, .. }), _) => Some(place),
            (_, Some(r)) if scale == 1 => Some(r.index()),
            _ => None,
        };
        if let Some(number) = number
            && let Home::Gpr(g) = self.plan.home(number)
        {
            return Ok(g);
        }
        let (g, is_there) = self.spare(Part::Offset(rest.clone())).unwrap_or((rax, false));
        match number {
            _ if is_there => {}
            Some(number) => self.number_into(g, number),
            None => self.poly_into(g, rest, scale, Overflow::Wraps)?,
        }
        Ok(g)
    }

    /// Returns whether an address needs no check.
    pub(super) fn is_inside(&mut self, buffer: BufferId, at: &Poly<Reg>) -> bool {
        self.mode.in_range.is_some() || self.integers.ranges.is_inside(at, &self.kernel.buffers[buffer].len)
    }

    /// Fails unless the element in `index`, times the number of lanes, is in the buffer.
    pub(super) fn check_inside(&mut self, buffer: BufferId, index: Gpr) {
        let label = self.site(Site::Outside, &[]);
        let len = self.frame.word(self.plan.words.length(buffer));
        self.asm.alu_rm(Alu::Cmp, index, len);
        self.asm.jcc(Condition::AboveEqual, label);
    }

    /// Returns a spare register for a part of an address, and whether it already holds it.
    pub(super) fn spare(&mut self, part: Part) -> Option<(Gpr, bool)> {
        if let Some(g) = self.addresses.spares.find(&part) {
            return Some((g, true));
        }
        Some((self.addresses.spares.take(part)?, false))
    }

    /// Initialises a loop's cached addresses, to be stepped by so many iterations.
    pub(super) fn set_kept(&mut self, plan: &LoopPlan, index: Option<Reg>, iterations: i64) -> Result<()> {
        let scale = self.element_bytes() / 8;
        let [rax, rcx, _] = SCRATCH;
        for Kept { address, at, step, .. } in &plan.kept {
            let base = index.and_then(|i| address.split_linear(i)).map_or_else(|| address.clone(), |(_, base)| base);
            let (rest, offset) = split_constant(&base);
            let (mut from, mut within) = (rax, None);
            match self.kept(&rest) {
                // The outer loop caches the start of this one.
                Some(around) => {
                    self.kept_into(rax, around);
                    let disp = match i32::try_from(i64::from(offset) * scale * around.unit()) {
                        Ok(disp) if around.within == at.within => {
                            within = around.within;
                            disp
                        }
                        _ => {
                            around.within.into_iter().for_each(|buffer| self.elements(rax, buffer));
                            offset.wrapping_mul(scale as i32)
                        }
                    };
                    if offset != 0 {
                        self.asm.lea(rax, Mem::At { base: rax, disp });
                    }
                }
                None => from = self.poly(&base, scale, Overflow::Wraps)?,
            }
            if let Some(buffer) = at.within.filter(|_| within.is_none()) {
                let base = self.pointer_now(buffer, rcx);
                self.asm.lea(rax, Mem::Indexed { base, index: from, scale: 8, disp: 0 });
                from = rax;
            }
            self.set_number(at.place, from);
            if let Step::Number(number, slope) = step {
                let from = self.poly(slope, scale * iterations * at.unit(), Overflow::Wraps)?;
                self.set_number(*number, from);
            }
        }
        Ok(())
    }

    /// Loads a cached address into `dst`, using the second scratch register.
    fn kept_into(&mut self, dst: Gpr, KeptAt { place, after, .. }: KeptAt) {
        let [_, rcx, _] = SCRATCH;
        self.number_into(dst, place);
        if let Some(counter) = after {
            let index = self.number(counter, rcx);
            self.asm.lea(dst, Mem::Indexed { base: dst, index, scale: 8, disp: 0 });
        }
    }

    /// Converts a pointer to an element of a buffer to the element's number, times the number of points.
    fn elements(&mut self, pointer: Gpr, buffer: BufferId) {
        let mem = self.frame.word(self.plan.words.pointer(buffer));
        self.asm.alu_rm(Alu::Sub, pointer, mem);
        self.asm.shift_ri(Shift::RightSigned, pointer, 3);
    }

    /// Steps the cached addresses by so many iterations; steps in registers were computed for that number.
    pub(super) fn step_kept(&mut self, plan: &LoopPlan, iterations: i64) {
        let [_, rcx, _] = SCRATCH;
        let scale = self.element_bytes() / 8;
        for Kept { at: at @ KeptAt { place, .. }, step, .. } in &plan.kept {
            let by = match step {
                Step::Constant(0) => continue,
                Step::Constant(k) => {
                    let by = k.wrapping_mul(scale).wrapping_mul(iterations).wrapping_mul(at.unit());
                    match (i32::try_from(by), self.plan.home(*place)) {
                        (Ok(by), Home::Gpr(g)) => self.asm.alu_ri(Alu::Add, g, by),
                        (Ok(by), Home::Word(word)) => {
                            let mem = self.frame.word(word);
                            self.asm.alu_mi(Alu::Add, mem, by);
                        }
                        _ => {
                            self.asm.mov_ri(rcx, by);
                            self.add_to(*place, rcx);
                        }
                    }
                    continue;
                }
                Step::Number(number, _) => self.number(*number, rcx),
            };
            self.add_to(*place, by);
        }
    }

    fn add_to(&mut self, place: Number, by: Gpr) {
        match self.plan.home(place) {
            Home::Word(word) => {
                let mem = self.frame.word(word);
                self.asm.alu_mr(Alu::Add, mem, by);
            }
            Home::Gpr(g) => self.asm.alu_rr(Alu::Add, g, by),
            _ => {}
        }
    }

    pub(super) fn integer_instr(&mut self, at: u32, instr: &Instr) -> Result<()> {
        self.integers.computing = Event::Instr(instr).integer();
        match instr {
            Instr::Int { dst, value } => self.instr_int(*dst, value),
            Instr::IntOp { dst, op, args, failure } => self.int_op(at, *dst, *op, args, *failure),
            Instr::CheckIndex { index, len, failure } => self.check_index(*index, len, *failure),
            Instr::Load { dst, buffer, at: element } => self.load_int(*dst, *buffer, element),
            Instr::Store { buffer, at: element, value } => self.store_int(*buffer, element, *value),
            _ => Err(super::bug("an instruction in the wrong place")),
        }
    }
}
