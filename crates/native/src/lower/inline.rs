//! Scalar operators that are instructions.
//!
//! They agree with the operators' rows bit for bit: `min(a, b)` is `b < a ? b : a`, which is the instruction with
//! exchanged arguments; comparisons with NaN are false.

use super::masks::mask_logic;
use super::plan::{Home, Kind, NEVER};
use super::{Compared, Result, Writer};
use crate::asm::{Alu, Arith, Condition, Fma, FmaOrder, Gpr, Logic, Mask, Predicate, Rounding, Shape, Source, Xmm};
use crate::level::Level;
use chainrule_base::Id;
use chainrule_kernel::{Instr, Reg, Signs};
use chainrule_ops::Op;

const SIGN: u64 = 1 << 63;

/// Operand of an instruction, with its next use.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    pub reg: Reg,
    pub next: u32,
}

/// Instruction of an operator.
enum Form {
    /// An arithmetic instruction, and the order of its arguments.
    Arith(Arith, Order),
    /// A bitwise instruction with a constant.
    Bits(Logic, u64),
    Sqrt,
    Sign,
    Round(Rounding),
    Compare(Predicate),
    Connect(Logic),
    Not,
    Select,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Fixed,
    Free,
    Exchanged,
}

fn form(op: Op) -> Option<Form> {
    Some(match op {
        Op::Add => Form::Arith(Arith::Add, Order::Free),
        Op::Sub => Form::Arith(Arith::Sub, Order::Fixed),
        Op::Mul => Form::Arith(Arith::Mul, Order::Free),
        Op::Div => Form::Arith(Arith::Div, Order::Fixed),
        Op::Min => Form::Arith(Arith::Min, Order::Exchanged),
        Op::Max => Form::Arith(Arith::Max, Order::Exchanged),
        Op::Neg => Form::Bits(Logic::Xor, SIGN),
        Op::Abs => Form::Bits(Logic::And, !SIGN),
        Op::Sqrt => Form::Sqrt,
        Op::Sign => Form::Sign,
        Op::Floor => Form::Round(Rounding::Floor),
        Op::Ceil => Form::Round(Rounding::Ceil),
        Op::Lt => Form::Compare(Predicate::Less),
        Op::Le => Form::Compare(Predicate::LessEqual),
        Op::Eq => Form::Compare(Predicate::Equal),
        Op::And => Form::Connect(Logic::And),
        Op::Or => Form::Connect(Logic::Or),
        Op::Not => Form::Not,
        Op::Select => Form::Select,
        _ => return None,
    })
}

/// Table of arithmetic instructions, which are most; a branch on the operator would be hard to predict. Agrees with
/// [`form`].
static ARITH: [Option<(Arith, Order)>; 64] = {
    let mut table = [None; 64];
    table[Op::Add as usize] = Some((Arith::Add, Order::Free));
    table[Op::Sub as usize] = Some((Arith::Sub, Order::Fixed));
    table[Op::Mul as usize] = Some((Arith::Mul, Order::Free));
    table[Op::Div as usize] = Some((Arith::Div, Order::Fixed));
    table
};

/// Returns whether `op` needs no call; those that have a [`form`]. Called for each instruction.
#[inline]
pub(super) const fn is_inline(op: Op) -> bool {
    const INLINE: u64 = {
        let all = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::Div,
            Op::Min,
            Op::Max,
            Op::Neg,
            Op::Abs,
            Op::Sqrt,
            Op::Sign,
            Op::Floor,
            Op::Ceil,
            Op::Lt,
            Op::Le,
            Op::Eq,
            Op::And,
            Op::Or,
            Op::Not,
            Op::Select,
        ];
        let (mut set, mut i) = (0, 0);
        while i < all.len() {
            set |= 1 << all[i] as u64;
            i += 1;
        }
        set
    };
    (op as u32) < 64 && INLINE >> op as u64 & 1 != 0
}

