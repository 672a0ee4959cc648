//! Whether an optimised program computes the same, for tests and fuzzers: the reference evaluator on both
//! sides.
//!
//! *Strict*: every double the same bit for bit, NaN counted as one number, at any arguments.
//! *Algebraic*: both are evaluated in extended precision, where reordering sums changes next to nothing, and
//! agree to [`TOLERANCE`] relative to the larger of the value and 1, or else to [`ROUNDINGS`] times what doubles
//! lose in the program as it was (a literal that is computed beforehand is a double); and in doubles nothing
//! fails. A program in which some number is infinite or NaN has no value as a program on real numbers, and is not compared.
//!
//! A program that fails has no value to compare; a program that has a value must not fail when optimised.

use crate::engine::{Options, optimise_watched};
use crate::report::Report;
use chainrule_ir::{Function, Value, evaluate, verify};
use chainrule_ops::{Algebra, F64, Op, Precise};

/// How far values in extended precision may differ.
pub const TOLERANCE: f64 = 1e-14;

/// How much farther from the value than the program in doubles a program in extended precision may be.
pub const ROUNDINGS: f64 = 16.0;

/// The optimised function with the report, and whether there was a value to compare.
pub type Checked = Result<(Function, Report, bool), String>;

/// Optimises `function`; verifies what comes out of every pass; compares at `args`.
///
/// # Errors
/// What is wrong, in words.
pub fn optimised(function: &Function, args: &[Value<f64>], options: &Options) -> Checked {
    verify(function).map_err(|found| format!("the function does not verify: {found:?}"))?;
    let mut broken = None;
    let (found, report) = optimise_watched(function, options, &mut |pass, function| {
        if let (None, Err(found)) = (&broken, verify(function)) {
            broken = Some(format!("after {pass} the function does not verify: {found:?}"));
        }
    });
    if let Some(broken) = broken {
        return Err(broken);
    }
    let compared =
        if options.strict { strictly(function, &found, args) } else { algebraically(function, &found, args) };
    match compared {
        Ok(told) => Ok((found, report, told)),
        Err(what) => Err(format!("{what}\n{report}{}", chainrule_ir::print(&found))),
    }
}

/// Whether `found` computes at `args` what `function` computes; `false` when that has no value there.
///
/// # Errors
/// What is wrong, in words.
pub fn compare(function: &Function, found: &Function, args: &[Value<f64>], strict: bool) -> Result<bool, String> {
    if strict { strictly(function, found, args) } else { algebraically(function, found, args) }
}

fn strictly(function: &Function, found: &Function, args: &[Value<f64>]) -> Result<bool, String> {
    let Ok(expected) = evaluate(function, &mut F64, args) else { return Ok(false) };
    let found =
        evaluate(found, &mut F64, args).map_err(|failure| format!("the optimised function fails: {failure}"))?;
    let equal = |a: f64, b: f64, _: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    if same(&expected, &found, &expected, &equal) {
        Ok(true)
    } else {
        Err(format!("expected {expected:?}, found {found:?}"))
    }
}

fn algebraically(function: &Function, found: &Function, args: &[Value<f64>]) -> Result<bool, String> {
    let Ok(doubles) = evaluate(function, &mut F64, args) else { return Ok(false) };
    let fails = |failure| format!("the optimised function fails: {failure}");
    evaluate(found, &mut F64, args).map_err(fails)?;
    let mut numbers = Finite { numbers: Precise::new(), finite: true };
    let args: Vec<_> = args.iter().map(|arg| arg.map(&mut |x: &f64| numbers.constant(*x))).collect();
    let Ok(expected) = evaluate(function, &mut numbers, &args) else { return Ok(false) };
    if !numbers.finite {
        return Ok(false);
    }
    let found = evaluate(found, &mut numbers, &args).map_err(fails)?;
    let as_f64 = |value: &Value<_>| value.map(&mut |x| numbers.numbers.to_f64(x).unwrap_or(f64::NAN));
    let (expected, found) = (as_f64(&expected), as_f64(&found));
    let close = |a: f64, b: f64, double: f64| {
        let lost = if double.is_finite() { (a - double).abs() } else { 0.0 };
        (a - b).abs() <= TOLERANCE * a.abs().max(1.0) + ROUNDINGS * lost
    };
    if same(&expected, &found, &doubles, &close) {
        Ok(true)
    } else {
        Err(format!("expected {expected:?}, found {found:?}"))
    }
}

// `reals` is asked about the reals of `a`, `b` and `c`, place by place.
fn same(a: &Value<f64>, b: &Value<f64>, c: &Value<f64>, reals: &impl Fn(f64, f64, f64) -> bool) -> bool {
    match (a, b, c) {
        (Value::Real(a), Value::Real(b), Value::Real(c)) => reals(*a, *b, *c),
        (Value::Array(a), Value::Array(b), Value::Array(c)) | (Value::Tuple(a), Value::Tuple(b), Value::Tuple(c)) => {
            let lengths = a.len() == b.len() && a.len() == c.len();
            lengths && a.iter().zip(b).zip(c).all(|((a, b), c)| same(a, b, c, reals))
        }
        _ => a == b,
    }
}

/// Numbers, with an eye on whether all of them are finite.
struct Finite<A> {
    numbers: A,
    finite: bool,
}

impl<A: Algebra> Algebra for Finite<A> {
    type Value = A::Value;

    fn constant(&mut self, c: f64) -> A::Value {
        self.finite &= c.is_finite();
        self.numbers.constant(c)
    }

    fn apply(&mut self, op: Op, args: &[A::Value]) -> A::Value {
        let value = self.numbers.apply(op, args);
        self.finite &= self.numbers.to_f64(&value).is_none_or(f64::is_finite);
        value
    }

    fn to_f64(&self, value: &A::Value) -> Option<f64> {
        self.numbers.to_f64(value)
    }
}
