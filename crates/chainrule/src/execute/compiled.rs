//! Executable code: a kernel with a backend.
//!
//! In: a function and [`CompileOptions`]. Out: a [`Compiled`]. Compilation runs the passes (`passes`) and
//! gives the kernel to the requested backend (`engine`). A call checks the arguments, binds sizes, and runs the code on
//! a workspace.

use crate::engine::{BatchMemory, Engine, Memory};
use crate::function::{ArrayBody, Body};
use crate::interface::{Interface, Shape, Signature};
use crate::passes::{BACKEND, Passes};
use crate::prepared::{Flat, Prepared};
use crate::{Backend, CompileOptions, Error, Function, Result};
use chainrule_base::{Diagnostic, count, timing};
use chainrule_ir::{Size, Value};
use chainrule_kernel::{Kernel, SizeSource};
use chainrule_runtime::{Elements, Sizes, Slice, SliceMut};
use std::sync::Arc;

/// Executable function: native code if the machine supports it, else the interpreter, with the same bits. Evaluation
/// takes `&self`; many threads can share one, each with its own workspace.
///
/// ```
/// use chainrule::{Function, vars};
/// let x = vars("x", 3);
/// let f = Function::new("f", &x, &x.norm())?.compile()?;
/// assert_eq!(f.eval(&[&[2.0, 3.0, 6.0]])?, [[7.0]]);
///
/// // Without allocation, point after point:
/// let mut workspace = f.workspace(&[&[3]])?;
/// let mut y = [0.0];
/// f.eval_into(&[&[2.0, 3.0, 6.0]], &mut [&mut y], &mut workspace)?;
/// assert_eq!(y, [7.0]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Debug)]
pub struct Compiled {
    engine: Engine,
    /// Reason why it is not native code although that was requested.
    refusal: Option<Diagnostic>,
    interface: Arc<Interface>,
    /// Its source, if that keeps its loops.
    body: Option<Arc<ArrayBody>>,
    /// Number of threads of one evaluation.
    threads: usize,
}

/// Memory of one number of a result as a [`Value`], in bytes: the value, and its share of the containing list.
const BYTES_PER_RESULT: usize = 2 * size_of::<Value<f64>>();

/// Sizes and memory for evaluations at one set of extents. Created by [`Compiled::workspace`].
#[derive(Debug)]
pub struct Workspace {
    pub(crate) sizes: Sizes,
    pub(crate) memory: Memory,
    /// Allocated by the first batch.
    pub(crate) batch: Option<BatchMemory>,
}

impl Workspace {
    /// Returns the extents of a result leaf at these sizes, outermost first; none for a scalar.
    #[must_use]
    pub fn output_shape(&self, output: usize) -> &[usize] {
        self.sizes.output_shape(output)
    }

    /// Returns the memory of one evaluation, in bytes.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        let (reals, ints) = self.sizes.workspace_len();
        reals.saturating_add(ints).saturating_mul(size_of::<f64>())
    }
}

impl Compiled {
    pub(crate) fn new(function: &Function, options: &CompileOptions) -> Result<Self> {
        let passes = Passes::from(options);
        let function = passes.form(function)?;
        let known = (passes == Passes::default()).then(|| function.kernel_of_loops()).flatten();
        let mut kernel = known.map_or_else(|| passes.kernel(&function), Ok)?;
        options.finish(&mut kernel);
        let (engine, refusal) = timing::time(BACKEND, || Engine::new(kernel, options))?;
        let body = match &function.body {
            Body::Scalar(_) => None,
            Body::Array(body) => Some(body.clone()),
        };
        let interface = Arc::clone(&function.interface);
        Ok(Self { engine, refusal, interface, body, threads: options.n_threads() })
    }

