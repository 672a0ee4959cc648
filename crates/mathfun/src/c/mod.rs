//! The functions as C text for one double, with the same bits as in Rust.
//!
//! The code for usual arguments is traced from the functions themselves (see `trace`). Rare arguments need branches;
//! their code is written in C files by the same steps, and tests compare both bit for bit.
//!
//! The text is C99. It requires `math.h` (`fma`, `sqrt`, `NAN`, `HUGE_VAL`), `stdint.h` and `string.h`, IEEE 754
//! doubles without excess precision, and compilation without contraction of products and sums (`-std=c99` or
//! `-ffp-contract=off`) and without `-ffast-math`. All names begin with `cr_`.

mod trace;

use crate::Function;
use crate::functions::{
    acosh, angle, asinh, atan, atan2, circle, cos, cosh, erf, exp, expm1, huge, hypot, lanes::Lanes,
};
use crate::functions::{atanh, cbrt, log, log1p, pow, sin, sinh, tan, tanh};
use std::fmt::Write as _;
use trace::{Tape, Traced};

/// A definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Name of the defined function, such as `cr_sin`.
    pub name: String,
    /// C text: a function with its helpers.
    pub text: String,
}

/// A function of doubles whose text is traced from Rust.
struct Read {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Names of output pointers, if there is more than one result.
    results: &'static [&'static str],
    /// Functions that handle rare arguments.
    rare: &'static [&'static str],
    function: for<'t> fn(&[Traced<'t>]) -> Vec<Traced<'t>>,
}

const X: &[&str] = &["x"];

/// All traced functions.
const READ: &[Read] = &[
    Read { name: "cr_sin", arguments: X, results: &[], rare: &["cr_huge_sin"], function: |a| vec![sin::sin(a[0])] },
    Read { name: "cr_cos", arguments: X, results: &[], rare: &["cr_huge_cos"], function: |a| vec![cos::cos(a[0])] },
    Read { name: "cr_exp", arguments: X, results: &[], rare: &["cr_exp_rare"], function: |a| vec![exp::exp(a[0])] },
    Read { name: "cr_expm1", arguments: X, results: &[], rare: &[], function: |a| vec![expm1::expm1(a[0])] },
    Read { name: "cr_log", arguments: X, results: &[], rare: &["cr_log_rare"], function: |a| vec![log::log(a[0])] },
    Read {
        name: "cr_log1p",
        arguments: X,
        results: &[],
        rare: &["cr_log1p_rare"],
        function: |a| vec![log1p::log1p(a[0])],
    },
    Read { name: "cr_sinh", arguments: X, results: &[], rare: &[], function: |a| vec![sinh::sinh(a[0])] },
    Read { name: "cr_cosh", arguments: X, results: &[], rare: &[], function: |a| vec![cosh::cosh(a[0])] },
    Read { name: "cr_erf", arguments: X, results: &[], rare: &[], function: |a| vec![erf::erf(a[0])] },
    Read { name: "cr_asinh", arguments: X, results: &[], rare: &[], function: |a| vec![asinh::asinh(a[0])] },
    Read { name: "cr_acosh", arguments: X, results: &[], rare: &[], function: |a| vec![acosh::acosh(a[0])] },
    Read { name: "cr_atanh", arguments: X, results: &[], rare: &[], function: |a| vec![atanh::atanh(a[0])] },
    Read { name: "cr_cbrt", arguments: X, results: &[], rare: &[], function: |a| vec![cbrt::cbrt(a[0])] },
    Read { name: "cr_tan", arguments: X, results: &[], rare: &["cr_huge_tan"], function: |a| vec![tan::tan(a[0])] },
    Read { name: "cr_tanh", arguments: X, results: &[], rare: &[], function: |a| vec![tanh::tanh(a[0])] },
    Read { name: "cr_atan", arguments: X, results: &[], rare: &[], function: |a| vec![atan::atan(a[0])] },
    Read {
        name: "cr_atan2",
        arguments: &["y", "x"],
        results: &[],
        rare: &["cr_atan2_rare"],
        function: |a| vec![atan2::atan2(a[0], a[1])],
    },
    Read {
        name: "cr_hypot",
        arguments: &["x", "y"],
        results: &[],
        rare: &[],
        function: |a| vec![hypot::hypot(a[0], a[1])],
    },
    Read {
        name: "cr_pow",
        arguments: &["x", "y"],
        results: &[],
        rare: &["cr_pow_rare"],
        function: |a| vec![pow::pow(a[0], a[1])],
    },
    // Handlers of rare arguments.
    Read {
        name: "cr_rotate",
        arguments: &["t", "r", "r_lo"],
        results: &["s", "c"],
        rare: &[],
        function: |a| {
            let (s, c) = circle::rotate(a[0], a[1], a[2]);
            vec![s, c]
        },
    },
    Read {
        name: "cr_tangent",
        arguments: &["t", "r", "r_lo"],
        results: &[],
        rare: &[],
        function: |a| vec![circle::tangent(a[0], a[1], a[2])],
    },
    Read {
        name: "cr_exp_parts",
        arguments: X,
        results: &["y", "t"],
        rare: &[],
        function: |a| {
            let (t, r, r_lo) = exp::reduce(a[0]);
            vec![exp::of_reduced(r, r_lo), t]
        },
    },
    Read {
        name: "cr_log_below",
        arguments: &["x", "less"],
        results: &[],
        rare: &[],
        function: |a| {
            let (biased, m) = log::split(a[0]);
            vec![log::of_parts(log::exponent(biased) - a[1], m - Traced::splat(1.0), Traced::splat(0.0))]
        },
    },
    Read {
        name: "cr_angle",
        arguments: &["y", "x", "left"],
        results: &[],
        rare: &[],
        function: |a| vec![angle::angle(a[0], a[1], a[2])],
    },
    Read {
        name: "cr_pow_parts",
        arguments: &["x", "less", "y"],
        results: &["p", "t", "power"],
        rare: &[],
        function: |a| {
            let (biased, m) = log::split(a[0]);
            let (log, log_lo) = pow::precise_log(log::exponent(biased) - a[1], m);
            let (p, t, r, r_lo) = pow::exponent_of_power(a[2], log, log_lo);
            vec![p, t, exp::of_reduced(r, r_lo)]
        },
    },
];

