//! Tracing of functions: operations on unknown numbers are recorded and printed as C.
//!
//! [`Traced`] is another implementation of [`Lanes`]. A number is either known, and operations on it are computed
//! immediately, or it is the result of a step. Running a function on traced arguments records its steps in order, and
//! each becomes one line of C. So the C text has the same source as all other forms, and no compiler finds a product
//! and a sum in one expression.

use crate::functions::lanes::Lanes;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Recorded steps, and the handlers of rare arguments in the order of their use.
pub(super) struct Tape {
    steps: RefCell<Vec<Step>>,
    rare: &'static [&'static str],
    n_rare: RefCell<usize>,
}

/// Type of a step's result.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Double,
    Bits,
    Mask,
}

struct Step {
    kind: Kind,
    /// `{0}`, `{1}`, ... stand for the operands.
    text: String,
    takes: Vec<(Kind, Known)>,
}

/// Operand of a step: known bits, or the result of a step.
#[derive(Clone, Copy)]
enum Known {
    Bits(u64),
    Step(usize),
}

/// A number.
#[derive(Clone, Copy)]
pub(super) struct Traced<'t> {
    /// `None` for a known number.
    tape: Option<&'t Tape>,
    value: Known,
}

/// A truth value.
#[derive(Clone, Copy)]
pub(super) enum Truth<'t> {
    Known(bool),
    Step(&'t Tape, usize),
}

impl Tape {
    pub(super) fn new(rare: &'static [&'static str]) -> Self {
        Self { steps: RefCell::default(), rare, n_rare: RefCell::default() }
    }

    /// Returns an argument of this name.
    pub(super) fn argument(&self, name: &str) -> Traced<'_> {
        self.number(Kind::Double, name.to_owned(), vec![])
    }

    fn push(&self, kind: Kind, text: String, takes: Vec<(Kind, Known)>) -> usize {
        let mut steps = self.steps.borrow_mut();
        steps.push(Step { kind, text, takes });
        steps.len() - 1
    }

    fn number(&self, kind: Kind, text: String, takes: Vec<(Kind, Known)>) -> Traced<'_> {
        Traced { tape: Some(self), value: Known::Step(self.push(kind, text, takes)) }
    }

    fn truth(&self, text: String, takes: Vec<(Kind, Known)>) -> Truth<'_> {
        Truth::Step(self, self.push(Kind::Mask, text, takes))
    }

    /// Returns the name of the next handler of rare arguments.
    fn next_rare(&self) -> &'static str {
        let mut n = self.n_rare.borrow_mut();
        *n += 1;
        self.rare.get(*n - 1).copied().unwrap_or("cr_unknown")
    }

    /// Returns the lines that compute `results`, and the results themselves.
    pub(super) fn lines(&self, results: &[Traced<'_>]) -> (String, Vec<String>) {
        let steps = self.steps.borrow();
        let mut needed = vec![false; steps.len()];
        for result in results {
            if let Known::Step(i) = result.value {
                needed[i] = true;
            }
        }
        for i in (0..steps.len()).rev() {
            if needed[i] {
                for (_, takes) in &steps[i].takes {
                    if let Known::Step(j) = takes {
                        needed[*j] = true;
                    }
                }
            }
        }
        // Arguments need no line.
        let is_argument = |i: usize| steps[i].takes.is_empty();
        let mut numbers = vec![0; steps.len()];
        for (number, i) in (0..steps.len()).filter(|i| needed[*i] && !is_argument(*i)).enumerate() {
            numbers[i] = number;
        }
        let spell = |kind: Kind, value: Known| match value {
            Known::Bits(bits) if kind == Kind::Bits => format!("UINT64_C(0x{bits:x})"),
            Known::Bits(bits) => literal(f64::from_bits(bits)),
            Known::Step(i) => {
                let name = if is_argument(i) { steps[i].text.clone() } else { format!("v{}", numbers[i]) };
                match (kind, steps[i].kind) {
                    (Kind::Bits, Kind::Double) => format!("cr_bits({name})"),
                    (Kind::Double, Kind::Bits) => format!("cr_double({name})"),
                    _ => name,
                }
            }
        };
        let mut text = String::new();
        for (i, step) in steps.iter().enumerate().filter(|(i, _)| needed[*i] && !is_argument(*i)) {
            let ty = match step.kind {
                Kind::Double => "double",
                Kind::Bits => "uint64_t",
                Kind::Mask => "int",
            };
            let mut line = step.text.clone();
            for (k, (kind, value)) in step.takes.iter().enumerate() {
                line = line.replace(&format!("{{{k}}}"), &spell(*kind, *value));
            }
            // Writing to a string does not fail.
            let _ = writeln!(text, "    const {ty} v{} = {line};", numbers[i]);
        }
        (text, results.iter().map(|result| spell(Kind::Double, result.value)).collect())
    }
}

