//! `Program`, `Term`, `Lambda`: the library's array builder, for capture.

use crate::errors::{Stage, detached};
use crate::function::Function;
use chainrule::array::{self, FileId, Part, Span};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A value of a program.
#[pyclass(frozen)]
pub(crate) struct Term(array::Term);

#[pymethods]
impl Term {
    /// Returns its name in the program; `None` for a literal.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name().map(chainrule::Name::as_str)
    }

    /// Returns whether it is in scope at the current position of the program.
    #[getter]
    fn is_visible(&self) -> bool {
        self.0.is_visible()
    }
}

/// A closed block: the body of a loop or a branch.
#[pyclass(frozen)]
pub(crate) struct Lambda(array::Lambda);

/// A suspended block, to be resumed once.
#[pyclass(frozen)]
pub(crate) struct Suspended(std::sync::Mutex<Option<array::Suspended>>);

/// An array program under construction.
#[pyclass(frozen)]
pub(crate) struct Program {
    program: array::Program,
    files: std::sync::Mutex<Vec<FileId>>,
}

#[pymethods]
impl Program {
    #[new]
    fn new(name: &str) -> Self {
        Self { program: array::Program::new(name), files: std::sync::Mutex::default() }
    }

    fn argument(&self, name: &str, ty: &str) -> Term {
        Term(self.program.argument(name, ty))
    }

    fn size(&self, name: &str) -> Term {
        Term(self.program.size(name))
    }

    fn require_at_least(&self, name: &str, least: i64) {
        self.program.require_at_least(name, least);
    }

    fn boolean(&self, value: bool) -> Term {
        Term(self.program.constant(value))
    }

    fn integer(&self, value: i64) -> Term {
        Term(self.program.int(value))
    }

    fn real(&self, value: f64) -> Term {
        Term(self.program.constant(value))
    }

    fn infix(&self, sign: &str, left: &Term, right: &Term) -> Term {
        Term(self.program.infix(sign, &left.0, &right.0))
    }

    fn neg(&self, term: &Term) -> Term {
        Term(-&term.0)
    }

    fn apply(&self, name: &str, args: Vec<Bound<'_, PyAny>>) -> PyResult<Term> {
        let part = |arg: Bound<'_, PyAny>| -> PyResult<Part> {
            if let Ok(term) = arg.cast::<Term>() {
                return Ok(Part::from(&term.get().0));
            }
            match arg.cast::<Lambda>() {
                Ok(lambda) => Ok(Part::from(lambda.get().0.clone())),
                Err(_) => Err(PyTypeError::new_err("a Term or a Lambda is expected")),
            }
        };
        let args = args.into_iter().map(part).collect::<PyResult<Vec<Part>>>()?;
        Ok(Term(self.program.apply(name, args)))
    }

    fn get(&self, array: &Term, indices: Vec<PyRef<'_, Term>>) -> Term {
        let indices: Vec<&array::Term> = indices.iter().map(|index| &index.0).collect();
        Term(array.0.get(&indices))
    }

    fn tuple(&self, parts: Vec<PyRef<'_, Term>>) -> Term {
        let parts: Vec<&array::Term> = parts.iter().map(|part| &part.0).collect();
        Term(self.program.tuple(&parts))
    }

    fn component(&self, tuple: &Term, index: usize) -> Term {
        Term(tuple.0.component(index))
    }

    fn array(&self, elements: Vec<PyRef<'_, Term>>) -> Term {
        let elements: Vec<&array::Term> = elements.iter().map(|element| &element.0).collect();
        Term(self.program.array(&elements))
    }

    fn named(&self, term: &Term, name: &str) -> Term {
        Term(term.0.named(name))
    }

    fn open(&self, params: Vec<String>) -> Vec<Term> {
        let params: Vec<&str> = params.iter().map(String::as_str).collect();
        self.program.open(&params).into_iter().map(Term).collect()
    }

    fn close(&self, result: &Term) -> Lambda {
        Lambda(self.program.close(&result.0))
    }

    fn suspend(&self) -> Suspended {
        Suspended(std::sync::Mutex::new(Some(self.program.suspend())))
    }

    fn resume(&self, block: &Suspended) {
        let block = block.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(block) = block {
            self.program.resume(block);
        }
    }

    fn choose(&self, condition: &Term, then: &Lambda, otherwise: &Lambda) -> Term {
        Term(self.program.choose(&condition.0, then.0.clone(), otherwise.0.clone()))
    }

    /// Adds a source text of the program; returns its number for `locate`.
    fn source(&self, name: &str, text: &str) -> usize {
        let mut files = self.files.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        files.push(self.program.source(name, text));
        files.len() - 1
    }

    /// Sets the span of the following terms to bytes `start..end` of text `file`.
    fn locate(&self, file: usize, start: u32, end: u32) {
        let files = self.files.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(file) = files.get(file) {
            self.program.locate(Span::new(*file, start, end.max(start)));
        }
    }

    fn function(&self, py: Python<'_>, result: &Term) -> PyResult<Function> {
        detached(py, Stage::Program, || self.program.function(&result.0)).map(Function::new)
    }

    fn text(&self, py: Python<'_>, result: &Term) -> PyResult<String> {
        detached(py, Stage::Program, || self.program.text(&result.0))
    }
}
