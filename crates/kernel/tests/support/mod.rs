//! A tiny direct evaluator of kernels, that trusts nothing: each cell of memory knows which buffer wrote
//! it, so that reading what was never written, or what another buffer has overwritten, is an error.
//!
//! It shares nothing with the backends.

#![allow(dead_code, clippy::unwrap_used)] // helpers of tests; no test uses all of them

pub mod reference;

use chainrule_base::{Poly, Sources};
use chainrule_ir::{Program, Size, Type, Value};
use chainrule_kernel::{BufferId, Class, Instr, Kernel, Order, Place, Reg, SizeSource, Stmt};

/// Runs `check` on so many random strings of bytes; one that panics is made shorter, and reported.
pub fn random(cases: u32, seed: u64, lengths: std::ops::Range<usize>, check: impl Fn(&[u8])) {
    chainrule_backend_tests::generate::random_bytes(cases, seed, lengths, |bytes| {
        check(bytes);
        Ok(())
    });
}

/// The program of a text.
pub fn program(text: &str) -> Program {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")))
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// One number.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    Real(f64),
    Int(i64),
}

/// Bit for bit; every NaN is as good as another.
impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Self::Int(a), Self::Int(b)) => a == b,
            _ => false,
        }
    }
}

/// An argument or a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    pub shape: Vec<i64>,
    pub data: Vec<Scalar>,
}

/// The leaves of a value of type `ty` as arrays, in the order of the kernel's ports.
pub fn flatten(ty: &Type, value: &Value<f64>, size: &dyn Fn(&Size) -> i64) -> Vec<Array> {
    match (ty, value) {
        (Type::Double, Value::Real(x)) => vec![Array { shape: vec![], data: vec![Scalar::Real(*x)] }],
        (Type::Int, Value::Int(i)) => vec![Array { shape: vec![], data: vec![Scalar::Int(*i)] }],
        (Type::Bool, Value::Bool(b)) => vec![Array { shape: vec![], data: vec![Scalar::Int(i64::from(*b))] }],
        (Type::Tuple(fields, _), Value::Tuple(items)) => {
            fields.iter().zip(items).flat_map(|(ty, value)| flatten(ty, value, size)).collect()
        }
        (Type::Array(n, element), Value::Array(items)) => {
            assert_eq!(size(n), items.len() as i64, "an array has the size of its type");
            let mut leaves = empty(element, size);
            for leaf in &mut leaves {
                leaf.shape.insert(0, items.len() as i64);
            }
            for item in items {
                for (leaf, part) in leaves.iter_mut().zip(flatten(element, item, size)) {
                    leaf.data.extend(part.data);
                }
            }
            leaves
        }
        _ => panic!("{value:?} is not of type {ty:?}"),
    }
}

fn empty(ty: &Type, size: &dyn Fn(&Size) -> i64) -> Vec<Array> {
    match ty {
        Type::Double | Type::Int | Type::Bool => vec![Array { shape: vec![], data: vec![] }],
        Type::Tuple(fields, _) => fields.iter().flat_map(|ty| empty(ty, size)).collect(),
        Type::Array(n, element) => {
            let mut leaves = empty(element, size);
            leaves.iter_mut().for_each(|leaf| leaf.shape.insert(0, size(n)));
            leaves
        }
    }
}

