//! Engines that run a kernel in the process: native code, Cranelift's if the library is built with it, or the
//! interpreter.
//!
//! All dependences on the processor are in this file. All engines share sizes and compute the same bits.

use crate::{Error, Result, Rewrite};
use chainrule_base::{Diagnostic, Kind};
use chainrule_kernel::Kernel;
use chainrule_runtime::{Batch, Elements, InRange, Layout, RunError, Sizes, Slice, SliceMut};
use std::ops::Range;
use std::sync::Arc;

/// Backend of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backend {
    /// Native code if this machine supports it, otherwise Cranelift's if the library is built with it, otherwise the
    /// interpreter.
    #[default]
    Auto,
    /// Machine code for 64-bit x86 with AVX2 and FMA, or AVX-512.
    Native,
    /// Machine code by Cranelift, for aarch64 and others: one point at a time. The library must be built with its
    /// feature `cranelift`.
    Cranelift,
    /// Interpreter, which runs everywhere and needs no executable memory.
    Interpreter,
}

/// Vector instructions that native code may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// AVX2 and FMA: four points at once.
    Avx2,
    /// AVX-512 F, DQ, VL and BW: eight points at once.
    Avx512,
}

/// Checks of indices in compiled code.
///
/// An index that the compiler proves to be in range is never checked. This option is about the others: those that
/// depend on data, and those by sizes that it cannot compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checks {
    /// All: an index out of range is an error that names the array, the location in the program, and the index.
    #[default]
    All,
    /// Those needed for memory safety: an index out of range reads another element of its array, or is an error that
    /// does not name the index.
    Memory,
    /// None: the caller has promised that no index is out of range.
    ///
    /// ```
    /// use chainrule::{Checks, CompileOptions, InRange, Module, Value};
    /// let text = "let f = fun (x : [n]Double) (at : [m]Index) -> vectorSum (build m (fun k -> x[at[k]]))";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// // SAFETY: `f` is called below with indices 0 and 2 into three numbers, and nowhere else.
    /// let checks = Checks::None(unsafe { InRange::promised() });
    /// let f = f.compile_with(&CompileOptions { checks, ..CompileOptions::default() })?;
    /// let x = Value::Array([1.0, 2.0, 3.0].map(Value::Real).to_vec());
    /// let at = Value::Array([0, 2].map(Value::Int).to_vec());
    /// assert_eq!(f.call(&[x, at])?, [Value::Real(4.0)]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    None(InRange),
}

/// Options of compilation.
///
/// ```
/// use chainrule::{Backend, CompileOptions, Function, vars};
/// let x = vars("x", 3);
/// let f = Function::new("f", &x, &x.norm())?;
/// let options = CompileOptions { backend: Backend::Interpreter, ..CompileOptions::default() };
/// let f = f.compile_with(&options)?;
/// assert_eq!(f.backend(), Backend::Interpreter);
/// assert_eq!(f.eval(&[&[2.0, 3.0, 6.0]])?, [[7.0]]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompileOptions {
    /// Backend that runs it.
    pub backend: Backend,
    /// Instruction set of native code; the best of this machine by default.
    pub level: Option<Level>,
    /// Whether products are fused with sums, rounded once: by default, if the function's semantics allow it
    /// (`algebraic`). All backends then round alike.
    pub fuse: Option<bool>,
    /// Whether loops run one iteration after the other, and sums are added in that order, within a part if there are
    /// [`Self::threads`]. Otherwise independent iterations run in vector lanes, eight at a time, and sums are added in
    /// eight parts, in an order that does not depend on machine or backend; under strict semantics, which keep the
    /// order of sums, loops with sums are unchanged.
    ///
    /// Emitted text with equal options has equal bits: see [`crate::COptions`] and [`crate::RustOptions`].
    pub sequential: bool,
    /// Number of threads on which native code runs one evaluation; `Some(0)` for the number that the machine runs at
    /// once.
    ///
    /// One by default. Otherwise outermost loops whose iterations are independent, or only add, under strict semantics
    /// only the former, are cut into 16 parts, which are distributed over threads if the loop takes long enough (some
    /// ten microseconds). Sums are then added part by part: the order, and with it the last digits, may differ from
    /// those without this option, but results are the same bit for bit for any number of threads, including `Some(1)`,
    /// and on every backend. For batches see [`crate::BatchOptions::threads`]; they distribute points.
    ///
    /// Native code of 32,768 straight-line instructions or more is generated by two threads by default, if the machine
    /// runs so many at once; otherwise by at most this number. The code is the same.
    pub threads: Option<usize>,
    /// Passes of the optimiser of array programs, for functions that keep their loops.
    pub rewrite: Rewrite,
    /// For derivatives in the text of the program: as [`crate::Derivation::checkpoints`].
    pub checkpoints: Option<u32>,
    /// Checks of indices. Code loaded from saved bytes keeps those of memory unless a promise is given here.
    pub checks: Checks,
    /// Whether to write the names of native functions for the profiler `perf`, to `/tmp/perf-PID.map`: one line per
    /// piece of code, of which functions have several if they run in lanes or on threads. The addresses of named code
    /// are not reused, so that each line stays valid: this is for profiling runs, not for unbounded compilation.
    pub perf_map: bool,
    /// For tests: simulates a system that denies executable memory.
    #[doc(hidden)]
    pub deny_executable: bool,
}

