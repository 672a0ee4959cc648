//! Execution of one point: the loop over the bytecode.
//!
//! Arithmetic, comparison and selection have operations of their own because they are most of every program; they agree
//! with the operators' rows (a test compares them). All other operators are evaluated by their rows.

use crate::bytecode::{Code, Slot, ZERO};
use crate::memory::Arguments;
use crate::{Program, RunError, Sizes, Workspace};
use chainrule_kernel::{Class, Place};
use chainrule_ops::{Op, Type};
use chainrule_runtime::{Backend, Reason};

/// Runs `program` on `arguments` and `workspace`, which fit `sizes`.
pub(crate) fn run<A: Arguments>(
    program: &Program,
    sizes: &Sizes,
    arguments: &mut A,
    workspace: &mut Workspace,
) -> Result<(), RunError> {
    let compiled = &*program.compiled;
    let Workspace { real_slots: r, int_slots: i, reals, ints, call, .. } = workspace;
    let mut memory = Memory { program, sizes, arguments, reals, ints };
    i[ZERO as usize] = 0;
    for (slot, value) in compiled.size_slots.iter().zip(sizes.values()) {
        i[*slot as usize] = *value;
    }
    let mut pc = 0usize;
    while let Some(&code) = compiled.code.get(pc) {
        pc += 1;
        match code {
            Code::Const { d, k } => r[d as usize] = compiled.constants[k as usize],
            Code::Move { d, a } => r[d as usize] = r[a as usize],
            Code::Add { d, a, b } => r[d as usize] = r[a as usize] + r[b as usize],
            Code::Sub { d, a, b } => r[d as usize] = r[a as usize] - r[b as usize],
            Code::Mul { d, a, b } => r[d as usize] = r[a as usize] * r[b as usize],
            Code::Div { d, a, b } => r[d as usize] = r[a as usize] / r[b as usize],
            Code::Neg { d, a } => r[d as usize] = -r[a as usize],
            Code::Less { d, a, b } => i[d as usize] = i64::from(r[a as usize] < r[b as usize]),
            Code::LessEqual { d, a, b } => i[d as usize] = i64::from(r[a as usize] <= r[b as usize]),
            Code::Equal { d, a, b } => i[d as usize] = i64::from(r[a as usize] == r[b as usize]),
            Code::Select { d, c, a, b } => {
                r[d as usize] = if i[c as usize] != 0 { r[a as usize] } else { r[b as usize] };
            }
            Code::MulAdd { d, signs, a, b, c } => {
                r[d as usize] = signs.value(r[a as usize], r[b as usize], r[c as usize]);
            }
            Code::Call1 { d, op, a } => r[d as usize] = (op.row().value)(&[r[a as usize]]),
            Code::Call2 { d, op, a, b } => r[d as usize] = (op.row().value)(&[r[a as usize], r[b as usize]]),
            Code::Call { d, op, args } => {
                let value = call_row(op, args, |s| r[s as usize], |s| i[s as usize]);
                if op.row().result == Type::Bool {
                    i[d as usize] = i64::from(value != 0.0);
                } else {
                    r[d as usize] = value;
                }
            }
            Code::ToReal { d, a } => r[d as usize] = i[a as usize] as f64,
            Code::ToInt { d, a } => i[d as usize] = chainrule_ops::truncate(r[a as usize]),
            Code::External { d, function, args } => {
                let external = &program.layout.kernel().externals[function as usize];
                let slots = &compiled.external_args[args as usize..args as usize + external.arity];
                for (to, slot) in call.iter_mut().zip(slots) {
                    *to = r[*slot as usize];
                }
                r[d as usize] = external.call.as_ref().map_or(f64::NAN, |f| f(&call[..external.arity]));
            }
            Code::Load { d, buffer, base, offset } => {
                let at = i[base as usize].wrapping_add(i64::from(offset));
                r[d as usize] = memory.load(buffer, at).ok_or_else(|| program.bad_address(code))?;
            }
            Code::IntLoad { d, buffer, base, offset } => {
                let at = i[base as usize].wrapping_add(i64::from(offset));
                i[d as usize] = memory.load_int(buffer, at).ok_or_else(|| program.bad_address(code))?;
            }
            Code::Store { a, buffer, base, offset } => {
                let at = i[base as usize].wrapping_add(i64::from(offset));
                memory.store(buffer, at, r[a as usize]).ok_or_else(|| program.bad_address(code))?;
            }
            Code::IntStore { a, buffer, base, offset } => {
                let at = i[base as usize].wrapping_add(i64::from(offset));
                memory.store_int(buffer, at, i[a as usize]).ok_or_else(|| program.bad_address(code))?;
            }
            Code::Copy { to, to_at, from, from_at, len } => {
                let (to_at, from_at, len) = (i[to_at as usize], i[from_at as usize], i[len as usize]);
                memory.copy(to, to_at, from, from_at, len).ok_or_else(|| program.bad_address(code))?;
            }
            _ => pc = integer(program, code, i, pc)?,
        }
    }
    Ok(())
}

