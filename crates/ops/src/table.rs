//! The rows.
//!
//! Conventions, which every backend follows:
//! - Booleans are 1 and 0 where they are numbers; any other number than 0 counts as true.
//! - `min(a, b)` is `b < a ? b : a` and `max(a, b)` is `a < b ? b : a`, so an argument that is NaN in
//!   the first place stays, one in the second place is passed over; ties differentiate by the first.
//! - At kinks the partial is: `abs'(0) = sign(0) = 0`; `floor`, `ceil` and `sign` have derivative 0.
//! - `a ** b` by `b` is 0 where `a <= 0`: there the function is defined at integers `b` only, and the
//!   exponent is taken for locally constant. `a ** b` by `a` is 0 where `b = 0`, whatever `a`.
//! - Integer division and remainder round to minus infinity.

use crate::formula::Formula::{self, Apply, Arg, Const, Value};
use crate::precise::{Big, Precise};
use crate::{CostClass, special};
use chainrule_mathfun::{self as mathfun, Function};

/// What an argument or a result is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// A number: a double, or an integer where the row has an integer value.
    Num,
    /// A truth value.
    Bool,
}

/// Where an operator is defined.
#[derive(Clone, Copy)]
pub struct Domain {
    /// For messages: `x > 0`.
    pub text: &'static str,
    /// Whether the arguments lie inside, where the operator is also differentiable.
    pub contains: fn(&[f64]) -> bool,
}

/// How a backend writes an operator: `{0}`, `{1}`, `{2}` stand for the arguments, which are atoms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spelling {
    /// The expression.
    pub template: &'static str,
    /// The definition of a helper that the expression needs, or nothing. Equal helpers are written once.
    pub helper: Option<&'static str>,
}

/// A value in integers; `None` for overflow and division by zero.
pub type IntValue = fn(&[i64]) -> Option<i64>;

/// One operator.
pub struct Row {
    /// The operator itself.
    pub op: Op,
    /// Its name in F~ (as a function) and in dumps.
    pub name: &'static str,
    /// Its infix or prefix symbol in F~, if it has one.
    pub symbol: Option<&'static str>,
    /// What the arguments are.
    pub args: &'static [Type],
    /// What the result is.
    pub result: Type,
    /// Whether the arguments may be swapped (two arguments).
    pub commutative: bool,
    /// Its value in doubles.
    pub value: fn(&[f64]) -> f64,
    /// The function of `chainrule_mathfun` that `value` is, where it is one: it has forms in lanes, addresses
    /// for native code and text for emitted Rust, all of the same bits. Of [`Op::Sin`] and [`Op::Cos`] of the same
    /// argument, `Function::SinCos` gives both.
    pub elementary: Option<Function>,
    /// Its value in integers, where it has one; `None` inside for overflow and division by zero.
    pub int: Option<IntValue>,
    /// Its value in extended precision.
    pub precise: fn(&mut Precise, &[Big]) -> Big,
    /// Its partial derivatives, one an argument.
    pub partials: &'static [Formula],
    /// Where it is defined and differentiable.
    pub domain: Domain,
    /// How it is counted.
    pub cost: CostClass,
    /// What it weighs in the one sum that orders programs; an addition weighs 1.
    pub weight: u32,
    /// C99, on doubles. Comparisons and connectives give an `int` that is 0 or 1.
    pub c: Spelling,
    /// C99, on `int64_t`, where the row has an integer value.
    pub c_int: Option<Spelling>,
    /// Rust, on `f64`. Comparisons and connectives give a `bool`. Methods are those of the standard library;
    /// what it lacks is called in the crate `libm`, whose functions have the names of `math.h`.
    pub rust: Spelling,
    /// Rust, on `i64`, where the row has an integer value: an `Option` where it has none for some integers.
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

const POLYGAMMA_C: &str = "\
static double cr_polygamma(double order, double x) {
    static const double bernoulli[12] = {1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0,
        -691.0 / 2730.0, 7.0 / 6.0, -3617.0 / 510.0, 43867.0 / 798.0, -174611.0 / 330.0,
        854513.0 / 138.0, -236364091.0 / 2730.0};
    const double n = order;
    double sum, correction = 0.0, z = x, factorial;
    int k;
    if (!(n >= 0.0 && n <= 60.0) || n != floor(n) || x != x || (x <= 0.0 && x == floor(x)) || x < -1e6) return NAN;
    factorial = tgamma(n + 1.0);
    while (z < 16.0 + n) {
        correction += factorial / pow(z, n + 1.0);
        z += 1.0;
    }
    if (n == 0.0) {
        sum = log(z) - 0.5 / z;
        for (k = 0; k < 12; k++) sum -= bernoulli[k] / (2.0 * (k + 1) * pow(z, 2.0 * (k + 1)));
        return sum - correction;
    }
    sum = factorial / n / pow(z, n) + factorial / (2.0 * pow(z, n + 1.0));
    for (k = 0; k < 12; k++) {
        const double two_k = 2.0 * (k + 1);
        sum += bernoulli[k] * exp(lgamma(two_k + n) - lgamma(two_k + 1.0)) / pow(z, two_k + n);
    }
    return (fmod(n, 2.0) == 0.0 ? -1.0 : 1.0) * (sum + correction);
}
";

