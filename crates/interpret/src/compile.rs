//! Compilation of a kernel to bytecode.
//!
//! In: the events of a kernel. Out: [`Compiled`]. A single walk: each event allocates the slots of its definitions,
//! emits its code, then frees the slots of last uses. The destination of an instruction is therefore never one of its
//! operands.
//!
//! Addresses are strength-reduced: an address without its constant term that is linear in the index of the innermost
//! loop, and depends on nothing else inside that loop, is a slot that is set before the loop and incremented after each
//! iteration.

use crate::bytecode::{Code, Slot, ZERO, varies};
use chainrule_base::{Diagnostic, Id, Poly};
use chainrule_kernel::addresses::{kept_addresses, split_constant};
use chainrule_kernel::liveness::{Liveness, varying};
use chainrule_kernel::{
    Carried, Class, Event, Instr, Kernel, Move, Reg, moves, with_late_constants, with_stored_zeros,
};
use chainrule_ops::{Op, Type};
use chainrule_runtime::Overflow;
use std::collections::BTreeMap;

/// Bytecode and its tables.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub code: Vec<Code>,
    pub constants: Vec<f64>,
    pub int_constants: Vec<i64>,
    /// Argument lists of calls of user functions.
    pub external_args: Vec<Slot>,
    pub n_reals: usize,
    /// Number of integer slots, even and odd.
    pub n_ints: usize,
    /// Slot of each size.
    pub size_slots: Vec<Slot>,
    /// Integers that have a message for the case that they do not fit: the first operation of each, ascending.
    pub integers: Vec<(usize, Option<Reg>)>,
    /// Whether control and addresses are equal for all points of a batch.
    pub lanes: bool,
}

/// Compiles `kernel`.
pub(crate) fn compile(kernel: &Kernel) -> Result<Compiled, Diagnostic> {
    let kernel = &*with_stored_zeros(kernel);
    let events = with_late_constants(&kernel.body, kernel.regs.len());
    if u32::try_from(events.len()).is_err() {
        return Err(Diagnostic::limitation("the kernel has more than 4294967295 statements"));
    }
    let lives = Liveness::new(kernel.regs.len(), &events);
    let varying = varying(kernel.regs.len(), &events);
    let hoisted = kept_addresses(&events, &lives, false, &BTreeMap::new());
    let mut by_last: Vec<(u32, Reg)> = kernel.regs.ids().map(|r| (lives.last[r.index()], r)).collect();
    by_last.sort_unstable();
    let mut compiler = Compiler {
        kernel,
        lanes: varying.is_some(),
        varying: varying.unwrap_or_else(|| vec![true; kernel.regs.len()]),
        slot: vec![Slot::MAX; kernel.regs.len()],
        reals: Pool::default(),
        uniform: Pool { next: 1, ..Pool::default() },
        mixed: Pool::default(),
        code: Vec::new(),
        constants: Vec::new(),
        constant_idx: BTreeMap::new(),
        int_constants: Vec::new(),
        external_args: Vec::new(),
        temps: Vec::new(),
        loops: Vec::new(),
        branches: Vec::new(),
    };
    let mut size_slots = Vec::new();
    for size in &kernel.sizes {
        compiler.define(size.reg);
        size_slots.push(compiler.slot[size.reg.index()]);
    }
    let (mut ended, mut integers) = (0, Vec::new());
    for (at, event) in (1u32..).zip(&events) {
        let integer = event.integer().filter(|r| kernel.regs.overflow(*r).is_some());
        if integer != integers.last().and_then(|(_, last)| *last) {
            integers.push((compiler.code.len(), integer));
        }
        compiler.event(at, event, &hoisted)?;
        compiler.free_temps();
        while let Some((_, r)) = by_last.get(ended).filter(|(last, _)| *last <= at) {
            compiler.release(*r);
            ended += 1;
        }
    }
    Ok(Compiled {
        code: compiler.code,
        constants: compiler.constants,
        int_constants: compiler.int_constants,
        external_args: compiler.external_args,
        n_reals: compiler.reals.next as usize,
        n_ints: 2 * compiler.uniform.next.max(compiler.mixed.next) as usize,
        size_slots,
        integers,
        lanes: compiler.lanes,
    })
}

