//! Checker of optimised programs, for tests and fuzzers: both programs are run by the reference evaluator.
//!
//! *Strict*: every double is equal bit for bit, counting all NaN as equal, at any arguments. *Algebraic*: both are
//! evaluated in extended precision, where reordering sums changes next to nothing, and agree to [`TOLERANCE`] relative
//! to the larger of the value and 1, or else to [`ROUNDINGS`] times the rounding error of the original program in
//! doubles (a constant-folded literal is a double); and no double evaluation fails. A program with an infinite or NaN
//! number has no value as a program on real numbers, and is not compared.
//!
//! A program that fails has no value to compare; a program with a value must not fail after optimisation.

use crate::engine::{Options, optimise_watched};
use crate::report::Report;
use chainrule_ir::{Function, Value, evaluate, verify};
use chainrule_ops::{Algebra, F64, Op, Precise, Semantics};

/// Maximum relative difference of values in extended precision.
pub const TOLERANCE: f64 = 1e-14;

/// Maximum ratio of the error in extended precision to that of the original program in doubles.
pub const ROUNDINGS: f64 = 16.0;

/// The optimised function with the report, and whether a value was compared.
pub type Checked = Result<(Function, Report, bool), String>;

/// Optimises `function`; verifies the output of every pass; compares at `args`.
///
/// # Errors
/// A description of the fault.
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
    match compare(function, &found, args, options.semantics) {
        Ok(told) => Ok((found, report, told)),
        Err(what) => Err(format!("{what}\n{report}{}", chainrule_ir::print(&found))),
    }
}

/// Checks whether `found` computes at `args` the value of `function`; returns `false` if that has no value there.
///
/// # Errors
/// A description of the fault.
pub fn compare(
    function: &Function,
    found: &Function,
    args: &[Value<f64>],
    semantics: Semantics,
) -> Result<bool, String> {
    match semantics {
        Semantics::Strict => strictly(function, found, args),
        Semantics::Algebraic => algebraically(function, found, args),
    }
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

// `reals` compares corresponding reals of `a`, `b` and `c`.
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

/// Algebra that also records whether all numbers are finite.
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
