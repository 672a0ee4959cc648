//! A block of points: each operation runs for all points before the next one, which amortises dispatch and lets the
//! compiler vectorise.
//!
//! Invariants: even integer slots hold one number for the block, odd ones and all real slots an array of [`LANES`]
//! numbers. The values are those of single points: the same operations on the same numbers. Lanes past the end of the
//! batch compute on stale data, and are never stored.

use crate::bytecode::{Code, Slot, ZERO, varies};
use crate::memory::{Many, POISON};
use crate::run::{call_row, integer};
use crate::{Program, RunError, Sizes, Workspace};
use chainrule_kernel::{Class, Place};
use chainrule_ops::Type;
use chainrule_runtime::Slice;

/// Number of points of a block.
pub const LANES: usize = 64;

type Reals = [f64; LANES];
type Ints = [i64; LANES];

/// Slots and buffers of a block.
#[derive(Clone, Debug)]
pub(crate) struct LaneSpace {
    reals: Vec<Reals>,
    /// Odd integer slots, halved.
    ints: Vec<Ints>,
    work_reals: Vec<Reals>,
    work_ints: Vec<Ints>,
}

impl LaneSpace {
    pub(crate) fn new(program: &Program, sizes: &Sizes) -> Self {
        Self {
            reals: vec![[0.0; LANES]; program.compiled.n_reals],
            ints: vec![[0; LANES]; program.compiled.n_ints / 2],
            work_reals: vec![[0.0; LANES]; sizes.workspace_len().0],
            work_ints: vec![[0; LANES]; sizes.workspace_len().1],
        }
    }

    pub(crate) fn fits(&self, program: &Program, sizes: &Sizes) -> bool {
        self.reals.len() >= program.compiled.n_reals
            && self.ints.len() >= program.compiled.n_ints / 2
            && self.work_reals.len() >= sizes.workspace_len().0
            && self.work_ints.len() >= sizes.workspace_len().1
    }

    pub(crate) fn fill_with_poison(&mut self) {
        self.reals.fill([f64::NAN; LANES]);
        self.ints.fill([POISON; LANES]);
        self.work_reals.fill([f64::NAN; LANES]);
        self.work_ints.fill([POISON; LANES]);
    }
}

