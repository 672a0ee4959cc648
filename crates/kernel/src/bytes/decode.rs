//! Decoder of kernels; the inverse of [`encode`](super::encode).
//!
//! The decoder checks that every number is a valid register, code or operator, that everything has its one form, and
//! that lists, nesting and shapes of arguments are no larger than the bytes allow. The verifier checks the rest.

use super::wire::{Damage, Reader, damage};
use super::{Functions, MAX_NESTING, SIGNS, code, whole};
use crate::kernel::{
    Buffer, BufferId, Carried, Choice, Class, Condition, External, ExternalFn, Instr, Kernel, Order, Place, Port, Reg,
    SizeParam, SizeSource, Stmt,
};
use crate::rebuild::Open;
use crate::registers::Registers;
use crate::zeros::Zeros;
use chainrule_base::{Arena, Diagnostic, FileId, Id, Name, Poly, Span, count};
use chainrule_ops::{Op, ROWS};
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Damage>;

/// Reads a kernel. Linear in the bytes.
pub fn kernel(reader: &mut Reader<'_>, functions: &Functions<'_>) -> Result<Kernel> {
    // The verifier multiplies the extents of a shape. The budget bounds that cost by the length of the bytes.
    let budget = 4096 + 16 * reader.left();
    let mut d = Decoder { from: reader, last: u32::MAX, n_regs: 0, ops: Vec::new(), n_ops_met: 0 };
    let name = d.from.name()?;
    let mut regs = Registers::from(d.classes()?);
    let sizes = d.sizes()?;
    let inputs = d.ports()?;
    let outputs = d.ports()?;
    let costs = inputs.iter().chain(&outputs).map(|port| product_cost(&port.shape));
    if costs.fold(0, usize::saturating_add) > budget {
        return Err(damage("the shape of an argument in it is out of proportion"));
    }
    let buffers = d.buffers()?;
    let requires = d.requires()?;
    let (workspace_reals, workspace_ints) = (d.poly()?, d.poly()?);
    let externals = d.externals(functions)?;
    let failures = d.list(2, Decoder::said)?;
    d.operators()?;
    let (zeros, body) = d.body(&mut regs)?;
    if d.n_ops_met != d.ops.len() {
        return Err(damage("an operator in it is named and not used"));
    }
    Ok(Kernel {
        name,
        regs,
        sizes,
        inputs,
        outputs,
        buffers,
        requires,
        workspace_reals,
        workspace_ints,
        externals,
        failures,
        zeros,
        body,
    })
}

/// Estimates the steps that the product of these extents takes: terms times their lengths.
fn product_cost(shape: &[Poly<Reg>]) -> usize {
    let terms = shape.iter().map(|extent| extent.terms().len().max(1)).fold(1, usize::saturating_mul);
    let degree = |extent: &Poly<Reg>| extent.terms().map(|(monomial, _)| monomial.len()).max().unwrap_or(0);
    let degrees = shape.iter().map(degree).fold(1, usize::saturating_add);
    // Constants take one step each.
    if terms == 1 && degrees == 1 { shape.len() } else { terms.saturating_mul(degrees).saturating_mul(shape.len()) }
}

struct Decoder<'r, 'a> {
    from: &'r mut Reader<'a>,
    /// Register defined last; initially the one before register 0.
    last: u32,
    n_regs: u32,
    ops: Vec<Op>,
    /// Number of operators used so far; the table lists operators in the order of their first use.
    n_ops_met: usize,
}

impl Decoder<'_, '_> {
    /// Reads a list with `read`; each element takes at least `least` bytes.
    fn list<T>(&mut self, least: usize, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let n = self.from.count(least)?;
        // Elements in memory are larger than their bytes. Nested lists must not multiply that.
        let mut list = Vec::with_capacity(n.min(16));
        for _ in 0..n {
            list.push(read(self)?);
        }
        Ok(list)
    }

    fn classes(&mut self) -> Result<Arena<Reg, Class>> {
        let n = self.from.natural32()?;
        let bits = self.from.raw((n as usize).div_ceil(8))?;
        if n % 8 > 0 && bits.last().is_some_and(|last| last >> (n % 8) != 0) {
            return Err(damage("it tells the class of registers that are not there"));
        }
        self.n_regs = n;
        let class = |i: usize| if bits[i / 8] >> (i % 8) & 1 == 1 { Class::Int } else { Class::Real };
        Ok((0..n as usize).map(class).collect())
    }