impl CompileOptions {
    #[cfg(any(feature = "cranelift", all(target_arch = "x86_64", unix)))]
    fn in_range(&self) -> Option<InRange> {
        match self.checks {
            Checks::All | Checks::Memory => None,
            Checks::None(promise) => Some(promise),
        }
    }

    /// Applies the final passes to any kernel that is to run.
    pub(crate) fn finish(&self, kernel: &mut Kernel) {
        if self.checks != Checks::All {
            chainrule_kernel::unchecked(kernel);
        }
    }

    pub(crate) fn n_threads(&self) -> usize {
        self.threads.map_or(1, crate::batch::n_threads)
    }
}

#[cfg(feature = "cranelift")]
use chainrule_cranelift as cranelift;
#[cfg(all(target_arch = "x86_64", unix))]
use chainrule_native as native;

#[derive(Debug)]
pub(crate) enum Engine {
    #[cfg(all(target_arch = "x86_64", unix))]
    Native(Box<native::Program>),
    #[cfg(feature = "cranelift")]
    Cranelift(Box<cranelift::Program>),
    Interpreter(chainrule_interpret::Program),
}

/// Memory for one thread.
#[derive(Debug)]
pub(crate) enum Memory {
    #[cfg(all(target_arch = "x86_64", unix))]
    Native(native::Workspace),
    #[cfg(feature = "cranelift")]
    Cranelift(cranelift::Workspace),
    Interpreter(chainrule_interpret::Workspace),
}

/// Backends that `Auto` tries, in turn, before the interpreter.
const MACHINE_CODE: &[Backend] =
    if cfg!(feature = "cranelift") { &[Backend::Native, Backend::Cranelift] } else { &[Backend::Native] };

impl Engine {
    /// Returns the engine, and the reason why it is not native code although that was requested.
    pub(crate) fn new(kernel: Kernel, options: &CompileOptions) -> Result<(Self, Option<Diagnostic>)> {
        let layout = Layout::new(Arc::new(kernel));
        let fail = |d: Diagnostic| Error::program(d, &Arc::default());
        let interpreter = |why: Option<Diagnostic>| {
            let program = chainrule_interpret::Program::with_layout(Arc::clone(&layout)).map_err(fail)?;
            Ok((Self::Interpreter(program), why))
        };
        let tried = match &options.backend {
            Backend::Interpreter => return interpreter(None),
            Backend::Auto => MACHINE_CODE,
            one => std::slice::from_ref(one),
        };
        let mut refused: Option<Diagnostic> = None;
        for backend in tried {
            let made = match backend {
                Backend::Cranelift => Self::cranelift(Arc::clone(&layout), options),
                _ => Self::native(Arc::clone(&layout), options),
            };
            match made {
                Ok(engine) => return Ok((engine, refused)),
                // A user's error is reported; a limitation or a bug of ours falls back to the next backend.
                Err(why) if options.backend == Backend::Auto && why.kind != Kind::Error => {
                    refused = Some(match refused {
                        None => why,
                        Some(first) => both(first, &why),
                    });
                }
                Err(why) => return Err(fail(why)),
            }
        }
        interpreter(refused)
    }

