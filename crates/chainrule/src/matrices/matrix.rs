//! Sparse Jacobians and Hessians of any function: one interface, and the choice of the way of computing them.
//!
//! In: a request for a sparse derivative ([`Derivation::sparse`]). Out: a [`SparseMatrix`]; then, for arguments of
//! which only sizes and integers matter, a [`PreparedMatrix`]: the pattern, and memory for repeated computation of the
//! values.
//!
//! | way | used | pattern |
//! | --- | --- | --- |
//! | [`SparseWay::StraightLine`] | for straight-line code | the entries that are not structurally zero |
//! | [`SparseWay::Indices`] | if indices determine the pattern | blocks, without known zeros |
//! | [`SparseWay::Directions`] | otherwise, if control flow depends on no double | exact, from one evaluation |
//!
//! In the way of indices, an entry of a dense block may be structurally zero. Such entries are removed if numbers can
//! be followed through the function: then the pattern is that of straight-line code.
//!
//! Rows and columns are numbered in all ways as the doubles of results and arguments lie in memory: leaf after leaf,
//! each row-major, arguments in the order of the request. Values are in the order of [`Pattern::coo`].

use crate::derive::{Chosen, Derivation, Triangle};
use crate::function::Body;
use crate::guard::guard;
use crate::sparse::{self, SparseForm};
use crate::{
    Backend, Coloured, CompileOptions, Compiled, Error, Function, LoopCounts, Pattern, Prepared, PreparedColoured,
    PreparedSparse, Result, Sparse, SparsePrograms,
};
use chainrule_autodiff::parts::Step;
use chainrule_autodiff::sparse::check::numbers;
use chainrule_autodiff::sparse::dependence::dependence;
use chainrule_autodiff::sparse::interaction::interaction;
use chainrule_base::{Diagnostic, Name};
use chainrule_ir::{self as ir, Type, Value};
use std::fmt;
use std::sync::OnceLock;

/// Number of doubles for each column above which directions are tried before the pattern of the indices is made.
const MANY_PER_COLUMN: usize = 1000;

/// Number of doubles up to which the pattern of the indices is made to see how dense it is.
const FEW: usize = 1 << 22;

/// Directions are tried if more than one in so many elements of the matrix is in the pattern of the indices, or less
/// than one in so many computed doubles is an entry.
const DENSE: usize = 4;

/// Number of computed doubles up to which entries of blocks that are structurally zero are found, by following numbers
/// through one evaluation by the reference evaluator.
const FOLLOWED: usize = 1 << 17;

/// Weight of a function's operations up to which that is done: a second or two.
const FOLLOWED_WEIGHT: u64 = 2_000_000;

/// Way in which a sparse matrix is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SparseWay {
    /// Straight-line code of the entries.
    StraightLine,
    /// Blocks at the indices at which the program reads its arguments.
    Indices,
    /// This number of directional derivatives, each for columns that share no row.
    Directions(usize),
}

impl fmt::Display for SparseWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StraightLine => f.write_str("straight-line code of the entries, with the exact pattern"),
            Self::Indices => f.write_str("blocks at the indices at which the program reads its arguments"),
            Self::Directions(n) => write!(f, "{n} directional derivatives, with the pattern from one evaluation"),
        }
    }
}

/// Compiled sparse Jacobian or Hessian; created by [`Derivation::matrix`].
#[derive(Debug)]
pub struct SparseMatrix {
    made: Made,
    triangle: Option<Triangle>,
    /// Requested parts of the arguments, if the columns of whole arguments are computed.
    parts: Option<Vec<Chosen>>,
}

#[derive(Debug)]
enum Made {
    Straight { compiled: Compiled, pattern: Pattern },
    Loops(Box<Loops>),
}

#[derive(Debug)]
struct Loops {
    indices: Sparse,
    function: Function,
    is_hessian: bool,
    by: Vec<String>,
    options: CompileOptions,
    /// Compiled on first use; `None` if there is none.
    directions: OnceLock<Option<Coloured>>,
    /// Operation counts of the function, on first use.
    counts: OnceLock<Option<LoopCounts>>,
}