    /// Returns names and types of arguments and results.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.interface.signature
    }

    /// Returns the backend that runs it: never [`Backend::Auto`].
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.engine.backend()
    }

    /// Returns why it is not native code although that was requested: the processor is too old or of another
    /// architecture, the system denies executable memory, or native code does not support the function.
    #[must_use]
    pub fn refusal(&self) -> Option<&Diagnostic> {
        self.refusal.as_ref()
    }

    /// Returns the machine code for one point, including constants; `None` in the interpreter.
    #[must_use]
    pub fn code(&self) -> Option<&[u8]> {
        self.engine.code()
    }

    fn kernel(&self) -> &Kernel {
        self.engine.layout().kernel()
    }

    /// Returns the integer arguments that determine sizes, numbered as in [`Function::inputs`]: a workspace is for one
    /// value of them.
    #[must_use]
    pub fn size_arguments(&self) -> Vec<usize> {
        let sources = self.kernel().sizes.iter().filter_map(|size| match size.source {
            SizeSource::Value { input } => Some(input),
            SizeSource::Extent { .. } | SizeSource::Natural { .. } => None,
        });
        let mut inputs: Vec<usize> = sources.collect();
        inputs.sort_unstable();
        inputs.dedup();
        inputs
    }

    /// Returns the kernel that it runs, as text.
    #[must_use]
    pub fn listing(&self) -> String {
        self.kernel().to_string()
    }

    /// Returns the parts that are saved.
    pub(crate) fn parts(&self) -> (&Kernel, &Signature, Option<&ArrayBody>) {
        (self.kernel(), self.signature(), self.body.as_deref())
    }

    /// Returns the function of these parts, which must match; the kernel is unchanged except for removed checks.
    pub(crate) fn from_parts(
        mut kernel: Kernel,
        signature: Signature,
        body: Option<Arc<ArrayBody>>,
        options: &CompileOptions,
    ) -> Result<Self> {
        options.finish(&mut kernel);
        let (engine, refusal) = timing::time(BACKEND, || Engine::new(kernel, options))?;
        Ok(Self { engine, refusal, interface: Arc::new(signature.into()), body, threads: options.n_threads() })
    }

    /// Returns memory for evaluations with arguments of these extents, one list per argument leaf.
    ///
    /// # Errors
    /// Fails if the extents do not match the function or each other, or if a size is the value of an integer argument;
    /// then use [`Self::call`].
    pub fn workspace(&self, extents: &[&[usize]]) -> Result<Workspace> {
        let sizes = self.engine.bind(extents, &[]).map_err(|e| self.failed(e))?;
        self.check_memory(&sizes)?;
        let memory = self.memory(&sizes);
        Ok(Workspace { sizes, memory, batch: None })
    }

    /// Returns memory for evaluations with arguments of these extents, one list per argument leaf, at the integers in
    /// `inputs`: for functions with a size that is the value of an argument. [`Self::run_into`] takes it.
    ///
    /// # Errors
    /// Fails if the extents do not match the function or each other.
    ///
    /// ```
    /// use chainrule::{Module, Slice, SliceMut};
    /// let module = Module::from_text("f.ft", "let f = fun (n : Int) (x : Double) -> build n (fun i -> x ** i)")?;
    /// let f = module.function("f")?.compile()?;
    /// let inputs = [Slice::Int(&[3]), Slice::Real(&[2.0])];
    /// let mut workspace = f.workspace_for(&[&[], &[]], &inputs)?;
    /// assert_eq!(workspace.output_shape(0), [3]);
    /// let mut powers = [0.0; 3];
    /// f.run_into(&inputs, &mut [SliceMut::Real(&mut powers)], &mut workspace)?;
    /// assert_eq!(powers, [1.0, 2.0, 4.0]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn workspace_for(&self, extents: &[&[usize]], inputs: &[Slice<'_>]) -> Result<Workspace> {
        let sizes = self.engine.bind(extents, inputs).map_err(|e| self.failed(e))?;
        self.check_memory(&sizes)?;
        let memory = self.memory(&sizes);
        Ok(Workspace { sizes, memory, batch: None })
    }

    /// Does the same as [`Self::eval_into`], for arguments and results of doubles and integers, one per argument leaf.
    ///
    /// # Errors
    /// The errors of [`Self::eval_into`].
    pub fn run_into(
        &self,
        inputs: &[Slice<'_>],
        outputs: &mut [SliceMut<'_>],
        workspace: &mut Workspace,
    ) -> Result<()> {
        self.engine.run(&workspace.sizes, inputs, outputs, &mut workspace.memory).map_err(|e| self.failed(e))
    }

    /// Returns the results at `inputs`, each in row-major order. Extents that are not fixed are inferred from the
    /// lengths, for arguments with one such extent.
    ///
    /// # Errors
    /// Fails if an argument is missing or has another length, or if the program fails.
    pub fn eval(&self, inputs: &[&[f64]]) -> Result<Vec<Vec<f64>>> {
        self.check_count("argument", &self.interface.inputs, inputs.len())?;
        let extents = inputs
            .iter()
            .zip(&self.interface.inputs)
            .map(|(x, shape)| fit(shape, x.len()))
            .collect::<Result<Vec<_>>>()?;
        let extents: Vec<&[usize]> = extents.iter().map(Vec::as_slice).collect();
        let mut workspace = self.workspace(&extents)?;
        let zeros = |i| vec![0.0; workspace.sizes.output_len(i)];
        let mut outputs: Vec<Vec<f64>> = (0..self.interface.outputs.len()).map(zeros).collect();
        let mut slices: Vec<&mut [f64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        self.eval_into(inputs, &mut slices, &mut workspace)?;
        Ok(outputs)
    }

    /// Writes the results at `inputs` to `outputs`, in preallocated memory. Native code allocates nothing.
    ///
    /// # Errors
    /// Fails if a length is wrong, or if the program fails; nothing outside of `outputs` is written.
    pub fn eval_into(&self, inputs: &[&[f64]], outputs: &mut [&mut [f64]], workspace: &mut Workspace) -> Result<()> {
        match self.engine.run_reals(&workspace.sizes, inputs, outputs, &mut workspace.memory) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns the results at arguments of any type: one value per argument of the signature, one per result.
    ///
    /// # Errors
    /// Fails if a value does not have the type or the extents of its argument, or if the program fails.
    pub fn call(&self, args: &[Value<f64>]) -> Result<Vec<Value<f64>>> {
        let mut prepared = self.prepare(args)?;
        self.check_bytes(prepared.sizes(), BYTES_PER_RESULT)?;
        prepared.run()?;
        Ok(prepared.results())
    }

    /// Returns memory for repeated evaluations at arguments of these extents and integers, initialised with these
    /// arguments.
    ///
    /// # Errors
    /// Fails if a value does not have the type or the extents of its argument.
    ///
    /// ```
    /// use chainrule::{Module, Value};
    /// let module = Module::from_text("f.ft", "let f = fun (n : Card) (x : Double) -> sum n (fun i -> x ** i)")?;
    /// let f = module.function("f")?.compile()?;
    /// let mut at = f.prepare(&[Value::Int(3), Value::Real(0.5)])?;
    /// at.run()?;
    /// assert_eq!(at.result(0), [1.75]);
    /// at.argument_mut(1)[0] = 2.0;
    /// at.run()?;
    /// assert_eq!(at.result(0), [7.0]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn prepare(&self, args: &[Value<f64>]) -> Result<Prepared<'_>> {
        let (flat, sizes) = self.flatten(args)?;
        Prepared::new(self, flat.columns, sizes)
    }

    /// Returns the flattened arguments, and their sizes; the memory is available.
    pub(crate) fn flatten(&self, args: &[Value<f64>]) -> Result<(Flat, Sizes)> {
        let (flat, sizes) = self.sizes_of(args)?;
        self.check_memory(&sizes)?;
        Ok((flat, sizes))
    }

    /// Returns the number of numbers in the workspace for these arguments, without padding to cache lines, whether or
    /// not there is enough memory.
    pub(crate) fn n_numbers(&self, args: &[Value<f64>]) -> Result<usize> {
        Ok(self.sizes_of(args)?.1.n_planned())
    }

    pub(crate) fn sizes_of(&self, args: &[Value<f64>]) -> Result<(Flat, Sizes)> {
        // An extent below an empty one is unknown from the value: it follows from the type at the other arguments'
        // sizes.
        let bound = self.body.as_ref().and_then(|body| chainrule_ir::bind_sizes(&body.function, args).ok());
        let unseen = |size: &Size| match &bound {
            Some(sizes) => sizes.eval(size),
            None => size.as_constant(),
        };
        let flat = Flat::new(&self.signature().params, args, unseen)?;
        let extents: Vec<&[usize]> = flat.extents.iter().map(Vec::as_slice).collect();
        let slices: Vec<Slice<'_>> = flat.columns.iter().map(Elements::slice).collect();
        let sizes = self.engine.bind(&extents, &slices).map_err(|e| self.failed(e))?;
        Ok((flat, sizes))
    }

    /// Allocates and releases the memory of the workspace and the results: a shortage is reported before anything is
    /// written.
    fn check_memory(&self, sizes: &Sizes) -> Result<()> {
        self.check_bytes(sizes, 0)
    }

    /// Does the same with additional bytes for each number of the results.
    fn check_bytes(&self, sizes: &Sizes, per_result: usize) -> Result<()> {
        let (reals, ints) = sizes.workspace_len();
        let results = (0..self.interface.outputs.len()).map(|i| sizes.output_len(i));
        let results = results.fold(0, usize::saturating_add);
        let numbers = reals.saturating_add(ints).saturating_add(results);
        let bytes = numbers.saturating_mul(size_of::<f64>()).saturating_add(results.saturating_mul(per_result));
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| {
            Error::request(
                format!("there is not enough memory: `{}` needs {numbers} numbers at these sizes", self.kernel().name),
                "make the arguments smaller, run it in parts, or in reverse mode have checkpoints of loops: \
                 `--checkpoints 32`, in Rust `checkpoints(32)`",
            )
        })
    }

    /// Checks that the number of given arguments, or results, is the number of leaves.
    fn check_count(&self, what: &str, leaves: &[Shape], given: usize) -> Result<()> {
        if given == leaves.len() {
            return Ok(());
        }
        let names: Vec<&str> = leaves.iter().map(|leaf| leaf.name.as_str()).collect();
        let (verb, is) = (if what == "result" { "has" } else { "takes" }, if names.len() == 1 { "is" } else { "are" });
        Err(Error::request(
            format!("`{}` {verb} {}, not {given}", self.kernel().name, count(names.len(), what)),
            format!("{} {is} {}", if names.len() == 1 { "it" } else { "they" }, names.join(", ")),
        ))
    }

    /// Checks that the given arrays have the lengths of `n_points` points of these sizes, one per leaf.
    pub(crate) fn check_lengths(
        &self,
        sizes: &Sizes,
        n_points: usize,
        inputs: &[&[f64]],
        outputs: &[&mut [f64]],
    ) -> Result<()> {
        self.check_count("argument", &self.interface.inputs, inputs.len())?;
        self.check_count("result", &self.interface.outputs, outputs.len())?;
        let check = |what: &str, leaf: &Shape, given: usize, one: usize| {
            if one.checked_mul(n_points) == Some(given) {
                return Ok(());
            }
            Err(Error::request(
                format!(
                    "the {what} `{}` has {}, but {} expected: {} of {}",
                    leaf.name,
                    count(given, "element"),
                    one.saturating_mul(n_points),
                    count(n_points, "point"),
                    count(one, "element")
                ),
                "pass the elements of all points, one point after the other",
            ))
        };
        for (i, (x, leaf)) in inputs.iter().zip(&self.interface.inputs).enumerate() {
            check("argument", leaf, x.len(), sizes.input_len(i))?;
        }
        for (i, (y, leaf)) in outputs.iter().zip(&self.interface.outputs).enumerate() {
            check("result", leaf, y.len(), sizes.output_len(i))?;
        }
        Ok(())
    }

    /// Returns memory for one evaluation at a time.
    pub(crate) fn memory(&self, sizes: &Sizes) -> Memory {
        self.engine.memory(sizes, self.threads)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    #[cold]
    pub(crate) fn failed(&self, error: chainrule_runtime::RunError) -> Error {
        let error = self.explained(error);
        match error.diagnostic().span() {
            Some(_) => {
                let sources = self.body.as_ref().map_or_else(Arc::default, |body| body.sources.clone());
                Error::program(error.diagnostic(), &sources)
            }
            None => Error::Run(error),
        }
    }

    /// Adds a remedy to `error` if an integer is too large.
    fn explained(&self, error: chainrule_runtime::RunError) -> chainrule_runtime::RunError {
        use chainrule_runtime::RunError;
        let RunError::Failure { message, reason: None, span, point } = error else { return error };
        let is_overflow = message.starts_with(chainrule_kernel::registers::OVERFLOW);
        let name = &self.engine.layout().kernel().name;
        let why = match span {
            Some(_) => format!("it is computed from the integer arguments of `{name}`; give smaller ones"),
            None => format!("a size or an index of `{name}`, computed from its integer arguments; give smaller ones"),
        };
        RunError::Failure { message, reason: is_overflow.then_some(why), span, point }
    }
}

/// Infers the extents of an argument that has `len` elements.
fn fit(shape: &Shape, len: usize) -> Result<Vec<usize>> {
    let known: usize = shape.extents.iter().flatten().product();
    let open = shape.extents.iter().filter(|e| e.is_none()).count();
    if open > 1 {
        return Err(Error::request(
            format!("the extents of `{}` cannot be told from its length", shape.name),
            "use `call` with nested values, or `eval_into` with a workspace for its extents",
        ));
    }
    if (open == 0 && known != len) || (open == 1 && (known == 0 || !len.is_multiple_of(known))) {
        let wanted = if open == 0 { known.to_string() } else { format!("a multiple of {known}") };
        return Err(Error::request(
            format!("the argument `{}` has {}, not {wanted}", shape.name, count(len, "element")),
            "pass its elements in row-major order",
        ));
    }
    Ok(shape.extents.iter().map(|e| e.unwrap_or_else(|| len / known)).collect())
}
