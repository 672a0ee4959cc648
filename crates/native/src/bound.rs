//! A program with memory of its own for the arguments and results of one point: all is checked when it is made, and
//! nothing is left to do between a call and the code.
//!
//! Invariants: the words of the frame are those of the arguments, the results and the workspace, none of which moves or
//! changes its length; nothing outside writes the frame.

use crate::program::Program;
use crate::workspace::{Lines, Workspace};
use chainrule_base::Id;
use chainrule_kernel::{Class, Place};
use chainrule_runtime::{RunError, Sizes};
use std::ops::Range;

/// See [`Program::bound`].
///
/// ```
/// # use chainrule_base::{Arena, Name, Poly};
/// # use chainrule_kernel::{Buffer, Class, Instr, Kernel, Place, Port, Stmt};
/// # use chainrule_native::{Options, Program};
/// # use chainrule_ops::Op;
/// # let (mut regs, mut buffers) = (Arena::new(), Arena::new());
/// # let (x, y) = (regs.push(Class::Real), regs.push(Class::Real));
/// # let one = Poly::constant(1);
/// # let a = buffers.push(Buffer { class: Class::Real, len: one.clone(), place: Place::Input(0) });
/// # let b = buffers.push(Buffer { class: Class::Real, len: one, place: Place::Output(0) });
/// # let port = |name, buffer| Port { name: Name::new(name), shape: vec![], buffer };
/// # let square = Kernel {
/// #     name: Name::new("square"), regs, sizes: vec![], inputs: vec![port("x", a)], outputs: vec![port("y", b)],
/// #     buffers, requires: vec![], workspace_reals: Poly::zero(), workspace_ints: Poly::zero(),
/// #     externals: vec![], failures: vec![],
/// #     body: vec![Stmt::Straight(vec![
/// #         Instr::Load { dst: x, buffer: a, at: Poly::zero() },
/// #         Instr::Op { dst: y, op: Op::Mul, args: [x, x, x] },
/// #         Instr::Store { buffer: b, at: Poly::zero(), value: y },
/// #     ])],
/// # };
/// # let Ok(program) = Program::new(std::sync::Arc::new(square), &Options::default()) else { return };
/// let sizes = program.bind(&[&[]], &[]).unwrap();
/// let mut square = program.bound(&sizes).unwrap();
/// for x in [3.0, 4.0] {
///     square.input_mut(0)[0] = x;
///     square.run().unwrap();
///     assert_eq!(square.output(0), [x * x]);
/// }
/// ```
#[derive(Debug)]
pub struct Bound<'p> {
    program: &'p Program,
    workspace: Workspace,
    /// The arguments and the results, each from the begin of a line of the cache on.
    memory: Lines,
    /// Where they are, in doubles.
    inputs: Vec<Range<usize>>,
    outputs: Vec<Range<usize>>,
}

impl Program {
    /// The program with memory for the arguments and results of one point of these sizes, for calls that cost next to
    /// nothing beside what they compute.
    ///
    /// # Errors
    /// Sizes of another program; an argument or a result that is not of doubles.
    pub fn bound(&self, sizes: &Sizes) -> Result<Bound<'_>, RunError> {
        self.layout.check_made_here(sizes)?;
        let kernel = self.layout.kernel();
        if kernel.inputs.iter().chain(&kernel.outputs).any(|port| kernel.buffers[port.buffer].class != Class::Real) {
            return Err(RunError::argument("only arguments and results of doubles can have memory of their own"));
        }
        let mut words = 0;
        let mut place = |len: usize| {
            let start = words;
            words += len.next_multiple_of(8);
            start..start + len
        };
        let inputs: Vec<_> = (0..kernel.inputs.len()).map(|i| place(sizes.input_len(i))).collect();
        let outputs: Vec<_> = (0..kernel.outputs.len()).map(|i| place(sizes.output_len(i))).collect();
        let mut memory = Lines::new(8 * words);
        let mut workspace = Workspace::new(self, sizes);
        let base = memory.pointer() as u64;
        let pointers = |place: &Place| match place {
            Place::Input(i) => Some(base + 8 * inputs[*i].start as u64),
            Place::Output(i) => Some(base + 8 * outputs[*i].start as u64),
            Place::Workspace(_) => None,
        };
        self.point_at(sizes, &mut workspace, |b| pointers(&kernel.buffers[Id::new(b)].place));
        Ok(Bound { program: self, workspace, memory, inputs, outputs })
    }
}

impl Bound<'_> {
    /// An argument, in row-major order, to be set; zeros before that.
    ///
    /// # Panics
    /// When there is no such argument.
    #[inline]
    pub fn input_mut(&mut self, input: usize) -> &mut [f64] {
        &mut self.memory.doubles_mut()[self.inputs[input].clone()]
    }

    /// An argument.
    ///
    /// # Panics
    /// When there is no such argument.
    #[must_use]
    #[inline]
    pub fn input(&self, input: usize) -> &[f64] {
        &self.memory.doubles()[self.inputs[input].clone()]
    }

    /// A result of the last run; zeros before it, nothing defined when it failed.
    ///
    /// # Panics
    /// When there is no such result.
    #[must_use]
    #[inline]
    pub fn output(&self, output: usize) -> &[f64] {
        &self.memory.doubles()[self.outputs[output].clone()]
    }

    /// Runs the point. Nothing is allocated, unless it fails.
    ///
    /// # Errors
    /// A check of the program that failed while it ran.
    ///
    /// # Panics
    /// When a user's function does: its panic goes on.
    #[inline]
    pub fn run(&mut self) -> Result<(), RunError> {
        // SAFETY: the frame was told of memory and workspace, both of which are as long as the sizes ask for, are borrowed
        // by nobody now, and stay where they are as long as `self`.
        let failed = unsafe { self.program.one.enter(&mut self.workspace.frame) };
        if failed == 0 { Ok(()) } else { Err(self.failed(failed)) }
    }

    #[cold]
    fn failed(&mut self, failed: u64) -> RunError {
        let Workspace { frame, calls, .. } = &mut self.workspace;
        self.program.failed(&self.program.one, failed, frame, calls)
    }
}
