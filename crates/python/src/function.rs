//! `Function`, `Compiled`, `Workspace`: derivatives and running code.

use crate::arrays::{Input, Output};
use crate::errors::{Stage, detached};
use chainrule::{Error, Type};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Names, kinds (`f`, `i`, `b`) and ranks of the leaves of arguments or results.
type Leaves = Vec<(String, &'static str, usize)>;

/// A function, or a derivative of one.
#[pyclass(frozen)]
pub(crate) struct Function(chainrule::Function);

impl Function {
    pub(crate) fn new(function: chainrule::Function) -> Self {
        Self(function)
    }
}

/// The leaves of these types, depth first. Recursive on the nesting of types only.
fn leaves(ty: &Type, name: &str, rank: usize, found: &mut Leaves) {
    match ty {
        Type::Double => found.push((name.to_string(), "f", rank)),
        Type::Int => found.push((name.to_string(), "i", rank)),
        Type::Bool => found.push((name.to_string(), "b", rank)),
        Type::Array(_, element) => leaves(element, name, rank + 1, found),
        Type::Tuple(fields, _) => fields.iter().for_each(|field| leaves(field, name, rank, found)),
    }
}

fn all_leaves(ports: &[(chainrule::Name, Type)]) -> Leaves {
    let mut found = Leaves::new();
    ports.iter().for_each(|(name, ty)| leaves(ty, name, 0, &mut found));
    found
}

#[pymethods]
impl Function {
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn inputs(&self) -> Leaves {
        all_leaves(&self.0.signature().params)
    }

    #[getter]
    fn outputs(&self) -> Leaves {
        all_leaves(&self.0.signature().results)
    }

    /// The derivative `what` by the arguments `by`, with the value where asked.
    #[pyo3(signature = (what, by, with_value=false))]
    fn derive(&self, py: Python<'_>, what: &str, by: Vec<String>, with_value: bool) -> PyResult<Self> {
        detached(py, Stage::Program, || {
            let derivation = match what {
                "gradient" => self.0.gradient(),
                "jacobian" => self.0.jacobian(),
                "hessian" => self.0.hessian(),
                "hessian_diagonal" => self.0.hessian_diagonal(),
                "jvp" => self.0.jvp(),
                "vjp" => self.0.vjp(),
                "hvp" => self.0.hvp(),
                other => return Err(Error::Bug(format!("no request `{other}`"))),
            };
            let by: Vec<&str> = by.iter().map(String::as_str).collect();
            let derivation = derivation.by(&by);
            let derivation = if with_value { derivation.with_value() } else { derivation };
            derivation.function()
        })
        .map(Self)
    }

    fn compile(&self, py: Python<'_>) -> PyResult<Compiled> {
        let compiled = detached(py, Stage::Program, || self.0.compile())?;
        let ranks = self.inputs().iter().map(|(_, _, rank)| *rank).collect();
        Ok(Compiled { compiled: Arc::new(compiled), ranks })
    }

    /// The program as F~ text.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, Stage::Program, || Ok(self.0.listing()))
    }

    /// The function as a file of C.
    fn c(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, Stage::Program, || self.0.emit_c().map(|c| c.source))
    }
}

/// Running code. Threads share it. A number is passed, and given, as an array of one element.
#[pyclass(frozen)]
pub(crate) struct Compiled {
    compiled: Arc<chainrule::Compiled>,
    /// The rank of each argument leaf.
    ranks: Vec<usize>,
}

/// Memory of evaluations at one set of extents; one evaluation at a time.
#[pyclass(frozen)]
pub(crate) struct Workspace(Mutex<chainrule::Workspace>);

#[pymethods]
impl Compiled {
    /// Memory for an evaluation at these arguments.
    fn workspace(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Workspace> {
        let inputs = inputs.iter().map(Input::new).collect::<PyResult<Vec<_>>>()?;
        let is_number = |k: usize| self.ranks.get(k) == Some(&0);
        let extents = inputs.iter().enumerate();
        let extents =
            extents.map(|(k, input)| if is_number(k) && input.slice().len() == 1 { &[] } else { input.extents() });
        let extents: Vec<&[usize]> = extents.collect();
        let slices: Vec<chainrule::Slice<'_>> = inputs.iter().map(Input::slice).collect();
        let made = detached(py, Stage::Entry, || self.compiled.workspace_for(&extents, &slices))?;
        Ok(Workspace(Mutex::new(made)))
    }

    /// Writes the results at these arguments to the arrays `outputs`.
    fn run(
        &self,
        py: Python<'_>,
        workspace: &Workspace,
        inputs: Vec<Bound<'_, PyAny>>,
        outputs: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let inputs = inputs.iter().map(Input::new).collect::<PyResult<Vec<_>>>()?;
        let mut outputs = outputs.iter().map(Output::new).collect::<PyResult<Vec<_>>>()?;
        let slices: Vec<chainrule::Slice<'_>> = inputs.iter().map(Input::slice).collect();
        let mut results: Vec<chainrule::SliceMut<'_>> = outputs.iter_mut().map(Output::slice).collect();
        detached(py, Stage::Run, || {
            let mut memory = workspace.0.lock().unwrap_or_else(PoisonError::into_inner);
            self.compiled.run_into(&slices, &mut results, &mut memory)
        })
    }

    /// `native`, `interpreter`, ...
    #[getter]
    fn backend(&self) -> String {
        format!("{:?}", self.compiled.backend()).to_lowercase()
    }
}

#[pymethods]
impl Workspace {
    /// The extents of result `i`.
    fn shape(&self, i: usize) -> Vec<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).output_shape(i).to_vec()
    }
}

/// The functions of an F~ file, by name.
#[pyfunction]
pub(crate) fn module(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(String, Function)>> {
    detached(py, Stage::Program, || {
        let module = chainrule::Module::load(path)?;
        let definitions = module.definitions();
        let runnable = definitions.iter().filter(|d| d.is_function && d.is_first_order);
        let function = |d: &chainrule::Definition| Some((d.name.clone(), Function(module.function(&d.name).ok()?)));
        Ok(runnable.filter_map(function).collect())
    })
}