    #[cfg(feature = "cranelift")]
    fn cranelift(layout: Arc<Layout>, options: &CompileOptions) -> std::result::Result<Self, Diagnostic> {
        let options = cranelift::Options { deny_executable: options.deny_executable, in_range: options.in_range() };
        cranelift::Program::with_layout(layout, &options).map(|p| Self::Cranelift(Box::new(p)))
    }

    #[cfg(not(feature = "cranelift"))]
    fn cranelift(_: Arc<Layout>, _: &CompileOptions) -> std::result::Result<Self, Diagnostic> {
        Err(Diagnostic::limitation("this build of Chainrule has no Cranelift")
            .with_help("build it with the feature `cranelift`, or let `Backend::Auto` choose"))
    }

    #[cfg(all(target_arch = "x86_64", unix))]
    fn native(layout: Arc<Layout>, options: &CompileOptions) -> std::result::Result<Self, Diagnostic> {
        let level = options.level.map(|level| match level {
            Level::Avx2 => native::Level::Avx2,
            Level::Avx512 => native::Level::Avx512,
        });
        let CompileOptions { perf_map, deny_executable, .. } = *options;
        let (in_range, writers) = (options.in_range(), options.threads.map(crate::batch::n_threads));
        let options =
            native::Options { level, perf_map, deny_executable, in_range, writers, ..native::Options::default() };
        native::Program::with_layout(layout, &options).map(|p| Self::Native(Box::new(p)))
    }

    #[cfg(not(all(target_arch = "x86_64", unix)))]
    fn native(_: Arc<Layout>, _: &CompileOptions) -> std::result::Result<Self, Diagnostic> {
        Err(Diagnostic::limitation("there is no native code for this processor yet")
            .with_help("the interpreter runs everywhere; emitted C and Rust run at full speed"))
    }