/// Allocator of slots of one kind.
#[derive(Default)]
struct Pool {
    free: Vec<u32>,
    next: u32,
}

impl Pool {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

enum Step {
    None,
    Const(i32),
    Slot(Slot),
}

/// An open loop.
struct Loop {
    /// Start of an iteration.
    top: u32,
    /// Jump that leaves the loop.
    exit: usize,
    /// Slots of the count, or of counter and limit.
    held: Vec<Slot>,
    addresses: BTreeMap<Poly<Reg>, Slot>,
    steps: Vec<(Slot, Step)>,
}

struct Compiler<'k> {
    kernel: &'k Kernel,
    lanes: bool,
    varying: Vec<bool>,
    slot: Vec<Slot>,
    reals: Pool,
    /// Allocator of even integer slots, halved.
    uniform: Pool,
    /// Allocator of odd integer slots, halved.
    mixed: Pool,
    code: Vec<Code>,
    constants: Vec<f64>,
    constant_idx: BTreeMap<u64, u32>,
    int_constants: Vec<i64>,
    external_args: Vec<Slot>,
    /// Even integer slots that the current event uses temporarily.
    temps: Vec<Slot>,
    loops: Vec<Loop>,
    /// Jumps to patch at the next `Else` or `EndIf`.
    branches: Vec<usize>,
}

