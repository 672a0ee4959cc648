//! Pairs of doubles of the arguments that occur together in a nonlinear term of a scalar: the pattern of its Hessian,
//! traced through one evaluation of the function itself.
//!
//! In: a function, and sizes and integers. Out: a [`Dependence`] whose rows are columns too. The function is evaluated
//! by the reference evaluator in an algebra of sets, as in [`dependence`](super::dependence). In addition, each
//! operator records the pairs of columns that its operands combine: a second partial derivative is nonzero if a first
//! partial, by an operand that depends on `i`, depends on `j`. The formulas of the partials are those of the operator
//! table. Only the operators that reach the result count.
//!
//! Gradients of array programs are sums of one-hot arrays, which the reference evaluator builds one by one; tracing the
//! function takes its own time, times the lengths of the sets.
//!
//! Holds: the pattern is symmetric and contains each position at which the Hessian is nonzero at any point with these
//! sizes and integers.

use super::dependence::{Dependence, Origin, Sets, columns, followed};
use crate::request::{self, Part};
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_ir::{Function, Value, evaluate};
use chainrule_ops::{Algebra, Formula, Op, Type, partial};
use std::rc::Rc;

/// Number: its dependences, and the pairs combined on the way.
#[derive(Clone, Debug)]
struct Number {
    origin: Origin,
    meeting: Option<u32>,
}

/// Columns that an operator combines: each of one side with each of the other.
type Pair = (Rc<[usize]>, Rc<[usize]>);

/// Columns that an operator combines, and the meetings of its operands.
struct Meeting {
    pair: Option<Pair>,
    before: [Option<u32>; 2],
}

/// Algebra of numbers with their meetings.
#[derive(Default)]
struct Meetings {
    smooth: Smooth,
    /// Meetings, each after those to which it refers.
    all: Vec<Meeting>,
}

impl Meetings {
    /// Returns a meeting of `pair` that contains `before`, or one of these if nothing is added.
    fn joined(&mut self, pair: Option<Pair>, before: [Option<u32>; 2]) -> Option<u32> {
        match (&pair, before) {
            (None, [one, None] | [None, one]) => return one,
            (None, [a, b]) if a == b => return a,
            _ => {}
        }
        self.all.push(Meeting { pair, before });
        u32::try_from(self.all.len() - 1).ok()
    }
}

impl Algebra for Meetings {
    type Value = Number;

    fn constant(&mut self, c: f64) -> Number {
        Number { origin: self.smooth.constant(c), meeting: None }
    }

    fn apply(&mut self, op: Op, args: &[Number]) -> Number {
        let operands: Vec<Origin> = args.iter().map(|arg| arg.origin.clone()).collect();
        let origin = self.smooth.apply(op, &operands);
        let mut meeting = None;
        for arg in args {
            meeting = self.joined(None, [meeting, arg.meeting]);
        }
        for (k, operand) in operands.iter().enumerate().filter(|(_, operand)| !operand.columns.is_empty()) {
            let with = partial(&mut self.smooth, op, k, &operands, &origin).columns;
            if !with.is_empty() {
                meeting = self.joined(Some((Rc::clone(&operand.columns), with)), [meeting, None]);
            }
        }
        Number { origin, meeting }
    }

    fn to_f64(&self, value: &Number) -> Option<f64> {
        self.smooth.to_f64(&value.origin)
    }
}

/// Algebra of sets in which piecewise constant numbers depend on nothing.
#[derive(Default)]
struct Smooth {
    sets: Sets,
}

impl Algebra for Smooth {
    type Value = Origin;

    fn constant(&mut self, c: f64) -> Origin {
        self.sets.constant(c)
    }

    fn apply(&mut self, op: Op, args: &[Origin]) -> Origin {
        let origin = self.sets.apply(op, args);
        let is_zero = |partial: &Formula| matches!(partial, Formula::Const(c) if *c == 0.0);
        let is_flat = op.row().result == Type::Bool || op.partials().iter().all(is_zero);
        if is_flat { self.sets.without_columns(&origin) } else { origin }
    }

    fn to_f64(&self, value: &Origin) -> Option<f64> {
        self.sets.to_f64(value)
    }
}

/// Computes the pattern of the Hessian of the scalar `function` by the parameters `by`, or by all that contain a
/// `Double` if `by` is empty, for the sizes and integers in `args`.
///
/// # Errors
/// The errors of a Hessian; a limitation if control flow depends on doubles, or if the function states a derivative of
/// its own; errors of the function itself.
pub fn interaction(function: &Function, by: &[Name], args: &[Value<f64>]) -> Result<Dependence, Diagnostics> {
    let by = request::check(function, &[Part::Hessian], by)?;
    let function = followed(function)?;
    let mut meetings = Meetings::default();
    let other = Number { origin: meetings.smooth.sets.other(), meeting: None };
    let mut column = |column| Number { origin: Sets::column(column), meeting: None };
    let (args, n_columns) = columns(&function, &by, args, &other, &mut column);
    let result =
        evaluate(&function, &mut meetings, &args).map_err(|failure| Diagnostics::from(Diagnostic::from(failure)))?;
    let mut is_reached = vec![false; meetings.all.len()];
    drop(result.map(&mut |number| {
        if let Some(meeting) = number.meeting {
            is_reached[meeting as usize] = true;
        }
    }));
    let mut rows = vec![Row::default(); n_columns];
    for k in (0..meetings.all.len()).rev() {
        if !is_reached[k] {
            continue;
        }
        let Meeting { pair, before } = &meetings.all[k];
        before.iter().flatten().for_each(|meeting| is_reached[*meeting as usize] = true);
        let Some((a, b)) = pair else { continue };
        for (from, to) in [(a, b), (b, a)] {
            from.iter().for_each(|row| rows[*row].extend(to));
        }
    }
    let mut at = Vec::new();
    for (row, mut columns) in rows.into_iter().enumerate() {
        columns.sort();
        at.extend(columns.columns.into_iter().map(|column| (row, column)));
    }
    Ok(Dependence { n_rows: n_columns, n_columns, at })
}

/// Columns of a row: ascending up to `n_sorted`, then in any order with duplicates.
#[derive(Clone, Default)]
struct Row {
    columns: Vec<usize>,
    n_sorted: usize,
}

impl Row {
    /// Adds `columns`. Amortised linear, except for sorting: the list is never much longer than the number of columns.
    fn extend(&mut self, columns: &[usize]) {
        self.columns.extend_from_slice(columns);
        if self.columns.len() > 2 * self.n_sorted + columns.len() + 64 {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.columns.sort_unstable();
        self.columns.dedup();
        self.n_sorted = self.columns.len();
    }
}