/// Runs points `first..first + n`; the arguments, the sizes and the workspace fit.
pub(crate) fn run_lanes(
    program: &Program,
    sizes: &Sizes,
    arguments: &mut Many<'_, '_, '_>,
    first: usize,
    n: usize,
    workspace: &mut Workspace,
) -> Result<(), RunError> {
    let compiled = &*program.compiled;
    let Workspace { int_slots: uniform, call, lanes: Some(space), .. } = workspace else {
        return Err(RunError::Bug("a workspace without lanes".to_owned()));
    };
    let mut block = Block { program, sizes, arguments, first, n, space };
    uniform[ZERO as usize] = 0;
    for (slot, value) in compiled.size_slots.iter().zip(sizes.values()) {
        uniform[*slot as usize] = *value;
    }
    let mut pc = 0usize;
    while let Some(&code) = compiled.code.get(pc) {
        pc += 1;
        match code {
            Code::Const { d, k } => block.space.reals[d as usize] = [compiled.constants[k as usize]; LANES],
            Code::Move { d, a } => block.space.reals[d as usize] = block.space.reals[a as usize],
            Code::Add { d, a, b } => block.binary(d, a, b, |x, y| x + y),
            Code::Sub { d, a, b } => block.binary(d, a, b, |x, y| x - y),
            Code::Mul { d, a, b } => block.binary(d, a, b, |x, y| x * y),
            Code::Div { d, a, b } => block.binary(d, a, b, |x, y| x / y),
            Code::Neg { d, a } => block.unary(d, a, |x| -x),
            Code::Less { d, a, b } => block.compare(d, a, b, |x, y| x < y),
            Code::LessEqual { d, a, b } => block.compare(d, a, b, |x, y| x <= y),
            Code::Equal { d, a, b } => block.compare(d, a, b, |x, y| x == y),
            Code::Select { d, c, a, b } => {
                let c = block.ints(c, uniform);
                let (x, y) = (block.space.reals[a as usize], block.space.reals[b as usize]);
                block.space.reals[d as usize] = std::array::from_fn(|l| if c[l] != 0 { x[l] } else { y[l] });
            }
            Code::MulAdd { d, signs, a, b, c } => {
                let [x, y, z] = [a, b, c].map(|slot| block.space.reals[slot as usize]);
                block.space.reals[d as usize] = std::array::from_fn(|l| signs.value(x[l], y[l], z[l]));
            }
            Code::Call1 { d, op, a } => {
                let row = op.row();
                let x = block.space.reals[a as usize];
                if let Some(function) = row.elementary {
                    chainrule_mathfun::apply1(function, &x[..n], &mut block.space.reals[d as usize][..n]);
                    continue;
                }
                let f = row.value;
                for (to, x) in block.space.reals[d as usize][..n].iter_mut().zip(x) {
                    *to = f(&[x]);
                }
            }
            Code::Call2 { d, op, a, b } => {
                let row = op.row();
                let (x, y) = (block.space.reals[a as usize], block.space.reals[b as usize]);
                if let Some(function) = row.elementary {
                    chainrule_mathfun::apply2(function, &x[..n], &y[..n], &mut block.space.reals[d as usize][..n]);
                    continue;
                }
                let f = row.value;
                for (to, (x, y)) in block.space.reals[d as usize][..n].iter_mut().zip(x.into_iter().zip(y)) {
                    *to = f(&[x, y]);
                }
            }
            Code::Call { d, op, args } => {
                for l in 0..n {
                    let int = |s: Slot| match varies(s) {
                        true => block.space.ints[s as usize / 2][l],
                        false => uniform[s as usize],
                    };
                    let value = call_row(op, args, |s| block.space.reals[s as usize][l], int);
                    if op.row().result == Type::Bool {
                        block.space.ints[d as usize / 2][l] = i64::from(value != 0.0);
                    } else {
                        block.space.reals[d as usize][l] = value;
                    }
                }
            }
            Code::ToReal { d, a } => {
                let a = block.ints(a, uniform);
                block.space.reals[d as usize] = a.map(|a| a as f64);
            }
            Code::External { d, function, args } => {
                let external = &program.layout.kernel().externals[function as usize];
                let slots = &compiled.external_args[args as usize..args as usize + external.arity];
                for l in 0..n {
                    for (to, slot) in call.iter_mut().zip(slots) {
                        *to = block.space.reals[*slot as usize][l];
                    }
                    let value = external.call.as_ref().map_or(f64::NAN, |f| f(&call[..external.arity]));
                    block.space.reals[d as usize][l] = value;
                }
            }
            Code::IntMove { d, a } if varies(d) => block.space.ints[d as usize / 2] = block.ints(a, uniform),
            Code::Load { d, buffer, base, offset } => {
                let at = uniform[base as usize].wrapping_add(i64::from(offset));
                let value = block.load(buffer, at).ok_or_else(|| program.bad_address(code))?;
                block.space.reals[d as usize] = value;
            }
            Code::IntLoad { d, buffer, base, offset } => {
                let at = uniform[base as usize].wrapping_add(i64::from(offset));
                let value = block.load_int(buffer, at).ok_or_else(|| program.bad_address(code))?;
                block.space.ints[d as usize / 2] = value;
            }
            Code::Store { a, buffer, base, offset } => {
                let at = uniform[base as usize].wrapping_add(i64::from(offset));
                let value = block.space.reals[a as usize];
                block.store(buffer, at, &value).ok_or_else(|| program.bad_address(code))?;
            }
            Code::IntStore { a, buffer, base, offset } => {
                let at = uniform[base as usize].wrapping_add(i64::from(offset));
                let value = block.ints(a, uniform);
                block.store_int(buffer, at, &value).ok_or_else(|| program.bad_address(code))?;
            }
            Code::Copy { to, to_at, from, from_at, len } => {
                let at = (uniform[to_at as usize], uniform[from_at as usize], uniform[len as usize]);
                block.copy(to, from, at).ok_or_else(|| program.bad_address(code))?;
            }
            _ => pc = integer(program, code, uniform, pc)?,
        }
    }
    Ok(())
}

/// The running block. Accesses return `None` if an element is outside its buffer.
struct Block<'a, 'b, 'c, 'd> {
    program: &'a Program,
    sizes: &'a Sizes,
    arguments: &'a mut Many<'b, 'c, 'd>,
    first: usize,
    n: usize,
    space: &'a mut LaneSpace,
}

impl Block<'_, '_, '_, '_> {
    #[inline]
    fn binary(&mut self, d: Slot, a: Slot, b: Slot, f: impl Fn(f64, f64) -> f64) {
        let reals = &mut self.space.reals;
        if let Ok([d, a, b]) = reals.get_disjoint_mut([d as usize, a as usize, b as usize]) {
            for l in 0..LANES {
                d[l] = f(a[l], b[l]);
            }
        } else {
            let (a, b) = (reals[a as usize], reals[b as usize]);
            reals[d as usize] = std::array::from_fn(|l| f(a[l], b[l]));
        }
    }

