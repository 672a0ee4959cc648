//! Algebras, in which every operator can be applied: numbers, graph nodes, IR variables.

use crate::{Formula, Op};

/// Domain of computation in which constants and operators have a meaning.
///
/// Partial derivatives are written once, as [`Formula`]s, and computed in any algebra: in `f64`,
/// in extended precision, as nodes of a graph, as variables of the array IR.
pub trait Algebra {
    /// Its elements. Booleans are elements too: in numeric algebras 1 is true and 0 is false.
    type Value: Clone;
    /// Returns the element for `c`.
    fn constant(&mut self, c: f64) -> Self::Value;
    /// Applies `op` to `args`, as many as [`Op::arity`].
    fn apply(&mut self, op: Op, args: &[Self::Value]) -> Self::Value;
    /// Returns the nearest `f64` in an algebra of numbers; `None` if elements are symbolic.
    fn to_f64(&self, _value: &Self::Value) -> Option<f64> {
        None
    }
}

/// Returns the partial derivative of `op` by argument `idx`, at `args`, where `value` is `op` applied to `args`.
///
/// # Panics
/// Panics if `idx` is not below the arity.
pub fn partial<A: Algebra>(algebra: &mut A, op: Op, idx: usize, args: &[A::Value], value: &A::Value) -> A::Value {
    evaluate(algebra, &op.partials()[idx], args, value)
}

// Recursive on the depth of a formula of the table, which does not depend on the user's program.
pub(crate) fn evaluate<A: Algebra>(
    algebra: &mut A,
    formula: &Formula,
    args: &[A::Value],
    value: &A::Value,
) -> A::Value {
    match *formula {
        Formula::Arg(i) => args[i].clone(),
        Formula::Value => value.clone(),
        Formula::Const(c) => algebra.constant(c),
        Formula::Apply(op, inner) => {
            let operands: Vec<A::Value> = inner.iter().map(|f| evaluate(algebra, f, args, value)).collect();
            algebra.apply(op, &operands)
        }
    }
}

/// IEEE double precision.
#[derive(Clone, Copy, Default, Debug)]
pub struct F64;

impl Algebra for F64 {
    type Value = f64;
    fn constant(&mut self, c: f64) -> f64 {
        c
    }
    fn apply(&mut self, op: Op, args: &[f64]) -> f64 {
        op.value(args)
    }
    fn to_f64(&self, value: &f64) -> Option<f64> {
        Some(*value)
    }
}