/// Sparse matrix at fixed extents and integers; created by [`SparseMatrix::prepare`]. Doubles may change between runs.
#[derive(Debug)]
pub struct PreparedMatrix<'m> {
    evaluation: Evaluation<'m>,
    /// Positions of the entries of a triangle among those of the whole matrix, and their values.
    part: Option<(Vec<usize>, Vec<f64>)>,
    pattern: Pattern,
}

#[derive(Debug)]
enum Evaluation<'m> {
    Straight(Prepared<'m>),
    Indices(PreparedSparse<'m>),
    Directions(PreparedColoured<'m>),
}

impl Derivation {
    /// Compiles the Jacobian, gradient or Hessian as a sparse matrix, of any function: the way of computing it is
    /// chosen by the function and, at [`SparseMatrix::prepare`], by its sizes and integers.
    ///
    /// # Errors
    /// The errors of [`Self::function`]; any other request.
    ///
    /// ```
    /// use chainrule::{Module, SparseWay};
    /// let text = "let f = fun (x : [n]Double) -> build (n - 1) (fun i -> (x[i + 1] - x[i]) ** 2)";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// let ways = [(f.clone(), SparseWay::Indices), (f.at_sizes(&[("n", 3)])?, SparseWay::StraightLine)];
    /// for (f, way) in ways {
    ///     let matrix = f.jacobian().matrix()?;
    ///     let mut jacobian = matrix.prepare(&[vec![1.0, 2.0, 4.0].into()])?;
    ///     assert_eq!(jacobian.pattern().coo(), [(0, 0), (0, 1), (1, 1), (1, 2)]);
    ///     assert_eq!(jacobian.run()?, [-2.0, 2.0, -4.0, 4.0]);
    ///     assert_eq!(jacobian.way(), way);
    /// }
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn matrix(&self) -> Result<SparseMatrix> {
        self.matrix_with(&CompileOptions::default())
    }

    /// Does the same, with options.
    ///
    /// # Errors
    /// The errors of [`Self::matrix`] and [`Function::compile_with`].
    pub fn matrix_with(&self, options: &CompileOptions) -> Result<SparseMatrix> {
        guard(|| {
            let request = self.clone().sparse();
            let request = request.with_selected_results()?;
            let is_hessian = request.matrix_is_hessian()?;
            request.check()?;
            let triangle = request.triangle();
            if !request.differentiated().to_differentiate()?.keeps_loops() {
                let derived = request.function()?;
                let pattern = derived.outputs().first().and_then(|output| derived.pattern(&output.name)).cloned();
                let Some(pattern) = pattern else { return Err(Error::Bug("a sparse matrix without a pattern".into())) };
                let made = Made::Straight { compiled: derived.compile_with(options)?, pattern };
                return Ok(SparseMatrix { made, triangle: None, parts: None });
            }
            let (function, options) = (request.differentiated().clone(), *options);
            let (by, parts) = request.whole_arguments()?;
            let indices = programs(&function, &by, is_hessian)?.compile_with(&options)?;
            let loops = Loops {
                indices,
                function,
                is_hessian,
                by,
                options,
                directions: OnceLock::new(),
                counts: OnceLock::new(),
            };
            Ok(SparseMatrix { made: Made::Loops(Box::new(loops)), triangle, parts })
        })
    }
}

impl Derivation {
    /// Returns the programs of a sparse Jacobian, gradient or Hessian of a function that keeps its loops, for emission;
    /// `None` for straight-line code, which is one function.
    ///
    /// # Errors
    /// The errors of [`Self::matrix`].
    pub fn sparse_programs(&self) -> Result<Option<SparsePrograms>> {
        guard(|| {
            let request = self.clone().sparse();
            let request = request.with_selected_results()?;
            request.check()?;
            if !request.differentiated().to_differentiate()?.keeps_loops() {
                return Ok(None);
            }
            let (by, parts) = request.whole_arguments()?;
            if parts.is_some() {
                let name = request.differentiated().name();
                let title = format!("the programs of a sparse derivative of `{name}` are by whole arguments");
                let help = "leave out the parts, or unroll its loops";
                return Err(Error::lone(Diagnostic::limitation(title).with_help(help)));
            }
            programs(request.differentiated(), &by, request.matrix_is_hessian()?).map(Some)
        })
    }
}

fn programs(function: &Function, by: &[String], is_hessian: bool) -> Result<SparsePrograms> {
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    if is_hessian { function.sparse_hessian_programs(&by) } else { function.sparse_jacobian_programs(&by) }
}

impl SparseMatrix {
    /// Finds the pattern at these arguments, of which only sizes and integers matter, chooses the way, and allocates
    /// memory for the values.
    ///
    /// # Errors
    /// Fails if a value does not have the type or the extents of its argument; if an index is out of range.
    pub fn prepare(&self, args: &[Value<f64>]) -> Result<PreparedMatrix<'_>> {
        let (evaluation, pattern, exact) = match &self.made {
            Made::Straight { compiled, pattern } => {
                (Evaluation::Straight(compiled.prepare(args)?), pattern.clone(), None)
            }
            Made::Loops(loops) => loops.evaluation(args)?,
        };
        if self.triangle.is_none() && exact.is_none() && self.parts.is_none() {
            return Ok(PreparedMatrix { evaluation, part: None, pattern });
        }
        let columns = match (&self.made, &self.parts) {
            (Made::Loops(loops), Some(parts)) => Some(loops.columns(parts, args, pattern.shape().1)?),
            _ => None,
        };
        let n_columns = columns.as_ref().map_or(pattern.shape().1, |columns| columns.iter().flatten().count());
        let column = |column: usize| columns.as_ref().map_or(Some(column), |columns| columns[column]);
        let is_hessian = matches!(&self.made, Made::Loops(loops) if loops.is_hessian);
        let place = |at: (usize, usize)| {
            let (from, to) = (if is_hessian { column(at.0)? } else { at.0 }, column(at.1)?);
            let is_entry = self.triangle.is_none_or(|triangle| triangle.has(from, to))
                && exact.as_ref().is_none_or(|exact| exact.place(at.0, at.1).is_some());
            is_entry.then_some((from, to))
        };
        let mut entries: Vec<((usize, usize), usize)> =
            pattern.coo().iter().enumerate().filter_map(|(k, at)| Some((place(*at)?, k))).collect();
        entries.sort_unstable();
        let (at, positions): (Vec<(usize, usize)>, Vec<usize>) = entries.into_iter().unzip();
        let n_rows = if is_hessian { n_columns } else { pattern.shape().0 };
        let values = vec![0.0; at.len()];
        Ok(PreparedMatrix { evaluation, part: Some((positions, values)), pattern: Pattern::new(n_rows, n_columns, at) })
    }

    /// Returns messages about structure that the indices of the program do not determine; empty for straight-line code.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        match &self.made {
            Made::Straight { .. } => &[],
            Made::Loops(loops) => loops.indices.notes(),
        }
    }

    /// Returns the backend that runs it: never [`Backend::Auto`].
    #[must_use]
    pub fn backend(&self) -> Backend {
        match &self.made {
            Made::Straight { compiled, .. } => compiled.backend(),
            Made::Loops(loops) => loops.indices.backend(),
        }
    }

    /// As [`Compiled::refusal`].
    #[must_use]
    pub fn refusal(&self) -> Option<&Diagnostic> {
        match &self.made {
            Made::Straight { compiled, .. } => compiled.refusal(),
            Made::Loops(loops) => loops.indices.refusal(),
        }
    }
}

