//! A compiled kernel and its memory.

use crate::code::{Code, denied};
use crate::frame::Frame;
use crate::lower::Lowered;
use crate::support::Calls;
use chainrule_base::{Diagnostic, Id};
use chainrule_kernel::{Class, Kernel, Place, verify};
use chainrule_runtime::{Backend, InRange, Layout, RunError, Site, Sizes, Slice, SliceMut};
use std::sync::Arc;

/// Options of compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// For tests: behave as if the system denied executable memory.
    pub deny_executable: bool,
    /// Promise that addresses are in range; they are then not checked at run time.
    pub in_range: Option<InRange>,
}

/// A kernel compiled by Cranelift. It is `Send` and `Sync`: threads share one, each with its own [`Workspace`]. The
/// code is freed with it.
///
/// ```
/// use chainrule_base::{Arena, Name, Poly};
/// use chainrule_cranelift::{Options, Program, Workspace};
/// use chainrule_kernel::{Buffer, Class, Instr, Kernel, Place, Port, Stmt};
/// use chainrule_ops::Op;
/// use chainrule_runtime::{Backend, Slice, SliceMut};
///
/// let (mut regs, mut buffers) = (Arena::new(), Arena::new());
/// let (x, y) = (regs.push(Class::Real), regs.push(Class::Real));
/// let one = Poly::constant(1);
/// let a = buffers.push(Buffer { class: Class::Real, len: one.clone(), place: Place::Input(0) });
/// let b = buffers.push(Buffer { class: Class::Real, len: one, place: Place::Output(0) });
/// let port = |name, buffer| Port { name: Name::new(name), shape: vec![], buffer };
/// let square = Kernel {
///     name: Name::new("square"), regs: regs.into(), sizes: vec![],
///     inputs: vec![port("x", a)], outputs: vec![port("y", b)],
///     buffers, requires: vec![], workspace_reals: Poly::zero(), workspace_ints: Poly::zero(),
///     externals: vec![], failures: vec![], zeros: vec![],
///     body: vec![Stmt::Straight(vec![
///         Instr::Load { dst: x, buffer: a, at: Poly::zero() },
///         Instr::Op { dst: y, op: Op::Mul, args: [x, x, x] },
///         Instr::Store { buffer: b, at: Poly::zero(), value: y },
///     ])],
/// };
/// let Ok(program) = Program::new(&square, &Options::default()) else {
///     return; // Cranelift does not know this processor, or the system denies executable memory.
/// };
/// let sizes = program.bind(&[&[]], &[]).unwrap();
/// let mut workspace = Workspace::new(&program, &sizes);
/// let mut y = [0.0];
/// program.run(&sizes, &[Slice::Real(&[3.0])], &mut [SliceMut::Real(&mut y)], &mut workspace).unwrap();
/// assert_eq!(y, [9.0]);
/// ```
#[derive(Debug)]
pub struct Program {
    layout: Arc<Layout>,
    code: Code,
    frame: Frame,
    sites: Vec<Site>,
}

/// Memory of one running program. Make one for each thread, and reuse it.
pub struct Workspace {
    /// Layout of the program that it was made for.
    layout: Arc<Layout>,
    frame: Vec<u64>,
    reals: Vec<f64>,
    ints: Vec<i64>,
    calls: Box<Calls>,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lengths = (self.frame.len(), self.reals.len(), self.ints.len());
        f.debug_struct("Workspace").field("frame, reals, ints", &lengths).finish_non_exhaustive()
    }
}

impl Workspace {
    /// Returns a workspace for these sizes.
    #[must_use]
    pub fn new(program: &Program, sizes: &Sizes) -> Self {
        let (reals, ints) = sizes.workspace_len();
        Self {
            layout: Arc::clone(&program.layout),
            frame: vec![0; program.frame.len],
            reals: vec![0.0; reals],
            ints: vec![0; ints],
            calls: Box::new(Calls::new(&program.layout.kernel().externals)),
        }
    }
}

impl Program {
    /// Compiles a copy of `kernel`, in a few microseconds for each operation, mostly in Cranelift.
    ///
    /// # Errors
    /// A processor that Cranelift does not support; a kernel that is too large for it; denied executable memory; a user
    /// function that cannot be called inside the process; a kernel that violates its invariants.
    pub fn new(kernel: &Kernel, options: &Options) -> Result<Self, Diagnostic> {
        Self::with_layout(Layout::new(Arc::new(kernel.clone())), options)
    }