    fn sizes(&mut self) -> Result<Vec<SizeParam>> {
        self.list(4, |d| {
            let (name, reg) = (d.from.name()?, d.define()?);
            let source = match d.from.byte()? {
                0 => SizeSource::Extent { input: d.from.index()?, dim: d.from.index()? },
                1 => SizeSource::Value { input: d.from.index()? },
                2 => SizeSource::Natural { of: d.poly()? },
                _ => return Err(damage("a size in it comes from nowhere")),
            };
            Ok(SizeParam { name, reg, source })
        })
    }

    fn ports(&mut self) -> Result<Vec<Port>> {
        self.list(3, |d| {
            Ok(Port { name: d.from.name()?, shape: d.list(1, Self::poly)?, buffer: BufferId::new(d.from.index()?) })
        })
    }

    fn buffers(&mut self) -> Result<Arena<BufferId, Buffer>> {
        let buffers = self.list(3, |d| {
            let kind = d.from.byte()?;
            let class = if kind & 1 == 1 { Class::Int } else { Class::Real };
            let len = d.poly()?;
            let place = match kind >> 1 {
                0 => Place::Input(d.from.index()?),
                1 => Place::Output(d.from.index()?),
                2 => Place::Workspace(d.poly()?),
                _ => return Err(damage("a buffer in it is nowhere")),
            };
            Ok(Buffer { class, len, place })
        })?;
        Ok(buffers.into_iter().collect())
    }

    fn requires(&mut self) -> Result<Vec<Condition>> {
        self.list(4, |d| {
            let (size, exactly_zero) = (d.poly()?, d.from.truth()?);
            let (message, span) = d.said()?;
            Ok(Condition { size, exactly_zero, message, span })
        })
    }

    fn externals(&mut self, functions: &Functions<'_>) -> Result<Vec<External>> {
        let mut missing: Vec<String> = Vec::new();
        // Equal names are equal functions.
        let mut known: BTreeMap<Name, (usize, Option<ExternalFn>)> = BTreeMap::new();
        let externals = self.list(3, |d| {
            let (name, arity) = (d.from.name()?, d.from.index()?);
            let flags = d.from.byte()?;
            if flags > 3 {
                return Err(damage("a user's function in it is unlike any"));
            }
            let is_new = !known.contains_key(&name);
            let (of, call) = known.entry(name.clone()).or_insert_with(|| (arity, functions(&name, arity))).clone();
            if of != arity {
                return Err(damage("two users' functions in it have one name"));
            }
            if flags & 1 == 1 && call.is_none() && is_new {
                missing.push(format!("`{name}` of {}", count(arity, "argument")));
            }
            let c_name = if flags & 2 == 2 { Some(d.from.name()?) } else { None };
            Ok(External { name, arity, call, c_name })
        })?;
        if missing.is_empty() {
            return Ok(externals);
        }
        let one = missing.len() == 1;
        Err(Box::new(
            Diagnostic::error(format!("the file needs {}", missing.join(", ")))
                .with_reason("a file holds the names of its users' functions, not what computes them")
                .with_help(if one { "give that function when you load it" } else { "give those when you load it" }),
        ))
    }

    fn said(&mut self) -> Result<(String, Option<Span>)> {
        let message = self.from.text()?.to_owned();
        let Some(file) = self.from.index()?.checked_sub(1) else { return Ok((message, None)) };
        let start = self.from.natural32()?;
        let end = start.checked_add(self.from.natural32()?);
        let end = end.ok_or_else(|| damage("a place in it is beyond all texts"))?;
        Ok((message, Some(Span::new(FileId::new(file), start, end))))
    }

    /// Reads the messages about integers that do not fit.
    fn overflows(&mut self, regs: &mut Registers) -> Result<()> {
        let messages = self.list(2, Self::said)?;
        let (mut overflows, mut next) = (BTreeMap::new(), 0);
        for (r, message) in self.list(2, |d| Ok((d.from.natural32()?, d.from.index()?)))? {
            if r < next || message >= messages.len() {
                return Err(damage("it tells about integers that are not there"));
            }
            overflows.insert(self.checked(r)?, message);
            next = r + 1;
        }
        if messages.is_empty() {
            return Err(damage("it tells nothing about integers"));
        }
        regs.set_messages(messages, overflows);
        Ok(())
    }

    fn operators(&mut self) -> Result<()> {
        let mut met = vec![false; ROWS.len()];
        self.ops = self.list(1, |d| {
            let name = d.from.text()?;
            let op = Op::by_name(name).ok_or_else(|| {
                Box::new(
                    Diagnostic::error(format!("the file uses the operator `{name}`, which is not known"))
                        .with_reason("a newer version of Chainrule may have made it")
                        .with_help("update Chainrule"),
                )
            })?;
            if std::mem::replace(&mut met[op as usize], true) {
                return Err(damage("an operator in it is named twice"));
            }
            Ok(op)
        })?;
        Ok(())
    }

