//! Failures of the library as exceptions of `chainrule.errors`.

use chainrule::{Diagnostic, Error, RunError, Sources};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Stage of the work that failed, which selects the exception.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Making, differentiating or compiling a program.
    Program,
    /// Checking arguments.
    Entry,
    /// Running code.
    Run,
}

/// Returns the result of `work`, which runs without the interpreter's lock; failures and panics become exceptions.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    stage: Stage,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    outcome(py, stage, done)
}

/// As [`detached`], but holds the lock: for work that takes less time than releasing it.
#[inline]
pub(crate) fn now<T>(py: Python<'_>, stage: Stage, work: impl FnOnce() -> Result<T, Error>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        done => outcome(py, stage, done),
    }
}

fn outcome<T>(py: Python<'_>, stage: Stage, done: std::thread::Result<Result<T, Error>>) -> PyResult<T> {
    let error = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Error::Bug(text.unwrap_or("a panic").to_string())
        }
    };
    Err(exception(py, stage, &error).unwrap_or_else(|failed| failed))
}

/// Returns the exception that `chainrule.errors.from_core` makes from the parts of a failure.
fn exception(py: Python<'_>, stage: Stage, error: &Error) -> PyResult<PyErr> {
    let parts = PyDict::new(py);
    let name = match stage {
        Stage::Program => "program",
        Stage::Entry => "entry",
        Stage::Run => "run",
    };
    parts.set_item("stage", name)?;
    match error {
        Error::Program { diagnostics, sources } => {
            parts.set_item("kind", if error.is_limitation() { "limitation" } else { "program" })?;
            if let Some(first) = diagnostics.iter().find(|d| d.kind != chainrule::Kind::Warning) {
                if first.kind == chainrule::Kind::Bug {
                    parts.set_item("kind", "bug")?;
                }
                describe(&parts, first, sources)?;
            }
        }
        Error::Request { message, help } => {
            parts.set_item("kind", "request")?;
            parts.set_item("title", message)?;
            parts.set_item("help", help)?;
        }
        Error::Bug(message) | Error::Run(RunError::Bug(message)) => {
            parts.set_item("kind", "bug")?;
            parts.set_item("title", message)?;
        }
        other => {
            parts.set_item("kind", "request")?;
            parts.set_item("title", other.to_string())?;
        }
    }
    let made = py.import("chainrule.errors")?.getattr("from_core")?.call1((parts,))?;
    Ok(PyErr::from_value(made))
}

fn describe(parts: &Bound<'_, PyDict>, diagnostic: &Diagnostic, sources: &Sources) -> PyResult<()> {
    parts.set_item("title", &diagnostic.title)?;
    parts.set_item("reason", diagnostic.reason.as_deref())?;
    parts.set_item("help", diagnostic.help.as_deref())?;
    if let Some(label) = diagnostic.labels.first() {
        let span = label.span;
        let (line, column) = sources.line_column(span);
        parts.set_item("label", &label.text)?;
        parts.set_item("file", &sources.file(span.file).name)?;
        parts.set_item("line", line)?;
        parts.set_item("column", column)?;
        parts.set_item("text", sources.line(span.file, line))?;
        parts.set_item("width", sources.snippet(span).chars().count())?;
    }
    Ok(())
}
