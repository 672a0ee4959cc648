//! Compilation, and executable memory.

use crate::lower::{self, Lowered};
use crate::support;
use chainrule_base::Diagnostic;
use chainrule_kernel::{Kernel, walk};
use chainrule_runtime::InRange;
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_codegen::{CodegenError, ir};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, ModuleError, default_libcall_names};
use std::sync::{Mutex, PoisonError};

/// Maximum stack of a kernel, in bytes: threads of Rust have 2 MiB.
const MAX_STACK: u32 = 256 << 10;

/// Maximum number of statements. Cranelift's register allocation takes up to 4 s for this many if thousands of values
/// are live, and 16 times as long for four times as many.
const MAX_STATEMENTS: usize = 50_000;

/// Processors for which Cranelift emits stack probes, so that a large frame cannot skip the guard page.
const KNOWN: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

/// Machine code in memory, freed with its owner. It is never modified.
pub(crate) struct Code {
    entry: *const u8,
    len: usize,
    /// Owner of the memory; `None` only during drop.
    module: Option<Mutex<JITModule>>,
}

// SAFETY: `entry` points to immutable memory owned by the module.
unsafe impl Send for Code {}
// SAFETY: as above; the module is behind its lock.
unsafe impl Sync for Code {}

impl Code {
    /// Compiles `kernel`, which is verified.
    ///
    /// # Errors
    /// A processor that Cranelift does not support; a kernel that is too large for it; denied executable memory.
    pub(crate) fn new(kernel: &Kernel, in_range: Option<InRange>) -> Result<(Self, Lowered), Diagnostic> {
        let n = walk(&kernel.body).count();
        if n > MAX_STATEMENTS {
            return Err(
                too_large().with_reason(format!("it has {n} statements, {MAX_STATEMENTS} are compiled at most"))
            );
        }
        let mut module = JITModule::new(builder()?);
        let pointer = module.target_config().pointer_type();
        if !KNOWN || pointer != ir::types::I64 {
            return Err(no_processor("it is not one of x86-64, aarch64 and riscv64"));
        }
        let mut context = module.make_context();
        let mut functions = FunctionBuilderContext::new();
        let made = Self::make(kernel, in_range, &mut module, &mut context, &mut functions);
        match made {
            Ok((entry, len, lowered)) => Ok((Self { entry, len, module: Some(Mutex::new(module)) }, lowered)),
            Err(why) => {
                // SAFETY: its code has never run, and no address of it is left.
                unsafe { module.free_memory() };
                Err(why)
            }
        }
    }

    fn make(
        kernel: &Kernel,
        in_range: Option<InRange>,
        module: &mut JITModule,
        context: &mut cranelift_codegen::Context,
        functions: &mut FunctionBuilderContext,
    ) -> Result<(*const u8, usize, Lowered), Diagnostic> {
        let lowered = lower::lower(kernel, in_range, module.target_config(), &mut context.func, functions)?;
        let id = module.declare_function("kernel", Linkage::Local, &context.func.signature).map_err(explain)?;
        module.define_function(id, context).map_err(explain)?;
        let compiled = context.compiled_code().ok_or_else(|| bug("no code was made"))?;
        let stack = compiled.buffer.frame_layout().map_or(0, |layout| layout.frame_to_fp_offset);
        if stack > MAX_STACK {
            return Err(Diagnostic::limitation("the kernel keeps too many values at once for Cranelift")
                .with_reason(format!("{stack} bytes of stack are needed, {MAX_STACK} allowed"))
                .with_help("take native code or the interpreter, or cut the function into several"));
        }
        let len = compiled.code_buffer().len();
        module.finalize_definitions().map_err(explain)?;
        Ok((module.get_finalized_function(id), len, lowered))
    }

    /// Runs the code on a frame. Returns 0, or the number of the failed site, from 1.
    ///
    /// # Safety
    /// The frame has the layout of [`Lowered::frame`]; its pointers and lengths describe memory that the code may use.
    pub(crate) unsafe fn run(&self, frame: *mut u64) -> u64 {
        // SAFETY: `lower` gives the function this type and C's calling convention on this machine; its memory lives as
        // long as `self`.
        let run: unsafe extern "C" fn(*mut u64) -> u64 = unsafe { std::mem::transmute(self.entry) };
        // SAFETY: the caller's promise.
        unsafe { run(frame) }
    }

    /// Returns the machine code.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes were written there; they live as long as `self` and are immutable.
        unsafe { std::slice::from_raw_parts(self.entry, self.len) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            let module = module.into_inner().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: a running call borrows `self`, so none is left, and no address outlives `self`.
            unsafe { module.free_memory() };
        }
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").field("bytes", &self.len).finish_non_exhaustive()
    }
}

fn builder() -> Result<JITBuilder, Diagnostic> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "none"),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("enable_verifier", verify),
    ] {
        flags.set(name, value).map_err(|e| bug(&format!("the flag `{name}`: {e}")))?;
    }
    let isa = cranelift_native::builder().map_err(no_processor)?;
    let isa = isa.finish(Flags::new(flags)).map_err(|e| bug(&e.to_string()))?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    for (name, address) in [
        ("floor", support::floor as *const u8),
        ("ceil", support::ceil as *const u8),
        ("fma", support::fma as *const u8),
    ] {
        builder.symbol(name, address);
    }
    Ok(builder)
}

fn no_processor(why: &str) -> Diagnostic {
    Diagnostic::limitation("Cranelift makes no code for this processor")
        .with_reason(why)
        .with_help("the interpreter runs everywhere; emitted C and Rust run at full speed")
}

fn too_large() -> Diagnostic {
    Diagnostic::limitation("the kernel is too large for Cranelift")
        .with_help("take native code or the interpreter, or cut the function into several")
}

/// Returns the message for code that Cranelift does not compile.
fn explain(error: ModuleError) -> Diagnostic {
    match error {
        ModuleError::Compilation(CodegenError::ImplLimitExceeded | CodegenError::CodeTooLarge) => too_large(),
        ModuleError::Allocation { err } => Diagnostic::limitation("no memory for code")
            .with_reason(err.to_string())
            .with_help("the interpreter needs less"),
        // Refusals of the system are reported this way.
        ModuleError::Backend(error) => denied(&format!("{error:#}")),
        ModuleError::Compilation(error) => bug(&format!("{error:?}")),
        error => bug(&error.to_string()),
    }
}

/// Returns the message for denied executable memory.
pub(crate) fn denied(reason: &str) -> Diagnostic {
    Diagnostic::limitation("this system denies executable memory")
        .with_reason(reason)
        .with_help("the interpreter needs none, nor does emitted C")
}

pub(crate) fn bug(reason: &str) -> Diagnostic {
    Diagnostic::bug("a kernel cannot be made into code by Cranelift").with_reason(reason)
}