/// Returns the part of `value` at `steps`. Recursive on the nesting of types only.
fn picked<T: Clone>(value: &Value<T>, steps: &[Step]) -> Option<Value<T>> {
    let Some((step, rest)) = steps.split_first() else { return Some(value.clone()) };
    let (Value::Array(items) | Value::Tuple(items)) = value else { return None };
    let number = |k: i64| usize::try_from(k).ok();
    let each =
        |items: &[Value<T>]| items.iter().map(|item| picked(item, rest)).collect::<Option<_>>().map(Value::Array);
    match *step {
        Step::Field(k) => picked(items.get(k)?, rest),
        Step::Index(k) => picked(items.get(number(k)?)?, rest),
        Step::Each => each(items),
        Step::Range(begin, end) => each(items.get(number(begin)?..number(end)?)?),
    }
}

/// Returns whether an error means that the function has no small set of directions; any other is an error of the
/// program, the arguments or Chainrule.
fn is_refusal(error: &Error) -> bool {
    error.is_limitation() || matches!(error, Error::Request { .. })
}

impl Loops {
    /// Returns the derivative by directions at these arguments, if no branch depends on doubles.
    fn by_directions(&self, args: &[Value<f64>]) -> Result<Option<PreparedColoured<'_>>> {
        let made = self.directions.get_or_init(|| {
            let by: Vec<&str> = self.by.iter().map(String::as_str).collect();
            let (f, options) = (&self.function, &self.options);
            let made = match self.is_hessian {
                true => f.coloured_hessian_with(&by, options),
                false => f.coloured_jacobian_with(&by, options),
            };
            made.ok()
        });
        match made.as_ref().map(|made| made.prepare(args)) {
            None => Ok(None),
            Some(Err(error)) if is_refusal(&error) => Ok(None),
            Some(prepared) => prepared.map(Some),
        }
    }

    /// Returns the weight of the function's operations at these arguments, if known.
    fn weight(&self, function: &ir::Function, args: &[Value<f64>]) -> Option<u64> {
        let counts = self.counts.get_or_init(|| self.function.loop_counts().ok().flatten()).as_ref()?;
        let sizes = ir::bind_sizes(function, args).ok()?;
        let mut named: Vec<(&str, i64)> = Vec::new();
        for var in &function.sizes {
            named.extend(function.vars[*var].name.as_deref().zip(sizes.get(*var)));
        }
        for (var, arg) in function.params.iter().zip(args) {
            let Value::Int(number) = arg else { continue };
            named.extend(function.vars[*var].name.as_deref().map(|name| (name, *number)));
        }
        Some(counts.at(&named).weight)
    }

    /// Returns the column among those of `parts` of each of the `n` columns by whole arguments; `None` for those that
    /// are in no part.
    fn columns(&self, parts: &[Chosen], args: &[Value<f64>], n: usize) -> Result<Vec<Option<usize>>> {
        let mut columns = vec![None; n];
        let params = &self.function.signature().params;
        let mut next = 0;
        for Chosen { part, ty } in parts {
            let (Some((name, whole)), Some(arg)) = (params.get(part.param), args.get(part.param)) else { continue };
            let count = |name: &str| {
                let param = params.iter().zip(args).find(|((param, _), _)| **param == *name);
                param.map_or(0, |(_, arg)| arg.reals().len())
            };
            let start: usize = self.by.iter().take_while(|by| **by != **name).map(|by| count(by)).sum();
            let memory = numbers(whole, arg);
            let mut at = memory.iter();
            let numbered = arg.map(&mut |_| start + at.next().copied().unwrap_or(0));
            let Some(chosen) = picked(&numbered, &part.steps) else {
                let message = format!("there is no `{}`: its array has too few elements", part.text);
                return Err(Error::request(message, "give a larger array, or choose another part"));
            };
            let order = numbers(ty, &chosen.map(&mut |_| 0.0));
            for (column, place) in chosen.reals().into_iter().zip(&order) {
                columns[*column] = Some(next + place);
            }
            next += order.len();
        }
        Ok(columns)
    }

    /// Returns the exact pattern at these arguments, if `pattern` has more entries; `None` also if it is too large, or
    /// if control flow depends on doubles.
    fn exact(&self, args: &[Value<f64>], pattern: &Pattern) -> Option<Pattern> {
        let Body::Array(body) = &self.function.body else { return None };
        if self.indices.n_computed(args).ok()? > FOLLOWED || self.weight(&body.function, args)? > FOLLOWED_WEIGHT {
            return None;
        }
        let by: Vec<Name> = self.by.iter().map(|name| Name::new(name)).collect();
        let found = match self.is_hessian {
            true => interaction(&body.function, &by, args),
            false => dependence(&body.function, &by, args),
        };
        let found = found.ok().filter(|found| (found.n_rows, found.n_columns) == pattern.shape())?;
        let exact = Pattern::new(found.n_rows, found.n_columns, found.at);
        pattern.coo().iter().any(|(row, column)| exact.place(*row, *column).is_none()).then_some(exact)
    }

    /// Returns the evaluation with its pattern, and the exact pattern if that has fewer entries.
    fn evaluation(&self, args: &[Value<f64>]) -> Result<(Evaluation<'_>, Pattern, Option<Pattern>)> {
        let n = self.indices.n_computed(args)?;
        let params = self.function.signature().params.iter().zip(args);
        let by = params.filter(|((name, _), _)| self.by.is_empty() || self.by.iter().any(|by| *by == **name));
        let n_columns: usize = by.map(|(_, arg)| arg.reals().len()).sum();
        let is_open = !self.indices.notes().is_empty();
        if (is_open || (n > FEW && n / n_columns.max(1) > MANY_PER_COLUMN))
            && let Some(found) = self.by_directions(args)?
        {
            let pattern = found.pattern().clone();
            return Ok((Evaluation::Directions(found), pattern, None));
        }
        let prepared = self.indices.prepare(args)?;
        let pattern = prepared.pattern().clone();
        let exact = self.exact(args, &pattern);
        let n_entries = exact.as_ref().map_or(pattern.n_entries(), Pattern::n_entries);
        let (n_rows, n_columns) = pattern.shape();
        let is_dense = pattern.n_entries().saturating_mul(DENSE) > n_rows.saturating_mul(n_columns);
        // A direction computes a double for each row.
        if ((exact.is_none() && is_dense && !is_open) || n_entries.saturating_mul(DENSE) < n)
            && let Some(found) = self.by_directions(args)?
            && found.n_colours().saturating_mul(n_rows) < n
        {
            let pattern = found.pattern().clone();
            return Ok((Evaluation::Directions(found), pattern, None));
        }
        Ok((Evaluation::Indices(prepared), pattern, exact))
    }
}

