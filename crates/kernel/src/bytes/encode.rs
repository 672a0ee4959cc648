//! Encoder of kernels, in the format of [`crate::bytes`].
//!
//! A change here needs the same change in [`decode`](super::decode), and possibly a new version of the format.

use super::wire::Writer;
use super::{MAX_NESTING, SIGNS, Say, code, whole};
use crate::kernel::{BufferId, Carried, Choice, Class, Instr, Kernel, Order, Place, Port, Reg, SizeSource, Stmt};
use chainrule_base::{Diagnostic, Id, Poly, Span};
use chainrule_ops::{Op, ROWS};

/// Writes `kernel`.
pub fn kernel(kernel: &Kernel, out: &mut Writer, say: &mut Say<'_>) -> Result<(), Diagnostic> {
    let mut encoder = Encoder { out: Writer::new(), last: u32::MAX, ops: Vec::new(), op_idx: vec![None; ROWS.len()] };
    encoder.header(kernel, say);
    let header = std::mem::take(&mut encoder.out);
    encoder.body(kernel, say)?;
    out.raw(&header.into_bytes());
    out.count(encoder.ops.len());
    encoder.ops.iter().for_each(|op| out.text(op.name()));
    out.raw(&encoder.out.into_bytes());
    Ok(())
}

struct Encoder {
    out: Writer,
    /// Register defined last; initially the one before register 0.
    last: u32,
    /// Operators in the order of their first use.
    ops: Vec<Op>,
    /// Index of each operator in `ops`.
    op_idx: Vec<Option<u64>>,
}

