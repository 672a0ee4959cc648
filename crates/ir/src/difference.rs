//! Derivatives by central differences in extended precision: a check of derivatives that only shares the meaning of the
//! function with them.
//!
//! With a step of 2^-100 and 384 bits, truncation costs about 60 digits times the third derivative, and rounding leaves
//! about 85: the error is far below the rounding of doubles, so one tolerance suffices for all functions. A second step
//! estimates the error of the quotient.

use crate::{Builder, Failure, Function, Renaming, Value, VarId, evaluate};
use chainrule_ops::{Algebra, Op, Precise};

/// Step of the first quotient; that of the second is a quarter.
const STEP_EXPONENT: i32 = -100;

/// A derivative estimated by differences.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Difference quotient, rounded to a double; NaN if the function is.
    pub value: f64,
    /// Difference of the quotients with two steps: large if the function is not smooth.
    pub error: f64,
}

/// Returns the derivative of `function` at `at` along `along`, as the tangents of its result: its `Double`s are
/// [`Estimate`]s. `Int` and `Bool` in `along` are ignored.
///
/// # Errors
/// Fails if the function has no value near `at`, or `along` has another shape than `at`.
pub fn along(
    function: &Function,
    precise: &mut Precise,
    at: &[Value<f64>],
    along: &[Value<f64>],
) -> Result<Value<Estimate>, Failure> {
    let coarse = quotient(function, precise, at, along, power_of_two(STEP_EXPONENT))?;
    let fine = quotient(function, precise, at, along, power_of_two(STEP_EXPONENT - 2))?;
    combine(&coarse, &fine, &mut |a, b| {
        let (value, other) = (precise.as_f64(b), precise.sub(a, b));
        Estimate { value, error: precise.as_f64(&other).abs() }
    })
}

fn power_of_two(exponent: i32) -> f64 {
    2.0_f64.powi(exponent)
}

type Big = <Precise as Algebra>::Value;

fn quotient(
    function: &Function,
    precise: &mut Precise,
    at: &[Value<f64>],
    along: &[Value<f64>],
    step: f64,
) -> Result<Value<Big>, Failure> {
    let moved = |precise: &mut Precise, step: f64| -> Result<Value<Big>, Failure> {
        let args = at.iter().zip(along).map(|(at, along)| {
            combine(at, along, &mut |a, d| {
                // step * d in extended precision: in doubles a small d could vanish.
                let way = precise.mul(&precise.from_f64(step), &precise.from_f64(*d));
                precise.add(&precise.from_f64(*a), &way)
            })
        });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        evaluate(function, precise, &args)
    };
    let (ahead, behind) = (moved(precise, step)?, moved(precise, -step)?);
    let width = precise.from_f64(2.0 * step);
    combine(&ahead, &behind, &mut |a, b| {
        let difference = precise.sub(a, b);
        precise.apply(Op::Div, &[difference, width.clone()])
    })
}

// Applies `f` to the doubles of two values of one shape; `Int`s and `Bool`s are those of the first.
fn combine<S, T, U>(a: &Value<S>, b: &Value<T>, f: &mut impl FnMut(&S, &T) -> U) -> Result<Value<U>, Failure> {
    let mut all = |a: &[Value<S>], b: &[Value<T>]| -> Result<Vec<Value<U>>, Failure> {
        if a.len() != b.len() {
            return Err(other_shape());
        }
        a.iter().zip(b).map(|(a, b)| combine(a, b, f)).collect()
    };
    Ok(match (a, b) {
        (Value::Array(a), Value::Array(b)) => Value::Array(all(a, b)?),
        (Value::Tuple(a), Value::Tuple(b)) => Value::Tuple(all(a, b)?),
        (Value::Real(a), Value::Real(b)) => Value::Real(f(a, b)),
        (Value::Int(i), Value::Int(_)) => Value::Int(*i),
        (Value::Bool(i), Value::Bool(_)) => Value::Bool(*i),
        _ => return Err(other_shape()),
    })
}

fn other_shape() -> Failure {
    chainrule_base::Diagnostic::error("a point and a direction have different shapes").into()
}

/// Returns the function with additional parameters, a direction for each parameter with a `Double`, and with the result
/// as a dual number: one [`crate::Expr::Jvp`] around the body.
#[must_use]
pub fn with_direction(function: &Function) -> Function {
    let mut b = Builder::rewriting(function);
    let at: Vec<VarId> = function.params.iter().copied().filter(|p| function.ty(*p).has_double()).collect();
    let along: Vec<VarId> = at
        .iter()
        .map(|param| {
            let name = format!("{}_tan", function.vars[*param].name.as_deref().unwrap_or("arg"));
            b.param(&name, function.ty(*param).clone())
        })
        .collect();
    let result = b.jvp(&at, &along, |b, params| {
        let mut renaming: Renaming = at.iter().copied().zip(params.iter().copied()).collect();
        b.inline(&function.body, &mut renaming)
    });
    b.finish(result)
}

/// Returns the function with an additional parameter, a cotangent of its result, that returns the result with the
/// cotangents of its parameters: one [`crate::Expr::Vjp`] around the body. `None` if the result, or all parameters,
/// have no `Double`.
#[must_use]
pub fn with_cotangent(function: &Function) -> Option<Function> {
    let tangent = function.result_type().tangent()?;
    let at: Vec<VarId> = function.params.iter().copied().filter(|p| function.ty(*p).has_double()).collect();
    if at.is_empty() || tangent.sizes().iter().flat_map(crate::Size::vars).any(|var| !known_at_entry(function, var)) {
        return None;
    }
    let mut b = Builder::rewriting(function);
    let cotangent = b.param("result_adj", tangent);
    let result = b.vjp(&at, cotangent, |b, params| {
        let mut renaming: Renaming = at.iter().copied().zip(params.iter().copied()).collect();
        b.inline(&function.body, &mut renaming)
    });
    Some(b.finish(result))
}

fn known_at_entry(function: &Function, var: VarId) -> bool {
    function.sizes.contains(&var) || function.params.contains(&var)
}

/// Returns the directions among `along`, one for each parameter of `function`, that [`with_direction`] takes.
#[must_use]
pub fn directions<S: Clone>(function: &Function, along: &[Value<S>]) -> Vec<Value<S>> {
    let moving = function.params.iter().zip(along).filter(|(param, _)| function.ty(**param).has_double());
    moving.map(|(_, direction)| direction.clone()).collect()
}