/// Runs `kernel`.
///
/// # Errors
/// The message of a condition or of a failure, or `bug: ...` for a broken invariant.
pub fn run(kernel: &Kernel, inputs: &[Array]) -> Result<Vec<Array>, String> {
    assert_eq!(inputs.len(), kernel.inputs.len(), "as many arguments as inputs");
    let mut regs = vec![None; kernel.regs.len()];
    let mut values: Vec<i64> = Vec::new();
    for size in &kernel.sizes {
        let value = match &size.source {
            SizeSource::Extent { input, dim } => inputs[*input].shape[*dim],
            SizeSource::Value { input } => match inputs[*input].data[0] {
                Scalar::Int(value) => value,
                Scalar::Real(_) => return Err("bug: a size is a double".to_owned()),
            },
            SizeSource::Natural { of } => {
                let before = |r| kernel.sizes.iter().position(|size| size.reg == r).map_or(0, |k| values[k]);
                of.eval(before).ok_or("overflow")?.max(0)
            }
        };
        values.push(value);
        regs[chainrule_base::Id::index(size.reg)] = Some(Scalar::Int(value));
    }
    let mut m = Machine { kernel, inputs, regs, cells: [vec![], vec![]], outputs: vec![], buffers: vec![] };
    for (port, array) in kernel.inputs.iter().zip(inputs) {
        let shape: Vec<i64> = port.shape.iter().map(|extent| m.poly(extent)).collect::<Result<_, _>>()?;
        assert_eq!(shape, array.shape, "the extents of {}", port.name);
    }
    for condition in &kernel.requires {
        let size = m.poly(&condition.size)?;
        if size < 0 || (condition.exactly_zero && size != 0) {
            return Err(condition.message.clone());
        }
    }
    chainrule_kernel::check_layout(kernel, &values).map_err(|errors| format!("bug: {}", errors[0]))?;
    let total = [m.poly(&kernel.workspace_reals)?, m.poly(&kernel.workspace_ints)?];
    m.cells = total.map(|n| vec![None; n as usize]);
    for (_, buffer) in kernel.buffers.iter() {
        let offset = if let Place::Workspace(offset) = &buffer.place { m.poly(offset)? } else { 0 };
        let len = m.poly(&buffer.len)?;
        m.buffers.push((offset, len));
        if let Place::Output(_) = buffer.place {
            m.outputs.push(vec![None; len as usize]);
        }
    }
    for zeros in &kernel.zeros {
        let Place::Output(idx) = kernel.buffers[zeros.buffer].place else {
            return Err("bug: zeros of no output".to_owned());
        };
        for bit in (0..64).filter(|bit| zeros.which >> bit & 1 == 1) {
            m.outputs[idx][(zeros.first + bit) as usize] = Some(Scalar::Real(0.0));
        }
    }
    m.block(&kernel.body)?;
    let mut results = Vec::new();
    for (port, cells) in kernel.outputs.iter().zip(&m.outputs) {
        let shape = port.shape.iter().map(|extent| m.poly(extent)).collect::<Result<_, _>>()?;
        let data: Option<Vec<Scalar>> = cells.iter().copied().collect();
        results.push(Array { shape, data: data.ok_or_else(|| format!("bug: {} is not all written", port.name))? });
    }
    Ok(results)
}

struct Machine<'k> {
    kernel: &'k Kernel,
    inputs: &'k [Array],
    regs: Vec<Option<Scalar>>,
    cells: [Vec<Option<(BufferId, Scalar)>>; 2],
    outputs: Vec<Vec<Option<Scalar>>>,
    buffers: Vec<(i64, i64)>,
}

/// Message of an integer overflow, which is a failure of the program, not of the kernel.
pub const OVERFLOW: &str = "an integer does not fit into 64 bits";

