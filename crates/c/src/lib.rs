//! The C backend: kernels as a self-contained `.c` and `.h` in C99.
//!
//! In: [`Kernel`]s. Out: a [`Source`], the same bytes for the same kernels on every machine. The code
//! allocates nothing: workspace comes from the caller, its size from a function and a macro in the
//! header. It fails where the interpreter fails, with a code for each reason, and its results are those
//! of the interpreter for the same kernel up to the functions of `math.h`, when it is compiled without contraction of
//! multiplications and additions (`-std=c99`); bit for bit, where Chainrule's own functions come along
//! ([`Options::inline_math`]).
//!
//! What is said, and in which order, is `chainrule_text`'s affair; here is how C says it.
//!
//! | module | owns |
//! | --- | --- |
//! | `reserved` | names that mean something in C |
//! | `literal` | numbers, strings, comments |
//! | `precision` | numbers of 64 or 32 bits |
//! | `guard` | when an integer operator fails |
//! | `language` | declarations, statements and operators of one point |
//! | `uniform`, `lanes` | what differs from point to point; several points at once |
//! | `batch` | functions over many points |
//! | `parts` | loops in parts, on threads |
//! | `interface` | what the caller sees: documentation, signatures, workspace, messages |
//!
//! Nothing recurses: neither on the length of a kernel nor on its nesting.

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

pub use chainrule_text::Precision;

use chainrule_base::{Diagnostic, Diagnostics};
use chainrule_kernel::{Kernel, unchecked};

/// How C is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether products are fused with sums, rounded once, by `fma`: fast where the compiler may use the processor's own
    /// (`-mfma`, `-march=native`), slow everywhere else. Whoever makes the kernels makes them so; here the heads of the
    /// files say what computes the same bits.
    pub fuse: bool,
    /// Whether loops run one iteration after the other, and sums are added in that order. Otherwise those that may run in the
    /// lanes of vectors are cut into blocks of eight iterations, and sums are added in eight parts. Whoever makes the
    /// kernels does that, as with [`Self::fuse`].
    pub sequential: bool,
    /// About how many operations a function has at most: longer code is cut into several functions,
    /// and values that live across a cut lie in the workspace. The time that a C compiler takes grows
    /// faster than the length of a function.
    pub chunk: usize,
    /// Numbers of 64 or of 32 bits.
    pub precision: Precision,
    /// Whether there are functions over many points as well, and how they run.
    pub batch: Option<Batch>,
    /// Whether sin, cos, exp, expm1, log, log1p, tanh, atan, atan2 and pow come along as functions of the file, by the
    /// algorithms of `chainrule_mathfun`, so that results are the interpreter's bit for bit; otherwise they are those of
    /// `math.h`. For doubles only.
    pub inline_math: bool,
    /// Whether loops that run in parts ([`chainrule_kernel::parts`](mod@chainrule_kernel::parts)) are shared out to threads by OpenMP. A function with
    /// such loops is cut at them, and nowhere else.
    pub threads: bool,
    /// Whether checks of indices are left out: whoever calls the functions promises that no index is out of range. Otherwise they
    /// touch memory that is not theirs.
    pub unchecked: bool,
}

/// How functions over many points run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// How many points run together: 2, 4, 8 or 16.
    pub lanes: usize,
    /// Whether points are shared out to threads by OpenMP.
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
    /// The default of [`Self::chunk`].
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
    /// What the files are to be called, without `.h` and `.c`: the source includes `NAME.h`.
    pub name: String,
    /// The functions that compute the kernels, one a kernel, in their order: a kernel's own name,
    /// or one near to it where that is taken in C.
    pub functions: Vec<String>,
    /// The text of `NAME.h`.
    pub header: String,
    /// The text of `NAME.c`.
    pub source: String,
}

/// C for one kernel; the files have its name. Takes time `n log n` in the size of the kernel.
///
/// # Errors
/// A user's function without a name in C, or with one that cannot be; a bug where the kernel is malformed.
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
/// let c = chainrule_c::emit(&square, &chainrule_c::Options::default())?;
/// assert!(c.header.contains("int square(double x, double *y);"));
/// # Ok::<(), chainrule_base::Diagnostics>(())
/// ```
pub fn emit(kernel: &Kernel, options: &Options) -> Result<Source, Diagnostics> {
    emit_many(&kernel.name, &[kernel], options)
}

/// C for several kernels, such as a function and its derivatives, in one pair of files named `name`.
///
/// # Errors
/// As [`emit`].
pub fn emit_many(name: &str, kernels: &[&Kernel], options: &Options) -> Result<Source, Diagnostics> {
    if !options.unchecked {
        return interface::write(name, kernels, options);
    }
    let mut kernels: Vec<Kernel> = kernels.iter().map(|kernel| (*kernel).clone()).collect();
    kernels.iter_mut().for_each(unchecked);
    interface::write(name, &kernels.iter().collect::<Vec<_>>(), options)
}