/// Evaluates an operator by its row; truth values are integers.
pub(crate) fn call_row(op: Op, args: [Slot; 3], real: impl Fn(Slot) -> f64, int: impl Fn(Slot) -> i64) -> f64 {
    let row = op.row();
    let mut values = [0.0; 3];
    for ((value, slot), ty) in values.iter_mut().zip(args).zip(row.args) {
        *value = match ty {
            Type::Num => real(slot),
            Type::Bool => f64::from(u8::from(int(slot) != 0)),
        };
    }
    (row.value)(&values[..row.args.len()])
}

/// Returns the error for an integer of the operation before `next` that does not fit.
#[cold]
fn overflow(program: &Program, next: usize) -> RunError {
    let integers = &program.compiled.integers;
    let of = integers[..integers.partition_point(|(first, _)| *first < next)].last();
    program.layout.overflow(of.and_then(|(_, r)| *r))
}

/// Runs an operation on integers or a jump, `pc` being the position after it; returns the next position.
#[inline]
pub(crate) fn integer(program: &Program, code: Code, i: &mut [i64], pc: usize) -> Result<usize, RunError> {
    let add = |a: i64, b: i64, checked: bool| match checked {
        true => a.checked_add(b).ok_or_else(|| overflow(program, pc)),
        false => Ok(a.wrapping_add(b)),
    };
    let mul = |a: i64, b: i64, checked: bool| match checked {
        true => a.checked_mul(b).ok_or_else(|| overflow(program, pc)),
        false => Ok(a.wrapping_mul(b)),
    };
    match code {
        Code::IntConst { d, k } => i[d as usize] = program.compiled.int_constants[k as usize],
        Code::IntMove { d, a } => i[d as usize] = i[a as usize],
        Code::IntAdd { d, a, b, checked } => i[d as usize] = add(i[a as usize], i[b as usize], checked)?,
        Code::IntMul { d, a, b, checked } => i[d as usize] = mul(i[a as usize], i[b as usize], checked)?,
        Code::IntAddConst { d, a, k, checked } => i[d as usize] = add(i[a as usize], i64::from(k), checked)?,
        Code::IntMulConst { d, a, k, checked } => i[d as usize] = mul(i[a as usize], i64::from(k), checked)?,
        Code::IntOp { d, op, args, failure } => {
            let row = op.row();
            let values = args.map(|slot| i[slot as usize]);
            let value = row.int.and_then(|int| int(&values[..row.args.len()]));
            i[d as usize] = value.ok_or_else(|| {
                program.layout.failure(failure as usize, &Reason::NoResult(op, &values[..op.arity()]))
            })?;
        }
        Code::CheckIndex { index, len, failure } => {
            let (index, len) = (i[index as usize], i[len as usize]);
            if !(0..len).contains(&index) {
                return Err(program.layout.failure(failure as usize, &Reason::Index { index, len }));
            }
        }
        Code::Jump { to } => return Ok(to as usize),
        Code::JumpIfZero { c, to } => {
            if i[c as usize] == 0 {
                return Ok(to as usize);
            }
        }
        Code::ForBegin { index, count, exit } => {
            i[index as usize] = 0;
            if i[count as usize] <= 0 {
                return Ok(exit as usize);
            }
        }
        Code::ForNext { index, count, back } => {
            i[index as usize] += 1;
            if i[index as usize] < i[count as usize] {
                return Ok(back as usize);
            }
        }
        Code::Limit { counter, limit, failure } => {
            if i[counter as usize] >= i[limit as usize] {
                return Err(program.layout.failure(failure as usize, &Reason::Limit(i[limit as usize])));
            }
            i[counter as usize] += 1;
        }
        _ => return Err(RunError::Bug(format!("kernel `{}` has a misplaced operation: {code:?}", program.name()))),
    }
    Ok(pc)
}

