//! Elementary functions of our own: the same bits for one point and in lanes of 4 and 8, on every processor.
//!
//! Constants folded while compiling, the interpreter, native code, emitted Rust, and emitted C where it is asked ([`c`],
//! read out of the same source) all call these, so that their results agree bit for bit, whatever the machine. Every function is at most 2 ulp from the truth (most
//! are below 1; `chainrule-bench mathfun` prints the table) over all doubles, with the special values of C99,
//! Annex F. Which NaN comes out is not defined.
//!
//! A function is written once, generic over [`functions::lanes::Lanes`], in operations that are rounded
//! correctly, fused multiplication and addition among them; so all forms agree bit for bit, and a processor without
//! FMA gives the same, slowly. The usual arguments take no branch; where a lane has another one, that lane
//! is computed by itself (see [`functions::lanes::Lanes::each`]).
//!
//! Coefficients are made by `coefficients/coefficients.py`, beside the sources.
//!
//! ```
//! use chainrule_mathfun as mathfun;
//! assert_eq!(mathfun::exp(0.0), 1.0);
//! let x = [0.5, 1.0, 1e22];
//! let mut y = [0.0; 3];
//! mathfun::apply1(mathfun::Function::Sin, &x, &mut y);
//! assert_eq!(y, x.map(mathfun::sin));
//! ```

#![allow(unsafe_code)]

pub mod c;
mod entry;
pub mod functions;
pub mod source;
#[cfg(target_arch = "x86_64")]
mod x86;

use entry::{Entry, Level, Slices};

/// An elementary function of this crate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Sine and cosine of one argument: the bits of [`Function::Sin`] and [`Function::Cos`].
    SinCos,
    /// Exponential.
    Exp,
    /// exp(x) - 1.
    Expm1,
    /// Natural logarithm.
    Log,
    /// log(1 + x).
    Log1p,
    /// Hyperbolic tangent.
    Tanh,
    /// Arc tangent.
    Atan,
    /// The angle of a point, arguments in the order y, x.
    Atan2,
    /// Power, arguments in the order base, exponent.
    Pow,
}

/// How many points a call takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// One point, a double in the low lane of a vector register.
    One,
    /// Four points in a `ymm` register. Takes AVX2 and FMA.
    Lanes4,
    /// Eight points in a `zmm` register. Takes AVX-512F and DQ.
    Lanes8,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::One, Self::Lanes4, Self::Lanes8];

    /// Whether this processor has it. [`Form::One`] is always there.
    #[must_use]
    pub fn available(self) -> bool {
        Level::of(self).is_some()
    }

    /// How many points.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Lanes4 => 4,
            Self::Lanes8 => 8,
        }
    }

    /// The one with the most lanes that this processor has.
    #[must_use]
    pub fn widest() -> Self {
        if Self::Lanes8.available() {
            Self::Lanes8
        } else if Self::Lanes4.available() {
            Self::Lanes4
        } else {
            Self::One
        }
    }
}

impl Function {
    /// All functions.
    pub const ALL: [Self; 11] = [
        Self::Sin,
        Self::Cos,
        Self::SinCos,
        Self::Exp,
        Self::Expm1,
        Self::Log,
        Self::Log1p,
        Self::Tanh,
        Self::Atan,
        Self::Atan2,
        Self::Pow,
    ];

    /// Its name, in C's spelling; `sincos` for both together.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sin => "sin",
            Self::Cos => "cos",
            Self::SinCos => "sincos",
            Self::Exp => "exp",
            Self::Expm1 => "expm1",
            Self::Log => "log",
            Self::Log1p => "log1p",
            Self::Tanh => "tanh",
            Self::Atan => "atan",
            Self::Atan2 => "atan2",
            Self::Pow => "pow",
        }
    }

    /// How many arguments it takes.
    #[must_use]
    pub fn arity(self) -> usize {
        if matches!(self, Self::Atan2 | Self::Pow) { 2 } else { 1 }
    }

    /// Its source text: the file that it is compiled from. What it needs besides: see [`source`].
    #[must_use]
    pub fn source(self) -> &'static str {
        source::text_of(self)
    }

    /// The address of its code in this form, for generated code to call; none where the processor lacks the form.
    /// The code stays where it is as long as the process lives, and may be called by several threads.
    ///
    /// The interface is the System V one of x86-64 (also on Windows; elsewhere that of C), and in its terms:
    ///
    /// | form | one argument | two arguments | [`Function::SinCos`] |
    /// | --- | --- | --- | --- |
    /// | [`Form::One`] | `fn(f64) -> f64` | `fn(f64, f64) -> f64` | `fn(f64, *mut f64) -> f64` |
    /// | [`Form::Lanes4`] | `fn(__m256d) -> __m256d` | `fn(__m256d, __m256d) -> __m256d` | `fn(__m256d, *mut [f64; 4]) -> __m256d` |
    /// | [`Form::Lanes8`] | `fn(__m512d) -> __m512d` | `fn(__m512d, __m512d) -> __m512d` | `fn(__m512d, *mut [f64; 8]) -> __m512d` |
    ///
    /// - Arguments come in `xmm0`, `ymm0` or `zmm0`, the second in the register 1; the result leaves in
    ///   register 0. [`Function::SinCos`] gives back the sines and stores the cosines where `rdi` points to,
    ///   with no alignment asked for.
    /// - All vector and mask registers, all of their parts, may be overwritten, and `rax`, `rcx`, `rdx`, `rsi`,
    ///   `rdi`, `r8` to `r11` and the flags; the others are kept.
    /// - At the call, `rsp` is a multiple of 16, as always (so that it is 8 more at the first instruction), the
    ///   direction flag is clear, and rounding is to nearest, with subnormal numbers. The red zone below `rsp` is used.
    /// - [`Form::One`] may be called with whatever in the upper lanes. After a lane form returns, upper lanes are
    ///   in use or not, as if anything had been computed there; who calls SSE code later says `vzeroupper`.
    /// - Nothing unwinds.
    #[must_use]
    pub fn entry(self, form: Form) -> Option<*const ()> {
        Level::of(form).map(|level| entry::entry(self, level).address)
    }
}

