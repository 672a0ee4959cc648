//! Engines that run a kernel in this process: native code, Cranelift's if the library is built with it, or the
//! interpreter.
//!
//! All engines share sizes and compute the same bits. Backends that this build lacks are types without values
//! (`absent`), so that only `native` and `cranelift` depend on processor and features.

#[cfg(not(all(feature = "cranelift", target_arch = "x86_64", unix)))]
mod absent;
mod cranelift;
mod native;

use crate::{Backend, CompileOptions, Error, Result};
use chainrule_base::{Diagnostic, Kind};
use chainrule_interpret as interpret;
use chainrule_kernel::Kernel;
use chainrule_runtime::Backend as _;
use chainrule_runtime::{self as runtime, Batch, Elements, Layout, RunError, Sizes, Slice, SliceMut};
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) enum Engine {
    Native(Box<native::Program>),
    Cranelift(Box<cranelift::Program>),
    Interpreter(interpret::Program),
}

/// Workspace of a backend.
type WorkspaceOf<P> = <P as runtime::Backend>::Workspace;

/// Memory for one thread.
#[derive(Debug)]
pub(crate) enum Memory {
    Native(WorkspaceOf<native::Program>),
    Cranelift(WorkspaceOf<cranelift::Program>),
    Interpreter(interpret::Workspace),
}

/// Memory for the threads of a batch.
#[derive(Debug)]
pub(crate) enum BatchMemory {
    Native(Vec<WorkspaceOf<native::Program>>),
    Cranelift(Vec<WorkspaceOf<cranelift::Program>>),
    Interpreter(Vec<interpret::Workspace>),
}

