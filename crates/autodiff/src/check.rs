//! Independent checks of expanded functions, for tests and fuzz targets.
//!
//! The reference evaluator differentiates with tagged dual numbers at run time, and shares no code with
//! [`crate::expand`]; central differences in extended precision share no code with either.
//! [`chainrule_ir::difference::with_direction`] returns the function to expand for the derivative of a whole function.

use crate::expand;
use chainrule_ir::{Function, Value, evaluate, verify};
use chainrule_ops::{Algebra, Big, F64, Op, Precise};

/// Result of a check at a point; `None` if the function has no value there.
pub type Checked<T> = Result<Option<T>, String>;

/// Expands `function`; checks that both functions verify, and that both have the same value at `args`, or none. Returns
/// the expanded function with the value.
///
/// Doubles are compared bit for bit except for the sign of zero: both compute the operator table's formulas in the same
/// order, but the expanded function omits a structurally zero tangent from a sum, in which the evaluator may add a
/// zero. Results that are not finite in the evaluator are not compared. A tangent that is structurally zero for the
/// evaluator, which knows the branch taken, can be a computed 0 in a program; multiplied by an infinite partial, it is
/// NaN. If only the program has NaN, both are therefore compared in an algebra in which 0 times any number is 0.
///
/// # Errors
/// Returns a description of the difference.
pub fn expansion(function: &Function, args: &[Value<f64>]) -> Checked<(Function, Value<f64>)> {
    verify(function).map_err(|found| format!("the function does not verify: {found:?}"))?;
    let expanded = expand(function).map_err(|e| format!("no expansion: {e}"))?;
    verify(&expanded).map_err(|found| format!("the expanded function does not verify: {found:?}"))?;
    let (expected, found) = (evaluate(function, &mut F64, args), evaluate(&expanded, &mut F64, args));
    let Ok(expected) = expected else { return Ok(None) };
    let found = found.map_err(|failure| format!("the expanded function fails: {failure}"))?;
    if !same(&expected, &found, Nan::Passes) {
        return Err(format!("the evaluator says {expected:?}, the expanded function {found:?}"));
    }
    if !same(&expected, &found, Nan::Fails) {
        let [expected, found] = [function, &expanded].map(|f| evaluate(f, &mut Absorbing, args));
        let (Ok(expected), Ok(found)) = (expected, found) else { return Ok(None) };
        if !same(&expected, &found, Nan::Fails) {
            return Err(format!("with 0 * x = 0 the evaluator says {expected:?}, the expanded function {found:?}"));
        }
    }
    Ok(Some((expanded, found)))
}

/// Does the same as [`expansion`] for functions that contain [`chainrule_ir::Expr::Vjp`], whose expansion adds in
/// another order than the evaluator: both are evaluated in extended precision, and must agree to `2^-100` of the
/// largest number in the value (see [`central_differences`] for the loss of precision).
///
/// # Errors
/// Returns a description of the difference.
pub fn reverse_expansion(precise: &mut Precise, function: &Function, args: &[Value<f64>]) -> Checked<Function> {
    verify(function).map_err(|found| format!("the function does not verify: {found:?}"))?;
    let expanded = expand(function).map_err(|e| format!("no expansion: {e}"))?;
    verify(&expanded).map_err(|found| format!("the expanded function does not verify: {found:?}"))?;
    let args: Vec<Value<Big>> = args.iter().map(|arg| arg.map(&mut |x| precise.from_f64(*x))).collect();
    let Ok(expected) = evaluate(function, precise, &args) else { return Ok(None) };
    let found =
        evaluate(&expanded, precise, &args).map_err(|failure| format!("the expanded function fails: {failure}"))?;
    agree(precise, &expected, &found).map_err(|what| format!("evaluator and expanded function: {what}"))?;
    Ok(Some(expanded))
}

/// Checks that two values agree to `2^-100` of the largest double in `expected`, or of 1; non-finite numbers of
/// `expected` are not compared.
///
/// # Errors
/// Returns a description of the difference.
pub fn agree(precise: &mut Precise, expected: &Value<Big>, found: &Value<Big>) -> Result<(), String> {
    let (expected, found) = (expected.reals(), found.reals());
    if expected.len() != found.len() {
        return Err(format!("{} doubles, and {}", expected.len(), found.len()));
    }
    let values: Vec<f64> = expected.iter().map(|x| precise.as_f64(x)).collect();
    let scale = values.iter().filter(|x| x.is_finite()).fold(1.0_f64, |scale, x| scale.max(x.abs()));
    for (k, (a, b)) in expected.into_iter().zip(found).enumerate() {
        let difference = precise.sub(a, b);
        let difference = precise.as_f64(&difference).abs();
        if values[k].is_finite() && (difference.is_nan() || difference > scale * 2f64.powi(-100)) {
            return Err(format!("double {k}: {:e}, and {:e}", values[k], precise.as_f64(b)));
        }
    }
    Ok(())
}