    /// As [`new`](Self::new), for the kernel of a layout, so that sizes fit all programs that share it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_layout(layout: Arc<Layout>, options: &Options) -> Result<Self, Diagnostic> {
        layout.check_externals()?;
        let kernel = layout.kernel();
        verify(kernel).map_err(|faults| {
            let reason = faults.first().map_or_else(String::new, ToString::to_string);
            Diagnostic::bug(format!("kernel `{}` breaks its rules", kernel.name)).with_reason(reason)
        })?;
        if options.deny_executable {
            return Err(denied("denied by the policy of the caller"));
        }
        let (code, Lowered { frame, sites }) = Code::new(kernel, options.in_range)?;
        Ok(Self { layout, code, frame, sites })
    }

    /// Returns the machine code.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        self.code.bytes()
    }

    #[cold]
    fn failed(&self, failed: u64, frame: &[u64], calls: &mut Calls) -> RunError {
        let site = usize::try_from(failed).ok().and_then(|f| self.sites.get(f.wrapping_sub(1)));
        let numbers = [0, 1, 2].map(|i| frame[Frame::NUMBERS + i] as i64);
        self.layout.failed_at(site, numbers, &mut calls.panic)
    }
}

/// Single points allocate nothing, unless they fail. A batch runs point by point.
impl Backend for Program {
    type Workspace = Workspace;

    const BLOCK: usize = 1;

    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// All evaluations run on one thread.
    fn workspace(&self, sizes: &Sizes, _threads: usize) -> Workspace {
        Workspace::new(self, sizes)
    }

    fn batch_workspace(&self, sizes: &Sizes) -> Workspace {
        Workspace::new(self, sizes)
    }

    fn is_own(&self, workspace: &Workspace) -> bool {
        Arc::ptr_eq(&workspace.layout, &self.layout) && workspace.frame.len() == self.frame.len
    }

    fn is_large_enough(&self, workspace: &Workspace, sizes: &Sizes) -> bool {
        let (reals, ints) = sizes.workspace_len();
        workspace.reals.len() >= reals && workspace.ints.len() >= ints
    }

    fn machine_code(&self) -> Option<&[u8]> {
        Some(self.code())
    }

    fn run(
        &self,
        sizes: &Sizes,
        inputs: &[Slice<'_>],
        outputs: &mut [SliceMut<'_>],
        workspace: &mut Workspace,
    ) -> Result<(), RunError> {
        self.check(sizes, workspace)?;
        self.layout.check_point(sizes, inputs, outputs)?;
        let Workspace { frame, reals, ints, calls, .. } = workspace;
        let buffers = self.layout.kernel().buffers.as_slice();
        for (i, (buffer, (offset, len))) in buffers.iter().zip(sizes.buffers()).enumerate() {
            let pointer = match &buffer.place {
                Place::Input(i) => match inputs[*i] {
                    Slice::Real(data) => data.as_ptr() as u64,
                    Slice::Int(data) => data.as_ptr() as u64,
                },
                Place::Output(i) => match &mut outputs[*i] {
                    SliceMut::Real(data) => data.as_mut_ptr() as u64,
                    SliceMut::Int(data) => data.as_mut_ptr() as u64,
                },
                Place::Workspace(_) if *len == 0 => std::ptr::NonNull::<u64>::dangling().as_ptr() as u64,
                // In the workspace, as checked by `check` and the layout's plan.
                Place::Workspace(_) => match buffer.class {
                    Class::Real => reals[*offset..].as_mut_ptr() as u64,
                    Class::Int => ints[*offset..].as_mut_ptr() as u64,
                },
            };
            let b = Id::new(i);
            frame[self.frame.pointer(b)] = pointer;
            frame[self.frame.length(b)] = *len as u64;
        }
        for (i, value) in sizes.values().iter().enumerate() {
            frame[self.frame.size(i)] = *value as u64;
        }
        frame[Frame::CALLS] = std::ptr::from_mut(&mut **calls) as u64;
        // SAFETY: the frame has as many words as the code requires, and all buffers are at the addresses in it as long
        // as the borrows of the arguments and the workspace last. Inputs are only read, which the verifier ensures.
        let failed = unsafe { self.code.run(frame.as_mut_ptr()) };
        if failed == 0 { Ok(()) } else { Err(self.failed(failed, frame, calls)) }
    }
}