/// Evaluates an expression for the program of an engine, whichever backend made it.
macro_rules! with_program {
    ($engine:expr, $program:ident => $value:expr) => {
        match $engine {
            Engine::Native($program) => $value,
            Engine::Cranelift($program) => $value,
            Engine::Interpreter($program) => $value,
        }
    };
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
                Backend::Cranelift => {
                    cranelift::compile(Arc::clone(&layout), options).map(Box::new).map(Self::Cranelift)
                }
                _ => native::compile(Arc::clone(&layout), options).map(Box::new).map(Self::Native),
            };
            match made {
                Ok(engine) => return Ok((engine, refused)),
                // A user's error is reported; a limitation or a bug of ours falls back to the next backend.
                Err(why) if options.backend == Backend::Auto && why.kind != Kind::Error => {
                    debug_assert!(why.kind != Kind::Bug, "{}: {:?}", why.title, why.reason);
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

    pub(crate) fn backend(&self) -> Backend {
        match self {
            Self::Native(_) => Backend::Native,
            Self::Cranelift(_) => Backend::Cranelift,
            Self::Interpreter(_) => Backend::Interpreter,
        }
    }

    /// Returns its layout.
    pub(crate) fn layout(&self) -> &Arc<Layout> {
        with_program!(self, program => program.layout())
    }

    /// Returns the bytes of machine code, if there are any.
    pub(crate) fn code(&self) -> Option<&[u8]> {
        with_program!(self, program => program.machine_code())
    }

    pub(crate) fn bind(&self, shapes: &[&[usize]], inputs: &[Slice<'_>]) -> std::result::Result<Sizes, RunError> {
        with_program!(self, program => program.bind_inputs(shapes, inputs))
    }

    /// Returns memory for one evaluation at a time, on so many threads. All except native code use one.
    pub(crate) fn memory(&self, sizes: &Sizes, threads: usize) -> Memory {
        fn of<P: runtime::Backend>(
            program: &P,
            sizes: &Sizes,
            threads: usize,
            to: fn(P::Workspace) -> Memory,
        ) -> Memory {
            to(program.workspace(sizes, threads))
        }
        match self {
            Self::Native(program) => of(&**program, sizes, threads, Memory::Native),
            Self::Cranelift(program) => of(&**program, sizes, threads, Memory::Cranelift),
            Self::Interpreter(program) => of(program, sizes, threads, Memory::Interpreter),
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
            (Self::Native(program), Memory::Native(memory)) => program.run(sizes, inputs, outputs, memory),
            (Self::Cranelift(program), Memory::Cranelift(memory)) => program.run(sizes, inputs, outputs, memory),
            (Self::Interpreter(program), Memory::Interpreter(memory)) => program.run(sizes, inputs, outputs, memory),
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
            (Self::Native(program), Memory::Native(memory)) => program.run_reals(sizes, inputs, outputs, memory),
            (_, memory) => self.run_reals_elsewhere(sizes, inputs, outputs, memory),
        }
    }

    /// Runs doubles on other engines, in a function of its own: calls of native code keep a small stack frame.
    #[inline(never)]
    fn run_reals_elsewhere(
        &self,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        memory: &mut Memory,
    ) -> std::result::Result<(), RunError> {
        match (self, memory) {
            (Self::Cranelift(program), Memory::Cranelift(memory)) => program.run_reals(sizes, inputs, outputs, memory),
            (Self::Interpreter(program), Memory::Interpreter(memory)) => {
                program.run_reals(sizes, inputs, outputs, memory)
            }
            _ => Err(of_another()),
        }
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
            (Self::Native(program), Memory::Native(memory)) if memory.threads() == 1 => {
                program.bound(sizes, inputs, memory).map(BoundEngine::Native)
            }
            (_, memory) => {
                let outputs = sizes.zero_outputs();
                Ok(BoundEngine::Slices { engine: self, sizes, memory, inputs, outputs })
            }
        }
    }

    /// Returns the number of points that run at the same time in a batch.
    pub(crate) fn lanes(&self, sizes: &Sizes) -> usize {
        with_program!(self, program => program.lanes_for(sizes))
    }

    pub(crate) fn batch_memory(&self, sizes: &Sizes, threads: usize) -> BatchMemory {
        fn each<P: runtime::Backend>(program: &P, sizes: &Sizes, threads: usize) -> Vec<P::Workspace> {
            (0..threads).map(|_| program.batch_workspace(sizes)).collect()
        }
        match self {
            Self::Native(program) => BatchMemory::Native(each(&**program, sizes, threads)),
            Self::Cranelift(program) => BatchMemory::Cranelift(each(&**program, sizes, threads)),
            Self::Interpreter(program) => BatchMemory::Interpreter(each(program, sizes, threads)),
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
            (Self::Native(program), BatchMemory::Native(all)) => program.run_points(batch, points, all),
            (Self::Cranelift(program), BatchMemory::Cranelift(all)) => program.run_points(batch, points, all),
            (Self::Interpreter(program), BatchMemory::Interpreter(all)) => program.run_points(batch, points, all),
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
    Native(native::Bound<'e>),
    /// Engine that takes slices; native code on threads runs long enough to amortise that.
    Slices { engine: &'e Engine, sizes: Sizes, memory: Memory, inputs: Vec<Elements>, outputs: Vec<Elements> },
}

impl BoundEngine<'_> {
    #[inline]
    pub(crate) fn run(&mut self) -> std::result::Result<(), RunError> {
        match self {
            Self::Native(bound) => bound.run(),
            Self::Slices { engine, sizes, memory, inputs, outputs } => {
                run_slices(engine, sizes, memory, inputs, outputs)
            }
        }
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        match self {
            Self::Native(bound) => bound.sizes(),
            Self::Slices { sizes, .. } => sizes,
        }
    }

    /// Returns the doubles of an argument; empty for integers, which stay.
    #[inline]
    pub(crate) fn input_mut(&mut self, input: usize) -> &mut [f64] {
        match self {
            Self::Native(bound) => bound.input_mut(input),
            Self::Slices { inputs, .. } => inputs[input].reals_mut(),
        }
    }

    #[inline]
    pub(crate) fn inputs(&self) -> &[Elements] {
        match self {
            Self::Native(bound) => bound.inputs(),
            Self::Slices { inputs, .. } => inputs,
        }
    }

    #[inline]
    pub(crate) fn outputs(&self) -> &[Elements] {
        match self {
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

impl BatchMemory {
    pub(crate) fn threads(&self) -> usize {
        match self {
            Self::Native(all) => all.len(),
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

fn of_another() -> RunError {
    RunError::argument("the workspace was made by another function; make it with this one's `workspace`")
}