/// Algebra of doubles in which 0 times any number is 0.
struct Absorbing;

impl Algebra for Absorbing {
    type Value = f64;
    fn constant(&mut self, c: f64) -> f64 {
        c
    }
    fn apply(&mut self, op: Op, args: &[f64]) -> f64 {
        if matches!(op, Op::Mul | Op::MaskedMul) && args.contains(&0.0) { 0.0 } else { op.value(args) }
    }
    fn to_f64(&self, value: &f64) -> Option<f64> {
        Some(*value)
    }
}

/// Verdict on a NaN where a number is expected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nan {
    Passes,
    Fails,
}

// Compares values up to the sign of zero. Non-finite numbers of `expected` are not compared.
fn same(expected: &Value<f64>, found: &Value<f64>, nan: Nan) -> bool {
    match (expected, found) {
        (Value::Real(a), Value::Real(b)) => !a.is_finite() || a == b || (nan == Nan::Passes && b.is_nan()),
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Array(a), Value::Array(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, nan))
        }
        _ => false,
    }
}

/// Compares `tangents`, a computed derivative of `function` at `args` along `along` (both with as many doubles as the
/// arguments have), with central differences, all in extended precision.
///
/// The differences are taken with steps `h` and `h/2`, `h = 2^-100`. If the function is smooth, the error of the second
/// is a third of the distance of the two, to leading order; three times that is allowed. In addition, the operators are
/// accurate to about 2^-250 (lgamma and its derivatives are; most are to 2^-380), which the division by `h` increases
/// to 2^-150; 30 bits are allowed for cancellation inside the function: 2^-120 of the larger of value and derivative.
/// Returns `None` if the function has no finite value there.
///
/// # Errors
/// Returns a description of the difference.
pub fn central_differences(
    precise: &mut Precise,
    function: &Function,
    args: &[Value<Big>],
    along: &[Value<Big>],
    tangents: &[Big],
) -> Checked<()> {
    let shifted = |precise: &mut Precise, step: f64| -> Option<Vec<Big>> {
        let moved: Vec<Value<Big>> = args.iter().zip(along).map(|(a, t)| shift(precise, a, t, step)).collect();
        let value = evaluate(function, precise, &moved).ok()?;
        Some(value.reals().into_iter().cloned().collect())
    };
    let h = 2f64.powi(-100);
    let steps = [h, -h, h / 2.0, -h / 2.0];
    let Some(values) = steps.iter().map(|step| shifted(precise, *step)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    for (k, tangent) in tangents.iter().enumerate() {
        let slope = |i: usize| {
            let width = precise.from_f64(steps[i] - steps[i + 1]);
            let rise = precise.sub(&values[i][k], &values[i + 1][k]);
            precise.div(&rise, &width)
        };
        let (coarse, fine) = (slope(0), slope(2));
        let difference = precise.sub(&fine, tangent).abs();
        let truncation = precise.sub(&coarse, &fine).abs();
        let floor = precise.add(&values[0][k].abs(), &precise.add(&fine.abs(), &tangent.abs()));
        let floor = precise.mul(&floor, &precise.from_f64(2f64.powi(-120)));
        let allowed = precise.add(&truncation, &floor);
        if difference.is_nan() || allowed.is_nan() || !precise.as_f64(&fine).is_finite() {
            return Ok(None);
        }
        if precise.less(&allowed, &difference) {
            let [tangent, fine, allowed] = [tangent, &fine, &allowed].map(|x| precise.as_f64(x));
            return Err(format!("double {k}: derivative {tangent:e}, central difference {fine:e} within {allowed:e}"));
        }
    }
    Ok(Some(()))
}

fn shift(precise: &mut Precise, value: &Value<Big>, along: &Value<Big>, step: f64) -> Value<Big> {
    let mut tangents = along.reals().into_iter();
    value.map(&mut |x| match tangents.next() {
        Some(tangent) => {
            let step = precise.constant(step);
            precise.add(x, &precise.mul(tangent, &step))
        }
        None => x.clone(),
    })
}