/// C files with branches: their main definition, and the pieces that they need.
const WRITTEN: &[(&str, &[&str], &str)] = &[
    ("cr_bits", &[], include_str!("bits.c")),
    ("cr_scaled", &["cr_bits"], include_str!("scaled.c")),
    ("cr_exp_rare", &["cr_exp_parts", "cr_scaled"], include_str!("exp.c")),
    ("cr_log_rare", &["cr_log_below"], include_str!("log.c")),
    ("cr_log1p_rare", &[], include_str!("log1p.c")),
    ("cr_atan2_rare", &["cr_bits", "cr_angle"], include_str!("atan2.c")),
    ("cr_pow_rare", &["cr_bits", "cr_pow_parts", "cr_scaled"], include_str!("pow.c")),
    ("cr_huge_reduce", &["cr_bits"], include_str!("huge.c")),
    ("cr_huge_both", &["cr_huge_reduce", "cr_rotate"], include_str!("huge_both.c")),
    ("cr_huge_tan", &["cr_huge_reduce", "cr_tangent"], include_str!("huge_tan.c")),
    ("cr_huge_sin", &["cr_huge_both"], include_str!("huge_sin.c")),
    ("cr_huge_cos", &["cr_huge_both"], include_str!("huge_cos.c")),
];

/// Returns the name of a function in the text; `None` for [`Function::SinCos`], which has the bits of the two
/// functions.
#[must_use]
pub fn name(function: Function) -> Option<String> {
    (function != Function::SinCos).then(|| format!("cr_{}", function.name()))
}

/// Returns the pieces of a function, itself last: each piece after those that it calls.
#[must_use]
pub fn pieces(function: Function) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if let Some(name) = name(function) {
        add(&name, &mut pieces);
    }
    pieces
}

/// Adds a piece after those that it needs. The nesting is a small constant.
fn add(name: &str, pieces: &mut Vec<Piece>) {
    if pieces.iter().any(|piece| piece.name == name) {
        return;
    }
    if let Some((_, needs, text)) = WRITTEN.iter().find(|written| written.0 == name) {
        needs.iter().for_each(|need| add(need, pieces));
        let text = text.replace("TWO_OVER_PI_WORDS", &two_over_pi());
        let text = text.replace("HALF_PI_2", &format!("{:?}", circle::HALF_PI_2));
        let text = text.replace("HALF_PI", &format!("{:?}", circle::HALF_PI));
        pieces.push(Piece { name: name.to_owned(), text });
    } else if let Some(read) = READ.iter().find(|read| read.name == name) {
        add("cr_bits", pieces);
        read.rare.iter().for_each(|need| add(need, pieces));
        pieces.push(Piece { name: name.to_owned(), text: read.text() });
    }
}

fn two_over_pi() -> String {
    let words: Vec<String> = huge::TWO_OVER_PI.iter().map(|word| format!("UINT64_C(0x{word:x})")).collect();
    let lines: Vec<String> = words.chunks(4).map(|line| format!("        {}", line.join(", "))).collect();
    lines.join(",\n")
}

impl Read {
    fn text(&self) -> String {
        let tape = Tape::new(self.rare);
        let arguments: Vec<Traced<'_>> = self.arguments.iter().map(|name| tape.argument(name)).collect();
        let (lines, results) = tape.lines(&(self.function)(&arguments));
        let mut parameters: Vec<String> = self.arguments.iter().map(|name| format!("double {name}")).collect();
        parameters.extend(self.results.iter().map(|name| format!("double *{name}")));
        let parameters = parameters.join(", ");
        // Writing to a string does not fail.
        let mut text = String::new();
        if let ([], [result]) = (self.results, results.as_slice()) {
            let _ =
                write!(text, "static inline double {}({parameters}) {{\n{lines}    return {result};\n}}\n", self.name);
        } else {
            let _ = write!(text, "static inline void {}({parameters}) {{\n{lines}", self.name);
            for (name, result) in self.results.iter().zip(&results) {
                let _ = writeln!(text, "    *{name} = {result};");
            }
            text.push_str("}\n");
        }
        text
    }
}