impl Writer<'_> {
    /// Emits an arithmetic instruction; returns whether `op` is one.
    #[inline]
    pub(super) fn plain_op(&mut self, dst: Reg, op: Op, [a, b, _]: &[Reg; 3]) -> Result<bool> {
        let Some((arith, order)) = ARITH.get(op as usize).copied().flatten() else { return Ok(false) };
        self.arith(arith, order, dst, *a, *b)?;
        Ok(true)
    }

    pub(super) fn op(&mut self, at: u32, dst: Reg, op: Op, args: &[Reg; 3], after: &[Instr]) -> Result<()> {
        let [a, b, c] = *args;
        match form(op) {
            None => self.call_op(at, dst, op, &args[..op.arity()], after),
            Some(Form::Arith(arith, order)) => self.arith(arith, order, dst, a, b),
            Some(Form::Bits(logic, bits)) => {
                let next = self.next_use();
                let x = self.in_register(a, next)?;
                self.release(a, next);
                let pattern = self.pattern(bits);
                self.finish(dst, |this, d| this.asm.logic(logic, this.lanes.shape, d, x, pattern))
            }
            Some(Form::Sqrt) => {
                let source = self.only_source(a)?;
                self.finish(dst, |this, d| this.asm.sqrt(this.lanes.shape, d, source))
            }
            Some(Form::Sign) => self.sign(dst, a),
            Some(Form::Round(mode)) => {
                let source = self.only_source(a)?;
                self.finish(dst, |this, d| this.asm.round(mode, this.lanes.shape, d, source))
            }
            Some(Form::Compare(predicate)) => self.compare(predicate, dst, a, b),
            Some(Form::Connect(logic)) => self.connect(logic, dst, a, b),
            Some(Form::Not) => self.not(dst, a),
            Some(Form::Select) => self.select(dst, a, b, c),
        }
    }

    /// Emits 1 with the sign of `a`; `a + 0` where `a` is zero or NaN.
    fn sign(&mut self, dst: Reg, a: Reg) -> Result<()> {
        let next = self.next_use();
        let x = self.in_register(a, next)?;
        let [bit, one, zero] = [SIGN, 1f64.to_bits(), 0].map(|bits| self.pattern(bits));
        let unit = self.temporary()?;
        self.asm.logic(Logic::And, self.lanes.shape, unit, x, bit);
        self.asm.logic(Logic::Or, self.lanes.shape, unit, unit, one);
        if self.mode.level == Level::Avx512 {
            let k = self.take_mask(None, NEVER)?;
            self.asm.compare_mask(Predicate::OrderedNotEqual, self.lanes.shape, k, x, zero);
            self.release(a, next);
            self.finish(dst, |this, d| {
                this.asm.arith(Arith::Add, this.lanes.shape, d, x, zero);
                this.asm.blend_mask(this.lanes.shape, d, d, unit, k);
            })?;
        } else {
            let mask = self.temporary()?;
            self.asm.compare(Predicate::OrderedNotEqual, self.lanes.shape, mask, x, zero);
            self.release(a, next);
            self.finish(dst, |this, d| {
                this.asm.arith(Arith::Add, this.lanes.shape, d, x, zero);
                this.asm.blend(this.lanes.shape, d, d, unit, mask);
            })?;
            self.registers.give_back(mask);
        }
        self.registers.give_back(unit);
        Ok(())
    }

    /// Emits the definition of `dst`, whose operands were read and released.
    #[inline]
    pub(super) fn finish(&mut self, dst: Reg, write: impl FnOnce(&mut Self, Xmm)) -> Result<()> {
        let next = self.next_use();
        let home = self.plan.home(dst.index());
        let d = match home {
            Home::Xmm(x) => x,
            _ => self.take(dst, next)?,
        };
        write(self, d);
        match home {
            Home::Local if next != NEVER => {}
            _ => self.defined(dst, d, next),
        }
        Ok(())
    }

    /// As [`Self::finish`], for a truth value in a vector, which is converted if it is read as a number.
    fn finish_truth(&mut self, dst: Reg, write: impl FnOnce(&mut Self, Xmm)) -> Result<()> {
        if self.plan.kinds[dst.index()] == Kind::Truth {
            return self.finish(dst, write);
        }
        let [rax, ..] = super::SCRATCH;
        let x = self.temporary()?;
        write(self, x);
        self.asm.movq_to(rax, x);
        self.asm.alu_ri(Alu::And, rax, 1);
        self.registers.give_back(x);
        self.set_number(dst.index(), rax);
        Ok(())
    }

    /// As [`Self::finish`], for a truth value in a mask register.
    fn finish_mask(&mut self, dst: Reg, write: impl FnOnce(&mut Self, Mask)) -> Result<()> {
        if self.plan.kinds[dst.index()] == Kind::Truth {
            let next = self.next_use();
            let k = self.take_mask(Some(dst), next)?;
            write(self, k);
            return self.defined_mask(dst, k, next);
        }
        let k = self.take_mask(None, NEVER)?;
        write(self, k);
        self.mask_number(k);
        self.set_number(dst.index(), super::SCRATCH[0]);
        Ok(())
    }

    fn arith(&mut self, op: Arith, order: Order, dst: Reg, a: Reg, b: Reg) -> Result<()> {
        let (next_a, next_b) = self.next_two();
        if let Some([x, y]) = self.registers.use_all([a, b], [next_a, next_b]) {
            if next_a == NEVER {
                self.registers.release_from(a, x);
            }
            if next_b == NEVER {
                self.registers.release_from(b, y);
            }
            let (x, y) = if order == Order::Exchanged { (y, x) } else { (x, y) };
            return self.finish(dst, |this, d| this.asm.arith(op, this.lanes.shape, d, x, y));
        }
        if self.mode.is_plain {
            return self.plain_arith(
                op,
                order,
                dst,
                Operand { reg: a, next: next_a },
                Operand { reg: b, next: next_b },
            );
        }
        self.arith_elsewhere(op, order, dst, Operand { reg: a, next: next_a }, Operand { reg: b, next: next_b })
    }

    /// Returns whether `b` is the first operand: if the order is free, the one in a register, so that the other may be
    /// in memory. Branch-free, because locations are hard to predict.
    #[inline]
    pub(super) fn is_exchanged(&self, order: Order, a: Reg, b: Reg) -> bool {
        match order {
            Order::Fixed => false,
            Order::Exchanged => true,
            Order::Free => self.registers.register(a).is_none() & self.registers.register(b).is_some(),
        }
    }

    /// Emits an arithmetic instruction whose operands are not all in registers.
    #[inline(never)]
    fn arith_elsewhere(&mut self, op: Arith, order: Order, dst: Reg, a: Operand, b: Operand) -> Result<()> {
        let (mut first, mut second) = (a, b);
        if self.is_exchanged(order, a.reg, b.reg) {
            std::mem::swap(&mut first, &mut second);
        }
        let x = self.in_register(first.reg, first.next)?;
        let source = if a.reg == b.reg { Source::Reg(x) } else { self.source(second.reg, second.next)? };
        self.release(a.reg, a.next);
        self.release(b.reg, b.next);
        self.finish(dst, |this, d| this.asm.arith(op, this.lanes.shape, d, x, source))
    }

    /// Emits a fused multiply-add, which overwrites one operand: a dead one, if there is one.
    pub(super) fn mul_add(&mut self, dst: Reg, signs: Signs, args: &[Reg; 3]) -> Result<()> {
        let (next_a, next_b) = self.next_two();
        let next = [next_a, next_b, self.next_use()];
        // A table, because the choice is hard to predict.
        let op = [Fma::MulAdd, Fma::MulSub, Fma::NegMulAdd][signs as usize - Signs::Plus as usize];
        if !self.plan.has_globals()
            && let Some(registers) = self.registers.use_all(*args, next)
        {
            return self.mul_add_registers(op, dst, args, next, registers);
        }
        if self.mode.is_plain {
            return self.plain_mul_add(op, dst, args, next);
        }
        self.mul_add_elsewhere(op, dst, args, next)
    }

    /// As [`Self::mul_add`], if all operands are in registers and no value outlives the block.
    #[inline]
    fn mul_add_registers(&mut self, op: Fma, dst: Reg, args: &[Reg; 3], next: [u32; 3], at: [Xmm; 3]) -> Result<()> {
        let [a, b, c] = at;
        let [ends_a, ends_b, ends_c] = next.map(|next| next == NEVER);
        let (x, y, z, order) = match (ends_c, ends_a, ends_b) {
            (false, true, _) => (a, b, c, FmaOrder::O213),
            (false, false, true) => (b, a, c, FmaOrder::O213),
            _ => (c, a, b, FmaOrder::O231),
        };
        for i in 0..3 {
            if next[i] == NEVER {
                self.registers.release_from(args[i], at[i]);
            }
        }
        let after = self.next_use();
        if self.registers.is_free(x) {
            self.registers.take_this(x, dst, after);
            self.asm.fma(op, order, self.lanes.shape, x, y, z);
        } else {
            // All operands stay in place until they are read.
            at.into_iter().for_each(|x| self.registers.lock(x));
            let d = self.take(dst, after)?;
            self.asm.mov(self.lanes.shape, d, x);
            self.asm.fma(op, order, self.lanes.shape, d, y, z);
        }
        if after == NEVER {
            self.registers.release(dst);
        }
        Ok(())
    }

    /// As [`Self::mul_add`], for operands anywhere.
    #[inline(never)]
    fn mul_add_elsewhere(&mut self, op: Fma, dst: Reg, args: &[Reg; 3], next: [u32; 3]) -> Result<()> {
        let held = args.map(|r| self.registers.register(r).is_some());
        // The overwritten operand, the one in a register, and the one that may be in memory.
        let [a, b, c] = [0, 1, 2];
        let ends = |i: &usize| next[*i] == NEVER;
        let is_local = |i: &usize| matches!(self.plan.home(args[*i].index()), Home::Local | Home::Slot(_));
        // A loop-carried value is mostly accumulated in place: its next value has the same location, so it is dead.
        let is_in_place = |i: &usize| match (self.plan.home(dst.index()), self.registers.register(args[*i])) {
            (Home::Xmm(pinned), Some(x)) => pinned == x,
            _ => false,
        };
        let over = [c, a, b].into_iter().find(is_in_place);
        let over = over.or_else(|| [c, a, b].into_iter().find(|i| ends(i) && held[*i] && is_local(i)));
        let over = over.or_else(|| [c, a, b].into_iter().find(|i| ends(i) && !held[*i]));
        let over = over.unwrap_or(c);
        let (first, second) = match over {
            0 => (b, c),
            1 => (a, c),
            _ => (a, b),
        };
        let is_factor = |i: usize| i != c;
        let (register, memory) = if !held[first] && held[second] { (second, first) } else { (first, second) };
        let x = self.in_register(args[over], next[over])?;
        let y = self.in_register(args[register], next[register])?;
        let source = if args[memory] == args[register] {
            Source::Reg(y)
        } else if args[memory] == args[over] {
            Source::Reg(x)
        } else {
            self.source(args[memory], next[memory])?
        };
        // 213: dst = y * dst + source; 231: dst = y * source + dst; 132: dst = dst * source + y.
        let order = match (is_factor(over), is_factor(register), is_factor(memory)) {
            (false, ..) => FmaOrder::O231,
            (_, true, false) => FmaOrder::O213,
            _ => FmaOrder::O132,
        };
        (0..3).for_each(|i| self.release(args[i], next[i]));
        let after = self.next_use();
        let d = match self.plan.home(dst.index()) {
            Home::Xmm(pinned) => pinned,
            // The register of the overwritten operand, if it is free now.
            _ if self.registers.is_free(x) => {
                self.registers.take_this(x, dst, after);
                x
            }
            _ => {
                // All operands stay in place until they are read.
                self.registers.lock(x);
                self.registers.lock(y);
                if let Source::Reg(z) = source {
                    self.registers.lock(z);
                }
                self.take(dst, after)?
            }
        };
        if d != x {
            if d == y || source == Source::Reg(d) {
                // A pinned register that is also an operand needs a temporary.
                let t = self.temporary_apart(&[x, y], source)?;
                self.asm.mov(self.lanes.shape, t, x);
                self.asm.fma(op, order, self.lanes.shape, t, y, source);
                self.asm.mov(self.lanes.shape, d, t);
                self.registers.give_back(t);
                self.defined(dst, d, after);
                return Ok(());
            }
            self.asm.mov(self.lanes.shape, d, x);
        }
        self.asm.fma(op, order, self.lanes.shape, d, y, source);
        self.defined(dst, d, after);
        Ok(())
    }

    /// Returns a temporary register other than these.
    fn temporary_apart(&mut self, not: &[Xmm], nor: Source) -> Result<Xmm> {
        not.iter().for_each(|x| self.registers.lock(*x));
        if let Source::Reg(x) = nor {
            self.registers.lock(x);
        }
        self.temporary()
    }

    /// Sets the flags for the following branch.
    pub(super) fn compare_doubles(&mut self, op: Op, a: Reg, b: Reg) -> Result<Compared> {
        let (next_a, next_b, _) = (self.next_use(), self.next_use(), self.next_use());
        // For NaN the carry flag is set, so "less" is tested as "above" with exchanged operands.
        let ((x, next_x), (y, next_y)) = match op {
            Op::Eq => ((a, next_a), (b, next_b)),
            _ => ((b, next_b), (a, next_a)),
        };
        let first = self.in_register(x, next_x)?;
        let second = if a == b { Source::Reg(first) } else { self.source(y, next_y)? };
        self.release(a, next_a);
        self.release(b, next_b);
        self.asm.compare_flags(first, second);
        Ok(match op {
            Op::Lt => Compared::Doubles(Condition::Above),
            Op::Le => Compared::Doubles(Condition::AboveEqual),
            _ => Compared::EqualDoubles,
        })
    }

    fn compare(&mut self, predicate: Predicate, dst: Reg, a: Reg, b: Reg) -> Result<()> {
        let (next_a, next_b) = (self.next_use(), self.next_use());
        let x = self.in_register(a, next_a)?;
        let source = if a == b { Source::Reg(x) } else { self.source(b, next_b)? };
        if self.mode.level == Level::Avx512 {
            // A mask that is evicted moves to a vector before the arguments are read, and must not take their
            // registers.
            self.finish_mask(dst, |this, k| this.asm.compare_mask(predicate, this.lanes.shape, k, x, source))?;
            self.release(a, next_a);
            self.release(b, next_b);
            return Ok(());
        }
        self.release(a, next_a);
        self.release(b, next_b);
        self.finish_truth(dst, |this, d| this.asm.compare(predicate, this.lanes.shape, d, x, source))
    }

    fn connect(&mut self, logic: Logic, dst: Reg, a: Reg, b: Reg) -> Result<()> {
        if self.plan.facts.is_bit(dst.index()) {
            let op = if logic == Logic::And { Alu::And } else { Alu::Or };
            self.connect_bits(dst, a, |this, to| {
                let b = this.number(b.index(), super::SCRATCH[1]);
                this.asm.alu_rr(op, to, b);
            });
            return Ok(());
        }
        if self.mode.level == Level::Avx512 {
            let (k, l) = (self.truth_mask(a)?, self.truth_mask(b)?);
            let op = mask_logic(logic);
            return self.finish_mask(dst, |this, d| this.asm.mask_logic(op, d, k, l));
        }
        let x = self.truth(a)?;
        let y = self.truth(b)?;
        self.release_truths();
        self.finish_truth(dst, |this, d| this.asm.logic(logic, this.lanes.shape, d, x, y))
    }

    /// Combines `a`, which is 0 or 1, into another 0 or 1.
    fn connect_bits(&mut self, dst: Reg, a: Reg, write: impl FnOnce(&mut Self, Gpr)) {
        let [rax, ..] = super::SCRATCH;
        self.number_into(rax, a.index());
        write(self, rax);
        self.set_number(dst.index(), rax);
    }

    fn not(&mut self, dst: Reg, a: Reg) -> Result<()> {
        if self.plan.facts.is_bit(dst.index()) {
            self.connect_bits(dst, a, |this, to| this.asm.alu_ri(Alu::Xor, to, 1));
            return Ok(());
        }
        if self.mode.level == Level::Avx512 {
            let k = self.truth_mask(a)?;
            return self.finish_mask(dst, |this, d| this.asm.mask_not(d, k));
        }
        let x = self.truth(a)?;
        self.release_truths();
        let ones = self.pattern(u64::MAX);
        self.finish_truth(dst, |this, d| this.asm.logic(Logic::Xor, this.lanes.shape, d, x, ones))
    }

    fn select(&mut self, dst: Reg, condition: Reg, then: Reg, otherwise: Reg) -> Result<()> {
        if self.mode.level == Level::Avx512 {
            let k = self.truth_mask(condition)?;
            let (next_then, next_otherwise) = (self.next_use(), self.next_use());
            let x = self.in_register(otherwise, next_otherwise)?;
            let source = if then == otherwise { Source::Reg(x) } else { self.source(then, next_then)? };
            self.release(then, next_then);
            self.release(otherwise, next_otherwise);
            return self.finish(dst, |this, d| this.asm.blend_mask(this.lanes.shape, d, x, source, k));
        }
        let mask = self.truth(condition)?;
        let (next_then, next_otherwise) = (self.next_use(), self.next_use());
        let x = self.in_register(otherwise, next_otherwise)?;
        // The instruction reads 16 bytes for a scalar, so the operand must be in a register.
        let y = self.in_register(then, next_then)?;
        self.release_truths();
        self.release(then, next_then);
        self.release(otherwise, next_otherwise);
        self.finish(dst, |this, d| this.asm.blend(this.lanes.shape, d, x, y, mask))
    }

    /// Returns the operand of an instruction with one: a scalar in a register, because an instruction that reads it
    /// from memory also waits for the last value of its result's register.
    fn only_source(&mut self, a: Reg) -> Result<Source> {
        let next = self.next_use();
        let source =
            if self.lanes.shape == Shape::One { self.in_register(a, next)?.into() } else { self.source(a, next)? };
        self.release(a, next);
        Ok(source)
    }

    /// Converts an integer, or a truth value, to a double.
    pub(super) fn int_to_real(&mut self, dst: Reg, src: Reg) -> Result<()> {
        let one = 1f64.to_bits();
        if let Some(step) = self.steps(src) {
            return self.stepping_to_real(dst, src, step);
        }
        if self.is_varying(src) {
            return self.varying_to_real(dst, src);
        }
        if self.plan.kinds[src.index()] == Kind::Int {
            let from = self.number(src.index(), super::SCRATCH[0]);
            return self.finish(dst, |this, d| {
                this.asm.zero(d);
                this.asm.cvtsi2sd(d, d, from);
                if this.lanes.shape != Shape::One {
                    this.asm.broadcast(this.lanes.shape, d, d);
                }
            });
        }
        let x = if self.mode.level == Level::Avx512 {
            let k = self.truth_mask(src)?;
            let x = self.temporary()?;
            self.asm.mask_spread(self.lanes.shape, x, k);
            self.registers.give_back(x);
            self.registers.unlock(x);
            x
        } else {
            let x = self.truth(src)?;
            self.release_truths();
            x
        };
        let pattern = self.pattern(one);
        self.finish(dst, |this, d| this.asm.logic(Logic::And, this.lanes.shape, d, x, pattern))
    }

    /// Returns a register with the truth value of `r` for AVX2: all bits or none. Consumes the next uses of vector
    /// operands.
    fn truth(&mut self, r: Reg) -> Result<Xmm> {
        if self.plan.kinds[r.index()] == Kind::Truth {
            let next = self.next_use();
            self.truths.next.push((r, next));
            return self.in_register(r, next);
        }
        let x = self.temporary()?;
        self.spread_number(x, r.index());
        self.truths.temporaries.push(x);
        Ok(x)
    }

    /// Puts 1 or 0 into the first scratch register, by the truth value of `r` in the first lane.
    pub(super) fn truth_number(&mut self, r: Reg) -> Result<()> {
        if self.mode.level == Level::Avx512 {
            let k = self.truth_mask(r)?;
            self.mask_number(k);
            return Ok(());
        }
        let [rax, ..] = super::SCRATCH;
        let x = self.truth(r)?;
        self.release_truths();
        self.asm.movq_to(rax, x);
        self.asm.alu_ri(Alu::And, rax, 1);
        Ok(())
    }

    /// Releases the registers of [`Self::truth`].
    fn release_truths(&mut self) {
        while let Some((r, next)) = self.truths.next.pop() {
            self.release(r, next);
        }
        while let Some(x) = self.truths.temporaries.pop() {
            self.registers.give_back(x);
            self.registers.unlock(x);
        }
    }

    /// Sets all bits of the first scratch register if the number is not 0, none otherwise.
    pub(super) fn all_bits(&mut self, number: usize) {
        let [rax, rcx, _] = super::SCRATCH;
        if self.plan.facts.is_bit(number) {
            self.number_into(rax, number);
        } else {
            let from = self.number(number, rcx);
            self.asm.mov_ri(rax, 0);
            self.asm.test_rr(from, from);
            self.asm.setcc(Condition::NotEqual, rax);
        }
        self.asm.neg(rax);
    }

    /// Sets all bits of all lanes of `x` if the number is not 0, none otherwise.
    pub(super) fn spread_number(&mut self, x: Xmm, number: usize) {
        let [rax, ..] = super::SCRATCH;
        self.all_bits(number);
        self.asm.movq_from(x, rax);
        if self.lanes.shape != Shape::One {
            self.asm.broadcast(self.lanes.shape, x, x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{form, is_inline};
    use chainrule_ops::Op;

    #[test]
    fn operators_with_an_instruction_are_inline() {
        Op::all().for_each(|op| assert_eq!(is_inline(op), form(op).is_some(), "{op:?}"));
    }
}
