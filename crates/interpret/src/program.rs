//! A compiled kernel.

use crate::LANES;
use crate::bytecode::Code;
use crate::compile::{Compiled, compile};
use crate::memory::{Many, POISON, Single, Workspace};
use crate::run::run;
use chainrule_base::{Diagnostic, Id};
use chainrule_kernel::{Kernel, Place};
use chainrule_runtime::{Backend, Layout, RunError, Share, Sizes, Slice, SliceMut};
use std::sync::Arc;

/// A compiled kernel. It is `Send` and `Sync`: threads share one, each with its own [`Workspace`].
///
/// ```
/// use chainrule_base::{Arena, Name, Poly};
/// use chainrule_interpret::{Program, Slice, SliceMut, Workspace};
/// use chainrule_kernel::{Buffer, Class, Instr, Kernel, Place, Port, Stmt};
/// use chainrule_ops::Op;
/// use chainrule_runtime::Backend;
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
/// let program = Program::new(&square).unwrap();
/// let sizes = program.bind(&[&[]], &[]).unwrap();
/// let mut workspace = Workspace::new(&program, &sizes);
/// let mut y = [0.0];
/// program.run(&sizes, &[Slice::Real(&[3.0])], &mut [SliceMut::Real(&mut y)], &mut workspace).unwrap();
/// assert_eq!(y, [9.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) max_arity: usize,
}

impl Program {
    /// Compiles a copy of `kernel`. Linear in its size, except for addresses, which take `n log n`.
    ///
    /// # Errors
    /// A user function that cannot be called inside the process; a kernel that violates its invariants.
    pub fn new(kernel: &Kernel) -> Result<Self, Diagnostic> {
        Self::with_layout(Layout::new(Arc::new(kernel.clone())))
    }

    /// As [`new`](Self::new), for the kernel of a layout, so that sizes fit all programs that share it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_layout(layout: Arc<Layout>) -> Result<Self, Diagnostic> {
        layout.check_externals()?;
        let kernel = layout.kernel();
        let compiled = Arc::new(compile(kernel)?);
        let max_arity = kernel.externals.iter().map(|e| e.arity).max().unwrap_or(0);
        Ok(Self { compiled, layout, max_arity })
    }

    /// Returns the number of operations of bytecode.
    #[must_use]
    pub fn code_len(&self) -> usize {
        self.compiled.code.len()
    }

    /// Returns the numbers of slots for doubles and for integers.
    #[must_use]
    pub fn n_slots(&self) -> (usize, usize) {
        (self.compiled.n_reals, self.compiled.n_ints)
    }

    /// Returns whether a batch runs [`LANES`] points at a time: control and addresses are equal for all points, and the
    /// workspace for that many points is not excessive.
    #[must_use]
    pub fn runs_in_lanes(&self, sizes: &Sizes) -> bool {
        self.compiled.lanes && sizes.allow_lanes()
    }

    /// Returns the placement of a buffer.
    pub(crate) fn place(&self, buffer: u32) -> &Place {
        &self.layout.kernel().buffers[Id::new(buffer as usize)].place
    }

    pub(crate) fn bad_address(&self, code: Code) -> RunError {
        match self.layout.outside() {
            RunError::Bug(what) => RunError::Bug(format!("{what}: {code:?}")),
            failure => failure,
        }
    }
}

/// Single points only allocate lists of the kernel's buffers, unless they fail.
impl Backend for Program {
    type Workspace = Workspace;

    /// Whole blocks, so that the failing block does not depend on the number of threads.
    const BLOCK: usize = LANES;

    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// All evaluations run on one thread.
    fn workspace(&self, sizes: &Sizes, _threads: usize) -> Workspace {
        Workspace::new(self, sizes)
    }

    fn batch_workspace(&self, sizes: &Sizes) -> Workspace {
        Workspace::for_batch(self, sizes)
    }

    /// A workspace serves every program for which it is large enough.
    fn is_own(&self, _workspace: &Workspace) -> bool {
        true
    }

    fn is_large_enough(&self, workspace: &Workspace, sizes: &Sizes) -> bool {
        let (reals, ints) = sizes.workspace_len();
        workspace.real_slots.len() >= self.compiled.n_reals
            && workspace.int_slots.len() >= self.compiled.n_ints
            && workspace.call.len() >= self.max_arity
            && workspace.reals.len() >= reals
            && workspace.ints.len() >= ints
            && workspace.lanes.as_ref().is_none_or(|l| !self.runs_in_lanes(sizes) || l.fits(self, sizes))
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
        if workspace.poison {
            workspace.fill_with_poison();
            for output in outputs.iter_mut() {
                poison(output);
            }
        }
        run(self, sizes, &mut Single { inputs, outputs }, workspace)
    }

    fn run_share(&self, share: &mut Share<'_>, workspace: &mut Workspace) -> Result<(), RunError> {
        self.check(share.sizes, workspace)?;
        if workspace.poison {
            workspace.fill_with_poison();
        }
        let (sizes, points) = (share.sizes, share.points.clone());
        let mut many = Many { inputs: share.inputs, outputs: &mut share.outputs, point: points.start };
        if workspace.lanes.is_some() && self.runs_in_lanes(sizes) {
            for first in points.clone().step_by(LANES) {
                let n = LANES.min(points.end - first);
                crate::lanes::run_lanes(self, sizes, &mut many, first, n, workspace).map_err(|e| e.at_point(first))?;
            }
            return Ok(());
        }
        for point in points {
            many.point = point;
            run(self, sizes, &mut many, workspace).map_err(|e| e.at_point(point))?;
        }
        Ok(())
    }

    fn lanes_for(&self, sizes: &Sizes) -> usize {
        if self.runs_in_lanes(sizes) { LANES } else { 1 }
    }
}

fn poison(output: &mut SliceMut<'_>) {
    match output {
        SliceMut::Real(data) => data.fill(f64::NAN),
        SliceMut::Int(data) => data.fill(POISON),
    }
}