/// Returns a literal that reads back as the same double; an atom.
fn literal(value: f64) -> String {
    let text = if value.is_nan() {
        "NAN".to_owned()
    } else if value.is_infinite() {
        "HUGE_VAL".to_owned()
    } else {
        format!("{:?}", value.abs())
    };
    if value.is_sign_negative() { format!("(-{text})") } else { text }
}

impl<'t> Traced<'t> {
    fn known(self) -> Option<f64> {
        match self.value {
            Known::Bits(bits) => Some(f64::from_bits(bits)),
            Known::Step(_) => None,
        }
    }

    /// Returns the result of a step on two numbers, computed immediately if both are known.
    fn two(self, other: Self, kind: Kind, text: &str, now: impl Fn(f64, f64) -> f64) -> Self {
        match (self.tape.or(other.tape), self.known(), other.known()) {
            (Some(tape), ..) => tape.number(kind, text.to_owned(), vec![(kind, self.value), (kind, other.value)]),
            (None, a, b) => Self::splat(now(a.unwrap_or(f64::NAN), b.unwrap_or(f64::NAN))),
        }
    }

    fn one(self, kind: Kind, text: &str, now: impl Fn(f64) -> f64) -> Self {
        match self.tape {
            Some(tape) => tape.number(kind, text.to_owned(), vec![(kind, self.value)]),
            None => Self::splat(now(self.known().unwrap_or(f64::NAN))),
        }
    }

    fn compare(self, other: Self, text: &str, now: impl Fn(f64, f64) -> bool) -> Truth<'t> {
        match (self.tape.or(other.tape), self.known(), other.known()) {
            (Some(tape), ..) => {
                tape.truth(text.to_owned(), vec![(Kind::Double, self.value), (Kind::Double, other.value)])
            }
            (None, a, b) => Truth::Known(now(a.unwrap_or(f64::NAN), b.unwrap_or(f64::NAN))),
        }
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $text:literal;)*) => {$(
        impl $trait for Traced<'_> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.two(other, Kind::Double, $text, $trait::$method)
            }
        }
    )*};
}

arithmetic! {
    Add add "{0} + {1}";
    Sub sub "{0} - {1}";
    Mul mul "{0} * {1}";
    Div div "{0} / {1}";
}

impl Neg for Traced<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.one(Kind::Double, "-{0}", |x| -x)
    }
}

impl<'t> Lanes for Traced<'t> {
    type Mask = Truth<'t>;

