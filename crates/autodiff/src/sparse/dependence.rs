//! Which doubles of the result depend on which of the arguments, found by following them through one evaluation: the
//! pattern of a function whose index structure does not tell it, such as one that steps an array through time.
//!
//! In: a function, and sizes and integers. Out: [`Dependence`]. The function is evaluated by the reference evaluator in an
//! algebra of sets: a number is the set of the columns that it is computed from. Nothing depends on any double: where
//! control does, a number that is no constant is compared and decides a branch, there is no answer but a limitation.
//!
//! Holds: the pattern contains each place where the derivative is other than zero at any point with these sizes and integers.

use super::check::numbers;
use super::prepared;
use crate::request::{self, Part};
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_ir::{Function, Value, evaluate};
use chainrule_ops::{Algebra, Op};
use std::rc::Rc;

/// A pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependence {
    /// How many doubles the result has.
    pub n_rows: usize,
    /// How many doubles the arguments have that are differentiated by.
    pub n_columns: usize,
    /// Row and column, ascending, each once.
    pub at: Vec<(usize, usize)>,
}

/// What a number is computed from.
#[derive(Clone, Debug)]
struct Origin {
    /// What it is, if it is computed from constants alone.
    constant: Option<f64>,
    /// Columns, ascending.
    columns: Rc<[usize]>,
}

/// The algebra of sets.
struct Sets {
    none: Rc<[usize]>,
}

impl Algebra for Sets {
    type Value = Origin;

    fn constant(&mut self, c: f64) -> Origin {
        Origin { constant: Some(c), columns: Rc::clone(&self.none) }
    }

    fn apply(&mut self, op: Op, args: &[Origin]) -> Origin {
        let constants: Option<Vec<f64>> = args.iter().map(|arg| arg.constant).collect();
        let constant = constants.map(|args| op.value(&args));
        let mut columns = Rc::clone(&self.none);
        for arg in args {
            columns = union(columns, &arg.columns);
        }
        Origin { constant, columns }
    }

    fn to_f64(&self, value: &Origin) -> Option<f64> {
        value.constant
    }
}

/// Of two ascending lists. Linear.
fn union(a: Rc<[usize]>, b: &Rc<[usize]>) -> Rc<[usize]> {
    if b.is_empty() || Rc::ptr_eq(&a, b) {
        return a;
    }
    if a.is_empty() {
        return Rc::clone(b);
    }
    let mut all: Vec<usize> = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let next = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => *x.min(y),
            (Some(x), None) => *x,
            (None, Some(y)) => *y,
            (None, None) => break,
        };
        i += usize::from(a.get(i) == Some(&next));
        j += usize::from(b.get(j) == Some(&next));
        all.push(next);
    }
    // Most numbers of a step depend on what another one before did.
    if all.len() == a.len() { a } else { all.into() }
}

/// The pattern of the Jacobian of `function` by the parameters `by`, by all that have a `Double` where none is named, for the
/// sizes and integers in `args`. It takes as long as the reference evaluator, times the lengths of the sets.
///
/// # Errors
/// As a Jacobian; a limitation where control depends on doubles, or where the function states a derivative of its own;
/// what the function itself fails with.
pub fn dependence(function: &Function, by: &[Name], args: &[Value<f64>]) -> Result<Dependence, Diagnostics> {
    let by = request::check(function, &[Part::Jacobian], by)?;
    if crate::own_derivative(function).is_some() {
        return Err(Diagnostic::limitation(format!("what `{}` depends on cannot be followed", function.name))
            .with_reason("it states a derivative of its own, which may depend on more than its value does")
            .into());
    }
    let function = prepared(function)?;
    let none: Rc<[usize]> = Rc::from([]);
    let mut sets: Vec<Value<Origin>> =
        args.iter().map(|arg| arg.map(&mut |_| Origin { constant: None, columns: Rc::clone(&none) })).collect();
    let mut n_columns = 0;
    for param in &by {
        let Some(k) = function.params.iter().position(|p| p == param) else { continue };
        let Some(arg) = args.get(k) else { continue };
        let numbers = numbers(function.ty(*param), arg);
        let mut next = numbers.iter();
        let start = n_columns;
        n_columns += numbers.len();
        sets[k] = arg.map(&mut |_| {
            let column = start + next.next().copied().unwrap_or(0);
            Origin { constant: None, columns: Rc::from([column]) }
        });
    }
    let result = evaluate(&function, &mut Sets { none }, &sets)
        .map_err(|failure| Diagnostics::from(Diagnostic::from(failure)))?;
    let rows = numbers(function.result_type(), &result.map(&mut |_| 0.0));
    let mut at = Vec::new();
    let mut next = rows.iter();
    drop(result.map(&mut |from| {
        if let Some(row) = next.next() {
            at.extend(from.columns.iter().map(|column| (*row, *column)));
        }
    }));
    at.sort_unstable();
    Ok(Dependence { n_rows: rows.len(), n_columns, at })
}
