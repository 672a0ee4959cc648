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
use chainrule_ir::{Function, Value, VarId, evaluate};
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
pub(crate) struct Origin {
    /// What it is, if it is computed from constants alone.
    constant: Option<f64>,
    /// Columns, ascending.
    pub(crate) columns: Rc<[usize]>,
}

/// The algebra of sets.
pub(crate) struct Sets {
    none: Rc<[usize]>,
}

impl Default for Sets {
    fn default() -> Self {
        Self { none: Rc::from([]) }
    }
}

impl Sets {
    /// A number that is no constant and depends on no column.
    pub(crate) fn other(&self) -> Origin {
        Origin { constant: None, columns: Rc::clone(&self.none) }
    }

    /// `origin` as if it depended on no column.
    pub(crate) fn without_columns(&self, origin: &Origin) -> Origin {
        Origin { constant: origin.constant, columns: Rc::clone(&self.none) }
    }

    /// The number of column `column`.
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

/// `function` with the derivatives in it worked out, unless it states one of its own.
pub(crate) fn followed(function: &Function) -> Result<Function, Diagnostics> {
    if crate::own_derivative(function).is_some() {
        return Err(Diagnostic::limitation(format!("what `{}` depends on cannot be followed", function.name))
            .with_reason("it states a derivative of its own, which may depend on more than its value does")
            .into());
    }
    prepared(function)
}

/// The arguments with each double of `by` as its column and each other as `other`, and the number of columns.
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
