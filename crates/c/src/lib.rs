//! The C backend: kernels as a self-contained `.c` and `.h` in C99.
//!
//! In: [`Kernel`]s. Out: a [`Source`], the same bytes for the same kernels on every machine. The code allocates
//! nothing; the caller provides the workspace, whose size is given by a function and a macro in the header. It fails if
//! and only if the interpreter fails, with a code for each reason. Compiled without contraction of multiplications and
//! additions (`-std=c99`), its results are those of the interpreter for the same kernel up to the functions of
//! `math.h`; bit for bit if the file defines Chainrule's own functions ([`Options::inline_math`]).
//!
//! `chainrule_text` determines the statements and their order; this crate determines their spelling in C.
//!
//! | module | owns |
//! | --- | --- |
//! | `reserved` | names with another meaning in C |
//! | `literal` | numbers, strings, comments |
//! | `precision` | numbers of 64 or 32 bits |
//! | `guard` | failures of integer operators |
//! | `language` | declarations, statements and operators of one point |
//! | `uniform`, `lanes` | divergence analysis; several points in lanes |
//! | `batch` | functions over many points |
//! | `parts` | parallel loops, on threads |
//! | `interface` | public interface: documentation, signatures, workspace, messages |
//!
//! Nothing is recursive, neither in the length of a kernel nor in its nesting.

mod batch;
mod guard;
mod interface;
mod lanes;
mod language;
mod literal;
mod parts;
mod precision;
mod reserved;
mod uniform;

pub use chainrule_text::{Pattern, Precision};

use chainrule_base::{Diagnostic, Diagnostics};
use chainrule_kernel::{Kernel, unchecked};

/// Options of the C backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether products are fused with sums, rounded once, by `fma`: fast if the compiler may use FMA instructions
    /// (`-mfma`, `-march=native`), slow otherwise. The caller fuses the kernels; here the option only selects the
    /// command in the heads of the files that computes the same bits.
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
    /// Functions over many points, if requested.
    pub batch: Option<Batch>,
    /// Whether the file defines sin, cos, tan, exp, expm1, log, log1p, cbrt, sinh, cosh, tanh, asinh, acosh, atanh,
    /// atan, erf, atan2, hypot and pow by the algorithms of `chainrule_mathfun`, so that results are those of the
    /// interpreter bit for bit. Otherwise they are those of `math.h`. Only for doubles.
    pub inline_math: bool,
    /// Whether OpenMP distributes parallel loops ([`chainrule_kernel::parts`](mod@chainrule_kernel::parts)) over
    /// threads. A function with such loops is split at them, and nowhere else.
    pub threads: bool,
    /// Whether index checks are omitted: the caller promises that every index is in range. An index out of range then
    /// reads or writes arbitrary memory.
    pub unchecked: bool,
}

/// Options of functions over many points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Number of points of a block: 2, 4, 8 or 16.
    pub lanes: usize,
    /// Whether OpenMP distributes points over threads.
    pub threads: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Self { lanes: 4, threads: false }
    }
}

impl Batch {
    fn check(&self) -> Result<(), Diagnostics> {
        if [2, 4, 8, 16].contains(&self.lanes) {
            return Ok(());
        }
        Err(Diagnostic::error(format!("{} points cannot run together", self.lanes))
            .with_reason("vectors of C have 2, 4, 8 or 16 lanes")
            .with_help("4 fits AVX2, 8 fits AVX-512")
            .into())
    }
}

impl Options {
    /// Default of [`Self::chunk`].
    pub const CHUNK: usize = 2000;

    fn check(&self) -> Result<(), Diagnostics> {
        if self.inline_math && self.precision == Precision::Single {
            return Err(Diagnostic::error("functions of floats cannot come along")
                .with_reason("Chainrule's own elementary functions are for doubles")
                .with_help("leave them to math.h, or take doubles")
                .into());
        }
        self.batch.as_ref().map_or(Ok(()), Batch::check)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fuse: false,
            sequential: true,
            chunk: Self::CHUNK,
            precision: Precision::Double,
            batch: None,
            inline_math: false,
            threads: false,
            unchecked: false,
        }
    }
}

/// A pair of files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// File name without `.h` and `.c`: the source includes `NAME.h`.
    pub name: String,
    /// Functions of the kernels, one for each kernel, in order: the kernel's own name, or a similar one if it is not
    /// available in C.
    pub functions: Vec<String>,
    /// Text of `NAME.h`.
    pub header: String,
    /// Text of `NAME.c`.
    pub source: String,
}

/// Returns C for one kernel, in files of its name. Takes `n log n` in the size of the kernel.
///
/// # Errors
/// A user function without a name in C, or with an invalid one; a bug if the kernel is malformed.
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
/// let c = chainrule_c::emit(&square, &chainrule_c::Options::default())?;
/// assert!(c.header.contains("int square(double x, double *y);"));
/// # Ok::<(), chainrule_base::Diagnostics>(())
/// ```
pub fn emit(kernel: &Kernel, options: &Options) -> Result<Source, Diagnostics> {
    emit_many(&kernel.name, &[kernel], options)
}

/// Returns C for several kernels, such as a function and its derivatives, in one pair of files named `name`.
///
/// # Errors
/// As [`emit`].
pub fn emit_many(name: &str, kernels: &[&Kernel], options: &Options) -> Result<Source, Diagnostics> {
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
) -> Result<Source, Diagnostics> {
    if !options.unchecked {
        return interface::write(name, kernels, patterns, options);
    }
    let mut kernels: Vec<Kernel> = kernels.iter().map(|kernel| (*kernel).clone()).collect();
    kernels.iter_mut().for_each(unchecked);
    interface::write(name, &kernels.iter().collect::<Vec<_>>(), patterns, options)
}
