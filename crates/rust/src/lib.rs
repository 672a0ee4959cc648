//! The Rust backend: kernels as a self-contained module.
//!
//! In: [`Kernel`]s. Out: a [`Module`], the same bytes for the same kernels on every machine. Its functions take slices
//! and return a `Result`. They allocate nothing; the caller provides the workspace, whose length a function returns.
//! The module contains no `unsafe` and never panics: lengths are checked at entry, and the kernel's own checks keep
//! indices in range. It fails if and only if the interpreter fails, with the same reason.
//!
//! `chainrule_text` determines the statements and their order; this crate determines their spelling in Rust.
//!
//! | module | owns |
//! | --- | --- |
//! | `reserved` | names with another meaning in Rust |
//! | `literal` | numbers, comments |
//! | [`functions`] | operators: the standard library, the crate `libm` or Chainrule's own functions, 64 or 32 bits |
//! | `language` | declarations, statements, functions |
//! | `interface` | public interface: documentation, lengths of workspace, failures |

pub mod functions;
mod interface;
mod language;
mod literal;
mod reserved;

pub use chainrule_mathfun::source::Fma;
pub use chainrule_text::{Pattern, Precision};
pub use functions::Library;

use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_kernel::{External, Kernel, unchecked};

/// Options of the Rust backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether products are fused with sums, rounded once: fast if the compiler may use FMA instructions (`-C
    /// target-cpu=native`), slow otherwise. The caller fuses the kernels; here the option only selects the command in
    /// the head of the text that computes the same bits.
    pub fuse: bool,
    /// Whether loops are sequential, and sums are added in that order. Otherwise vectorisable loops are cut into blocks
    /// of eight iterations, and sums have eight partial sums. The caller transforms the kernels, as with
    /// [`Self::fuse`].
    pub sequential: bool,
    /// Approximate maximum number of operations of a function: longer code is split into several functions, and values
    /// that live across a split are stored in the workspace. Compile time grows faster than the length of a function.
    pub chunk: usize,
    /// Precision of numbers.
    pub precision: Precision,
    /// Library of functions such as the sine.
    pub library: Library,
    /// Whether index checks are omitted: the caller promises that every index is in range. Otherwise results are wrong,
    /// or the functions panic.
    pub unchecked: bool,
}

impl Options {
    /// Default of [`Self::chunk`].
    pub const CHUNK: usize = 2000;

    fn check(&self) -> Result<(), Diagnostics> {
        if matches!(self.library, Library::Own(_)) && self.precision == Precision::Single {
            return Err(Diagnostic::error("functions of floats cannot come along")
                .with_reason("Chainrule's own elementary functions are for doubles")
                .with_help("take those of the standard library or of the crate libm, or take doubles")
                .into());
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fuse: false,
            sequential: true,
            chunk: Self::CHUNK,
            precision: Precision::Double,
            library: Library::Std,
            unchecked: false,
        }
    }
}

/// A module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// File name without `.rs`.
    pub name: String,
    /// Functions of the kernels, one for each kernel, in order: the kernel's own name, or a similar one if it is not
    /// available.
    pub functions: Vec<String>,
    /// The text of the file.
    pub text: String,
    /// Whether it calls methods that `core` lacks.
    pub needs_std: bool,
    /// Whether it calls the crate `libm`.
    pub needs_libm: bool,
}

/// Returns Rust for one kernel, in a module of its name. Takes `n log n` in the size of the kernel.
///
/// # Errors
/// A user function with an invalid name in Rust; Chainrule's own functions for floats; a bug if the kernel is
/// malformed.
///
/// ```
/// use chainrule_base::{Arena, Name, Poly};
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
/// let rust = chainrule_rust::emit(&square, &chainrule_rust::Options::default())?;
/// assert!(rust.text.contains("pub fn square(x: f64, y: &mut f64) -> Result<(), Failure> {"));
/// # Ok::<(), chainrule_base::Diagnostics>(())
/// ```
pub fn emit(kernel: &Kernel, options: &Options) -> Result<Module, Diagnostics> {
    emit_many(&kernel.name, &[kernel], options)
}

/// Returns Rust for several kernels, such as a function and its derivatives, in one module named `name`.
///
/// # Errors
/// As [`emit`].
pub fn emit_many(name: &str, kernels: &[&Kernel], options: &Options) -> Result<Module, Diagnostics> {
    emit_with_patterns(name, kernels, &[], options)
}

/// The same with the patterns of sparse results, a list for each kernel, as static arrays beside its function.
///
/// # Errors
/// As [`emit`].
pub fn emit_with_patterns(
    name: &str,
    kernels: &[&Kernel],
    patterns: &[Vec<Pattern>],
    options: &Options,
) -> Result<Module, Diagnostics> {
    options.check()?;
    if !options.unchecked {
        return interface::write(name, kernels, patterns, options);
    }
    let mut kernels: Vec<Kernel> = kernels.iter().map(|kernel| (*kernel).clone()).collect();
    kernels.iter_mut().for_each(unchecked);
    interface::write(name, &kernels.iter().collect::<Vec<_>>(), patterns, options)
}

/// Returns the name of a user function: the one in C, if it has one.
pub(crate) fn external_name(external: &External) -> &Name {
    external.c_name.as_ref().unwrap_or(&external.name)
}
