//! Rows of the operator table.
//!
//! Long: one table, with one row per operator.
//!
//! Conventions, which every backend follows:
//! - Booleans are 1 and 0 as numbers; every number except 0 counts as true.
//! - `min(a, b)` is `b < a ? b : a` and `max(a, b)` is `a < b ? b : a`, so a NaN as the first argument is the result,
//!   and a NaN as the second is ignored; ties differentiate by the first.
//! - At kinks, the partials are: `abs'(0) = sign(0) = 0`; `floor`, `ceil` and `sign` have derivative 0.
//! - `a ** b` by `b` is 0 for `a <= 0`: there the function is defined only at integers `b`, and the exponent is treated
//!   as locally constant. `a ** b` by `a` is 0 for `b = 0` and any `a`.
//! - Integer division and remainder round to minus infinity.

use crate::formula::Formula::{self, Apply, Arg, Const, Value};
use crate::precise::{Big, Precise};
use crate::{CostClass, Slope, special, steps};
use chainrule_mathfun::{self as mathfun, Function};

/// Type of an argument or a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Number: a double, or an integer if the row has an integer value.
    Num,
    /// Truth value.
    Bool,
}

/// Domain of an operator.
#[derive(Clone, Copy)]
pub struct Domain {
    /// Text for messages: `x > 0`.
    pub text: &'static str,
    /// Returns whether the arguments are inside, where the operator is also differentiable.
    pub contains: fn(&[f64]) -> bool,
}

/// Template with which a backend writes an operator: `{0}`, `{1}`, `{2}` stand for the arguments, which are atoms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spelling {
    /// Expression.
    pub template: &'static str,
    /// Definition of a helper that the expression needs. Equal helpers are written once.
    pub helper: Option<&'static str>,
}

/// Value in integers; `None` for overflow and division by zero.
pub type IntValue = fn(&[i64]) -> Option<i64>;

/// Row of an operator.
pub struct Row {
    /// Operator itself.
    pub op: Op,
    /// Name in F~ (as a function) and in dumps.
    pub name: &'static str,
    /// Infix or prefix symbol in F~, if it has one.
    pub symbol: Option<&'static str>,
    /// Types of the arguments.
    pub args: &'static [Type],
    /// Type of the result.
    pub result: Type,
    /// Whether the arguments may be exchanged (two arguments).
    pub commutative: bool,
    /// Value in doubles.
    pub value: fn(&[f64]) -> f64,
    /// Function of `chainrule_mathfun` that computes `value`, if there is one: it has forms in lanes, addresses for
    /// native code and text for emitted Rust, with identical bits. For [`Op::Sin`] and [`Op::Cos`] of the same
    /// argument, `Function::SinCos` computes both.
    pub elementary: Option<Function>,
    /// Value in integers, if it has one; it returns `None` for overflow and division by zero.
    pub int: Option<IntValue>,
    /// Value in extended precision.
    pub precise: fn(&mut Precise, &[Big]) -> Big,
    /// Partial derivatives, one per argument.
    pub partials: &'static [Formula],
    /// Arguments at which partial derivatives are infinite or NaN although the value is finite or has overflowed.
    pub slope: Slope,
    /// Whether its value may be finite at an infinite argument, with a partial derivative of 0.
    pub saturates: bool,
    /// Domain in which it is defined and differentiable.
    pub domain: Domain,
    /// Steps of a composite operator: the operators that compute it, which replace it in kernels. Simplification sees
    /// only the composite operator, so that the order of the steps, on which accuracy depends, is preserved.
    pub steps: Option<Formula>,
    /// Class in which it is counted.
    pub cost: CostClass,
    /// Weight by which programs are compared; an addition weighs 1, a composite operator as much as its steps.
    pub weight: u32,
    /// C99, on doubles. Comparisons and connectives return an `int` that is 0 or 1.
    pub c: Spelling,
    /// C99, on `int64_t`, if the row has an integer value. Arithmetic is on `uint64_t`, because compilers warn about
    /// overflow of constants even behind a test for it.
    pub c_int: Option<Spelling>,
    /// Rust, on `f64`. Comparisons and connectives return a `bool`. Methods are those of the standard library; missing
    /// functions are called in the crate `libm`, whose functions have the names of `math.h`.
    pub rust: Spelling,
    /// Rust, on `i64`, if the row has an integer value: an `Option` if it is undefined for some integers.
    pub rust_int: Option<Spelling>,
}

const fn plain(template: &'static str) -> Spelling {
    Spelling { template, helper: None }
}

const fn helper(template: &'static str, source: &'static str) -> Spelling {
    Spelling { template, helper: Some(source) }
}

const EVERYWHERE: Domain = Domain { text: "all numbers", contains: |a| a.iter().all(|x| x.is_finite()) };

fn truth(b: bool) -> f64 {
    f64::from(u8::from(b))
}

fn is_true(x: f64) -> bool {
    x != 0.0
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn floor_mod(a: i64, b: i64) -> Option<i64> {
    let remainder = a.checked_rem(b)?;
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
}

const POLYGAMMA_C: &str = include_str!("polygamma.c");
const POLYGAMMA_RUST: &str = include_str!("polygamma.rs");

const FLOOR_DIV_RUST: &str = "\
fn cr_floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}
";

const FLOOR_MOD_RUST: &str = "\
fn cr_floor_mod(a: i64, b: i64) -> Option<i64> {
    let remainder = a.checked_rem(b)?;
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
}
";

const BINADE_C: &str = "\
static double cr_binade(double x) {
    const double size = fabs(x), least = ldexp(1.0, -1022);
    if (size == 0.0 || size * 0.5 == size || x != x) return 1.0;
    return size < least ? least : ldexp(1.0, ilogb(size));
}
";

const BINADE_RUST: &str = "\
fn cr_binade(x: f64) -> f64 {
    let size = libm::fabs(x);
    let least = f64::MIN_POSITIVE;
    if size == 0.0 || size > f64::MAX || x.is_nan() {
        return 1.0;
    }
    if size < least { least } else { libm::ldexp(1.0, libm::ilogb(size)) }
}
";

const SIGN_C: &str = "\
static double cr_sign(double x) {
    return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : (x == 0.0 ? 0.0 : x));
}
";

const FLOOR_DIV_C: &str = "\
static int64_t cr_floor_div(int64_t a, int64_t b) {
    const int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
";

const FLOOR_MOD_C: &str = "\
static int64_t cr_floor_mod(int64_t a, int64_t b) {
    const int64_t r = a % b;
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
";

