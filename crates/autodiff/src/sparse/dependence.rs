//! Dependence of the doubles of the result on those of the arguments, traced through one evaluation: the pattern of a
//! function whose index structure does not determine it, such as one that steps an array through time.
//!
//! In: a function, and sizes and integers. Out: [`Dependence`]. The function is evaluated by the reference evaluator in
//! an algebra of sets: a number is the set of the columns from which it is computed. The result does not depend on the
//! value of any double: if control flow does (a comparison of non-constant numbers decides a branch), the result is a
//! limitation error.
//!
//! Holds: the pattern contains each position at which the derivative is nonzero at any point with these sizes and
//! integers.

use super::check::numbers;
use super::prepared;
use crate::request::{self, Part};
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_ir::{Function, Value, VarId, evaluate};
use chainrule_ops::{Algebra, Op};
use std::rc::Rc;

/// Sparsity pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependence {
    /// Number of doubles of the result.
    pub n_rows: usize,
    /// Number of doubles of the differentiation parameters.
    pub n_columns: usize,
    /// Row and column, ascending, without duplicates.
    pub at: Vec<(usize, usize)>,
}

/// Dependences of a number.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Value, if it is computed from constants alone.
    constant: Option<f64>,
    /// Columns, ascending.
    pub(crate) columns: Rc<[usize]>,
}

/// Algebra of sets of columns.
pub(crate) struct Sets {
    none: Rc<[usize]>,
}

impl Default for Sets {
    fn default() -> Self {
        Self { none: Rc::from([]) }
    }
}

impl Sets {
    /// Returns a number that is not a constant and depends on no column.
    pub(crate) fn other(&self) -> Origin {
        Origin { constant: None, columns: Rc::clone(&self.none) }
    }

    /// Returns `origin` without its dependence on columns.
    pub(crate) fn without_columns(&self, origin: &Origin) -> Origin {
        Origin { constant: origin.constant, columns: Rc::clone(&self.none) }
    }

    /// Returns the number for column `column`.
    pub(crate) fn column(column: usize) -> Origin {
        Origin { constant: None, columns: Rc::from([column]) }
    }
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

/// Returns the union of two ascending lists. Linear.
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
    // Most numbers depend on the same columns as an earlier one.
    if all.len() == a.len() { a } else { all.into() }
}

/// Computes the pattern of the Jacobian of `function` by the parameters `by`, or by all that contain a `Double` if `by`
/// is empty, for the sizes and integers in `args`. The cost is that of the reference evaluator times the lengths of the
/// sets.
///
/// # Errors
/// The errors of a Jacobian; a limitation if control flow depends on doubles, or if the function states a derivative of
/// its own; errors of the function itself.
pub fn dependence(function: &Function, by: &[Name], args: &[Value<f64>]) -> Result<Dependence, Diagnostics> {
    let by = request::check(function, &[Part::Jacobian], by)?;
    let function = followed(function)?;
    let mut sets = Sets::default();
    let (args, n_columns) = columns(&function, &by, args, &sets.other(), &mut Sets::column);
    let result =
        evaluate(&function, &mut sets, &args).map_err(|failure| Diagnostics::from(Diagnostic::from(failure)))?;
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

/// Expands the derivatives in `function`, unless it states one of its own.
pub(crate) fn followed(function: &Function) -> Result<Function, Diagnostics> {
    if crate::own_derivative(function).is_some() {
        return Err(Diagnostic::limitation(format!("what `{}` depends on cannot be followed", function.name))
            .with_reason("it states a derivative of its own, which may depend on more than its value does")
            .into());
    }
    prepared(function)
}

/// Returns the arguments with each double of `by` as its column and each other as `other`, and the number of columns.
pub(crate) fn columns<T: Clone>(
    function: &Function,
    by: &[VarId],
    args: &[Value<f64>],
    other: &T,
    column: &mut dyn FnMut(usize) -> T,
) -> (Vec<Value<T>>, usize) {
    let mut all: Vec<Value<T>> = args.iter().map(|arg| arg.map(&mut |_| other.clone())).collect();
    let mut n_columns = 0;
    for param in by {
        let Some(k) = function.params.iter().position(|p| p == param) else { continue };
        let Some(arg) = args.get(k) else { continue };
        let numbers = numbers(function.ty(*param), arg);
        let mut next = numbers.iter();
        let start = n_columns;
        n_columns += numbers.len();
        all[k] = arg.map(&mut |_| column(start + next.next().copied().unwrap_or(0)));
    }
    (all, n_columns)
}
