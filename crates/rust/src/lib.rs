//! The Rust backend: kernels as a self-contained module.
//!
//! In: [`Kernel`]s. Out: a [`Module`], the same bytes for the same kernels on every machine. Its functions
//! take slices and give a `Result`; they allocate nothing, workspace comes from the caller, its length from
//! a function. There is no `unsafe` in it, and no panic: lengths are checked at entry, and indices are in
//! range by the kernel's own checks. It fails where the interpreter fails, and says why.
//!
//! What is said, and in which order, is `chainrule_text`'s affair; here is how Rust says it.
//!
//! | module | owns |
//! | --- | --- |
//! | `reserved` | names that mean something in Rust |
//! | `literal` | numbers, comments |
//! | [`functions`] | operators: the standard library, the crate `libm` or Chainrule's own functions, 64 or 32 bits |
//! | `language` | declarations, statements, functions |
//! | `interface` | what the caller sees: documentation, lengths of workspace, failures |

pub mod functions;
mod interface;
mod language;
mod literal;
mod reserved;

pub use chainrule_mathfun::source::Fma;
pub use chainrule_text::Precision;
pub use functions::Library;

use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_kernel::{External, Kernel, unchecked};

/// How Rust is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether products are fused with sums, rounded once: fast where the compiler may use the processor's own
    /// (`-C target-cpu=native`), slow everywhere else. Whoever makes the kernels makes them so; here the head of the text
    /// says what computes the same bits.
    pub fuse: bool,
    /// Whether loops run one iteration after the other, and sums are added in that order. Otherwise those that may run in the
    /// lanes of vectors are cut into blocks of eight iterations, and sums are added in eight parts. Whoever makes the
    /// kernels does that, as with [`Self::fuse`].
    pub sequential: bool,
    /// About how many operations a function has at most: longer code is cut into several functions,
    /// and values that live across a cut lie in the workspace. The time that the compiler takes grows
    /// faster than the length of a function.
    pub chunk: usize,
    /// Numbers of 64 or of 32 bits.
    pub precision: Precision,
    /// Who computes functions such as the sine.
    pub library: Library,
    /// Whether checks of indices are left out: whoever calls the functions promises that no index is out of range. Otherwise they
    /// compute nonsense or panic.
    pub unchecked: bool,
}

impl Options {
    /// The default of [`Self::chunk`].
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
    /// What the file is to be called, without `.rs`.
    pub name: String,
    /// The functions that compute the kernels, one a kernel, in their order: a kernel's own name,
    /// or one near to it where that is taken.
    pub functions: Vec<String>,
    /// The text of the file.
    pub text: String,
    /// Whether it calls methods that `core` does not have.
    pub needs_std: bool,
    /// Whether it calls the crate `libm`.
    pub needs_libm: bool,
}

/// Rust for one kernel; the module has its name. Takes time `n log n` in the size of the kernel.
///
/// # Errors
/// A user's function with a name that cannot be one in Rust; functions of Chainrule's own for floats; a bug where the kernel is
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
///     name: Name::new("square"), regs, sizes: vec![], inputs: vec![port("x", a)], outputs: vec![port("y", b)],
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

/// Rust for several kernels, such as a function and its derivatives, in one module named `name`.
///
/// # Errors
/// As [`emit`].
pub fn emit_many(name: &str, kernels: &[&Kernel], options: &Options) -> Result<Module, Diagnostics> {
    options.check()?;
    if !options.unchecked {
        return interface::write(name, kernels, options);
    }
    let mut kernels: Vec<Kernel> = kernels.iter().map(|kernel| (*kernel).clone()).collect();
    kernels.iter_mut().for_each(unchecked);
    interface::write(name, &kernels.iter().collect::<Vec<_>>(), options)
}

/// What a user's function is called: as in C, where it has a name there.
pub(crate) fn external_name(external: &External) -> &Name {
    external.c_name.as_ref().unwrap_or(&external.name)
}