    #[inline]
    fn unary(&mut self, d: Slot, a: Slot, f: impl Fn(f64) -> f64) {
        let a = self.space.reals[a as usize];
        self.space.reals[d as usize] = a.map(f);
    }

    #[inline]
    fn compare(&mut self, d: Slot, a: Slot, b: Slot, f: impl Fn(f64, f64) -> bool) {
        let (a, b) = (&self.space.reals[a as usize], &self.space.reals[b as usize]);
        self.space.ints[d as usize / 2] = std::array::from_fn(|l| i64::from(f(a[l], b[l])));
    }

    fn ints(&self, slot: Slot, uniform: &[i64]) -> Ints {
        if varies(slot) { self.space.ints[slot as usize / 2] } else { [uniform[slot as usize]; LANES] }
    }

    fn locate(&self, buffer: u32, at: i64) -> Option<(usize, usize)> {
        let (offset, len) = self.sizes.buffers()[buffer as usize];
        let at = usize::try_from(at).ok().filter(|at| *at < len)?;
        Some((offset, at))
    }

    fn load(&self, buffer: u32, at: i64) -> Option<Reals> {
        let (offset, at) = self.locate(buffer, at)?;
        let mut out = [0.0; LANES];
        match self.program.place(buffer) {
            Place::Workspace(_) => return self.space.work_reals.get(offset + at).copied(),
            Place::Input(i) => {
                let input = self.arguments.inputs.get(*i)?;
                let Slice::Real(data) = input.data else { return None };
                gather(data, self.first * input.point + at * input.element, input.point, &mut out[..self.n])?;
            }
            Place::Output(i) => {
                self.arguments.outputs.get(*i)?.read_doubles(self.first, at, &mut out[..self.n])?;
            }
        }
        Some(out)
    }

    fn load_int(&self, buffer: u32, at: i64) -> Option<Ints> {
        let (offset, at) = self.locate(buffer, at)?;
        let mut out = [0; LANES];
        match self.program.place(buffer) {
            Place::Workspace(_) => return self.space.work_ints.get(offset + at).copied(),
            Place::Input(i) => {
                let input = self.arguments.inputs.get(*i)?;
                let Slice::Int(data) = input.data else { return None };
                gather(data, self.first * input.point + at * input.element, input.point, &mut out[..self.n])?;
            }
            Place::Output(i) => {
                self.arguments.outputs.get(*i)?.read_integers(self.first, at, &mut out[..self.n])?;
            }
        }
        Some(out)
    }

    fn store(&mut self, buffer: u32, at: i64, value: &Reals) -> Option<()> {
        let (offset, at) = self.locate(buffer, at)?;
        match self.program.place(buffer) {
            Place::Workspace(_) => self.space.work_reals.get_mut(offset + at).map(|place| *place = *value),
            Place::Input(_) => None,
            Place::Output(i) => self.arguments.outputs.get_mut(*i)?.write_doubles(self.first, at, &value[..self.n]),
        }
    }

    fn store_int(&mut self, buffer: u32, at: i64, value: &Ints) -> Option<()> {
        let (offset, at) = self.locate(buffer, at)?;
        match self.program.place(buffer) {
            Place::Workspace(_) => self.space.work_ints.get_mut(offset + at).map(|place| *place = *value),
            Place::Input(_) => None,
            Place::Output(i) => self.arguments.outputs.get_mut(*i)?.write_integers(self.first, at, &value[..self.n]),
        }
    }

    /// Copies elements; `at` is destination, source, length.
    fn copy(&mut self, to: u32, from: u32, at: (i64, i64, i64)) -> Option<()> {
        let class = self.program.layout.kernel().buffers.as_slice()[from as usize].class;
        for k in 0..at.2 {
            let (to_at, from_at) = (at.0.checked_add(k)?, at.1.checked_add(k)?);
            match class {
                Class::Real => {
                    let value = self.load(from, from_at)?;
                    self.store(to, to_at, &value)?;
                }
                Class::Int => {
                    let value = self.load_int(from, from_at)?;
                    self.store_int(to, to_at, &value)?;
                }
            }
        }
        Some(())
    }
}

fn gather<T: Copy>(data: &[T], start: usize, stride: usize, to: &mut [T]) -> Option<()> {
    if stride == 1 {
        to.copy_from_slice(data.get(start..start + to.len())?);
        return Some(());
    }
    for (l, to) in to.iter_mut().enumerate() {
        *to = *data.get(start + l * stride)?;
    }
    Some(())
}
