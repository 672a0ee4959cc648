//! `Bound`: code with its own arrays, called without checks from Python, and by address from C.

// Calls from C.
#![allow(unsafe_code)]

use crate::arrays::{Input, Output};
use crate::errors::{Stage, detached, now};
use crate::function::Compiled;
use chainrule::{Error, Slice, SliceMut};
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// Code with arrays for one point.
struct Evaluation {
    compiled: Arc<chainrule::Compiled>,
    memory: Mutex<Memory>,
}

struct Memory {
    workspace: chainrule::Workspace,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
}

impl Memory {
    fn run(&mut self, compiled: &chainrule::Compiled) -> Result<(), Error> {
        let inputs: Vec<Slice<'_>> = self.inputs.iter().map(Input::slice).collect();
        let mut outputs: Vec<SliceMut<'_>> = self.outputs.iter_mut().map(Output::slice).collect();
        compiled.run_into(&inputs, &mut outputs, &mut self.workspace)
    }
}

/// Code with arrays of its own.
#[pyclass(frozen)]
pub(crate) struct Bound {
    /// Boxed, because calls from C have its address as their context.
    evaluation: Box<Evaluation>,
    result: Py<PyAny>,
    is_short: bool,
}

#[pymethods]
impl Bound {
    /// `result` is the value of calls, assembled from the arrays `outputs`.
    #[new]
    fn new(
        py: Python<'_>,
        compiled: &Compiled,
        inputs: Vec<pyo3::Bound<'_, PyAny>>,
        outputs: Vec<pyo3::Bound<'_, PyAny>>,
        result: Py<PyAny>,
    ) -> PyResult<Self> {
        let workspace = compiled.workspace_at(py, &inputs)?;
        let inputs = inputs.iter().map(Input::writable).collect::<PyResult<Vec<_>>>()?;
        let outputs = outputs.iter().map(Output::new).collect::<PyResult<Vec<_>>>()?;
        let mut memory = Memory { workspace, inputs, outputs };
        let compiled = compiled.shared();
        let start = std::time::Instant::now();
        detached(py, Stage::Run, || memory.run(&compiled))?;
        let is_short = start.elapsed() < std::time::Duration::from_micros(20);
        let evaluation = Box::new(Evaluation { compiled, memory: Mutex::new(memory) });
        Ok(Self { evaluation, result, is_short })
    }

    /// Evaluates at the arrays.
    fn __call__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let run = || {
            let mut memory = self.evaluation.memory.lock().unwrap_or_else(PoisonError::into_inner);
            memory.run(&self.evaluation.compiled)
        };
        // Another thread may have the arrays, and wait for the interpreter's lock.
        if self.is_short && self.evaluation.memory.try_lock().is_ok() {
            now(py, Stage::Run, run)?;
        } else {
            detached(py, Stage::Run, run)?;
        }
        Ok(self.result.clone_ref(py))
    }

    /// Returns the address of `int f(void *context, const double *x, double *y)`.
    #[getter]
    fn address(&self) -> usize {
        call as *const () as usize
    }

    /// Returns the address of `double f(int n, double *x, void *context)`.
    #[getter]
    fn number_address(&self) -> usize {
        number as *const () as usize
    }

    /// Returns the context of both; valid as long as this object lives.
    #[getter]
    fn context(&self) -> usize {
        std::ptr::from_ref::<Evaluation>(&self.evaluation) as usize
    }
}

impl Evaluation {
    /// Evaluates at the doubles of all arguments, one argument after the other; writes those of the results.
    fn at(&self, x: impl FnOnce(usize) -> *const f64, y: *mut f64) -> Result<f64, Error> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut targets: Vec<&mut [f64]> = memory.inputs.iter_mut().filter_map(Input::reals_mut).collect();
        let mut from = x(targets.iter().map(|target| target.len()).sum());
        for target in &mut targets {
            if from.is_null() {
                return Err(Error::Bug("no arguments".into()));
            }
            // SAFETY: the caller gives as many doubles as the arguments have.
            target.copy_from_slice(unsafe { std::slice::from_raw_parts(from, target.len()) });
            from = from.wrapping_add(target.len());
        }
        memory.run(&self.compiled)?;
        let (mut first, mut to) = (f64::NAN, y);
        for output in &mut memory.outputs {
            if let SliceMut::Real(values) = output.slice() {
                if first.is_nan() {
                    first = values.first().copied().unwrap_or(first);
                }
                if !y.is_null() {
                    // SAFETY: the caller has room for as many doubles as the results have.
                    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len()) };
                    to = to.wrapping_add(values.len());
                }
            }
        }
        Ok(first)
    }
}

/// Evaluates at the doubles `x` and writes the doubles `y`; returns 0, or 1 if the program fails.
extern "C" fn call(context: *const c_void, x: *const f64, y: *mut f64) -> c_int {
    // SAFETY: the context is that of a `Bound` that lives.
    let evaluation = unsafe { &*context.cast::<Evaluation>() };
    let done = catch_unwind(AssertUnwindSafe(|| evaluation.at(|_| x, y).is_ok()));
    c_int::from(!done.unwrap_or(false))
}

/// Returns the first double of the results at `n` doubles; NaN if their number is wrong or the program fails.
extern "C" fn number(n: c_int, x: *const f64, context: *const c_void) -> f64 {
    // SAFETY: the context is that of a `Bound` that lives.
    let evaluation = unsafe { &*context.cast::<Evaluation>() };
    let x = |wanted: usize| if usize::try_from(n).is_ok_and(|n| n == wanted) { x } else { std::ptr::null() };
    catch_unwind(AssertUnwindSafe(|| evaluation.at(x, std::ptr::null_mut()).unwrap_or(f64::NAN))).unwrap_or(f64::NAN)
}