    fn splat(x: f64) -> Self {
        Self::splat_bits(x.to_bits())
    }
    fn splat_bits(bits: u64) -> Self {
        Self { tape: None, value: Known::Bits(bits) }
    }
    fn fma(self, b: Self, c: Self) -> Self {
        match self.tape.or(b.tape).or(c.tape) {
            Some(tape) => tape.number(
                Kind::Double,
                "fma({0}, {1}, {2})".to_owned(),
                [self, b, c].map(|x| (Kind::Double, x.value)).to_vec(),
            ),
            None => {
                let [a, b, c] = [self, b, c].map(|x| x.known().unwrap_or(f64::NAN));
                Self::splat(Lanes::fma(a, b, c))
            }
        }
    }
    fn sqrt(self) -> Self {
        self.one(Kind::Double, "sqrt({0})", Lanes::sqrt)
    }
    fn less(self, other: Self) -> Truth<'t> {
        self.compare(other, "{0} < {1}", |a, b| a < b)
    }
    fn at_most(self, other: Self) -> Truth<'t> {
        self.compare(other, "{0} <= {1}", |a, b| a <= b)
    }
    fn sign_set(self) -> Truth<'t> {
        match (self.tape, self.value) {
            (Some(tape), value) => tape.truth("(int)({0} >> 63)".to_owned(), vec![(Kind::Bits, value)]),
            (None, _) => Truth::Known(self.known().is_some_and(f64::is_sign_negative)),
        }
    }
    fn both(a: Truth<'t>, b: Truth<'t>) -> Truth<'t> {
        match (a, b) {
            (Truth::Known(true), other) | (other, Truth::Known(true)) => other,
            (Truth::Known(false), _) | (_, Truth::Known(false)) => Truth::Known(false),
            (Truth::Step(tape, a), Truth::Step(_, b)) => {
                tape.truth("{0} & {1}".to_owned(), vec![(Kind::Mask, Known::Step(a)), (Kind::Mask, Known::Step(b))])
            }
        }
    }
    fn either(a: Truth<'t>, b: Truth<'t>) -> Truth<'t> {
        match (a, b) {
            (Truth::Known(false), other) | (other, Truth::Known(false)) => other,
            (Truth::Known(true), _) | (_, Truth::Known(true)) => Truth::Known(true),
            (Truth::Step(tape, a), Truth::Step(_, b)) => {
                tape.truth("{0} | {1}".to_owned(), vec![(Kind::Mask, Known::Step(a)), (Kind::Mask, Known::Step(b))])
            }
        }
    }
    fn not(a: Truth<'t>) -> Truth<'t> {
        match a {
            Truth::Known(a) => Truth::Known(!a),
            Truth::Step(tape, a) => tape.truth("!{0}".to_owned(), vec![(Kind::Mask, Known::Step(a))]),
        }
    }
    fn any(a: Truth<'t>) -> bool {
        // Possibly true: the handler is a step of its own.
        !matches!(a, Truth::Known(false))
    }
    fn select(mask: Truth<'t>, yes: Self, no: Self) -> Self {
        match mask {
            Truth::Known(true) => yes,
            Truth::Known(false) => no,
            Truth::Step(tape, mask) => tape.number(
                Kind::Double,
                "{0} ? {1} : {2}".to_owned(),
                vec![(Kind::Mask, Known::Step(mask)), (Kind::Double, yes.value), (Kind::Double, no.value)],
            ),
        }
    }
    fn bits_and(self, other: Self) -> Self {
        self.two(other, Kind::Bits, "{0} & {1}", Lanes::bits_and)
    }
    fn bits_or(self, other: Self) -> Self {
        self.two(other, Kind::Bits, "{0} | {1}", Lanes::bits_or)
    }
    fn bits_xor(self, other: Self) -> Self {
        self.two(other, Kind::Bits, "{0} ^ {1}", Lanes::bits_xor)
    }
    fn bits_add(self, other: Self) -> Self {
        self.two(other, Kind::Bits, "{0} + {1}", Lanes::bits_add)
    }
    fn bits_sub(self, other: Self) -> Self {
        self.two(other, Kind::Bits, "{0} - {1}", Lanes::bits_sub)
    }
    fn bits_up(self, by: u64) -> Self {
        self.one(Kind::Bits, &format!("{{0}} << {by}"), |x| x.bits_up(by))
    }
    fn bits_down(self, by: u64) -> Self {
        self.one(Kind::Bits, &format!("{{0}} >> {by}"), |x| x.bits_down(by))
    }
    fn each(self, mask: Truth<'t>, function: fn(f64) -> f64, otherwise: Self) -> Self {
        let value = match self.tape {
            Some(tape) => {
                let text = format!("{{0}} ? {}({{1}}) : {{2}}", tape.next_rare());
                return match mask {
                    Truth::Step(_, mask) => tape.number(
                        Kind::Double,
                        text,
                        vec![
                            (Kind::Mask, Known::Step(mask)),
                            (Kind::Double, self.value),
                            (Kind::Double, otherwise.value),
                        ],
                    ),
                    Truth::Known(_) => otherwise,
                };
            }
            None => function(self.known().unwrap_or(f64::NAN)),
        };
        Self::select(mask, Self::splat(value), otherwise)
    }
    fn each2(self, other: Self, mask: Truth<'t>, function: fn(f64, f64) -> f64, otherwise: Self) -> Self {
        match (self.tape.or(other.tape), mask) {
            (Some(tape), Truth::Step(_, mask)) => {
                let text = format!("{{0}} ? {}({{1}}, {{2}}) : {{3}}", tape.next_rare());
                let numbers = [self, other, otherwise].map(|x| (Kind::Double, x.value));
                let takes = [(Kind::Mask, Known::Step(mask))].into_iter().chain(numbers).collect();
                tape.number(Kind::Double, text, takes)
            }
            (Some(_), Truth::Known(_)) => otherwise,
            (None, mask) => {
                let [a, b] = [self, other].map(|x| x.known().unwrap_or(f64::NAN));
                Self::select(mask, Self::splat(function(a, b)), otherwise)
            }
        }
    }
}
