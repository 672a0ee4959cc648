//! Evaluation of many points, which Ctrl-C ends.

use crate::arrays::{Input, Output};
use crate::errors::{Stage, detached};
use chainrule::{BatchOptions, Slice, Strided, StridedMut};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Intended time between two checks of signals and updates of the progress bar.
const INTERVAL: Duration = Duration::from_millis(40);

/// Evaluates `n_points` points. Each input has a mark: whether it has an element for each point, along its first axis,
/// or the same for all. `progress` is called with the number of points that are done, at most every [`INTERVAL`].
pub(crate) fn run(
    py: Python<'_>,
    compiled: &chainrule::Compiled,
    n_points: usize,
    inputs: &[(Bound<'_, PyAny>, bool)],
    outputs: &[Bound<'_, PyAny>],
    (threads, progress): (usize, Option<&Py<PyAny>>),
) -> PyResult<()> {
    let ranks: Vec<usize> =
        crate::function::all_leaves(&compiled.signature().params).iter().map(|leaf| leaf.2).collect();
    let marks: Vec<bool> = inputs.iter().map(|(_, is_batched)| *is_batched).collect();
    let inputs = inputs.iter().map(|(input, _)| Input::new(input)).collect::<PyResult<Vec<_>>>()?;
    let mut outputs = outputs.iter().map(Output::new).collect::<PyResult<Vec<_>>>()?;
    if n_points == 0 {
        return Ok(());
    }
    // The extents of one point; a number is an array of one element.
    let extents: Vec<&[usize]> = inputs
        .iter()
        .zip(&marks)
        .zip(&ranks)
        .map(|((input, is_batched), rank)| match (rank, is_batched) {
            (0, _) => &[],
            (_, true) => input.extents().get(1..).unwrap_or(&[]),
            (_, false) => input.extents(),
        })
        .collect();
    let points: Vec<usize> = inputs
        .iter()
        .zip(&marks)
        .map(|(input, is_batched)| match is_batched {
            true => input.slice().len() / n_points,
            false => 0,
        })
        .collect();
    let slices: Vec<Slice<'_>> = inputs.iter().map(Input::slice).collect();
    let first: Vec<Slice<'_>> = slices
        .iter()
        .zip(&points)
        .zip(&marks)
        .map(|((data, n), is_batched)| if *is_batched { start(*data, *n) } else { *data })
        .collect();
    let mut workspace = detached(py, Stage::Entry, || compiled.workspace_for(&extents, &first))?;
    let failed: Mutex<Option<PyErr>> = Mutex::new(None);
    let observe = |done: usize| {
        let seen = Python::try_attach(|py| {
            py.check_signals()?;
            progress.map_or(Ok(()), |progress| progress.call1(py, (done,)).map(|_| ()))
        });
        match seen {
            Some(Ok(())) => ControlFlow::Continue(()),
            // The interpreter ends.
            None => ControlFlow::Break(()),
            Some(Err(error)) => {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let done = detached(py, Stage::Run, || {
        let strided =
            slices.iter().zip(&points).map(|(data, point)| Strided { data: *data, point: *point, element: 1 });
        let inputs: Vec<Strided<'_>> = strided.collect();
        let mut results: Vec<StridedMut<'_>> = Vec::with_capacity(outputs.len());
        for (k, output) in outputs.iter_mut().enumerate() {
            let point = workspace.output_shape(k).iter().product();
            results.push(StridedMut { data: output.slice(), point, element: 1 });
        }
        let options = BatchOptions { threads, observe: Some(&observe), every: 1, interval: Some(INTERVAL) };
        compiled.eval_batch_with(n_points, &inputs, &mut results, &mut workspace, &options)
    });
    // The exception that ended the batch says more than its end.
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => done,
    }
}

fn start(data: Slice<'_>, n: usize) -> Slice<'_> {
    match data {
        Slice::Real(x) => Slice::Real(x.get(..n).unwrap_or(&[])),
        Slice::Int(x) => Slice::Int(x.get(..n).unwrap_or(&[])),
    }
}
