//! `Sparse`, `SparseAt`: sparse Jacobians and Hessians, and one of them at extents and integers with its pattern.
//!
//! The pattern usually follows from the indices at which a function reads its arguments. Otherwise, as for arrays that
//! loops write element by element, dependences are traced at the arguments, and the entries are computed by colours.

// Prepared derivatives are stored with the objects that they borrow from.
#![allow(unsafe_code)]

use crate::arrays::{Input, Output};
use crate::errors::{Stage, detached};
use chainrule::{Coloured, Error, Pattern, PreparedColoured, PreparedSparse, Slice, SliceMut, Type, Value};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A compiled sparse derivative: by the indices of the function, or by colours if the indices determine little.
#[pyclass(frozen)]
pub(crate) struct Sparse {
    function: chainrule::Function,
    is_hessian: bool,
    by: Vec<String>,
    sparse: Arc<chainrule::Sparse>,
    /// Made at first use; `None` if the function has none.
    coloured: OnceLock<Option<Arc<Coloured>>>,
}

/// A sparse derivative at extents and integers that are fixed, with its pattern.
#[pyclass(frozen)]
pub(crate) struct SparseAt(Mutex<Prepared>);

/// Fields in the order in which they are dropped.
struct Held<P, O> {
    prepared: P,
    _owner: Arc<O>,
}

enum Prepared {
    Indices(Held<PreparedSparse<'static>, chainrule::Sparse>),
    Coloured(Held<PreparedColoured<'static>, Coloured>),
}

impl Prepared {
    fn by_indices(owner: &Arc<chainrule::Sparse>, args: &[Value<f64>]) -> Result<Self, Error> {
        let prepared = owner.prepare(args)?;
        // SAFETY: it borrows from the content of the `Arc`, which is neither moved nor changed, and dropped after it.
        let prepared = unsafe { std::mem::transmute::<PreparedSparse<'_>, PreparedSparse<'static>>(prepared) };
        Ok(Self::Indices(Held { prepared, _owner: Arc::clone(owner) }))
    }

    fn by_colours(owner: &Arc<Coloured>, args: &[Value<f64>]) -> Result<Self, Error> {
        let prepared = owner.prepare(args)?;
        // SAFETY: as above.
        let prepared = unsafe { std::mem::transmute::<PreparedColoured<'_>, PreparedColoured<'static>>(prepared) };
        Ok(Self::Coloured(Held { prepared, _owner: Arc::clone(owner) }))
    }

    fn pattern(&self) -> &Pattern {
        match self {
            Self::Indices(held) => held.prepared.pattern(),
            Self::Coloured(held) => held.prepared.pattern(),
        }
    }

    fn argument_mut(&mut self, i: usize) -> &mut [f64] {
        match self {
            Self::Indices(held) => held.prepared.argument_mut(i),
            Self::Coloured(held) => held.prepared.argument_mut(i),
        }
    }

    fn run(&mut self) -> Result<&[f64], Error> {
        match self {
            Self::Indices(held) => held.prepared.run().map(|()| held.prepared.values()),
            Self::Coloured(held) => held.prepared.run().map(|()| held.prepared.values()),
        }
    }
}

/// Doubles per column above which a pattern from indices is made only after colours were tried.
const MANY_A_COLUMN: usize = 1000;

/// Maximum number of doubles of a pattern that is made to measure its density.
const FEW: usize = 1 << 22;

/// A pattern is dense if it has more than 1/n of the elements of its matrix, with this n.
const DENSE: usize = 4;

impl Sparse {
    pub(crate) fn new(function: &chainrule::Function, what: &str, by: &[&str]) -> Result<Self, Error> {
        let is_hessian = what == "sparse_hessian";
        let sparse = if is_hessian { function.sparse_hessian(by) } else { function.sparse_jacobian(by) };
        let by = by.iter().map(|name| (*name).to_owned()).collect();
        Ok(Self { function: function.clone(), is_hessian, by, sparse: Arc::new(sparse?), coloured: OnceLock::new() })
    }

    /// Returns the derivative by colours at these arguments; `None` if a branch depends on doubles.
    fn coloured(&self, args: &[Value<f64>]) -> Option<Prepared> {
        let by: Vec<&str> = self.by.iter().map(String::as_str).collect();
        let made = self.coloured.get_or_init(|| {
            let f = &self.function;
            let made = if self.is_hessian { f.coloured_hessian(&by) } else { f.coloured_jacobian(&by) };
            made.ok().map(Arc::new)
        });
        Prepared::by_colours(made.as_ref()?, args).ok()
    }

    /// Returns the derivative at these arguments, by the method with fewer entries.
    fn prepare(&self, args: &[Value<f64>], n_columns: usize) -> Result<Prepared, Error> {
        let n = self.sparse.n_computed(args)?;
        if n > FEW
            && n / n_columns.max(1) > MANY_A_COLUMN
            && let Some(coloured) = self.coloured(args)
        {
            return Ok(coloured);
        }
        let prepared = Prepared::by_indices(&self.sparse, args)?;
        let ((n_rows, n_columns), entries) = (prepared.pattern().shape(), prepared.pattern().n_entries());
        if entries.saturating_mul(DENSE) > n_rows.saturating_mul(n_columns)
            && let Some(coloured) = self.coloured(args)
            && coloured.pattern().n_entries() < entries
        {
            return Ok(coloured);
        }
        Ok(prepared)
    }
}

/// Returns the elements from `at` on as a value of this type. Recursive on the rank only.
fn value(ty: &Type, elements: Slice<'_>, extents: &[usize], at: usize) -> Value<f64> {
    match (ty, elements) {
        (Type::Array(_, element), _) => {
            let n = extents.first().copied().unwrap_or(0);
            let inner = extents.get(1..).unwrap_or(&[]);
            let stride: usize = inner.iter().product();
            Value::Array((0..n).map(|i| value(element, elements, inner, at + i * stride)).collect())
        }
        (Type::Bool, Slice::Int(x)) => Value::Bool(x.get(at).is_some_and(|x| *x != 0)),
        (_, Slice::Int(x)) => Value::Int(x.get(at).copied().unwrap_or(0)),
        (_, Slice::Real(x)) => Value::Real(x.get(at).copied().unwrap_or(0.0)),
    }
}

#[pymethods]
impl Sparse {
    /// Evaluates the pattern, which depends on the extents and integers of these arguments.
    fn at(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<SparseAt> {
        let inputs = inputs.iter().map(Input::new).collect::<PyResult<Vec<_>>>()?;
        let params = &self.function.signature().params;
        let pairs = params.iter().zip(&inputs);
        let values: Vec<Value<f64>> =
            pairs.clone().map(|((_, ty), input)| value(ty, input.slice(), input.extents(), 0)).collect();
        let by = pairs.filter(|((name, _), _)| self.by.iter().any(|by| *by == **name));
        let n_columns = by.map(|(_, input)| input.slice().len()).sum();
        let prepared = detached(py, Stage::Entry, || self.prepare(&values, n_columns))?;
        Ok(SparseAt(Mutex::new(prepared)))
    }

    /// Returns the arguments that are used as a whole, whose columns are therefore dense, with reasons.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.sparse.notes().to_vec()
    }

    /// Returns the program that computes the values, as F~ text.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, Stage::Program, || Ok(self.sparse.values_program().listing()))
    }

    /// Returns the program that computes the values, as C.
    fn c(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, Stage::Program, || self.sparse.values_program().emit_c().map(|c| c.source))
    }
}