/// Work still to be written.
enum Task<'k> {
    Block(std::slice::Iter<'k, Stmt>),
    Test { holds: Reg, failure: usize },
    Next(&'k [Carried]),
    Choices(&'k [Choice]),
}

impl Encoder {
    fn header(&mut self, kernel: &Kernel, say: &mut Say<'_>) {
        self.out.text(&kernel.name);
        self.out.count(kernel.regs.len());
        for classes in kernel.regs.as_slice().chunks(8) {
            let bits = classes.iter().enumerate().map(|(i, class)| u8::from(*class == Class::Int) << i);
            self.out.byte(bits.sum());
        }
        self.out.count(kernel.sizes.len());
        for size in &kernel.sizes {
            self.out.text(&size.name);
            self.define(size.reg);
            match &size.source {
                SizeSource::Extent { input, dim } => {
                    self.out.byte(0);
                    self.out.count(*input);
                    self.out.count(*dim);
                }
                SizeSource::Value { input } => {
                    self.out.byte(1);
                    self.out.count(*input);
                }
                SizeSource::Natural { of } => {
                    self.out.byte(2);
                    self.poly(of);
                }
            }
        }
        self.ports(&kernel.inputs);
        self.ports(&kernel.outputs);
        self.out.count(kernel.buffers.len());
        for (_, buffer) in kernel.buffers.iter() {
            let place = match &buffer.place {
                Place::Input(_) => 0,
                Place::Output(_) => 1,
                Place::Workspace(_) => 2,
            };
            self.out.byte(place << 1 | u8::from(buffer.class == Class::Int));
            self.poly(&buffer.len);
            match &buffer.place {
                Place::Input(idx) | Place::Output(idx) => self.out.count(*idx),
                Place::Workspace(offset) => self.poly(offset),
            }
        }
        self.out.count(kernel.requires.len());
        for condition in &kernel.requires {
            self.poly(&condition.size);
            self.out.byte(u8::from(condition.exactly_zero));
            self.said(say(&condition.message, condition.span));
        }
        self.poly(&kernel.workspace_reals);
        self.poly(&kernel.workspace_ints);
        self.out.count(kernel.externals.len());
        for external in &kernel.externals {
            self.out.text(&external.name);
            self.out.count(external.arity);
            self.out.byte(u8::from(external.call.is_some()) | u8::from(external.c_name.is_some()) << 1);
            if let Some(c_name) = &external.c_name {
                self.out.text(c_name);
            }
        }
        self.out.count(kernel.failures.len());
        for (message, span) in &kernel.failures {
            self.said(say(message, *span));
        }
    }

    /// Writes the messages about integers that do not fit, and the registers that have one.
    fn overflows(&mut self, kernel: &Kernel, say: &mut Say<'_>) {
        let (messages, overflows) = (kernel.regs.messages(), kernel.regs.overflows());
        if messages.is_empty() {
            return;
        }
        self.out.byte(code::OVERFLOWS);
        self.out.count(messages.len());
        for (message, span) in messages {
            self.said(say(message, *span));
        }
        self.out.count(overflows.len());
        for (r, message) in overflows {
            self.out.count(r.index());
            self.out.count(*message);
        }
    }

    fn ports(&mut self, ports: &[Port]) {
        self.out.count(ports.len());
        for port in ports {
            self.out.text(&port.name);
            self.out.count(port.shape.len());
            port.shape.iter().for_each(|extent| self.poly(extent));
            self.out.count(port.buffer.index());
        }
    }

    /// Writes a message with its span: 0, or 1 more than the file, start and end.
    fn said(&mut self, (message, span): (String, Option<Span>)) {
        self.out.text(&message);
        match span {
            None => self.out.count(0),
            Some(span) => {
                self.out.count(span.file.index() + 1);
                self.out.natural(span.start.into());
                self.out.natural(span.end.saturating_sub(span.start).into());
            }
        }
    }

    fn body(&mut self, kernel: &Kernel, say: &mut Say<'_>) -> Result<(), Diagnostic> {
        self.overflows(kernel, say);
        for zeros in &kernel.zeros {
            self.out.byte(code::ZEROS);
            self.out.count(zeros.buffer.index());
            self.out.integer(zeros.first);
            self.out.natural(zeros.which);
        }
        let mut tasks = vec![Task::Block(kernel.body.iter())];
        let mut depth = 0;
        while let Some(task) = tasks.pop() {
            let Task::Block(mut block) = task else {
                depth -= usize::from(!matches!(task, Task::Test { .. }));
                self.end(&task);
                continue;
            };
            let Some(stmt) = block.next() else {
                self.out.byte(code::END);
                continue;
            };
            tasks.push(Task::Block(block));
            match stmt {
                Stmt::Straight(instrs) => {
                    self.out.byte(code::STRAIGHT);
                    self.out.count(instrs.len());
                    instrs.iter().for_each(|instr| self.instr(instr));
                }
                Stmt::Copy { to, from, len, is_move } => {
                    self.out.byte(if *is_move { code::MOVE } else { code::COPY });
                    self.element(to);
                    self.element(from);
                    self.poly(len);
                }
                Stmt::For { index, count, carried, order, body } => {
                    self.out.byte(match order {
                        Order::InOrder => code::FOR,
                        Order::Lanes => code::LANES,
                        Order::Parts => code::PARTS,
                    });
                    self.poly(count);
                    self.carried(carried);
                    self.define(*index);
                    tasks.push(Task::Next(carried));
                    tasks.push(Task::Block(body.iter()));
                }
                Stmt::While { limit, carried, condition, holds, body, failure } => {
                    self.out.byte(code::WHILE);
                    self.poly(limit);
                    self.carried(carried);
                    tasks.push(Task::Next(carried));
                    tasks.push(Task::Block(body.iter()));
                    tasks.push(Task::Test { holds: *holds, failure: *failure });
                    tasks.push(Task::Block(condition.iter()));
                }
                Stmt::If { condition, then, otherwise, choices } => {
                    self.out.byte(code::IF);
                    self.reg(*condition);
                    tasks.push(Task::Choices(choices));
                    tasks.push(Task::Block(otherwise.iter()));
                    tasks.push(Task::Block(then.iter()));
                }
            }
            depth += usize::from(!matches!(stmt, Stmt::Straight(_) | Stmt::Copy { .. }));
            if depth > MAX_NESTING {
                return Err(Diagnostic::limitation(format!("`{}` cannot be saved", kernel.name))
                    .with_reason(format!("its loops and branches nest more than {MAX_NESTING} deep"))
                    .with_help("nest branches and loops less deep"));
            }
        }
        Ok(())
    }

    /// Writes the end of a block of a loop or of a branch.
    fn end(&mut self, task: &Task<'_>) {
        match *task {
            Task::Block(_) => {}
            Task::Test { holds, failure } => {
                self.reg(holds);
                self.out.count(failure);
            }
            Task::Next(carried) => carried.iter().for_each(|c| self.reg(c.next)),
            Task::Choices(choices) => {
                self.out.count(choices.len());
                for choice in choices {
                    self.reg(choice.then);
                    self.reg(choice.otherwise);
                    self.define(choice.var);
                }
            }
        }
    }

    fn carried(&mut self, carried: &[Carried]) {
        self.out.count(carried.len());
        carried.iter().for_each(|c| self.reg(c.init));
        carried.iter().for_each(|c| self.define(c.var));
    }

    fn instr(&mut self, instr: &Instr) {
        match instr {
            Instr::Const { dst, value } => match whole(*value) {
                Some(i) => {
                    self.code(code::WHOLE, *dst);
                    self.out.integer(i);
                }
                None => {
                    self.code(code::CONST, *dst);
                    self.out.double(*value);
                }
            },
            Instr::Int { dst, value } => {
                self.code(code::INT, *dst);
                self.poly(value);
            }
            Instr::Op { dst, op, args } => {
                let idx = self.op(*op);
                self.code(code::OP + idx, *dst);
                args[..op.arity()].iter().for_each(|arg| self.reg(*arg));
            }
            Instr::MulAdd { dst, signs, args } => {
                let idx = SIGNS.iter().position(|s| s == signs).unwrap_or_default() as u64;
                self.code(code::MUL_ADD + idx, *dst);
                args.iter().for_each(|arg| self.reg(*arg));
            }
            Instr::IntOp { dst, op, args, failure } => {
                let idx = self.op(*op);
                self.code(code::INT_OP, *dst);
                self.out.natural(idx);
                args[..op.arity()].iter().for_each(|arg| self.reg(*arg));
                self.out.count(*failure);
            }
            Instr::ToReal { dst, src } => {
                self.code(code::TO_REAL, *dst);
                self.reg(*src);
            }
            Instr::ToInt { dst, src } => {
                self.code(code::TO_INT, *dst);
                self.reg(*src);
            }
            Instr::External { dst, function, args } => {
                self.code(code::EXTERNAL, *dst);
                self.out.count(*function);
                self.out.count(args.len());
                args.iter().for_each(|arg| self.reg(*arg));
            }
            Instr::Load { dst, buffer, at } => {
                self.code(code::LOAD, *dst);
                self.out.count(buffer.index());
                self.poly(at);
            }
            Instr::Store { buffer, at, value } => {
                self.out.natural(code::STORE << 1);
                self.out.count(buffer.index());
                self.poly(at);
                self.reg(*value);
            }
            Instr::CheckIndex { index, len, failure } => {
                self.out.natural(code::CHECK_INDEX << 1);
                self.reg(*index);
                self.poly(len);
                self.out.count(*failure);
            }
        }
        // Arguments are distances from the register defined last.
        if let Some(dst) = instr.dst() {
            self.last = number(dst);
        }
    }

    /// Writes the code of an instruction and the register it defines.
    fn code(&mut self, code: u64, dst: Reg) {
        let ahead = number(dst).wrapping_sub(self.last).wrapping_sub(1);
        self.out.natural(code << 1 | u64::from(ahead == 0));
        if ahead != 0 {
            self.out.natural(ahead.into());
        }
    }

    fn op(&mut self, op: Op) -> u64 {
        let next = self.ops.len() as u64;
        let idx = *self.op_idx[op as usize].get_or_insert(next);
        if idx == next {
            self.ops.push(op);
        }
        idx
    }

    fn define(&mut self, dst: Reg) {
        self.out.natural(number(dst).wrapping_sub(self.last).wrapping_sub(1).into());
        self.last = number(dst);
    }

    fn reg(&mut self, reg: Reg) {
        self.out.natural(self.last.wrapping_sub(number(reg)).into());
    }

    fn element(&mut self, (buffer, at): &(BufferId, Poly<Reg>)) {
        self.out.count(buffer.index());
        self.poly(at);
    }

    /// Writes twice a non-negative constant, or 1 more than twice the number of terms and then the terms.
    fn poly(&mut self, poly: &Poly<Reg>) {
        if let Some(c) = poly.as_constant().filter(|c| *c >= 0) {
            return self.out.natural((c as u64) << 1);
        }
        self.out.natural((poly.terms().len() as u64) << 1 | 1);
        for (monomial, coefficient) in poly.terms() {
            self.out.count(monomial.len());
            monomial.iter().for_each(|reg| self.reg(*reg));
            self.out.integer(coefficient);
        }
    }
}

fn number(reg: Reg) -> u32 {
    reg.index() as u32
}
