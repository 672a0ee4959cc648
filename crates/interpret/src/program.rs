//! A kernel that is ready to run.

use crate::bytecode::Code;
use crate::compile::{Compiled, compile};
use crate::memory::{Many, POISON, Single, Slice, SliceMut, Strided, StridedMut, Workspace};
use crate::run::run;
use crate::sizes::{Layout, Sizes, scalar};
use crate::{LANES, RunError};
use chainrule_base::{Diagnostic, Id, count};
use chainrule_kernel::{Class, Kernel, Place, SizeSource};
use std::sync::Arc;

/// A compiled kernel. It is `Send` and `Sync`: threads share one, each with its own [`Workspace`].
///
/// ```
/// use chainrule_base::{Arena, Name, Poly};
/// use chainrule_interpret::{Program, Slice, SliceMut, Workspace};
/// use chainrule_kernel::{Buffer, Class, Instr, Kernel, Place, Port, Stmt};
/// use chainrule_ops::Op;
///
/// let (mut regs, mut buffers) = (Arena::new(), Arena::new());
/// let (x, y) = (regs.push(Class::Real), regs.push(Class::Real));
/// let one = Poly::constant(1);
/// let a = buffers.push(Buffer { class: Class::Real, len: one.clone(), place: Place::Input(0) });
/// let b = buffers.push(Buffer { class: Class::Real, len: one, place: Place::Output(0) });
/// let port = |name, buffer| Port { name: Name::new(name), shape: vec![], buffer };
/// let square = Kernel {
///     name: Name::new("square"), regs, sizes: vec![], inputs: vec![port("x", a)], outputs: vec![port("y", b)],
///     buffers, requires: vec![], workspace_reals: Poly::zero(), workspace_ints: Poly::zero(),
///     externals: vec![], failures: vec![],
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
    /// Compiles `kernel`, in time and memory linear in its size (but for addresses, `n log n`).
    ///
    /// # Errors
    /// A user's function that cannot be called inside the process; a kernel that breaks its rules.
    pub fn new(kernel: &Kernel) -> Result<Self, Diagnostic> {
        for external in &kernel.externals {
            if external.call.is_none() {
                return Err(Diagnostic::error(format!("the function `{}` cannot be called here", external.name))
                    .with_reason("it has a C name, but nothing that computes it inside the process")
                    .with_help("give it a Rust function as well, or emit C and link it there"));
            }
        }
        let compiled = Arc::new(compile(kernel)?);
        let max_arity = kernel.externals.iter().map(|e| e.arity).max().unwrap_or(0);
        let kernel = clone_without_body(kernel);
        Ok(Self { compiled, layout: Arc::new(Layout { kernel }), max_arity })
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.layout.kernel.name
    }

    /// How many operations of bytecode there are.
    #[must_use]
    pub fn code_len(&self) -> usize {
        self.compiled.code.len()
    }

    /// How many slots for doubles and for integers it uses.
    #[must_use]
    pub fn n_slots(&self) -> (usize, usize) {
        (self.compiled.n_reals, self.compiled.n_ints)
    }

    /// The sizes for arguments of these shapes (outermost extent first; none for a scalar). `values`
    /// gives the integer scalars on which sizes depend: the input's index and its value.
    ///
    /// # Errors
    /// Shapes that do not fit one another or the program, or sizes that break a condition at entry;
    /// the message names the argument, the dimension, what is expected and what is given.
    pub fn bind(&self, shapes: &[&[usize]], values: &[(usize, i64)]) -> Result<Sizes, RunError> {
        self.layout.bind(shapes, |input| values.iter().find(|(i, _)| *i == input).map(|(_, v)| *v))
    }

    /// The same with the values of integer scalars taken from the inputs themselves.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_inputs(&self, shapes: &[&[usize]], inputs: &[Slice<'_>]) -> Result<Sizes, RunError> {
        self.layout.bind(shapes, |input| scalar(inputs, input))
    }

    /// How many doubles and how many integers of workspace the kernel's buffers take.
    #[must_use]
    pub fn workspace_len(&self, sizes: &Sizes) -> (usize, usize) {
        (sizes.reals, sizes.ints)
    }

    /// Whether a batch runs [`LANES`] points at a time: control and addresses are the same for all
    /// points, and the workspace of so many points is not out of proportion.
    #[must_use]
    pub fn runs_in_lanes(&self, sizes: &Sizes) -> bool {
        /// Doubles of workspace of one point, above which a block of points would only thrash the caches.
        const LANE_WORKSPACE_LIMIT: usize = 1 << 16;
        self.compiled.lanes && sizes.reals.max(sizes.ints) <= LANE_WORKSPACE_LIMIT
    }

    /// Runs one point. Nothing is allocated, unless it fails.
    ///
    /// # Errors
    /// Arguments or a workspace that do not fit `sizes` (then nothing was written), or a check of the
    /// program that failed while it ran (then the outputs hold nothing defined).
    pub fn run(
        &self,
        sizes: &Sizes,
        inputs: &[Slice<'_>],
        outputs: &mut [SliceMut<'_>],
        workspace: &mut Workspace,
    ) -> Result<(), RunError> {
        self.check_made_here(sizes, workspace)?;
        self.check_counts(inputs.len(), outputs.len())?;
        let kernel = &self.layout.kernel;
        for (i, (port, input)) in kernel.inputs.iter().zip(inputs).enumerate() {
            let class = kernel.buffers[port.buffer].class;
            check_slice("argument", &port.name, *input, class, sizes.input_len(i))?;
            if let Slice::Int([value]) = input {
                check_bound(sizes, i, &port.name, *value)?;
            }
        }
        for (i, (port, output)) in kernel.outputs.iter().zip(outputs.iter()).enumerate() {
            let class = kernel.buffers[port.buffer].class;
            check_slice("result", &port.name, output.as_slice(), class, sizes.output_len(i))?;
        }
        if workspace.poison {
            workspace.fill_with_poison();
            for output in outputs.iter_mut() {
                poison(output);
            }
        }
        run(self, sizes, &mut Single { inputs, outputs }, workspace)
    }

    /// Runs points `0..n_points`, in blocks of [`LANES`] where [`runs_in_lanes`](Self::runs_in_lanes)
    /// and the workspace allow it; the results are bit for bit those of [`run`](Self::run).
    ///
    /// # Errors
    /// As [`run`](Self::run); further, outputs of two points or elements at one place, and an integer
    /// scalar that is a size and differs from point to point.
    pub fn run_batch(
        &self,
        sizes: &Sizes,
        n_points: usize,
        inputs: &[Strided<'_>],
        outputs: &mut [StridedMut<'_>],
        workspace: &mut Workspace,
    ) -> Result<(), RunError> {
        self.check_made_here(sizes, workspace)?;
        self.check_counts(inputs.len(), outputs.len())?;
        self.check_strided(sizes, n_points, inputs, outputs)?;
        if workspace.poison {
            workspace.fill_with_poison();
        }
        let mut many = Many { inputs, outputs, point: 0 };
        if workspace.lanes.is_some() && self.runs_in_lanes(sizes) {
            let mut first = 0;
            while first < n_points {
                let n = LANES.min(n_points - first);
                crate::lanes::run_lanes(self, sizes, &mut many, first, n, workspace).map_err(|e| e.at_point(first))?;
                first += n;
            }
            return Ok(());
        }
        for point in 0..n_points {
            many.point = point;
            run(self, sizes, &mut many, workspace).map_err(|e| e.at_point(point))?;
        }
        Ok(())
    }

    fn check_made_here(&self, sizes: &Sizes, workspace: &Workspace) -> Result<(), RunError> {
        if !Arc::ptr_eq(&sizes.layout, &self.layout) {
            return Err(RunError::argument("the sizes were made by another program; make them with this one's `bind`"));
        }
        let fits = workspace.real_slots.len() >= self.compiled.n_reals
            && workspace.int_slots.len() >= self.compiled.n_ints
            && workspace.call.len() >= self.max_arity
            && workspace.reals.len() >= sizes.reals
            && workspace.ints.len() >= sizes.ints
            && workspace.lanes.as_ref().is_none_or(|l| !self.runs_in_lanes(sizes) || l.fits(self, sizes));
        if !fits {
            return Err(RunError::argument(format!(
                "the workspace is too small for these sizes ({} doubles and {} integers); make it with `Workspace::new`",
                sizes.reals, sizes.ints
            )));
        }
        Ok(())
    }

    fn check_counts(&self, n_inputs: usize, n_outputs: usize) -> Result<(), RunError> {
        let kernel = &self.layout.kernel;
        if n_inputs != kernel.inputs.len() || n_outputs != kernel.outputs.len() {
            return Err(RunError::argument(format!(
                "{} and {} given, but {} and {} expected",
                count(n_inputs, "input"),
                count(n_outputs, "output"),
                kernel.inputs.len(),
                kernel.outputs.len()
            )));
        }
        Ok(())
    }

    fn check_strided(
        &self,
        sizes: &Sizes,
        n_points: usize,
        inputs: &[Strided<'_>],
        outputs: &[StridedMut<'_>],
    ) -> Result<(), RunError> {
        let kernel = &self.layout.kernel;
        for (i, (port, input)) in kernel.inputs.iter().zip(inputs).enumerate() {
            let class = kernel.buffers[port.buffer].class;
            let shape = (sizes.input_len(i), n_points, input.point, input.element);
            check_strides("argument", &port.name, input.data, class, shape)?;
            let is_size = kernel.sizes.iter().any(|s| s.source == SizeSource::Value { input: i });
            if let (true, Slice::Int(data)) = (is_size, input.data) {
                (0..n_points).try_for_each(|p| check_bound(sizes, i, &port.name, data[p * input.point]))?;
            }
        }
        for (i, (port, output)) in kernel.outputs.iter().zip(outputs).enumerate() {
            let class = kernel.buffers[port.buffer].class;
            let len = sizes.output_len(i);
            let shape = (len, n_points, output.point, output.element);
            check_strides("result", &port.name, output.data.as_slice(), class, shape)?;
            // Both products were computed without overflow by the check of the strides.
            let one_dimension = len == 0 || n_points == 0 || (len == 1 && (n_points == 1 || output.point > 0));
            let apart = one_dimension
                || (n_points == 1 && output.element > 0)
                || (output.element > 0 && output.point > (len - 1) * output.element)
                || (output.point > 0 && output.element > (n_points - 1) * output.point);
            if !apart {
                return Err(RunError::argument(format!(
                    "the strides of result `{}` put two of its elements at one place",
                    port.name
                )));
            }
        }
        Ok(())
    }

    /// Where a buffer's elements are.
    pub(crate) fn place(&self, buffer: u32) -> &Place {
        &self.layout.kernel.buffers[Id::new(buffer as usize)].place
    }

    pub(crate) fn failure(&self, idx: u32, reason: String) -> RunError {
        match self.layout.kernel.failures.get(idx as usize) {
            Some((message, span)) => {
                RunError::Failure { message: message.clone(), reason: Some(reason), span: *span, point: None }
            }
            None => RunError::Bug(format!("failure {idx} of kernel `{}` has no message", self.name())),
        }
    }

    pub(crate) fn overflow() -> RunError {
        let message = "an integer does not fit into 64 bits".to_owned();
        RunError::Failure { message, reason: None, span: None, point: None }
    }

    pub(crate) fn bad_address(&self, code: Code) -> RunError {
        RunError::Bug(format!("kernel `{}` reads or writes outside a buffer: {code:?}", self.name()))
    }
}

fn clone_without_body(kernel: &Kernel) -> Kernel {
    Kernel {
        name: kernel.name.clone(),
        regs: chainrule_base::Arena::new(),
        sizes: kernel.sizes.clone(),
        inputs: kernel.inputs.clone(),
        outputs: kernel.outputs.clone(),
        buffers: kernel.buffers.clone(),
        requires: kernel.requires.clone(),
        workspace_reals: kernel.workspace_reals.clone(),
        workspace_ints: kernel.workspace_ints.clone(),
        externals: kernel.externals.clone(),
        failures: kernel.failures.clone(),
        body: Vec::new(),
    }
}

fn poison(output: &mut SliceMut<'_>) {
    match output {
        SliceMut::Real(data) => data.fill(f64::NAN),
        SliceMut::Int(data) => data.fill(POISON),
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Real => "doubles",
        Class::Int => "integers",
    }
}

fn check_slice(what: &str, name: &str, slice: Slice<'_>, class: Class, len: usize) -> Result<(), RunError> {
    check_class(what, name, slice, class)?;
    if slice.len() != len {
        return Err(RunError::argument(format!(
            "{what} `{name}` has {}, but {len} expected",
            count(slice.len(), "element")
        )));
    }
    Ok(())
}

fn check_class(what: &str, name: &str, slice: Slice<'_>, class: Class) -> Result<(), RunError> {
    if slice.class() != class {
        return Err(RunError::argument(format!(
            "{what} `{name}` holds {}, but {} are expected",
            class_name(slice.class()),
            class_name(class)
        )));
    }
    Ok(())
}

/// `shape` is elements, points, stride of points, stride of elements.
fn check_strides(
    what: &str,
    name: &str,
    slice: Slice<'_>,
    class: Class,
    shape: (usize, usize, usize, usize),
) -> Result<(), RunError> {
    check_class(what, name, slice, class)?;
    let (len, n_points, point, element) = shape;
    if len == 0 || n_points == 0 {
        return Ok(());
    }
    let last = (n_points - 1)
        .checked_mul(point)
        .and_then(|p| Some((p, (len - 1).checked_mul(element)?)))
        .and_then(|(p, e)| p.checked_add(e));
    if last.is_none_or(|last| last >= slice.len()) {
        return Err(RunError::argument(format!(
            "{what} `{name}` has {}, too few for {} of {} at strides {point} and {element}",
            count(slice.len(), "element"),
            count(n_points, "point"),
            count(len, "element")
        )));
    }
    Ok(())
}

fn check_bound(sizes: &Sizes, input: usize, name: &str, value: i64) -> Result<(), RunError> {
    if sizes.agrees(input, value) {
        return Ok(());
    }
    Err(RunError::argument(format!("argument `{name}` is {value}, but the sizes were made for another value of it")))
}