    pub(crate) fn backend(&self) -> Backend {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(_) => Backend::Native,
            #[cfg(feature = "cranelift")]
            Self::Cranelift(_) => Backend::Cranelift,
            Self::Interpreter(_) => Backend::Interpreter,
        }
    }

    /// Returns its layout.
    pub(crate) fn layout(&self) -> &Arc<Layout> {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(program) => program.layout(),
            #[cfg(feature = "cranelift")]
            Self::Cranelift(program) => program.layout(),
            Self::Interpreter(program) => program.layout(),
        }
    }

    /// Returns the bytes of machine code, if there are any.
    pub(crate) fn code(&self) -> Option<&[u8]> {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(program) => Some(program.code()),
            #[cfg(feature = "cranelift")]
            Self::Cranelift(program) => Some(program.code()),
            Self::Interpreter(_) => None,
        }
    }

    pub(crate) fn bind(&self, shapes: &[&[usize]], inputs: &[Slice<'_>]) -> std::result::Result<Sizes, RunError> {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(program) => program.bind_inputs(shapes, inputs),
            #[cfg(feature = "cranelift")]
            Self::Cranelift(program) => program.bind_inputs(shapes, inputs),
            Self::Interpreter(program) => program.bind_inputs(shapes, inputs),
        }
    }

    /// Returns memory for one evaluation at a time, on so many threads. All except native code use one.
    #[cfg_attr(not(all(target_arch = "x86_64", unix)), allow(unused_variables))]
    pub(crate) fn memory(&self, sizes: &Sizes, threads: usize) -> Memory {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(program) => Memory::Native(native::Workspace::for_threads(program, sizes, threads)),
            #[cfg(feature = "cranelift")]
            Self::Cranelift(program) => Memory::Cranelift(cranelift::Workspace::new(program, sizes)),
            Self::Interpreter(program) => Memory::Interpreter(chainrule_interpret::Workspace::new(program, sizes)),
        }
    }

    pub(crate) fn run(
        &self,
        sizes: &Sizes,
        inputs: &[Slice<'_>],
        outputs: &mut [SliceMut<'_>],
        memory: &mut Memory,
    ) -> std::result::Result<(), RunError> {
        match (self, memory) {
            #[cfg(all(target_arch = "x86_64", unix))]
            (Self::Native(program), Memory::Native(memory)) => program.run(sizes, inputs, outputs, memory),
            #[cfg(feature = "cranelift")]
            (Self::Cranelift(program), Memory::Cranelift(memory)) => program.run(sizes, inputs, outputs, memory),
            (Self::Interpreter(program), Memory::Interpreter(memory)) => program.run(sizes, inputs, outputs, memory),
            #[cfg(any(feature = "cranelift", all(target_arch = "x86_64", unix)))]
            _ => Err(of_another()),
        }
    }

    /// Does the same for doubles alone.
    #[inline]
    pub(crate) fn run_reals(
        &self,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        memory: &mut Memory,
    ) -> std::result::Result<(), RunError> {
        match (self, memory) {
            #[cfg(all(target_arch = "x86_64", unix))]
            (Self::Native(program), Memory::Native(memory)) => program.run_reals(sizes, inputs, outputs, memory),
            (_, memory) => self.run_slices(sizes, inputs, outputs, memory),
        }
    }

    #[inline(never)]
    fn run_slices(
        &self,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        memory: &mut Memory,
    ) -> std::result::Result<(), RunError> {
        let inputs: Vec<Slice<'_>> = inputs.iter().map(|x| Slice::Real(x)).collect();
        let mut outputs: Vec<SliceMut<'_>> = outputs.iter_mut().map(|y| SliceMut::Real(y)).collect();
        self.run(sizes, &inputs, &mut outputs, memory)
    }

    /// Returns the engine with preallocated memory for the arguments of one point, initialised with these, and for its
    /// results.
    pub(crate) fn bound(
        &self,
        sizes: Sizes,
        inputs: Vec<Elements>,
        memory: Memory,
    ) -> std::result::Result<BoundEngine<'_>, RunError> {
        match (self, memory) {
            #[cfg(all(target_arch = "x86_64", unix))]
            (Self::Native(program), Memory::Native(memory)) if memory.threads() == 1 => {
                program.bound(sizes, inputs, memory).map(BoundEngine::Native)
            }
            (_, memory) => {
                let outputs = sizes.zero_outputs();
                Ok(BoundEngine::Slices { engine: self, sizes, memory, inputs, outputs })
            }
        }
    }

    /// Returns the number of points that run at once in a batch.
    pub(crate) fn lanes(&self, sizes: &Sizes) -> usize {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(program) => program.lanes_for(sizes),
            #[cfg(feature = "cranelift")]
            Self::Cranelift(_) => 1,
            Self::Interpreter(program) if program.runs_in_lanes(sizes) => chainrule_interpret::LANES,
            Self::Interpreter(_) => 1,
        }
    }

    pub(crate) fn batch_memory(&self, sizes: &Sizes, threads: usize) -> BatchMemory {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(program) => {
                BatchMemory::Native((0..threads).map(|_| native::Workspace::for_batch(program, sizes)).collect())
            }
            #[cfg(feature = "cranelift")]
            Self::Cranelift(program) => {
                BatchMemory::Cranelift((0..threads).map(|_| cranelift::Workspace::new(program, sizes)).collect())
            }
            Self::Interpreter(program) => {
                let make = |_| chainrule_interpret::Workspace::for_batch(program, sizes);
                BatchMemory::Interpreter((0..threads).map(make).collect())
            }
        }
    }

    /// Runs some points of a batch.
    pub(crate) fn run_points(
        &self,
        batch: &mut Batch<'_>,
        points: Range<usize>,
        memory: &mut BatchMemory,
    ) -> std::result::Result<(), RunError> {
        match (self, memory) {
            #[cfg(all(target_arch = "x86_64", unix))]
            (Self::Native(program), BatchMemory::Native(all)) => program.run_points(batch, points, all),
            #[cfg(feature = "cranelift")]
            (Self::Cranelift(program), BatchMemory::Cranelift(all)) => program.run_points(batch, points, all),
            (Self::Interpreter(program), BatchMemory::Interpreter(all)) => program.run_points(batch, points, all),
            #[cfg(any(feature = "cranelift", all(target_arch = "x86_64", unix)))]
            _ => Err(of_another()),
        }
    }
}