use Op::{
    Add, And, AngleBend, AngleRate, Cos, Cosh, Digamma, DirectionCosine, Div, Exp, Floor, Gaussian, HypotBend,
    HypotTwist, Log, Lorentzian, LorentzianMoment, Lt, Mul, Neg, Not, OneMinusSquare, Polygamma, Pow, SechSquare,
    Select, Sign, Sin, Sinh, Sqrt, Sub, Tanh,
};

const A0: Formula = Arg(0);
const A1: Formula = Arg(1);
const TWICE_A1: Formula = Apply(Mul, &[Const(2.0), A1]);
const N: Type = Type::Num;
const B: Type = Type::Bool;

/// Defaults of a row: a function of one number that C and Rust call.
const DEFAULT: Row = Row {
    op: Op::Neg,
    name: "",
    symbol: None,
    args: &[N],
    result: N,
    commutative: false,
    value: |_| f64::NAN,
    elementary: None,
    int: None,
    precise: |ctx, _| ctx.nan(),
    partials: &[],
    slope: Slope::Finite,
    saturates: false,
    domain: EVERYWHERE,
    steps: None,
    cost: CostClass::Call,
    weight: 20,
    c: plain(""),
    c_int: None,
    rust: plain(""),
    rust_int: None,
};

macro_rules! operators {
    ($($(#[$meta:meta])* $op:ident { $($row:tt)* })*) => {
        /// Scalar operator. Its [`Row`] defines all of its properties.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Op {
            $($(#[$meta])* $op,)*
        }

        /// All operators, in the order of [`Op`].
        // Select overrides every default.
        #[allow(clippy::needless_update)]
        pub static ROWS: &[Row] = &[
            $(Row { op: Op::$op, $($row)*, ..DEFAULT },)*
        ];
    };
}

operators! {
    /// Addition.
    Add {
        name: "add", symbol: Some("+"), args: &[N, N], commutative: true,
        value: |a| a[0] + a[1], int: Some(|a| a[0].checked_add(a[1])), precise: |p, a| p.add(&a[0], &a[1]),
        partials: &[Formula::ONE, Formula::ONE],
        cost: CostClass::Add, weight: 1,
        c: plain("{0} + {1}"), c_int: Some(plain("(int64_t)((uint64_t){0} + (uint64_t){1})")), rust: plain("{0} + {1}"),
        rust_int: Some(plain("{0}.checked_add({1})"))
    }
    /// Subtraction.
    Sub {
        name: "sub", symbol: Some("-"), args: &[N, N],
        value: |a| a[0] - a[1], int: Some(|a| a[0].checked_sub(a[1])), precise: |p, a| p.sub(&a[0], &a[1]),
        partials: &[Formula::ONE, Const(-1.0)],
        cost: CostClass::Add, weight: 1,
        c: plain("{0} - {1}"), c_int: Some(plain("(int64_t)((uint64_t){0} - (uint64_t){1})")), rust: plain("{0} - {1}"),
        rust_int: Some(plain("{0}.checked_sub({1})"))
    }
    /// Multiplication.
    Mul {
        name: "mul", symbol: Some("*"), args: &[N, N], commutative: true,
        value: |a| a[0] * a[1], int: Some(|a| a[0].checked_mul(a[1])), precise: |p, a| p.mul(&a[0], &a[1]),
        partials: &[A1, A0],
        cost: CostClass::Mul, weight: 1,
        c: plain("{0} * {1}"), c_int: Some(plain("(int64_t)((uint64_t){0} * (uint64_t){1})")), rust: plain("{0} * {1}"),
        rust_int: Some(plain("{0}.checked_mul({1})"))
    }
    /// Division of real numbers.
    Div {
        name: "div_real", symbol: Some("/"), args: &[N, N],
        value: |a| a[0] / a[1], precise: |p, a| p.div(&a[0], &a[1]),
        slope: Slope::Pole, saturates: true,
        partials: &[Apply(Div, &[Const(1.0), A1]), Apply(Neg, &[Apply(Div, &[Value, A1])])],
        domain: Domain { text: "a divisor that is not 0", contains: |a| a[1] != 0.0 },
        cost: CostClass::Div, weight: 5,
        c: plain("{0} / {1}"), rust: plain("{0} / {1}")
    }
    /// Negation.
    Neg {
        name: "neg", symbol: Some("-"),
        value: |a| -a[0], int: Some(|a| a[0].checked_neg()), precise: |p, a| p.neg(&a[0]),
        partials: &[Const(-1.0)],
        cost: CostClass::Neg, weight: 1,
        c: plain("-{0}"), c_int: Some(plain("(int64_t)-(uint64_t){0}")), rust: plain("-{0}"),
        rust_int: Some(plain("{0}.checked_neg()"))
    }
    /// Integer quotient, rounded to minus infinity.
    Quot {
        name: "div", args: &[N, N],
        value: |a| libm::floor(a[0] / a[1]), int: Some(|a| floor_div(a[0], a[1])),
        precise: |p, a| { let q = p.div(&a[0], &a[1]); p.floor(&q) },
        partials: &[Formula::ZERO, Formula::ZERO],
        domain: Domain { text: "a divisor that is not 0", contains: |a| a[1] != 0.0 && (a[0] / a[1]).fract() != 0.0 },
        cost: CostClass::Div, weight: 6,
        c: plain("floor({0} / {1})"), c_int: Some(helper("cr_floor_div({0}, {1})", FLOOR_DIV_C)),
        rust: plain("({0} / {1}).floor()"),
        rust_int: Some(helper("cr_floor_div({0}, {1})", FLOOR_DIV_RUST))
    }
    /// Remainder with the sign of the divisor.
    Mod {
        name: "mod", args: &[N, N],
        value: |a| a[0] - a[1] * libm::floor(a[0] / a[1]),
        int: Some(|a| floor_mod(a[0], a[1])),
        precise: |p, a| {
            let q = p.div(&a[0], &a[1]);
            let q = p.floor(&q);
            let t = p.mul(&a[1], &q);
            p.sub(&a[0], &t)
        },
        partials: &[Formula::ONE, Apply(Neg, &[Apply(Floor, &[Apply(Div, &[A0, A1])])])],
        domain: Domain { text: "a divisor that is not 0", contains: |a| a[1] != 0.0 && (a[0] / a[1]).fract() != 0.0 },
        cost: CostClass::Div, weight: 8,
        c: plain("{0} - {1} * floor({0} / {1})"), c_int: Some(helper("cr_floor_mod({0}, {1})", FLOOR_MOD_C)),
        rust: plain("{0} - {1} * ({0} / {1}).floor()"),
        rust_int: Some(helper("cr_floor_mod({0}, {1})", FLOOR_MOD_RUST))
    }
    /// Power.
    Pow {
        name: "pow", symbol: Some("**"), args: &[N, N],
        value: |a| mathfun::pow(a[0], a[1]), elementary: Some(Function::Pow), precise: |p, a| p.pow(&a[0], &a[1]),
        slope: Slope::Border,
        partials: &[
            // b - 1 is exact from 1/2 to 2^53, and for smaller multiples of 1/2. Otherwise its rounding error would be
            // multiplied by the logarithm of the base; there a ** b is neither too large nor too small to be divided by
            // the base.
            Apply(Select, &[
                Apply(Op::Eq, &[A1, Const(0.0)]),
                Const(0.0),
                Apply(Select, &[
                    Apply(Op::Or, &[
                        Apply(And, &[
                            Apply(Lt, &[A1, Const(0.5)]),
                            Apply(Not, &[Apply(Op::Eq, &[Apply(Floor, &[TWICE_A1]), TWICE_A1])]),
                        ]),
                        Apply(Lt, &[Const(9_007_199_254_740_992.0), Apply(Op::Abs, &[A1])]),
                    ]),
                    Apply(Select, &[
                        Apply(Op::Eq, &[A0, Const(0.0)]),
                        Apply(Mul, &[A1, Const(f64::INFINITY)]),
                        Apply(Div, &[Apply(Mul, &[A1, Value]), A0]),
                    ]),
                    Apply(Mul, &[A1, Apply(Pow, &[A0, Apply(Sub, &[A1, Const(1.0)])])]),
                ]),
            ]),
            Apply(Select, &[Apply(Lt, &[Const(0.0), A0]), Apply(Mul, &[Value, Apply(Log, &[A0])]), Const(0.0)]),
        ],
        domain: Domain { text: "a positive base, or any base and an integer exponent", contains: |a| a[0] > 0.0 },
        weight: 40,
        c: plain("pow({0}, {1})"), rust: plain("{0}.powf({1})")
    }
    /// Square root.
    Sqrt {
        name: "sqrt",
        value: |a| libm::sqrt(a[0]), precise: |p, a| p.sqrt(&a[0]),
        slope: Slope::Border,
        partials: &[Apply(Div, &[Const(0.5), Value])],
        domain: Domain { text: "x > 0", contains: |a| a[0] > 0.0 },
        weight: 5,
        c: plain("sqrt({0})"), rust: plain("{0}.sqrt()")
    }
    /// Cube root.
    Cbrt {
        name: "cbrt",
        value: |a| mathfun::cbrt(a[0]), elementary: Some(Function::Cbrt),
        precise: |p, a| if a[0].is_negative() { let m = p.neg(&a[0]); let r = p.cbrt(&m); p.neg(&r) } else { p.cbrt(&a[0]) },
        slope: Slope::Border,
        partials: &[Apply(Div, &[Const(1.0), Apply(Mul, &[Const(3.0), Apply(Mul, &[Value, Value])])])],
        domain: Domain { text: "x other than 0", contains: |a| a[0] != 0.0 },
        c: plain("cbrt({0})"), rust: plain("{0}.cbrt()")
    }
    /// Exponential.
    Exp {
        name: "exp",
        value: |a| mathfun::exp(a[0]), elementary: Some(Function::Exp), precise: |p, a| p.exp(&a[0]),
        slope: Slope::Overflow, saturates: true,
        partials: &[Value],
        c: plain("exp({0})"), rust: plain("{0}.exp()")
    }
    /// exp(x) - 1, accurate near 0.
    Expm1 {
        name: "expm1",
        value: |a| mathfun::expm1(a[0]), elementary: Some(Function::Expm1), precise: |p, a| p.expm1(&a[0]),
        slope: Slope::Overflow, saturates: true,
        partials: &[Apply(Exp, &[A0])],
        c: plain("expm1({0})"), rust: plain("{0}.exp_m1()")
    }
    /// Natural logarithm.
    Log {
        name: "log",
        value: |a| mathfun::log(a[0]), elementary: Some(Function::Log), precise: |p, a| p.ln(&a[0]),
        slope: Slope::Pole,
        partials: &[Apply(Div, &[Const(1.0), A0])],
        domain: Domain { text: "x > 0", contains: |a| a[0] > 0.0 },
        c: plain("log({0})"), rust: plain("{0}.ln()")
    }
    /// log(1 + x), accurate near 0.
    Log1p {
        name: "log1p",
        value: |a| mathfun::log1p(a[0]), elementary: Some(Function::Log1p), precise: |p, a| p.log1p(&a[0]),
        slope: Slope::Pole,
        partials: &[Apply(Div, &[Const(1.0), Apply(Add, &[A0, Const(1.0)])])],
        domain: Domain { text: "x > -1", contains: |a| a[0] > -1.0 },
        c: plain("log1p({0})"), rust: plain("{0}.ln_1p()")
    }
    /// Sine.
    Sin {
        name: "sin",
        value: |a| mathfun::sin(a[0]), elementary: Some(Function::Sin), precise: |p, a| p.sin(&a[0]),
        partials: &[Apply(Cos, &[A0])],
        c: plain("sin({0})"), rust: plain("{0}.sin()")
    }
    /// Cosine.
    Cos {
        name: "cos",
        value: |a| mathfun::cos(a[0]), elementary: Some(Function::Cos), precise: |p, a| p.cos(&a[0]),
        partials: &[Apply(Neg, &[Apply(Sin, &[A0])])],
        c: plain("cos({0})"), rust: plain("{0}.cos()")
    }
    /// Tangent.
    Tan {
        name: "tan",
        value: |a| mathfun::tan(a[0]), elementary: Some(Function::Tan), precise: |p, a| p.tan(&a[0]),
        partials: &[Apply(Add, &[Const(1.0), Apply(Mul, &[Value, Value])])],
        domain: Domain { text: "a cosine that is not 0", contains: |a| mathfun::cos(a[0]).abs() > 1e-3 },
        c: plain("tan({0})"), rust: plain("{0}.tan()")
    }
    /// Arc sine.
    Asin {
        name: "asin",
        value: |a| libm::asin(a[0]), precise: |p, a| p.asin(&a[0]),
        slope: Slope::Border,
        partials: &[Apply(Div, &[Const(1.0), Apply(Sqrt, &[Apply(OneMinusSquare, &[A0])])])],
        domain: Domain { text: "-1 < x < 1", contains: |a| a[0].abs() < 1.0 },
        c: plain("asin({0})"), rust: plain("{0}.asin()")
    }
    /// Arc cosine.
    Acos {
        name: "acos",
        value: |a| libm::acos(a[0]), precise: |p, a| p.acos(&a[0]),
        slope: Slope::Border,
        partials: &[Apply(Div, &[Const(-1.0), Apply(Sqrt, &[Apply(OneMinusSquare, &[A0])])])],
        domain: Domain { text: "-1 < x < 1", contains: |a| a[0].abs() < 1.0 },
        c: plain("acos({0})"), rust: plain("{0}.acos()")
    }
    /// Arc tangent.
    Atan {
        name: "atan",
        value: |a| mathfun::atan(a[0]), elementary: Some(Function::Atan), precise: |p, a| p.atan(&a[0]),
        saturates: true,
        partials: &[Apply(Lorentzian, &[A0])],
        c: plain("atan({0})"), rust: plain("{0}.atan()")
    }
    /// The angle of the point (x, y), arguments in the order y, x.
    Atan2 {
        name: "atan2", args: &[N, N],
        value: |a| mathfun::atan2(a[0], a[1]), elementary: Some(Function::Atan2), precise: |p, a| p.atan2(&a[0], &a[1]),
        slope: Slope::Border,
        partials: &[
            Apply(AngleRate, &[A0, A1]),
            Apply(Neg, &[Apply(AngleRate, &[A1, A0])]),
        ],
        domain: Domain { text: "a point off the negative axis", contains: |a| a[0] != 0.0 || a[1] > 0.0 },
        c: plain("atan2({0}, {1})"), rust: plain("{0}.atan2({1})")
    }
    /// Hyperbolic sine.
    Sinh {
        name: "sinh",
        value: |a| mathfun::sinh(a[0]), elementary: Some(Function::Sinh), precise: |p, a| p.sinh(&a[0]),
        slope: Slope::Overflow,
        partials: &[Apply(Cosh, &[A0])],
        c: plain("sinh({0})"), rust: plain("{0}.sinh()")
    }
    /// Hyperbolic cosine.
    Cosh {
        name: "cosh",
        value: |a| mathfun::cosh(a[0]), elementary: Some(Function::Cosh), precise: |p, a| p.cosh(&a[0]),
        slope: Slope::Overflow,
        partials: &[Apply(Sinh, &[A0])],
        c: plain("cosh({0})"), rust: plain("{0}.cosh()")
    }
    /// Hyperbolic tangent.
    Tanh {
        name: "tanh",
        value: |a| mathfun::tanh(a[0]), elementary: Some(Function::Tanh), precise: |p, a| p.tanh(&a[0]),
        saturates: true,
        partials: &[Apply(SechSquare, &[A0])],
        c: plain("tanh({0})"), rust: plain("{0}.tanh()")
    }
    /// Inverse hyperbolic sine.
    Asinh {
        name: "asinh",
        value: |a| mathfun::asinh(a[0]), elementary: Some(Function::Asinh), precise: |p, a| p.asinh(&a[0]),
        partials: &[Apply(DirectionCosine, &[Const(1.0), A0])],
        c: plain("asinh({0})"), rust: plain("{0}.asinh()")
    }
    /// Inverse hyperbolic cosine.
    Acosh {
        name: "acosh",
        value: |a| mathfun::acosh(a[0]), elementary: Some(Function::Acosh), precise: |p, a| p.acosh(&a[0]),
        // Not of x^2 - 1, which overflows, and cancels near 1.
        slope: Slope::Border,
        partials: &[Apply(Div, &[Const(1.0), Apply(Mul, &[
            Apply(Sqrt, &[Apply(Sub, &[A0, Const(1.0)])]),
            Apply(Sqrt, &[Apply(Add, &[A0, Const(1.0)])]),
        ])])],
        domain: Domain { text: "x > 1", contains: |a| a[0] > 1.0 },
        c: plain("acosh({0})"), rust: plain("{0}.acosh()")
    }
    /// Inverse hyperbolic tangent.
    Atanh {
        name: "atanh",
        value: |a| mathfun::atanh(a[0]), elementary: Some(Function::Atanh), precise: |p, a| p.atanh(&a[0]),
        slope: Slope::Pole,
        partials: &[Apply(Div, &[Const(1.0), Apply(OneMinusSquare, &[A0])])],
        domain: Domain { text: "-1 < x < 1", contains: |a| a[0].abs() < 1.0 },
        c: plain("atanh({0})"), rust: plain("{0}.atanh()")
    }
    /// sqrt(x^2 + y^2).
    Hypot {
        name: "hypot", args: &[N, N], commutative: true,
        value: |a| mathfun::hypot(a[0], a[1]), elementary: Some(Function::Hypot), precise: |p, a| p.hypot(&a[0], &a[1]),
        slope: Slope::Border,
        partials: &[Apply(DirectionCosine, &[A0, A1]), Apply(DirectionCosine, &[A1, A0])],
        domain: Domain { text: "arguments not both 0", contains: |a| a[0] != 0.0 || a[1] != 0.0 },
        c: plain("hypot({0}, {1})"), rust: plain("{0}.hypot({1})")
    }
    /// Absolute value.
    Abs {
        name: "abs",
        value: |a| a[0].abs(), int: Some(|a| a[0].checked_abs()), precise: |_, a| a[0].abs(),
        partials: &[Apply(Sign, &[A0])],
        domain: Domain { text: "x other than 0", contains: |a| a[0] != 0.0 },
        cost: CostClass::Logic, weight: 1,
        c: plain("fabs({0})"), c_int: Some(plain("{0} < 0 ? (int64_t)-(uint64_t){0} : {0}")), rust: plain("{0}.abs()"),
        rust_int: Some(plain("{0}.checked_abs()"))
    }
    /// Sign: 1, -1, or 0 at 0.
    Sign {
        name: "sign",
        value: |a| if a[0] > 0.0 { 1.0 } else if a[0] < 0.0 { -1.0 } else if a[0] == 0.0 { 0.0 } else { a[0] },
        int: Some(|a| Some(a[0].signum())),
        precise: |p, a| if a[0].is_nan() { p.nan() } else if a[0].is_zero() { p.from_f64(0.0) }
            else if a[0].is_negative() { p.from_f64(-1.0) } else { p.from_f64(1.0) },
        partials: &[Formula::ZERO],
        domain: Domain { text: "x other than 0", contains: |a| a[0] != 0.0 },
        cost: CostClass::Logic, weight: 2,
        c: helper("cr_sign({0})", SIGN_C), c_int: Some(plain("({0} > 0) - ({0} < 0)")),
        rust: helper("cr_sign({0})", "fn cr_sign(x: f64) -> f64 {\n    if x > 0.0 {\n        1.0\n    } else if x < 0.0 {\n        -1.0\n    } else if x == 0.0 {\n        0.0\n    } else {\n        x\n    }\n}\n"),
        rust_int: Some(plain("{0}.signum()"))
    }
    /// The smaller argument.
    Min {
        name: "min", args: &[N, N],
        value: |a| if a[1] < a[0] { a[1] } else { a[0] }, int: Some(|a| Some(a[0].min(a[1]))),
        precise: |p, a| if p.less(&a[1], &a[0]) { a[1].clone() } else { a[0].clone() },
        partials: &[
            Apply(Select, &[Apply(Lt, &[A1, A0]), Const(0.0), Const(1.0)]),
            Apply(Select, &[Apply(Lt, &[A1, A0]), Const(1.0), Const(0.0)]),
        ],
        domain: Domain { text: "arguments that differ", contains: |a| a[0] != a[1] },
        cost: CostClass::Logic, weight: 1,
        c: plain("{1} < {0} ? {1} : {0}"), c_int: Some(plain("{1} < {0} ? {1} : {0}")),
        rust: plain("if {1} < {0} { {1} } else { {0} }"),
        rust_int: Some(plain("{0}.min({1})"))
    }
    /// The larger argument.
    Max {
        name: "max", args: &[N, N],
        value: |a| if a[0] < a[1] { a[1] } else { a[0] }, int: Some(|a| Some(a[0].max(a[1]))),
        precise: |p, a| if p.less(&a[0], &a[1]) { a[1].clone() } else { a[0].clone() },
        partials: &[
            Apply(Select, &[Apply(Lt, &[A0, A1]), Const(0.0), Const(1.0)]),
            Apply(Select, &[Apply(Lt, &[A0, A1]), Const(1.0), Const(0.0)]),
        ],
        domain: Domain { text: "arguments that differ", contains: |a| a[0] != a[1] },
        cost: CostClass::Logic, weight: 1,
        c: plain("{0} < {1} ? {1} : {0}"), c_int: Some(plain("{0} < {1} ? {1} : {0}")),
        rust: plain("if {0} < {1} { {1} } else { {0} }"),
        rust_int: Some(plain("{0}.max({1})"))
    }
    /// The largest integer not above.
    Floor {
        name: "floor",
        value: |a| libm::floor(a[0]), precise: |p, a| p.floor(&a[0]),
        partials: &[Formula::ZERO],
        domain: Domain { text: "x that is not an integer", contains: |a| a[0].fract() != 0.0 },
        cost: CostClass::Logic, weight: 1,
        c: plain("floor({0})"), rust: plain("{0}.floor()")
    }
    /// The smallest integer not below.
    Ceil {
        name: "ceil",
        value: |a| libm::ceil(a[0]),
        precise: |p, a| { let m = p.neg(&a[0]); let f = p.floor(&m); p.neg(&f) },
        partials: &[Formula::ZERO],
        domain: Domain { text: "x that is not an integer", contains: |a| a[0].fract() != 0.0 },
        cost: CostClass::Logic, weight: 1,
        c: plain("ceil({0})"), rust: plain("{0}.ceil()")
    }
    /// Error function.
    Erf {
        name: "erf",
        value: |a| mathfun::erf(a[0]), elementary: Some(Function::Erf), precise: |p, a| special::erf_precise(p, &a[0]),
        saturates: true,
        partials: &[Apply(Mul, &[
            Const(std::f64::consts::FRAC_2_SQRT_PI),
            Apply(Gaussian, &[A0]),
        ])],
        c: plain("erf({0})"),
        rust: plain("libm::erf({0})")
    }
    /// 1 - erf(x), accurate where erf(x) is nearly 1.
    Erfc {
        name: "erfc",
        value: |a| libm::erfc(a[0]), precise: |p, a| special::erfc_precise(p, &a[0]),
        saturates: true,
        partials: &[Apply(Mul, &[
            Const(-std::f64::consts::FRAC_2_SQRT_PI),
            Apply(Gaussian, &[A0]),
        ])],
        c: plain("erfc({0})"),
        rust: plain("libm::erfc({0})")
    }
    /// log |gamma(x)|.
    Lgamma {
        name: "lgamma",
        value: |a| libm::lgamma(a[0]), precise: |p, a| special::lgamma_precise(p, &a[0]),
        slope: Slope::Pole,
        partials: &[Apply(Digamma, &[A0])],
        domain: Domain { text: "x > 0", contains: |a| a[0] > 0.0 },
        c: plain("lgamma({0})"), rust: plain("libm::lgamma({0})")
    }
    /// The derivative of lgamma.
    Digamma {
        name: "digamma",
        value: |a| special::polygamma(0.0, a[0]),
        precise: |p, a| { let zero = p.from_f64(0.0); special::polygamma_precise(p, &zero, &a[0]) },
        slope: Slope::Pole,
        partials: &[Apply(Polygamma, &[Const(1.0), A0])],
        domain: Domain { text: "x > 0", contains: |a| a[0] > 0.0 },
        weight: 60,
        c: helper("cr_polygamma(0.0, {0})", POLYGAMMA_C), rust: helper("cr_polygamma(0.0, {0})", POLYGAMMA_RUST)
    }
    /// The derivative of digamma of an order, which is the first argument, a natural number.
    Polygamma {
        name: "polygamma", args: &[N, N],
        value: |a| special::polygamma(a[0], a[1]), precise: |p, a| special::polygamma_precise(p, &a[0], &a[1]),
        slope: Slope::Pole,
        partials: &[Formula::ZERO, Apply(Polygamma, &[Apply(Add, &[A0, Const(1.0)]), A1])],
        domain: Domain { text: "a natural order and x > 0", contains: |a| a[0] >= 0.0 && a[0] < 8.0 && a[0].fract() == 0.0 && a[1] > 0.0 },
        weight: 100,
        c: helper("cr_polygamma({0}, {1})", POLYGAMMA_C), rust: helper("cr_polygamma({0}, {1})", POLYGAMMA_RUST)
    }
    /// The largest power of two that is not above |x|, from 2^-1022 on; 1 if x is 0, infinite or NaN: a scale for
    /// numbers of that size, without rounding.
    Binade {
        name: "binade",
        value: |a| special::binade(a[0]),
        precise: |p, a| { let x = p.as_f64(&a[0]); p.from_f64(special::binade(x)) },
        partials: &[Formula::ZERO],
        domain: Domain { text: "x that is no power of two", contains: |a| a[0] != 0.0 && a[0].abs() != special::binade(a[0]) },
        c: helper("cr_binade({0})", BINADE_C), rust: helper("cr_binade({0})", BINADE_RUST)
    }
    /// x / s for a scale s: never multiplied out with other quotients, as a quotient may be.
    Rescale {
        name: "rescale", args: &[N, N],
        value: |a| steps::value(&steps::RESCALE, a), steps: Some(steps::RESCALE),
        precise: |p, a| p.div(&a[0], &a[1]),
        slope: Slope::Pole,
        partials: &[Apply(Div, &[Const(1.0), A1]), Apply(Neg, &[Apply(Div, &[Value, A1])])],
        domain: Domain { text: "a scale that is not 0", contains: |a| a[1] != 0.0 },
        cost: CostClass::Div, weight: 5
    }
    /// 1 / x, and 0 if x is 0: the slope of a root, but for a factor, where the slope of its argument is 0 too.
    MaskedReciprocal {
        name: "maskedReciprocal",
        value: |a| steps::value(&steps::MASKED_RECIPROCAL, a), steps: Some(steps::MASKED_RECIPROCAL),
        precise: |p, a| if a[0].is_zero() { p.from_f64(0.0) } else { let one = p.from_f64(1.0); p.div(&one, &a[0]) },
        saturates: true,
        partials: &[Apply(Neg, &[Apply(Mul, &[Value, Value])])],
        domain: Domain { text: "x other than 0", contains: |a| a[0] != 0.0 },
        cost: CostClass::Div, weight: 7
    }
    /// x, and 0 if x is infinity: the slope of an exponential, where those of what uses it are 0 if it overflows. The
    /// slope at infinity is masked likewise when it is differentiated.
    MaskedOverflow {
        name: "maskedOverflow",
        value: |a| steps::value(&steps::MASKED_OVERFLOW, a), steps: Some(steps::MASKED_OVERFLOW),
        precise: |_, a| a[0].clone(),
        saturates: true,
        partials: &[Formula::ONE],
        cost: CostClass::Logic, weight: 2
    }
    /// (1 - x) (1 + x), without the rounding error of x^2 that is left of 1 - x^2 near 1.
    OneMinusSquare {
        name: "oneMinusSquare",
        value: |a| steps::value(&steps::ONE_MINUS_SQUARE, a), steps: Some(steps::ONE_MINUS_SQUARE),
        precise: |p, a| { let one = p.from_f64(1.0); let square = p.mul(&a[0], &a[0]); p.sub(&one, &square) },
        partials: &[Apply(Mul, &[Const(-2.0), A0])],
        cost: CostClass::Mul, weight: 3
    }
    /// 1 / cosh(x)^2, the slope of tanh.
    SechSquare {
        name: "sechSquare",
        value: |a| steps::value(&steps::SECH_SQUARE, a), steps: Some(steps::SECH_SQUARE),
        precise: |p, a| { let one = p.from_f64(1.0); let c = p.cosh(&a[0]); let square = p.mul(&c, &c); p.div(&one, &square) },
        saturates: true,
        partials: &[Apply(Mul, &[Const(-2.0), Apply(Mul, &[Value, Apply(Tanh, &[A0])])])],
        weight: 30
    }
    /// exp(-x^2), without the rounding error of x^2 as a relative error of the result.
    Gaussian {
        name: "gaussian",
        value: |a| steps::value(&steps::GAUSSIAN, a), steps: Some(steps::GAUSSIAN),
        precise: |p, a| { let square = p.mul(&a[0], &a[0]); let minus = p.neg(&square); p.exp(&minus) },
        saturates: true,
        partials: &[Apply(Mul, &[Const(-2.0), Apply(Mul, &[A0, Value])])],
        weight: 38
    }
    /// 1 / (1 + x^2), the slope of atan.
    Lorentzian {
        name: "lorentzian",
        value: |a| steps::value(&steps::LORENTZIAN, a), steps: Some(steps::LORENTZIAN),
        precise: |p, a| { let one = p.from_f64(1.0); let s = p.mul(&a[0], &a[0]); let s = p.add(&one, &s); p.div(&one, &s) },
        saturates: true,
        partials: &[Apply(Mul, &[Const(-2.0), Apply(Mul, &[Value, Apply(LorentzianMoment, &[A0])])])],
        cost: CostClass::Div, weight: 7
    }
    /// x / (1 + x^2).
    LorentzianMoment {
        name: "lorentzianMoment",
        value: |a| steps::value(&steps::LORENTZIAN_MOMENT, a), steps: Some(steps::LORENTZIAN_MOMENT),
        precise: |p, a| { let one = p.from_f64(1.0); let s = p.mul(&a[0], &a[0]); let s = p.add(&one, &s); p.div(&a[0], &s) },
        saturates: true,
        partials: &[Apply(Mul, &[
            Apply(Mul, &[Apply(Sub, &[Const(1.0), A0]), Apply(Lorentzian, &[A0])]),
            Apply(Mul, &[Apply(Add, &[Const(1.0), A0]), Apply(Lorentzian, &[A0])]),
        ])],
        cost: CostClass::Div, weight: 11
    }
    /// x / (x^2 + y^2), arguments in the order y, x: the slope of atan2 by y, and by x with the arguments swapped, but
    /// for the sign. With both divided by the larger one no square over- or underflows.
    AngleRate {
        name: "angleRate", args: &[N, N],
        value: |a| steps::value(&steps::ANGLE_RATE, a), steps: Some(steps::ANGLE_RATE),
        precise: |p, a| { let s = p.sum_of_squares(&a[0], &a[1]); p.div(&a[1], &s) },
        slope: Slope::Pole,
        partials: &[
            Apply(Mul, &[Const(-2.0), Apply(Mul, &[Value, Apply(AngleRate, &[A1, A0])])]),
            Apply(AngleBend, &[A0, A1]),
        ],
        domain: Domain { text: "arguments not both 0", contains: |a| a[0] != 0.0 || a[1] != 0.0 },
        cost: CostClass::Div, weight: 26
    }
    /// (y^2 - x^2) / (x^2 + y^2)^2, arguments in the order y, x: the slope of [`Op::AngleRate`] by x.
    AngleBend {
        name: "angleBend", args: &[N, N],
        value: |a| steps::value(&steps::ANGLE_BEND, a), steps: Some(steps::ANGLE_BEND),
        precise: |p, a| {
            let s = p.sum_of_squares(&a[0], &a[1]);
            let (less, more) = (p.sub(&a[0], &a[1]), p.add(&a[0], &a[1]));
            let product = p.mul(&less, &more);
            let square = p.mul(&s, &s);
            p.div(&product, &square)
        },
        slope: Slope::Pole,
        // With r = AngleRate: its slope by y is -2 r(x, y) (this - 2 r(y, x)^2), by x -2 r(y, x) (this + 2 r(x, y)^2).
        partials: &[
            Apply(Mul, &[Const(-2.0), Apply(Mul, &[Apply(AngleRate, &[A1, A0]), Apply(Sub, &[
                Value,
                Apply(Mul, &[Const(2.0), Apply(Mul, &[Apply(AngleRate, &[A0, A1]), Apply(AngleRate, &[A0, A1])])]),
            ])])]),
            Apply(Mul, &[Const(-2.0), Apply(Mul, &[Apply(AngleRate, &[A0, A1]), Apply(Add, &[
                Value,
                Apply(Mul, &[Const(2.0), Apply(Mul, &[Apply(AngleRate, &[A1, A0]), Apply(AngleRate, &[A1, A0])])]),
            ])])]),
        ],
        domain: Domain { text: "arguments not both 0", contains: |a| a[0] != 0.0 || a[1] != 0.0 },
        cost: CostClass::Div, weight: 48
    }
    /// x / sqrt(x^2 + y^2), and 0 at (0, 0): the slope of hypot, also where its value overflows.
    DirectionCosine {
        name: "directionCosine", args: &[N, N],
        value: |a| steps::value(&steps::DIRECTION_COSINE, a), steps: Some(steps::DIRECTION_COSINE),
        precise: |p, a| {
            let h = p.hypot(&a[0], &a[1]);
            if h.is_zero() { p.from_f64(0.0) } else { p.div(&a[0], &h) }
        },
        slope: Slope::Pole,
        partials: &[Apply(HypotBend, &[A0, A1]), Apply(Neg, &[Apply(HypotTwist, &[A0, A1])])],
        domain: Domain { text: "arguments not both 0", contains: |a| a[0] != 0.0 || a[1] != 0.0 },
        cost: CostClass::Div, weight: 29
    }
    /// y^2 / (x^2 + y^2)^(3/2), and 0 at (0, 0): the second slope of hypot by x.
    HypotBend {
        name: "hypotBend", args: &[N, N],
        value: |a| steps::value(&steps::HYPOT_BEND, a), steps: Some(steps::HYPOT_BEND),
        precise: |p, a| {
            let cube = p.cube_of_hypot(&a[0], &a[1]);
            let square = p.mul(&a[1], &a[1]);
            if cube.is_zero() { p.from_f64(0.0) } else { p.div(&square, &cube) }
        },
        slope: Slope::Pole,
        // With c = DirectionCosine: -3 (this / h) c(x, y), and (2 c(x, y)^2 - c(y, x)^2) c(y, x) / h / h.
        partials: &[
            Apply(Mul, &[Const(-3.0), Apply(Mul, &[
                Apply(Div, &[Value, Apply(Op::Hypot, &[A0, A1])]),
                Apply(DirectionCosine, &[A0, A1]),
            ])]),
            Apply(Mul, &[
                Apply(Sub, &[
                    Apply(Mul, &[Const(2.0), Apply(Mul, &[Apply(DirectionCosine, &[A0, A1]), Apply(DirectionCosine, &[A0, A1])])]),
                    Apply(Mul, &[Apply(DirectionCosine, &[A1, A0]), Apply(DirectionCosine, &[A1, A0])]),
                ]),
                Apply(Div, &[Apply(Div, &[Apply(DirectionCosine, &[A1, A0]), Apply(Op::Hypot, &[A0, A1])]), Apply(Op::Hypot, &[A0, A1])]),
            ]),
        ],
        domain: Domain { text: "arguments not both 0", contains: |a| a[0] != 0.0 || a[1] != 0.0 },
        cost: CostClass::Div, weight: 36
    }
    /// x y / (x^2 + y^2)^(3/2), and 0 at (0, 0): the mixed second slope of hypot, but for the sign.
    HypotTwist {
        name: "hypotTwist", args: &[N, N], commutative: true,
        value: |a| steps::value(&steps::HYPOT_TWIST, a), steps: Some(steps::HYPOT_TWIST),
        precise: |p, a| {
            let cube = p.cube_of_hypot(&a[0], &a[1]);
            let product = p.mul(&a[0], &a[1]);
            if cube.is_zero() { p.from_f64(0.0) } else { p.div(&product, &cube) }
        },
        slope: Slope::Pole,
        // With c = DirectionCosine: (c(y, x)^2 - 2 c(x, y)^2) c(y, x) / h / h, and the same with x and y swapped.
        partials: &[
            Apply(Mul, &[
                Apply(Sub, &[
                    Apply(Mul, &[Apply(DirectionCosine, &[A1, A0]), Apply(DirectionCosine, &[A1, A0])]),
                    Apply(Mul, &[Const(2.0), Apply(Mul, &[Apply(DirectionCosine, &[A0, A1]), Apply(DirectionCosine, &[A0, A1])])]),
                ]),
                Apply(Div, &[Apply(Div, &[Apply(DirectionCosine, &[A1, A0]), Apply(Op::Hypot, &[A0, A1])]), Apply(Op::Hypot, &[A0, A1])]),
            ]),
            Apply(Mul, &[
                Apply(Sub, &[
                    Apply(Mul, &[Apply(DirectionCosine, &[A0, A1]), Apply(DirectionCosine, &[A0, A1])]),
                    Apply(Mul, &[Const(2.0), Apply(Mul, &[Apply(DirectionCosine, &[A1, A0]), Apply(DirectionCosine, &[A1, A0])])]),
                ]),
                Apply(Div, &[Apply(Div, &[Apply(DirectionCosine, &[A0, A1]), Apply(Op::Hypot, &[A0, A1])]), Apply(Op::Hypot, &[A0, A1])]),
            ]),
        ],
        domain: Domain { text: "arguments not both 0", contains: |a| a[0] != 0.0 || a[1] != 0.0 },
        cost: CostClass::Div, weight: 36
    }
    /// x * y, but 0 if x is 0, for any y: a direction times a partial derivative.
    MaskedMul {
        name: "maskedMul", args: &[N, N],
        value: |a| steps::value(&steps::MASKED_MUL, a), steps: Some(steps::MASKED_MUL),
        precise: |p, a| if a[0].is_zero() { p.from_f64(0.0) } else { p.mul(&a[0], &a[1]) },
        slope: Slope::Border, saturates: true,
        partials: &[A1, A0],
        domain: Domain { text: "x other than 0", contains: |a| a[0] != 0.0 },
        cost: CostClass::Mul, weight: 3
    }
    /// x * y, but 0 if one of them is 0, for any value of the other.
    StrongMul {
        name: "strongMul", args: &[N, N], commutative: true,
        value: |a| steps::value(&steps::STRONG_MUL, a), steps: Some(steps::STRONG_MUL),
        precise: |p, a| if a.iter().any(Big::is_zero) { p.from_f64(0.0) } else { p.mul(&a[0], &a[1]) },
        slope: Slope::Border, saturates: true,
        partials: &[A1, A0],
        domain: Domain { text: "arguments other than 0", contains: |a| a[0] != 0.0 && a[1] != 0.0 },
        cost: CostClass::Mul, weight: 5
    }
    /// Less than.
    Lt {
        name: "lt", symbol: Some("<"), args: &[N, N], result: B,
        value: |a| truth(a[0] < a[1]), int: Some(|a| Some(i64::from(a[0] < a[1]))),
        precise: |p, a| p.truth(p.less(&a[0], &a[1])),
        partials: &[Formula::ZERO, Formula::ZERO],
        domain: Domain { text: "arguments that differ", contains: |a| a[0] != a[1] },
        cost: CostClass::Logic, weight: 1,
        c: plain("{0} < {1}"), c_int: Some(plain("{0} < {1}")), rust: plain("{0} < {1}"),
        rust_int: Some(plain("{0} < {1}"))
    }
    /// Less than or equal.
    Le {
        name: "le", symbol: Some("<="), args: &[N, N], result: B,
        value: |a| truth(a[0] <= a[1]), int: Some(|a| Some(i64::from(a[0] <= a[1]))),
        precise: |p, a| p.truth(p.less(&a[0], &a[1]) || p.equal(&a[0], &a[1])),
        partials: &[Formula::ZERO, Formula::ZERO],
        domain: Domain { text: "arguments that differ", contains: |a| a[0] != a[1] },
        cost: CostClass::Logic, weight: 1,
        c: plain("{0} <= {1}"), c_int: Some(plain("{0} <= {1}")), rust: plain("{0} <= {1}"),
        rust_int: Some(plain("{0} <= {1}"))
    }
    /// Equal.
    Eq {
        name: "eq", symbol: Some("=="), args: &[N, N], result: B, commutative: true,
        value: |a| truth(a[0] == a[1]), int: Some(|a| Some(i64::from(a[0] == a[1]))),
        precise: |p, a| p.truth(p.equal(&a[0], &a[1])),
        partials: &[Formula::ZERO, Formula::ZERO],
        domain: Domain { text: "arguments that differ", contains: |a| a[0] != a[1] },
        cost: CostClass::Logic, weight: 1,
        c: plain("{0} == {1}"), c_int: Some(plain("{0} == {1}")), rust: plain("{0} == {1}"),
        rust_int: Some(plain("{0} == {1}"))
    }
    /// Both.
    And {
        name: "and", symbol: Some("&&"), args: &[B, B], result: B, commutative: true,
        value: |a| truth(is_true(a[0]) && is_true(a[1])),
        precise: |p, a| p.truth(!a[0].is_zero() && !a[1].is_zero()),
        partials: &[Formula::ZERO, Formula::ZERO],
        cost: CostClass::Logic, weight: 1,
        c: plain("{0} && {1}"), rust: plain("{0} && {1}")
    }
    /// One or both.
    Or {
        name: "or", symbol: Some("||"), args: &[B, B], result: B, commutative: true,
        value: |a| truth(is_true(a[0]) || is_true(a[1])),
        precise: |p, a| p.truth(!a[0].is_zero() || !a[1].is_zero()),
        partials: &[Formula::ZERO, Formula::ZERO],
        cost: CostClass::Logic, weight: 1,
        c: plain("{0} || {1}"), rust: plain("{0} || {1}")
    }
    /// Not.
    Not {
        name: "not", args: &[B], result: B,
        value: |a| truth(!is_true(a[0])),
        precise: |p, a| p.truth(a[0].is_zero()),
        partials: &[Formula::ZERO],
        cost: CostClass::Logic, weight: 1,
        c: plain("!{0}"), rust: plain("!{0}")
    }
    /// The second argument if the first is true, the third if it is false; the other one is never read, not even if it
    /// is NaN.
    Select {
        name: "select", args: &[B, N, N],
        value: |a| if is_true(a[0]) { a[1] } else { a[2] },
        precise: |_, a| if a[0].is_zero() { a[2].clone() } else { a[1].clone() },
        partials: &[
            Formula::ZERO,
            Apply(Select, &[A0, Const(1.0), Const(0.0)]),
            Apply(Select, &[A0, Const(0.0), Const(1.0)]),
        ],
        cost: CostClass::Logic, weight: 1,
        c: plain("{0} ? {1} : {2}"), rust: plain("if {0} { {1} } else { {2} }")
    }
}

/// The most frequently read properties of rows, in one cache line: the number of arguments in the two lowest bits,
/// above them a bit for each that is a truth value, then one for the result, and one for a composite operator.
static TYPES: [u8; ROWS.len()] = {
    let mut types = [0; ROWS.len()];
    let mut i = 0;
    while i < ROWS.len() {
        let args = ROWS[i].args;
        assert!(args.len() < 4, "no operator has more than three arguments");
        types[i] = args.len() as u8;
        let mut k = 0;
        while k < args.len() {
            types[i] |= (matches!(args[k], Type::Bool) as u8) << (2 + k);
            k += 1;
        }
        types[i] |= (matches!(ROWS[i].result, Type::Bool) as u8) << 5;
        types[i] |= (ROWS[i].steps.is_some() as u8) << 6;
        i += 1;
    }
    types
};

impl Op {
    /// Returns its row.
    #[must_use]
    #[inline]
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns its name in dumps, and in F~ as a function.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the number of arguments.
    #[must_use]
    #[inline]
    pub const fn arity(self) -> usize {
        (TYPES[self as usize] & 3) as usize
    }

    /// Returns whether its arguments and its result are numbers.
    #[must_use]
    #[inline]
    pub const fn is_numeric(self) -> bool {
        TYPES[self as usize] & 0b11_1100 == 0
    }

    /// Returns whether it is composite: kernels hold its [`Row::steps`].
    #[must_use]
    #[inline]
    pub const fn has_steps(self) -> bool {
        TYPES[self as usize] & 0b100_0000 != 0
    }

    /// Returns whether its result is a truth value.
    #[must_use]
    #[inline]
    pub fn gives_truth(self) -> bool {
        TYPES[self as usize] & 32 != 0
    }

    /// Returns its value in doubles.
    #[must_use]
    pub fn value(self, args: &[f64]) -> f64 {
        (self.row().value)(args)
    }

    /// Returns its partial derivatives, one per argument.
    #[must_use]
    pub fn partials(self) -> &'static [Formula] {
        self.row().partials
    }

    /// Returns whether the arguments may be exchanged.
    #[must_use]
    pub fn is_commutative(self) -> bool {
        self.row().commutative
    }

    /// Returns all operators.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.op)
    }

    /// Returns the operator with this function name in F~.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.op)
    }
}