/// The slices' code in a form, or the widest below it that there is.
fn code(function: Function, form: Form) -> Slices {
    let level = Level::of(form).or_else(|| Level::of(Form::Lanes4)).unwrap_or(Level::Plain);
    let Entry { slices, .. } = entry::entry(function, level);
    slices
}

/// y\[i\] = function(x\[i\]), in the widest lanes that the processor has. The bits are those of one point.
///
/// # Panics
/// When the lengths differ, or the function does not take one argument and give one result.
pub fn apply1(function: Function, x: &[f64], y: &mut [f64]) {
    apply1_in(Form::widest(), function, x, y);
}

/// [`apply1`] in a form, or the widest below where the processor lacks it.
///
/// # Panics
/// As [`apply1`].
pub fn apply1_in(form: Form, function: Function, x: &[f64], y: &mut [f64]) {
    assert_eq!(x.len(), y.len(), "arguments and results differ in number");
    match code(function, form) {
        // SAFETY: `code` gives what the processor has.
        Slices::One(code) => unsafe { code(x, y) },
        Slices::Two(_) | Slices::SinCos(_) => panic!("{function:?} is not one function of one argument"),
    }
}

/// y\[i\] = function(a\[i\], b\[i\]); as [`apply1`].
///
/// # Panics
/// When the lengths differ, or the function does not take two arguments.
pub fn apply2(function: Function, a: &[f64], b: &[f64], y: &mut [f64]) {
    apply2_in(Form::widest(), function, a, b, y);
}

/// [`apply2`] in a form, or the widest below where the processor lacks it.
///
/// # Panics
/// As [`apply2`].
pub fn apply2_in(form: Form, function: Function, a: &[f64], b: &[f64], y: &mut [f64]) {
    assert!(a.len() == y.len() && b.len() == y.len(), "arguments and results differ in number");
    match code(function, form) {
        // SAFETY: `code` gives what the processor has.
        Slices::Two(code) => unsafe { code(a, b, y) },
        Slices::One(_) | Slices::SinCos(_) => panic!("{function:?} is not a function of two arguments"),
    }
}

/// sines\[i\] = sin(x\[i\]) and cosines\[i\] = cos(x\[i\]); as [`apply1`].
///
/// # Panics
/// When the lengths differ.
pub fn apply_sin_cos(x: &[f64], sines: &mut [f64], cosines: &mut [f64]) {
    apply_sin_cos_in(Form::widest(), x, sines, cosines);
}

/// [`apply_sin_cos`] in a form, or the widest below where the processor lacks it.
///
/// # Panics
/// As [`apply_sin_cos`].
pub fn apply_sin_cos_in(form: Form, x: &[f64], sines: &mut [f64], cosines: &mut [f64]) {
    assert!(x.len() == sines.len() && x.len() == cosines.len(), "arguments and results differ in number");
    if let Slices::SinCos(code) = code(Function::SinCos, form) {
        // SAFETY: `code` gives what the processor has.
        unsafe { code(x, sines, cosines) }
    }
}

macro_rules! one_point {
    ($($(#[$doc:meta])* $name:ident($($x:ident),*);)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name($($x: f64),*) -> f64 {
            #[cfg(target_arch = "x86_64")]
            if Level::Fused.available() {
                // SAFETY: the processor has the level.
                return unsafe { entry::fused::$name($($x),*) };
            }
            // SAFETY: every processor has the level.
            unsafe { entry::plain::$name($($x),*) }
        }
    )*};
}

one_point! {
    /// Sine. NaN for infinities.
    sin(x);
    /// Cosine. NaN for infinities.
    cos(x);
    /// Exponential.
    exp(x);
    /// exp(x) - 1, accurate near 0.
    expm1(x);
    /// Natural logarithm. Minus infinity for 0, NaN below.
    log(x);
    /// log(1 + x), accurate near 0. Minus infinity for -1, NaN below.
    log1p(x);
    /// Hyperbolic tangent.
    tanh(x);
    /// Arc tangent.
    atan(x);
    /// The angle of the point (x, y), between -pi and pi. Zeros and infinities as C99 has them.
    atan2(y, x);
    /// x to the power y. 1 where y = 0 or x = 1, whatever the other; NaN for negative x and a y that is no integer.
    pow(x, y);
}

/// (sin(x), cos(x)): the bits of [`sin`] and [`cos`].
#[must_use]
#[inline]
pub fn sin_cos(x: f64) -> (f64, f64) {
    let mut cosine = 0.0;
    #[cfg(target_arch = "x86_64")]
    if Level::Fused.available() {
        // SAFETY: the processor has the level, and `cosine` is a double.
        let sine = unsafe { entry::fused::sin_cos(x, &raw mut cosine) };
        return (sine, cosine);
    }
    // SAFETY: every processor has the level, and `cosine` is a double.
    let sine = unsafe { entry::plain::sin_cos(x, &raw mut cosine) };
    (sine, cosine)
}