const POLYGAMMA_RUST: &str = "\
fn cr_polygamma(order: f64, x: f64) -> f64 {
    const BERNOULLI: [f64; 12] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
        43867.0 / 798.0,
        -174611.0 / 330.0,
        854513.0 / 138.0,
        -236364091.0 / 2730.0,
    ];
    let n = order;
    let is_order = (0.0..=60.0).contains(&n) && n == libm::floor(n);
    if !is_order || x.is_nan() || (x <= 0.0 && x == libm::floor(x)) || x < -1e6 {
        return f64::NAN;
    }
    let factorial = libm::tgamma(n + 1.0);
    let mut correction = 0.0;
    let mut z = x;
    while z < 16.0 + n {
        correction += factorial / libm::pow(z, n + 1.0);
        z += 1.0;
    }
    let mut two_k = 0.0;
    if n == 0.0 {
        let mut sum = libm::log(z) - 0.5 / z;
        for b in BERNOULLI {
            two_k += 2.0;
            sum -= b / (two_k * libm::pow(z, two_k));
        }
        return sum - correction;
    }
    let mut sum = factorial / n / libm::pow(z, n) + factorial / (2.0 * libm::pow(z, n + 1.0));
    for b in BERNOULLI {
        two_k += 2.0;
        let ratio = libm::exp(libm::lgamma(two_k + n) - libm::lgamma(two_k + 1.0));
        sum += b * ratio / libm::pow(z, two_k + n);
    }
    (if n % 2.0 == 0.0 { -1.0 } else { 1.0 }) * (sum + correction)
}
";

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
    Add, Cos, Cosh, Digamma, Div, Exp, Floor, Log, Lt, Mul, Neg, Polygamma, Pow, Select, Sign, Sin, Sinh, Sqrt, Sub,
};

const A0: Formula = Arg(0);
const A1: Formula = Arg(1);
const N: Type = Type::Num;
const B: Type = Type::Bool;

/// What a row is when it does not say otherwise: a function of one number that C and Rust call.
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
    domain: EVERYWHERE,
    cost: CostClass::Call,
    weight: 20,
    c: plain(""),
    c_int: None,
    rust: plain(""),
    rust_int: None,
};