impl Evaluation<'_> {
    fn values(&self) -> &[f64] {
        match self {
            Self::Straight(prepared) => prepared.result(0),
            Self::Indices(prepared) => prepared.values(),
            Self::Directions(prepared) => prepared.values(),
        }
    }
}

impl PreparedMatrix<'_> {
    /// Returns the chosen way.
    #[must_use]
    pub fn way(&self) -> SparseWay {
        match &self.evaluation {
            Evaluation::Straight(_) => SparseWay::StraightLine,
            Evaluation::Indices(_) => SparseWay::Indices,
            Evaluation::Directions(prepared) => SparseWay::Directions(prepared.n_colours()),
        }
    }

    /// Returns the positions of the entries.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Returns the doubles of argument `i`, row-major, for writing; empty for integers and for arguments that do not
    /// exist. Arguments are numbered as in [`Function::inputs`].
    pub fn argument_mut(&mut self, i: usize) -> &mut [f64] {
        match &mut self.evaluation {
            Evaluation::Straight(prepared) => prepared.argument_mut(i),
            Evaluation::Indices(prepared) => prepared.argument_mut(i),
            Evaluation::Directions(prepared) => prepared.argument_mut(i),
        }
    }

    /// Computes the values, and returns them in the order of the pattern's entries.
    ///
    /// # Errors
    /// Fails if the program fails.
    pub fn run(&mut self) -> Result<&[f64]> {
        match &mut self.evaluation {
            Evaluation::Straight(prepared) => prepared.run()?,
            Evaluation::Indices(prepared) => prepared.run()?,
            Evaluation::Directions(prepared) => prepared.run()?,
        }
        if let Some((positions, values)) = &mut self.part {
            let all = self.evaluation.values();
            positions.iter().zip(values).for_each(|(k, value)| *value = all[*k]);
        }
        Ok(self.values())
    }

    /// Returns the values of the last run, in the order of the pattern's entries.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        match &self.part {
            Some((_, values)) => values,
            None => self.evaluation.values(),
        }
    }

    /// Returns the matrix in this form, with the values of the last run.
    #[must_use]
    pub fn results(&self, form: SparseForm) -> Vec<(Name, Type, Value<f64>)> {
        sparse::results(&self.pattern, self.values(), form)
    }

    /// Returns the matrix as dense blocks, with the values of the last run: `rows` and `columns` of their first
    /// entries, `n_rows` and `n_columns`, and `values`. Blocks that overlap are to be added. Each entry is a block
    /// unless the way is [`SparseWay::Indices`].
    ///
    /// # Errors
    /// As [`PreparedSparse::block_results`].
    pub fn block_results(&self) -> Result<Vec<(Name, Type, Value<f64>)>> {
        match (&self.evaluation, &self.part) {
            (Evaluation::Indices(prepared), None) => prepared.block_results(),
            _ => Ok(sparse::single_blocks(&self.pattern, self.values())),
        }
    }
}