/// Engine with the arguments and results of one point. The discriminant is stored separately (`repr`): each call reads
/// it.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum BoundEngine<'e> {
    /// On the calling thread.
    #[cfg(all(target_arch = "x86_64", unix))]
    Native(native::Bound<'e>),
    /// Engine that takes slices; native code on threads runs long enough to amortise that.
    Slices { engine: &'e Engine, sizes: Sizes, memory: Memory, inputs: Vec<Elements>, outputs: Vec<Elements> },
}

impl BoundEngine<'_> {
    #[inline]
    pub(crate) fn run(&mut self) -> std::result::Result<(), RunError> {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(bound) => bound.run(),
            Self::Slices { engine, sizes, memory, inputs, outputs } => {
                run_slices(engine, sizes, memory, inputs, outputs)
            }
        }
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(bound) => bound.sizes(),
            Self::Slices { sizes, .. } => sizes,
        }
    }

    /// Returns the doubles of an argument; empty for integers, which stay.
    #[inline]
    pub(crate) fn input_mut(&mut self, input: usize) -> &mut [f64] {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(bound) => bound.input_mut(input),
            Self::Slices { inputs, .. } => inputs[input].reals_mut(),
        }
    }

    #[inline]
    pub(crate) fn inputs(&self) -> &[Elements] {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(bound) => bound.inputs(),
            Self::Slices { inputs, .. } => inputs,
        }
    }

    #[inline]
    pub(crate) fn outputs(&self) -> &[Elements] {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(bound) => bound.outputs(),
            Self::Slices { outputs, .. } => outputs,
        }
    }
}

/// Returns a separate function, so that repeated calls of native code have a small stack frame.
#[inline(never)]
fn run_slices(
    engine: &Engine,
    sizes: &Sizes,
    memory: &mut Memory,
    inputs: &[Elements],
    outputs: &mut [Elements],
) -> std::result::Result<(), RunError> {
    let inputs: Vec<Slice<'_>> = inputs.iter().map(Elements::slice).collect();
    let mut outputs: Vec<SliceMut<'_>> = outputs.iter_mut().map(Elements::slice_mut).collect();
    engine.run(sizes, &inputs, &mut outputs, memory)
}

/// Memory for the threads of a batch.
#[derive(Debug)]
pub(crate) enum BatchMemory {
    #[cfg(all(target_arch = "x86_64", unix))]
    Native(Vec<native::Workspace>),
    #[cfg(feature = "cranelift")]
    Cranelift(Vec<cranelift::Workspace>),
    Interpreter(Vec<chainrule_interpret::Workspace>),
}

impl BatchMemory {
    pub(crate) fn threads(&self) -> usize {
        match self {
            #[cfg(all(target_arch = "x86_64", unix))]
            Self::Native(all) => all.len(),
            #[cfg(feature = "cranelift")]
            Self::Cranelift(all) => all.len(),
            Self::Interpreter(all) => all.len(),
        }
    }
}

/// Returns the first reason, with that of the other engine.
fn both(first: Diagnostic, second: &Diagnostic) -> Diagnostic {
    let reasons: Vec<String> =
        first.reason.iter().cloned().chain([format!("and Cranelift: {}", second.title)]).collect();
    first.with_reason(reasons.join("; "))
}

#[cfg(any(feature = "cranelift", all(target_arch = "x86_64", unix)))]
fn of_another() -> RunError {
    RunError::argument("the workspace was made by another function; make it with this one's `workspace`")
}