    /// Reads the elements that are zero at the start, and the statements.
    fn body(&mut self, regs: &mut Registers) -> Result<(Vec<Zeros>, Vec<Stmt>)> {
        let mut zeros = Vec::new();
        // Open statements and the blocks around them, outermost first.
        let mut open: Vec<(Open, Vec<Stmt>)> = Vec::new();
        let mut block: Vec<Stmt> = Vec::new();
        loop {
            let opened = match self.from.byte()? {
                code::END => {
                    let Some((statement, around)) = open.pop() else { return Ok((zeros, block)) };
                    let done = std::mem::replace(&mut block, around);
                    match self.close(statement, done)? {
                        Closed::Statement(stmt) => {
                            block.push(stmt);
                            continue;
                        }
                        Closed::Block(next) => next,
                    }
                }
                code::OVERFLOWS
                    if open.is_empty() && block.is_empty() && zeros.is_empty() && regs.messages().is_empty() =>
                {
                    self.overflows(regs)?;
                    continue;
                }
                code::ZEROS if open.is_empty() && block.is_empty() => {
                    let (buffer, first) = (self.buffer()?, self.from.integer()?);
                    zeros.push(Zeros { buffer, first, which: self.from.natural()? });
                    continue;
                }
                code::STRAIGHT => {
                    block.push(Stmt::Straight(self.straight()?));
                    continue;
                }
                which @ (code::COPY | code::MOVE) => {
                    let (to, from, len) = (self.element()?, self.element()?, self.poly()?);
                    block.push(Stmt::Copy { to, from, len, is_move: which == code::MOVE });
                    continue;
                }
                which @ (code::FOR | code::LANES | code::PARTS) => {
                    let (count, carried) = (self.poly()?, self.carried()?);
                    let order = match which {
                        code::LANES => Order::Lanes,
                        code::PARTS => Order::Parts,
                        _ => Order::InOrder,
                    };
                    Open::For { index: self.define()?, count, carried, order }
                }
                code::WHILE => Open::Condition { limit: self.poly()?, carried: self.carried()? },
                code::IF => Open::Then { condition: self.reg()? },
                _ => return Err(damage("there is a statement in it that is none")),
            };
            if open.len() == MAX_NESTING {
                return Err(damage("its loops and branches nest too deep"));
            }
            open.push((opened, std::mem::take(&mut block)));
        }
    }

    /// Continues after the end of the block `done` of `statement`.
    fn close(&mut self, statement: Open, done: Vec<Stmt>) -> Result<Closed> {
        Ok(match statement {
            Open::For { index, count, mut carried, order } => {
                self.next(&mut carried)?;
                Closed::Statement(Stmt::For { index, count, carried, order, body: done })
            }
            Open::Condition { limit, carried } => {
                let (holds, failure) = (self.reg()?, self.from.index()?);
                Closed::Block(Open::While { limit, carried, condition: done, holds, failure })
            }
            Open::While { limit, mut carried, condition, holds, failure } => {
                self.next(&mut carried)?;
                Closed::Statement(Stmt::While { limit, carried, condition, holds, body: done, failure })
            }
            Open::Then { condition } => Closed::Block(Open::Else { condition, then: done }),
            Open::Else { condition, then } => {
                let choices = self.list(3, |d| {
                    let (then, otherwise) = (d.reg()?, d.reg()?);
                    Ok(Choice { var: d.define()?, then, otherwise })
                })?;
                Closed::Statement(Stmt::If { condition, then, otherwise: done, choices })
            }
        })
    }

    fn carried(&mut self) -> Result<Vec<Carried>> {
        let mut carried = self.list(2, |d| d.reg().map(|init| Carried { var: init, init, next: init }))?;
        for c in &mut carried {
            c.var = self.define()?;
        }
        Ok(carried)
    }

    fn next(&mut self, carried: &mut [Carried]) -> Result<()> {
        for c in carried {
            c.next = self.reg()?;
        }
        Ok(())
    }

    fn straight(&mut self) -> Result<Vec<Instr>> {
        let n = self.from.count(2)?;
        let mut instrs = Vec::with_capacity(n);
        for _ in 0..n {
            instrs.push(self.instr()?);
        }
        Ok(instrs)
    }