#[pymethods]
impl SparseAt {
    /// Returns the numbers of rows, columns and entries.
    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        let prepared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (n_rows, n_columns) = prepared.pattern().shape();
        (n_rows, n_columns, prepared.pattern().n_entries())
    }

    /// Writes the start of each row among the entries, and the columns of the entries.
    fn pattern(&self, starts: &Bound<'_, PyAny>, columns: &Bound<'_, PyAny>) -> PyResult<()> {
        let csr = self.0.lock().unwrap_or_else(PoisonError::into_inner).pattern().csr();
        for (target, numbers) in [(starts, csr.starts), (columns, csr.indices)] {
            if let SliceMut::Int(target) = Output::new(target)?.slice() {
                for (place, number) in target.iter_mut().zip(numbers) {
                    *place = i64::try_from(number).unwrap_or(i64::MAX);
                }
            }
        }
        Ok(())
    }

    /// Writes the values of the entries at these arguments, which have the extents and integers of its pattern.
    fn run(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let inputs = inputs.iter().map(Input::new).collect::<PyResult<Vec<_>>>()?;
        let mut output = Output::new(values)?;
        let SliceMut::Real(target) = output.slice() else { return Ok(()) };
        detached(py, Stage::Run, || {
            let mut prepared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (i, input) in inputs.iter().enumerate() {
                if let Slice::Real(given) = input.slice() {
                    let argument = prepared.argument_mut(i);
                    if argument.len() != given.len() {
                        return Err(Error::Bug(format!("argument {i} has {} elements", given.len())));
                    }
                    argument.copy_from_slice(given);
                }
            }
            let values = prepared.run()?;
            if target.len() != values.len() {
                return Err(Error::Bug(format!("{} places for {} values", target.len(), values.len())));
            }
            target.copy_from_slice(values);
            Ok(())
        })
    }
}
