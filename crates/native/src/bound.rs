//! A program with owned memory for the arguments and results of one point. Everything is checked at construction, so a
//! call only enters the code.
//!
//! Invariants: the words of the frame describe the sizes, the arguments, the results and the workspace, none of which
//! moves or changes its length; integers, which may be sizes, do not change either; only this module writes the frame.

use crate::place::{Stretch, What, place};
use crate::program::{Entry, Program};
use crate::workspace::Workspace;
use chainrule_kernel::Place;
use chainrule_runtime::{Backend, Elements, RunError, Sizes, Slice, SliceMut};
use std::sync::atomic::AtomicPtr;

/// A program with owned memory for one point. See [`Program::bound`].
///
/// ```
/// # use chainrule_base::{Arena, Name, Poly};
/// # use chainrule_kernel::{Buffer, Class, Instr, Kernel, Place, Port, Stmt};
/// # use chainrule_native::{Options, Program, Workspace};
/// # use chainrule_ops::Op;
/// # use chainrule_runtime::Backend;
/// # let (mut regs, mut buffers) = (Arena::new(), Arena::new());
/// # let (x, y) = (regs.push(Class::Real), regs.push(Class::Real));
/// # let one = Poly::constant(1);
/// # let a = buffers.push(Buffer { class: Class::Real, len: one.clone(), place: Place::Input(0) });
/// # let b = buffers.push(Buffer { class: Class::Real, len: one, place: Place::Output(0) });
/// # let port = |name, buffer| Port { name: Name::new(name), shape: vec![], buffer };
/// # let square = Kernel {
/// #     name: Name::new("square"), regs: regs.into(), sizes: vec![],
/// inputs: vec![port("x", a)], outputs: vec![port("y", b)],
/// #     buffers, requires: vec![], workspace_reals: Poly::zero(), workspace_ints: Poly::zero(),
/// #     externals: vec![], failures: vec![], zeros: vec![],
/// #     body: vec![Stmt::Straight(vec![
/// #         Instr::Load { dst: x, buffer: a, at: Poly::zero() },
/// #         Instr::Op { dst: y, op: Op::Mul, args: [x, x, x] },
/// #         Instr::Store { buffer: b, at: Poly::zero(), value: y },
/// #     ])],
/// # };
/// # let Ok(program) = Program::new(std::sync::Arc::new(square), &Options::default()) else { return };
/// let sizes = program.bind(&[&[]], &[]).unwrap();
/// let workspace = Workspace::new(&program, &sizes);
/// let mut square = program.bound(sizes.clone(), sizes.zero_inputs(), workspace).unwrap();
/// for x in [3.0, 4.0] {
///     square.input_mut(0)[0] = x;
///     square.run().unwrap();
///     assert_eq!(square.output(0).reals(), [x * x]);
/// }
/// ```
#[derive(Debug)]
pub struct Bound<'p> {
    program: &'p Program,
    /// Entry of the program's code for one point, stored here for calls.
    entry: Entry,
    /// Base of the workspace's frame, as the code expects it. It is computed once, because a call of small code takes
    /// as long as a few loads. Atomic so that threads may pass it on, like the workspace itself.
    frame: AtomicPtr<u8>,
    sizes: Sizes,
    workspace: Workspace,
    inputs: Vec<Elements>,
    outputs: Vec<Elements>,
}

impl Program {
    /// Returns the program with owned memory for the arguments of one point, initially `inputs`, and for its results,
    /// for calls with minimal overhead. They run on the calling thread, however many threads the workspace is for.
    ///
    /// # Errors
    /// Sizes or a workspace of another program; arguments that do not fit the sizes.
    pub fn bound(&self, sizes: Sizes, inputs: Vec<Elements>, mut workspace: Workspace) -> Result<Bound<'_>, RunError> {
        self.check(&sizes, &workspace)?;
        let outputs = sizes.zero_outputs();
        let stretch = |elements: &Elements, what| match elements {
            Elements::Real(data) => Stretch { bytes: size_of_val(&**data), what },
            Elements::Int(_) => Stretch { bytes: 0, what },
        };
        let loaded = inputs.iter().map(|input| stretch(input, What::Loaded));
        let stretches: Vec<_> = loaded.chain(outputs.iter().map(|output| stretch(output, What::Stored))).collect();
        // Calls are assumed to come from about this stack depth.
        let here = 0_u8;
        let stack = std::hint::black_box(&raw const here).addr();
        if let Some(place) = place(self.one.stretches(), &stretches, &self.one.constants(), stack) {
            workspace.frame = workspace.frame.at(place);
        }
        let mut end = workspace.frame.end();
        let [mut inputs, mut outputs] =
            [inputs, outputs].map(|all| all.into_iter().map(|elements| elements.behind(&mut end)).collect::<Vec<_>>());
        let slices: Vec<Slice<'_>> = inputs.iter().map(Elements::slice).collect();
        let into: Vec<SliceMut<'_>> = outputs.iter_mut().map(Elements::slice_mut).collect();
        self.layout.check_point(&sizes, &slices, &into)?;
        let pointer = |of: &mut Elements| match of.slice_mut() {
            SliceMut::Real(data) => data.as_mut_ptr() as u64,
            SliceMut::Int(data) => data.as_mut_ptr() as u64,
        };
        let buffers = self.layout.kernel().buffers.as_slice();
        self.point_at(&sizes, &mut workspace, |b| match buffers[b].place {
            Place::Input(i) => Some(pointer(&mut inputs[i])),
            Place::Output(i) => Some(pointer(&mut outputs[i])),
            Place::Workspace(_) => None,
        });
        let entry = self.one.entry();
        let frame = AtomicPtr::new(entry.place(&mut workspace.frame));
        Ok(Bound { program: self, entry, frame, sizes, workspace, inputs, outputs })
    }
}

impl Bound<'_> {
    /// Returns the sizes that it was made for.
    #[must_use]
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Returns the doubles of an argument, in row-major order, for writing; empty for integers, which cannot change.
    ///
    /// # Panics
    /// Panics if there is no such argument.
    #[inline]
    pub fn input_mut(&mut self, input: usize) -> &mut [f64] {
        self.inputs[input].reals_mut()
    }

    /// Returns the arguments.
    #[must_use]
    #[inline]
    pub fn inputs(&self) -> &[Elements] {
        &self.inputs
    }

    /// Returns a result of the last run; zeros before the first run, unspecified if the run failed.
    ///
    /// # Panics
    /// Panics if there is no such result.
    #[must_use]
    #[inline]
    pub fn output(&self, output: usize) -> &Elements {
        &self.outputs[output]
    }

    /// Returns the results of the last run.
    #[must_use]
    pub fn outputs(&self) -> &[Elements] {
        &self.outputs
    }

    /// Runs the point. Allocates nothing, unless it fails.
    ///
    /// # Errors
    /// A check of the program that fails at run time.
    ///
    /// # Panics
    /// Panics if a user function does: its panic is resumed.
    #[inline]
    pub fn run(&mut self) -> Result<(), RunError> {
        // SAFETY: the frame describes sizes, memory and workspace as the code requires; they are not borrowed by
        // others, and live in place as long as `self`; so does the program, which is borrowed.
        let failed = unsafe { self.entry.enter_at(*self.frame.get_mut()) };
        if failed == 0 { Ok(()) } else { Err(self.failed(failed)) }
    }

    #[cold]
    fn failed(&mut self, failed: u64) -> RunError {
        let Workspace { frame, calls, .. } = &mut self.workspace;
        self.program.failed(&self.program.one, failed, frame, calls)
    }
}