    fn instr(&mut self) -> Result<Instr> {
        let coded = self.from.natural()?;
        let kind = coded >> 1;
        if matches!(kind, code::STORE | code::CHECK_INDEX) {
            if coded & 1 == 1 {
                return Err(damage("an instruction in it defines what it cannot"));
            }
            return self.without_result(kind);
        }
        let ahead = if coded & 1 == 1 { 0 } else { self.from.natural32()? };
        if ahead == 0 && coded & 1 == 0 {
            return Err(damage("a definition in it is not in its form"));
        }
        let number = self.last.wrapping_add(ahead).wrapping_add(1);
        let dst = self.checked(number)?;
        let instr = match kind {
            code::CONST => {
                let value = self.from.double()?;
                if whole(value).is_some() {
                    return Err(damage("a number in it is not in its form"));
                }
                Instr::Const { dst, value }
            }
            code::WHOLE => {
                let i = self.from.integer()?;
                if whole(i as f64) != Some(i) {
                    return Err(damage("a number in it is not in its form"));
                }
                Instr::Const { dst, value: i as f64 }
            }
            code::INT => Instr::Int { dst, value: self.poly()? },
            code::INT_OP => {
                let idx = self.from.natural()?;
                let (op, args) = self.applied(idx)?;
                Instr::IntOp { dst, op, args, failure: self.from.index()? }
            }
            code::MUL_ADD..code::MUL_ADD_END => Instr::MulAdd {
                dst,
                signs: SIGNS[(kind - code::MUL_ADD) as usize],
                args: [self.reg()?, self.reg()?, self.reg()?],
            },
            code::TO_REAL => Instr::ToReal { dst, src: self.reg()? },
            code::TO_INT => Instr::ToInt { dst, src: self.reg()? },
            code::EXTERNAL => {
                Instr::External { dst, function: self.from.index()?, args: self.list(1, Self::reg)?.into() }
            }
            code::LOAD => Instr::Load { dst, buffer: self.buffer()?, at: self.poly()? },
            code::OP.. => {
                let (op, args) = self.applied(kind - code::OP)?;
                Instr::Op { dst, op, args }
            }
            _ => return Err(damage("there is an instruction in it that is none")),
        };
        self.last = number;
        Ok(instr)
    }

    fn without_result(&mut self, kind: u64) -> Result<Instr> {
        Ok(if kind == code::STORE {
            Instr::Store { buffer: self.buffer()?, at: self.poly()?, value: self.reg()? }
        } else {
            Instr::CheckIndex { index: self.reg()?, len: self.poly()?, failure: self.from.index()? }
        })
    }

    /// Reads the arguments of the operator with this index in the table.
    fn applied(&mut self, idx: u64) -> Result<(Op, [Reg; 3])> {
        let op = usize::try_from(idx).ok().filter(|idx| *idx <= self.n_ops_met).and_then(|idx| {
            let op = self.ops.get(idx)?;
            self.n_ops_met = self.n_ops_met.max(idx + 1);
            Some(*op)
        });
        let op = op.ok_or_else(|| damage("it uses an operator that it does not name in time"))?;
        let first = self.reg()?;
        let mut args = [first; 3];
        for arg in args.iter_mut().take(op.arity()).skip(1) {
            *arg = self.reg()?;
        }
        Ok((op, args))
    }

    fn define(&mut self) -> Result<Reg> {
        self.last = self.last.wrapping_add(self.from.natural32()?).wrapping_add(1);
        self.checked(self.last)
    }

    fn reg(&mut self) -> Result<Reg> {
        let number = self.last.wrapping_sub(self.from.natural32()?);
        self.checked(number)
    }

    fn checked(&self, number: u32) -> Result<Reg> {
        if number < self.n_regs {
            Ok(Reg::new(number as usize))
        } else {
            Err(damage("a register in it does not exist"))
        }
    }

    fn buffer(&mut self) -> Result<BufferId> {
        self.from.index().map(BufferId::new)
    }

    fn element(&mut self) -> Result<(BufferId, Poly<Reg>)> {
        Ok((self.buffer()?, self.poly()?))
    }

    fn poly(&mut self) -> Result<Poly<Reg>> {
        let coded = self.from.natural()?;
        if coded & 1 == 0 {
            return Ok(Poly::constant((coded >> 1) as i64));
        }
        self.terms(coded >> 1)
    }

    fn terms(&mut self, n: u64) -> Result<Poly<Reg>> {
        if n > self.from.left() as u64 / 2 {
            return Err(damage("its content ends too early"));
        }
        let mut terms = Vec::with_capacity(n as usize);
        for _ in 0..n {
            let degree = self.from.count(1)?;
            let mut monomial = Vec::with_capacity(degree);
            for _ in 0..degree {
                monomial.push(self.reg()?);
            }
            terms.push((monomial, self.from.integer()?));
        }
        match Poly::from_terms(terms) {
            Some(poly) if poly.as_constant().is_none_or(|c| c < 0) => Ok(poly),
            _ => Err(damage("a size in it is not in its form")),
        }
    }
}

/// Result of closing a block.
enum Closed {
    /// The statement is complete.
    Statement(Stmt),
    /// Its next block follows.
    Block(Open),
}