/// Buffers of the running point. Accesses return `None` if an element is outside its buffer.
struct Memory<'a, A> {
    program: &'a Program,
    sizes: &'a Sizes,
    arguments: &'a mut A,
    reals: &'a mut [f64],
    ints: &'a mut [i64],
}

impl<A: Arguments> Memory<'_, A> {
    /// Returns the offset in the workspace, and the element, if it is inside the buffer.
    fn locate(&self, buffer: u32, at: i64) -> Option<(usize, usize)> {
        let (offset, len) = self.sizes.buffers()[buffer as usize];
        let at = usize::try_from(at).ok().filter(|at| *at < len)?;
        Some((offset, at))
    }

    fn load(&self, buffer: u32, at: i64) -> Option<f64> {
        let (offset, at) = self.locate(buffer, at)?;
        match self.program.place(buffer) {
            Place::Input(input) => self.arguments.real(*input, at),
            Place::Output(output) => self.arguments.output_real(*output, at),
            Place::Workspace(_) => self.reals.get(offset + at).copied(),
        }
    }

    fn load_int(&self, buffer: u32, at: i64) -> Option<i64> {
        let (offset, at) = self.locate(buffer, at)?;
        match self.program.place(buffer) {
            Place::Input(input) => self.arguments.int(*input, at),
            Place::Output(output) => self.arguments.output_int(*output, at),
            Place::Workspace(_) => self.ints.get(offset + at).copied(),
        }
    }

    fn store(&mut self, buffer: u32, at: i64, value: f64) -> Option<()> {
        let (offset, at) = self.locate(buffer, at)?;
        match self.program.place(buffer) {
            Place::Input(_) => None,
            Place::Output(output) => self.arguments.set_real(*output, at, value),
            Place::Workspace(_) => self.reals.get_mut(offset + at).map(|place| *place = value),
        }
    }

    fn store_int(&mut self, buffer: u32, at: i64, value: i64) -> Option<()> {
        let (offset, at) = self.locate(buffer, at)?;
        match self.program.place(buffer) {
            Place::Input(_) => None,
            Place::Output(output) => self.arguments.set_int(*output, at, value),
            Place::Workspace(_) => self.ints.get_mut(offset + at).map(|place| *place = value),
        }
    }

    fn copy(&mut self, to: u32, to_at: i64, from: u32, from_at: i64, len: i64) -> Option<()> {
        let class = self.program.layout.kernel().buffers.as_slice()[from as usize].class;
        for k in 0..len {
            let (to_at, from_at) = (to_at.checked_add(k)?, from_at.checked_add(k)?);
            match class {
                Class::Real => {
                    let value = self.load(from, from_at)?;
                    self.store(to, to_at, value)?;
                }
                Class::Int => {
                    let value = self.load_int(from, from_at)?;
                    self.store_int(to, to_at, value)?;
                }
            }
        }
        Some(())
    }
}