macro_rules! operators {
    ($($(#[$meta:meta])* $op:ident { $($row:tt)* })*) => {
        /// A scalar operator. Everything about it is in its [`Row`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Op {
            $($(#[$meta])* $op,)*
        }

        /// All operators, in the order of [`Op`].
        // Select has no default left.
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
        c: plain("{0} + {1}"), c_int: Some(plain("{0} + {1}")), rust: plain("{0} + {1}"),
        rust_int: Some(plain("{0}.checked_add({1})"))
    }
    /// Subtraction.
    Sub {
        name: "sub", symbol: Some("-"), args: &[N, N],
        value: |a| a[0] - a[1], int: Some(|a| a[0].checked_sub(a[1])), precise: |p, a| p.sub(&a[0], &a[1]),
        partials: &[Formula::ONE, Const(-1.0)],
        cost: CostClass::Add, weight: 1,
        c: plain("{0} - {1}"), c_int: Some(plain("{0} - {1}")), rust: plain("{0} - {1}"),
        rust_int: Some(plain("{0}.checked_sub({1})"))
    }
    /// Multiplication.
    Mul {
        name: "mul", symbol: Some("*"), args: &[N, N], commutative: true,
        value: |a| a[0] * a[1], int: Some(|a| a[0].checked_mul(a[1])), precise: |p, a| p.mul(&a[0], &a[1]),
        partials: &[A1, A0],
        cost: CostClass::Mul, weight: 1,
        c: plain("{0} * {1}"), c_int: Some(plain("{0} * {1}")), rust: plain("{0} * {1}"),
        rust_int: Some(plain("{0}.checked_mul({1})"))
    }
    /// Division of real numbers.
    Div {
        name: "div_real", symbol: Some("/"), args: &[N, N],
        value: |a| a[0] / a[1], precise: |p, a| p.div(&a[0], &a[1]),
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
        c: plain("-{0}"), c_int: Some(plain("-{0}")), rust: plain("-{0}"),
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
        partials: &[
            Apply(Select, &[
                Apply(Op::Eq, &[A1, Const(0.0)]),
                Const(0.0),
                Apply(Mul, &[A1, Apply(Pow, &[A0, Apply(Sub, &[A1, Const(1.0)])])]),
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
        partials: &[Apply(Div, &[Const(0.5), Value])],
        domain: Domain { text: "x > 0", contains: |a| a[0] > 0.0 },
        weight: 5,
        c: plain("sqrt({0})"), rust: plain("{0}.sqrt()")
    }
    /// Cube root.
    Cbrt {
        name: "cbrt",
        value: |a| libm::cbrt(a[0]),
        precise: |p, a| if a[0].is_negative() { let m = p.neg(&a[0]); let r = p.cbrt(&m); p.neg(&r) } else { p.cbrt(&a[0]) },
        partials: &[Apply(Div, &[Const(1.0), Apply(Mul, &[Const(3.0), Apply(Mul, &[Value, Value])])])],
        domain: Domain { text: "x other than 0", contains: |a| a[0] != 0.0 },
        c: plain("cbrt({0})"), rust: plain("{0}.cbrt()")
    }
    /// Exponential.
    Exp {
        name: "exp",
        value: |a| mathfun::exp(a[0]), elementary: Some(Function::Exp), precise: |p, a| p.exp(&a[0]),
        partials: &[Value],
        c: plain("exp({0})"), rust: plain("{0}.exp()")
    }
    /// exp(x) - 1, accurate near 0.
    Expm1 {
        name: "expm1",
        value: |a| mathfun::expm1(a[0]), elementary: Some(Function::Expm1), precise: |p, a| p.expm1(&a[0]),
        partials: &[Apply(Add, &[Value, Const(1.0)])],
        c: plain("expm1({0})"), rust: plain("{0}.exp_m1()")
    }
    /// Natural logarithm.
    Log {
        name: "log",
        value: |a| mathfun::log(a[0]), elementary: Some(Function::Log), precise: |p, a| p.ln(&a[0]),
        partials: &[Apply(Div, &[Const(1.0), A0])],
        domain: Domain { text: "x > 0", contains: |a| a[0] > 0.0 },
        c: plain("log({0})"), rust: plain("{0}.ln()")
    }
    /// log(1 + x), accurate near 0.
    Log1p {
        name: "log1p",
        value: |a| mathfun::log1p(a[0]), elementary: Some(Function::Log1p), precise: |p, a| p.log1p(&a[0]),
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
        value: |a| libm::tan(a[0]), precise: |p, a| p.tan(&a[0]),
        partials: &[Apply(Add, &[Const(1.0), Apply(Mul, &[Value, Value])])],
        domain: Domain { text: "a cosine that is not 0", contains: |a| mathfun::cos(a[0]).abs() > 1e-3 },
        c: plain("tan({0})"), rust: plain("{0}.tan()")
    }
    /// Arc sine.
    Asin {
        name: "asin",
        value: |a| libm::asin(a[0]), precise: |p, a| p.asin(&a[0]),
        partials: &[Apply(Div, &[Const(1.0), Apply(Sqrt, &[Apply(Sub, &[Const(1.0), Apply(Mul, &[A0, A0])])])])],
        domain: Domain { text: "-1 < x < 1", contains: |a| a[0].abs() < 1.0 },
        c: plain("asin({0})"), rust: plain("{0}.asin()")
    }
    /// Arc cosine.
    Acos {
        name: "acos",
        value: |a| libm::acos(a[0]), precise: |p, a| p.acos(&a[0]),
        partials: &[Apply(Div, &[Const(-1.0), Apply(Sqrt, &[Apply(Sub, &[Const(1.0), Apply(Mul, &[A0, A0])])])])],
        domain: Domain { text: "-1 < x < 1", contains: |a| a[0].abs() < 1.0 },
        c: plain("acos({0})"), rust: plain("{0}.acos()")
    }
    /// Arc tangent.
    Atan {
        name: "atan",
        value: |a| mathfun::atan(a[0]), elementary: Some(Function::Atan), precise: |p, a| p.atan(&a[0]),
        partials: &[Apply(Div, &[Const(1.0), Apply(Add, &[Const(1.0), Apply(Mul, &[A0, A0])])])],
        c: plain("atan({0})"), rust: plain("{0}.atan()")
    }
    /// The angle of the point (x, y), arguments in the order y, x.
    Atan2 {
        name: "atan2", args: &[N, N],
        value: |a| mathfun::atan2(a[0], a[1]), elementary: Some(Function::Atan2), precise: |p, a| p.atan2(&a[0], &a[1]),
        partials: &[
            Apply(Div, &[A1, Apply(Add, &[Apply(Mul, &[A0, A0]), Apply(Mul, &[A1, A1])])]),
            Apply(Neg, &[Apply(Div, &[A0, Apply(Add, &[Apply(Mul, &[A0, A0]), Apply(Mul, &[A1, A1])])])]),
        ],
        domain: Domain { text: "a point off the negative axis", contains: |a| a[0] != 0.0 || a[1] > 0.0 },
        c: plain("atan2({0}, {1})"), rust: plain("{0}.atan2({1})")
    }
    /// Hyperbolic sine.
    Sinh {
        name: "sinh",
        value: |a| libm::sinh(a[0]), precise: |p, a| p.sinh(&a[0]),
        partials: &[Apply(Cosh, &[A0])],
        c: plain("sinh({0})"), rust: plain("{0}.sinh()")
    }
    /// Hyperbolic cosine.
    Cosh {
        name: "cosh",
        value: |a| libm::cosh(a[0]), precise: |p, a| p.cosh(&a[0]),
        partials: &[Apply(Sinh, &[A0])],
        c: plain("cosh({0})"), rust: plain("{0}.cosh()")
    }
    /// Hyperbolic tangent.
    Tanh {
        name: "tanh",
        value: |a| mathfun::tanh(a[0]), elementary: Some(Function::Tanh), precise: |p, a| p.tanh(&a[0]),
        partials: &[Apply(Sub, &[Const(1.0), Apply(Mul, &[Value, Value])])],
        c: plain("tanh({0})"), rust: plain("{0}.tanh()")
    }
    /// Inverse hyperbolic sine.
    Asinh {
        name: "asinh",
        value: |a| libm::asinh(a[0]), precise: |p, a| p.asinh(&a[0]),
        partials: &[Apply(Div, &[Const(1.0), Apply(Sqrt, &[Apply(Add, &[Apply(Mul, &[A0, A0]), Const(1.0)])])])],
        c: plain("asinh({0})"), rust: plain("{0}.asinh()")
    }
    /// Inverse hyperbolic cosine.
    Acosh {
        name: "acosh",
        value: |a| libm::acosh(a[0]), precise: |p, a| p.acosh(&a[0]),
        partials: &[Apply(Div, &[Const(1.0), Apply(Sqrt, &[Apply(Sub, &[Apply(Mul, &[A0, A0]), Const(1.0)])])])],
        domain: Domain { text: "x > 1", contains: |a| a[0] > 1.0 },
        c: plain("acosh({0})"), rust: plain("{0}.acosh()")
    }
    /// Inverse hyperbolic tangent.
    Atanh {
        name: "atanh",
        value: |a| libm::atanh(a[0]), precise: |p, a| p.atanh(&a[0]),
        partials: &[Apply(Div, &[Const(1.0), Apply(Sub, &[Const(1.0), Apply(Mul, &[A0, A0])])])],
        domain: Domain { text: "-1 < x < 1", contains: |a| a[0].abs() < 1.0 },
        c: plain("atanh({0})"), rust: plain("{0}.atanh()")
    }
    /// sqrt(x^2 + y^2).
    Hypot {
        name: "hypot", args: &[N, N], commutative: true,
        value: |a| libm::hypot(a[0], a[1]), precise: |p, a| p.hypot(&a[0], &a[1]),
        partials: &[Apply(Div, &[A0, Value]), Apply(Div, &[A1, Value])],
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
        c: plain("fabs({0})"), c_int: Some(plain("{0} < 0 ? -{0} : {0}")), rust: plain("{0}.abs()"),
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
    /// The smaller.
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
    /// The larger.
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
        value: |a| libm::erf(a[0]), precise: |p, a| special::erf_precise(p, &a[0]),
        partials: &[Apply(Mul, &[
            Const(std::f64::consts::FRAC_2_SQRT_PI),
            Apply(Exp, &[Apply(Neg, &[Apply(Mul, &[A0, A0])])]),
        ])],
        c: plain("erf({0})"),
        rust: plain("libm::erf({0})")
    }
    /// log |gamma(x)|.
    Lgamma {
        name: "lgamma",
        value: |a| libm::lgamma(a[0]), precise: |p, a| special::lgamma_precise(p, &a[0]),
        partials: &[Apply(Digamma, &[A0])],
        domain: Domain { text: "x > 0", contains: |a| a[0] > 0.0 },
        c: plain("lgamma({0})"), rust: plain("libm::lgamma({0})")
    }
    /// The derivative of lgamma.
    Digamma {
        name: "digamma",
        value: |a| special::polygamma(0.0, a[0]),
        precise: |p, a| { let zero = p.from_f64(0.0); special::polygamma_precise(p, &zero, &a[0]) },
        partials: &[Apply(Polygamma, &[Const(1.0), A0])],
        domain: Domain { text: "x > 0", contains: |a| a[0] > 0.0 },
        weight: 60,
        c: helper("cr_polygamma(0.0, {0})", POLYGAMMA_C), rust: helper("cr_polygamma(0.0, {0})", POLYGAMMA_RUST)
    }
    /// The derivative of digamma of the order given first, a natural number.
    Polygamma {
        name: "polygamma", args: &[N, N],
        value: |a| special::polygamma(a[0], a[1]), precise: |p, a| special::polygamma_precise(p, &a[0], &a[1]),
        partials: &[Formula::ZERO, Apply(Polygamma, &[Apply(Add, &[A0, Const(1.0)]), A1])],
        domain: Domain { text: "a natural order and x > 0", contains: |a| a[0] >= 0.0 && a[0] < 8.0 && a[0].fract() == 0.0 && a[1] > 0.0 },
        weight: 100,
        c: helper("cr_polygamma({0}, {1})", POLYGAMMA_C), rust: helper("cr_polygamma({0}, {1})", POLYGAMMA_RUST)
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
    /// The second argument where the first is true, the third where it is false; the other one is
    /// never looked at, not even if it is NaN.
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

/// What is asked of rows most, in one line of a cache: how many arguments there are in the two lowest bits, above them a
/// bit for each that is a truth value, then one for the result.
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
        i += 1;
    }
    types
};

impl Op {
    /// Its row.
    #[must_use]
    #[inline]
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name in dumps, and in F~ as a function.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// How many arguments it takes.
    #[must_use]
    #[inline]
    pub const fn arity(self) -> usize {
        (TYPES[self as usize] & 3) as usize
    }

    /// Whether its arguments and its result are numbers.
    #[must_use]
    #[inline]
    pub const fn is_numeric(self) -> bool {
        TYPES[self as usize] < 4
    }

    /// Whether its result is a truth value.
    #[must_use]
    #[inline]
    pub fn gives_truth(self) -> bool {
        TYPES[self as usize] & 32 != 0
    }

    /// Its value in doubles.
    #[must_use]
    pub fn value(self, args: &[f64]) -> f64 {
        (self.row().value)(args)
    }

    /// Its partial derivatives, one an argument.
    #[must_use]
    pub fn partials(self) -> &'static [Formula] {
        self.row().partials
    }

    /// Whether the arguments may be swapped.
    #[must_use]
    pub fn is_commutative(self) -> bool {
        self.row().commutative
    }

    /// All operators.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.op)
    }

    /// The operator that F~ calls by this function name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.op)
    }
}