impl Machine<'_> {
    fn get(&self, reg: Reg) -> Result<Scalar, String> {
        self.regs[chainrule_base::Id::index(reg)].ok_or_else(|| format!("bug: {reg} is not defined"))
    }

    fn set(&mut self, reg: Reg, value: Scalar) {
        self.regs[chainrule_base::Id::index(reg)] = Some(value);
    }

    fn int(&self, reg: Reg) -> Result<i64, String> {
        match self.get(reg)? {
            Scalar::Int(i) => Ok(i),
            Scalar::Real(_) => Err(format!("bug: {reg} is no integer")),
        }
    }

    fn real(&self, reg: Reg) -> Result<f64, String> {
        match self.get(reg)? {
            Scalar::Real(x) => Ok(x),
            Scalar::Int(_) => Err(format!("bug: {reg} is no double")),
        }
    }

    fn poly(&self, poly: &Poly<Reg>) -> Result<i64, String> {
        for reg in poly.vars() {
            self.int(reg)?;
        }
        poly.eval(|reg| self.int(reg).unwrap()).ok_or_else(|| OVERFLOW.to_owned())
    }

    fn cell(&self, buffer: BufferId, at: i64) -> Result<usize, String> {
        let (offset, len) = self.buffers[chainrule_base::Id::index(buffer)];
        if (0..len).contains(&at) { Ok((offset + at) as usize) } else { Err(format!("bug: {buffer}[{at}] of {len}")) }
    }

    fn load(&self, buffer: BufferId, at: i64) -> Result<Scalar, String> {
        let cell = self.cell(buffer, at)?;
        match self.kernel.buffers[buffer].place {
            Place::Input(idx) => Ok(self.inputs[idx].data[cell]),
            Place::Output(idx) => self.outputs[idx][cell].map_or_else(|| self.unwritten(buffer, at), Ok),
            Place::Workspace(_) => match self.cells[self.kernel.buffers[buffer].class as usize][cell] {
                Some((owner, value)) if owner == buffer => Ok(value),
                Some((owner, _)) => Err(format!("bug: {buffer}[{at}] was overwritten by {owner}")),
                None => self.unwritten(buffer, at),
            },
        }
    }

    /// An element that was never written. A double is NaN: a branch that became a select reads both sides and discards
    /// one, and a NaN that is not discarded reaches the results.
    fn unwritten(&self, buffer: BufferId, at: i64) -> Result<Scalar, String> {
        match self.kernel.buffers[buffer].class {
            Class::Real => Ok(Scalar::Real(f64::NAN)),
            Class::Int => Err(format!("bug: {buffer}[{at}] is not written")),
        }
    }

    fn store(&mut self, buffer: BufferId, at: i64, value: Scalar) -> Result<(), String> {
        let cell = self.cell(buffer, at)?;
        assert_eq!(self.kernel.buffers[buffer].class == Class::Int, matches!(value, Scalar::Int(_)));
        match self.kernel.buffers[buffer].place {
            Place::Input(_) => return Err("bug: an input is written".to_owned()),
            Place::Output(idx) => self.outputs[idx][cell] = Some(value),
            Place::Workspace(_) => {
                self.cells[self.kernel.buffers[buffer].class as usize][cell] = Some((buffer, value));
            }
        }
        Ok(())
    }

    /// Makes an element unwritten.
    fn forget(&mut self, buffer: BufferId, at: i64) -> Result<(), String> {
        let cell = self.cell(buffer, at)?;
        match self.kernel.buffers[buffer].place {
            Place::Input(_) => return Err("bug: an input is moved".to_owned()),
            Place::Output(idx) => self.outputs[idx][cell] = None,
            Place::Workspace(_) => self.cells[self.kernel.buffers[buffer].class as usize][cell] = None,
        }
        Ok(())
    }

    fn fail<T>(&self, failure: usize) -> Result<T, String> {
        Err(self.kernel.failures[failure].0.clone())
    }

    fn carry(&mut self, pairs: &[(Reg, Reg)]) -> Result<(), String> {
        let values = pairs.iter().map(|(_, from)| self.get(*from)).collect::<Result<Vec<_>, _>>()?;
        pairs.iter().zip(values).for_each(|((to, _), value)| self.set(*to, value));
        Ok(())
    }

    fn block(&mut self, stmts: &[Stmt]) -> Result<(), String> {
        for stmt in stmts {
            match stmt {
                Stmt::Straight(instrs) => instrs.iter().try_for_each(|instr| self.instr(instr))?,
                Stmt::For { index, count, carried, order, body } => {
                    let count = self.poly(count)?;
                    self.carry(&carried.iter().map(|c| (c.var, c.init)).collect::<Vec<_>>())?;
                    for i in 0..count {
                        // What may run at once may run backwards.
                        let i = if *order != Order::InOrder { count - 1 - i } else { i };
                        self.set(*index, Scalar::Int(i));
                        self.block(body)?;
                        self.carry(&carried.iter().map(|c| (c.var, c.next)).collect::<Vec<_>>())?;
                    }
                }
                Stmt::While { limit, carried, condition, holds, body, failure } => {
                    let limit = self.poly(limit)?;
                    self.carry(&carried.iter().map(|c| (c.var, c.init)).collect::<Vec<_>>())?;
                    let mut steps = 0;
                    loop {
                        self.block(condition)?;
                        if self.int(*holds)? == 0 {
                            break;
                        }
                        if steps >= limit {
                            return self.fail(*failure);
                        }
                        steps += 1;
                        self.block(body)?;
                        self.carry(&carried.iter().map(|c| (c.var, c.next)).collect::<Vec<_>>())?;
                    }
                }
                Stmt::If { condition, then, otherwise, choices } => {
                    let holds = self.int(*condition)? != 0;
                    self.block(if holds { then } else { otherwise })?;
                    let pick = |c: &chainrule_kernel::Choice| (c.var, if holds { c.then } else { c.otherwise });
                    self.carry(&choices.iter().map(pick).collect::<Vec<_>>())?;
                }
                Stmt::Copy { to, from, len, is_move } => {
                    let (to_at, from_at, len) = (self.poly(&to.1)?, self.poly(&from.1)?, self.poly(len)?);
                    if to.0 == from.0 && to_at < from_at + len && from_at < to_at + len {
                        return Err("bug: a copy onto itself".to_owned());
                    }
                    for k in 0..len {
                        let value = self.load(from.0, from_at + k)?;
                        self.store(to.0, to_at + k, value)?;
                        if *is_move {
                            self.forget(from.0, from_at + k)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn instr(&mut self, instr: &Instr) -> Result<(), String> {
        match instr {
            Instr::Const { dst, value } => self.set(*dst, Scalar::Real(*value)),
            Instr::Int { dst, value } => {
                let value = self.poly(value)?;
                self.set(*dst, Scalar::Int(value));
            }
            Instr::Op { dst, op, args } => {
                let mut values = [0.0; 3];
                for (value, (arg, ty)) in values.iter_mut().zip(args.iter().zip(op.row().args)) {
                    *value = match ty {
                        chainrule_ops::Type::Num => self.real(*arg)?,
                        chainrule_ops::Type::Bool => self.int(*arg)? as f64,
                    };
                }
                let value = op.value(&values[..op.arity()]);
                self.set(
                    *dst,
                    match op.row().result {
                        chainrule_ops::Type::Num => Scalar::Real(value),
                        chainrule_ops::Type::Bool => Scalar::Int(i64::from(value != 0.0)),
                    },
                );
            }
            Instr::IntOp { dst, op, args, failure } => {
                let args = args[..op.arity()].iter().map(|arg| self.int(*arg)).collect::<Result<Vec<_>, _>>()?;
                match op.row().int.expect("an integer operator")(&args) {
                    Some(value) => self.set(*dst, Scalar::Int(value)),
                    None => return self.fail(*failure),
                }
            }
            Instr::MulAdd { dst, signs, args: [a, b, c] } => {
                let value = signs.value(self.real(*a)?, self.real(*b)?, self.real(*c)?);
                self.set(*dst, Scalar::Real(value));
            }
            Instr::ToInt { dst, src } => {
                let value = chainrule_ops::truncate(self.real(*src)?);
                self.set(*dst, Scalar::Int(value));
            }
            Instr::ToReal { dst, src } => {
                let value = self.int(*src)? as f64;
                self.set(*dst, Scalar::Real(value));
            }
            Instr::External { dst, function, args } => {
                let args = args.iter().map(|arg| self.real(*arg)).collect::<Result<Vec<_>, _>>()?;
                let call = self.kernel.externals[*function].call.as_ref().expect("a function to call");
                self.set(*dst, Scalar::Real(call(&args)));
            }
            Instr::Load { dst, buffer, at } => {
                let value = self.load(*buffer, self.poly(at)?)?;
                self.set(*dst, value);
            }
            Instr::Store { buffer, at, value } => {
                let value = self.get(*value)?;
                self.store(*buffer, self.poly(at)?, value)?;
            }
            Instr::CheckIndex { index, len, failure } => {
                if !(0..self.poly(len)?).contains(&self.int(*index)?) {
                    return self.fail(*failure);
                }
            }
        }
        Ok(())
    }
}