impl Compiler<'_> {
    fn define(&mut self, r: Reg) -> Slot {
        let slot = match self.kernel.regs[r] {
            Class::Real => self.reals.take(),
            Class::Int if self.varying[r.index()] => 2 * self.mixed.take() + 1,
            Class::Int => 2 * self.uniform.take(),
        };
        self.slot[r.index()] = slot;
        slot
    }

    fn release(&mut self, r: Reg) {
        let slot = std::mem::replace(&mut self.slot[r.index()], Slot::MAX);
        if slot != Slot::MAX {
            match self.kernel.regs[r] {
                Class::Real => self.reals.free.push(slot),
                Class::Int if varies(slot) => self.mixed.free.push(slot / 2),
                Class::Int => self.uniform.free.push(slot / 2),
            }
        }
    }

    fn temp(&mut self) -> Slot {
        let slot = 2 * self.uniform.take();
        self.temps.push(slot);
        slot
    }

    /// Allocates an integer slot until [`Self::give_back`].
    fn hold(&mut self) -> Slot {
        2 * self.uniform.take()
    }

    fn give_back(&mut self, slot: Slot) {
        self.uniform.free.push(slot / 2);
    }

    fn free_temps(&mut self) {
        while let Some(slot) = self.temps.pop() {
            self.give_back(slot);
        }
    }

    /// Returns the slot of `r`; a bug if it is not of `class` or not defined.
    fn read(&self, r: Reg, class: Class) -> Result<Slot, Diagnostic> {
        let slot = self.slot.get(r.index()).copied().unwrap_or(Slot::MAX);
        if slot == Slot::MAX || self.kernel.regs[r] != class {
            return Err(Diagnostic::bug(format!(
                "kernel `{}` uses register {r} where it is not defined as {class:?}",
                self.kernel.name
            )));
        }
        Ok(slot)
    }

    /// As [`Self::read`], for control and addresses: in lanes all points must have the same value.
    fn read_uniform(&mut self, r: Reg) -> Result<Slot, Diagnostic> {
        let slot = self.read(r, Class::Int)?;
        self.lanes &= !varies(slot);
        Ok(slot)
    }

    fn emit(&mut self, code: Code) -> usize {
        self.code.push(code);
        self.code.len() - 1
    }

    fn here(&self) -> Result<u32, Diagnostic> {
        u32::try_from(self.code.len()).map_err(|_| Diagnostic::limitation("the kernel is longer than 2^32 operations"))
    }

    /// Makes the jump at `jump` lead to the next operation.
    fn patch(&mut self, jump: usize) -> Result<(), Diagnostic> {
        let here = self.here()?;
        if let Code::Jump { to } | Code::JumpIfZero { to, .. } | Code::ForBegin { exit: to, .. } = &mut self.code[jump]
        {
            *to = here;
        }
        Ok(())
    }

    fn int_constant(&mut self, d: Slot, value: i64) {
        let k = self.int_constants.len() as u32;
        self.int_constants.push(value);
        self.emit(Code::IntConst { d, k });
    }

    /// Emits `d = a * k`.
    fn scale(&mut self, d: Slot, a: Slot, k: i64, overflow: Overflow) {
        if let Ok(k) = i32::try_from(k) {
            self.emit(Code::IntMulConst { d, a, k, checked: overflow == Overflow::Fails });
        } else {
            let b = self.temp();
            self.int_constant(b, k);
            self.emit(Code::IntMul { d, a, b, checked: overflow == Overflow::Fails });
        }
    }

    /// Computes `poly` in `d`, which is none of its variables. Overflows exactly where [`Poly::eval`] does: coefficient
    /// first, terms in order.
    fn poly_to(&mut self, d: Slot, poly: &Poly<Reg>, overflow: Overflow) -> Result<(), Diagnostic> {
        if let Some(value) = poly.as_constant() {
            self.int_constant(d, value);
            return Ok(());
        }
        for (i, (monomial, c)) in poly.terms().enumerate() {
            let Some((first, rest)) = monomial.split_first() else {
                // The constant term is the least monomial, so it comes first.
                self.int_constant(d, c);
                continue;
            };
            let a = self.read(*first, Class::Int)?;
            let target = if i == 0 { d } else { self.temp() };
            let mut product = a;
            if c != 1 {
                self.scale(target, a, c, overflow);
                product = target;
            }
            for r in rest {
                let b = self.read(*r, Class::Int)?;
                self.emit(Code::IntMul { d: target, a: product, b, checked: overflow == Overflow::Fails });
                product = target;
            }
            if i > 0 {
                self.emit(Code::IntAdd { d, a: d, b: product, checked: overflow == Overflow::Fails });
            } else if product != d {
                self.emit(Code::IntMove { d, a: product });
            }
        }
        Ok(())
    }

    /// Returns a slot of `poly` for control, equal for all points: the slot of a variable or a temporary one.
    fn uniform_poly(&mut self, poly: &Poly<Reg>, overflow: Overflow) -> Result<Slot, Diagnostic> {
        if poly.is_zero() {
            return Ok(ZERO);
        }
        if let Some(r) = poly.as_var() {
            return self.read_uniform(r);
        }
        self.all_uniform(poly);
        let d = self.temp();
        self.poly_to(d, poly, overflow)?;
        Ok(d)
    }

    fn all_uniform(&mut self, poly: &Poly<Reg>) {
        self.lanes &= !poly.terms().flat_map(|(m, _)| m).any(|r| self.varying[r.index()]);
    }

    /// Returns base and offset of an element.
    fn address(&mut self, at: &Poly<Reg>) -> Result<(Slot, i32), Diagnostic> {
        let (rest, offset) = split_constant(at);
        if let Some(slot) = self.loops.last().and_then(|l| l.addresses.get(&rest)) {
            return Ok((*slot, offset));
        }
        Ok((self.uniform_poly(&rest, Overflow::Wraps)?, offset))
    }

    fn event(&mut self, at: u32, event: &Event<'_>, hoisted: &BTreeMap<u32, Vec<Poly<Reg>>>) -> Result<(), Diagnostic> {
        match event {
            Event::Instr(instr) => self.instr(instr)?,
            Event::Copy { to, from, len, .. } => {
                let to_at = self.uniform_poly(&to.1, Overflow::Fails)?;
                let from_at = self.uniform_poly(&from.1, Overflow::Fails)?;
                let len = self.uniform_poly(len, Overflow::Fails)?;
                let (to, from) = (to.0.index() as u32, from.0.index() as u32);
                self.emit(Code::Copy { to, to_at, from, from_at, len });
            }
            Event::For { index, count, carried, .. } => {
                self.enter(carried)?;
                let held = self.hold();
                self.all_uniform(count);
                self.poly_to(held, count, Overflow::Fails)?;
                let index_slot = self.define(*index);
                let exit = self.emit(Code::ForBegin { index: index_slot, count: held, exit: 0 });
                self.open_loop(Some(*index), exit, vec![held], hoisted.get(&at))?;
            }
            Event::EndFor { index, carried } => {
                self.next_iteration(carried)?;
                let Some(finished) = self.loops.pop() else { return Err(unbalanced()) };
                for (slot, step) in &finished.steps {
                    match step {
                        Step::None => {}
                        Step::Const(k) => {
                            self.emit(Code::IntAddConst { d: *slot, a: *slot, k: *k, checked: false });
                        }
                        Step::Slot(b) => {
                            self.emit(Code::IntAdd { d: *slot, a: *slot, b: *b, checked: false });
                        }
                    }
                }
                let index = self.read(*index, Class::Int)?;
                self.emit(Code::ForNext { index, count: finished.held[0], back: finished.top });
                self.close_loop(&finished)?;
            }
            Event::While { carried, limit } => {
                self.enter(carried)?;
                let (counter, held) = (self.hold(), self.hold());
                self.all_uniform(limit);
                self.poly_to(held, limit, Overflow::Fails)?;
                self.int_constant(counter, 0);
                self.open_loop(None, usize::MAX, vec![counter, held], hoisted.get(&at))?;
            }
            Event::Test { holds, failure } => {
                let c = self.read_uniform(*holds)?;
                let exit = self.emit(Code::JumpIfZero { c, to: 0 });
                let Some(open) = self.loops.last_mut() else { return Err(unbalanced()) };
                open.exit = exit;
                let (counter, limit) = (open.held[0], open.held[1]);
                self.emit(Code::Limit { counter, limit, failure: *failure as u32 });
            }
            Event::EndWhile { carried } => {
                self.next_iteration(carried)?;
                let Some(finished) = self.loops.pop() else { return Err(unbalanced()) };
                self.emit(Code::Jump { to: finished.top });
                self.close_loop(&finished)?;
            }
            Event::If { condition } => {
                let c = self.read_uniform(*condition)?;
                let jump = self.emit(Code::JumpIfZero { c, to: 0 });
                self.branches.push(jump);
            }
            Event::Else { choices } => {
                for c in *choices {
                    self.define(c.var);
                    self.move_to(c.var, c.then)?;
                }
                let end = self.emit(Code::Jump { to: 0 });
                let Some(jump) = self.branches.pop() else { return Err(unbalanced()) };
                self.patch(jump)?;
                self.branches.push(end);
            }
            Event::EndIf { choices } => {
                for c in *choices {
                    self.move_to(c.var, c.otherwise)?;
                }
                let Some(jump) = self.branches.pop() else { return Err(unbalanced()) };
                self.patch(jump)?;
            }
        }
        Ok(())
    }

    /// Allocates the loop-carried slots and sets their initial values.
    fn enter(&mut self, carried: &[Carried]) -> Result<(), Diagnostic> {
        for c in carried {
            self.define(c.var);
        }
        carried.iter().try_for_each(|c| self.move_to(c.var, c.init))
    }

    fn move_to(&mut self, d: Reg, a: Reg) -> Result<(), Diagnostic> {
        let class = self.kernel.regs[d];
        let (d, a) = (self.read(d, class)?, self.read(a, class)?);
        self.emit_move(class, d, a);
        Ok(())
    }

    fn emit_move(&mut self, class: Class, d: Slot, a: Slot) {
        self.emit(if class == Class::Real { Code::Move { d, a } } else { Code::IntMove { d, a } });
    }

    /// Sets the loop's cached addresses, and marks the start of its iterations.
    fn open_loop(
        &mut self,
        index: Option<Reg>,
        exit: usize,
        held: Vec<Slot>,
        addresses: Option<&Vec<Poly<Reg>>>,
    ) -> Result<(), Diagnostic> {
        let mut open = Loop { top: 0, exit, held, addresses: BTreeMap::new(), steps: Vec::new() };
        for address in addresses.into_iter().flatten() {
            self.all_uniform(address);
            let slope_and_base = index.and_then(|i| address.split_linear(i));
            let (slope, base) = slope_and_base.unwrap_or_else(|| (Poly::zero(), address.clone()));
            let slot = self.hold();
            self.poly_to(slot, &base, Overflow::Wraps)?;
            let step = match slope.as_constant() {
                Some(0) => Step::None,
                Some(k) if i32::try_from(k).is_ok() => Step::Const(k as i32),
                _ => {
                    let step = self.hold();
                    self.poly_to(step, &slope, Overflow::Wraps)?;
                    Step::Slot(step)
                }
            };
            open.addresses.insert(address.clone(), slot);
            open.steps.push((slot, step));
        }
        open.top = self.here()?;
        self.loops.push(open);
        Ok(())
    }

    fn close_loop(&mut self, finished: &Loop) -> Result<(), Diagnostic> {
        if finished.exit == usize::MAX {
            return Err(unbalanced());
        }
        self.patch(finished.exit)?;
        for (slot, step) in &finished.steps {
            self.give_back(*slot);
            if let Step::Slot(step) = step {
                self.give_back(*step);
            }
        }
        finished.held.iter().for_each(|slot| self.give_back(*slot));
        Ok(())
    }

    /// Moves the next values of loop-carried slots in parallel: one may be the old value of another.
    fn next_iteration(&mut self, carried: &[Carried]) -> Result<(), Diagnostic> {
        for class in [Class::Real, Class::Int] {
            let mut pairs = Vec::new();
            for c in carried.iter().filter(|c| self.kernel.regs[c.var] == class) {
                pairs.push((self.read(c.var, class)?, self.read(c.next, class)?));
            }
            let mut saved = Slot::MAX;
            for step in moves(pairs) {
                match step {
                    Move::Direct { to, from } => self.emit_move(class, to, from),
                    Move::Save(from) => {
                        saved = match class {
                            Class::Real => self.reals.take(),
                            Class::Int if varies(from) => 2 * self.mixed.take() + 1,
                            Class::Int => 2 * self.uniform.take(),
                        };
                        self.emit_move(class, saved, from);
                    }
                    Move::Restore(to) => {
                        self.emit_move(class, to, saved);
                        match class {
                            Class::Real => self.reals.free.push(saved),
                            Class::Int if varies(saved) => self.mixed.free.push(saved / 2),
                            Class::Int => self.uniform.free.push(saved / 2),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn instr(&mut self, instr: &Instr) -> Result<(), Diagnostic> {
        match instr {
            Instr::Const { dst, value } => {
                let next = self.constants.len() as u32;
                let k = *self.constant_idx.entry(value.to_bits()).or_insert(next);
                if k == next {
                    self.constants.push(*value);
                }
                let d = self.define(*dst);
                self.emit(Code::Const { d, k });
            }
            Instr::Int { dst, value } => {
                let d = self.define(*dst);
                self.all_uniform(value);
                self.poly_to(d, value, Overflow::Fails)?;
            }
            Instr::Op { dst, op, args } => self.op(*dst, *op, args)?,
            Instr::MulAdd { dst, signs, args } => {
                let mut slots = [ZERO; 3];
                for (slot, r) in slots.iter_mut().zip(args) {
                    *slot = self.read(*r, Class::Real)?;
                }
                let ([a, b, c], d) = (slots, self.define(*dst));
                self.emit(Code::MulAdd { d, signs: *signs, a, b, c });
            }
            Instr::IntOp { dst, op, args, failure } => {
                if op.row().int.is_none() {
                    return Err(Diagnostic::bug(format!("operator `{}` has no integer form", op.name())));
                }
                let mut slots = [ZERO; 3];
                for (slot, r) in slots.iter_mut().zip(&args[..op.arity()]) {
                    *slot = self.read_uniform(*r)?;
                }
                let d = self.define(*dst);
                self.emit(Code::IntOp { d, op: *op, args: slots, failure: *failure as u32 });
            }
            Instr::ToReal { dst, src } => {
                let a = self.read(*src, Class::Int)?;
                let d = self.define(*dst);
                self.emit(Code::ToReal { d, a });
            }
            Instr::ToInt { dst, src } => {
                let a = self.read(*src, Class::Real)?;
                let d = self.define(*dst);
                // Points have integers of their own.
                self.lanes = false;
                self.emit(Code::ToInt { d, a });
            }
            Instr::External { dst, function, args } => {
                let start = self.external_args.len() as u32;
                for r in args {
                    let slot = self.read(*r, Class::Real)?;
                    self.external_args.push(slot);
                }
                let d = self.define(*dst);
                self.emit(Code::External { d, function: *function as u32, args: start });
            }
            Instr::Load { dst, buffer, at } => {
                let (base, offset) = self.address(at)?;
                let d = self.define(*dst);
                let class = self.kernel.regs[*dst];
                let buffer = buffer.index() as u32;
                self.emit(match class {
                    Class::Real => Code::Load { d, buffer, base, offset },
                    Class::Int => Code::IntLoad { d, buffer, base, offset },
                });
            }
            Instr::Store { buffer, at, value } => {
                let (base, offset) = self.address(at)?;
                let class = self.kernel.regs[*value];
                let a = self.read(*value, class)?;
                let buffer = buffer.index() as u32;
                self.emit(match class {
                    Class::Real => Code::Store { a, buffer, base, offset },
                    Class::Int => Code::IntStore { a, buffer, base, offset },
                });
            }
            Instr::CheckIndex { index, len, failure } => {
                let index = self.read_uniform(*index)?;
                let len = self.uniform_poly(len, Overflow::Fails)?;
                self.emit(Code::CheckIndex { index, len, failure: *failure as u32 });
            }
        }
        Ok(())
    }

    fn op(&mut self, dst: Reg, op: Op, args: &[Reg; 3]) -> Result<(), Diagnostic> {
        let row = op.row();
        let mut slots = [0; 3];
        for ((slot, r), ty) in slots.iter_mut().zip(args).zip(row.args) {
            *slot = self.read(*r, if *ty == Type::Bool { Class::Int } else { Class::Real })?;
        }
        let d = self.define(dst);
        let [a, b, c] = slots;
        let all_real = row.result == Type::Num && row.args.iter().all(|ty| *ty == Type::Num);
        self.emit(match op {
            Op::Add => Code::Add { d, a, b },
            Op::Sub => Code::Sub { d, a, b },
            Op::Mul => Code::Mul { d, a, b },
            Op::Div => Code::Div { d, a, b },
            Op::Neg => Code::Neg { d, a },
            Op::Lt => Code::Less { d, a, b },
            Op::Le => Code::LessEqual { d, a, b },
            Op::Eq => Code::Equal { d, a, b },
            Op::Select => Code::Select { d, c: a, a: b, b: c },
            _ if all_real && row.args.len() == 1 => Code::Call1 { d, op, a },
            _ if all_real && row.args.len() == 2 => Code::Call2 { d, op, a, b },
            _ => Code::Call { d, op, args: slots },
        });
        Ok(())
    }
}

fn unbalanced() -> Diagnostic {
    Diagnostic::bug("the events of a kernel do not close what they open")
}
