//! `Function`, `Compiled`, `Workspace`: derivatives and running code.

use crate::arrays::{Input, Output};
use crate::errors::{Stage, detached};
use crate::sparse::Sparse;
use chainrule::{CompileOptions, Counts, Error, Semantics, Type};
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

/// Returns the leaves of these types, depth first.
pub(crate) fn all_leaves(ports: &[(chainrule::Name, Type)]) -> Leaves {
    let mut found = Leaves::new();
    for (name, ty) in ports {
        ty.for_each_leaf(&mut |leaf| {
            let kind = match leaf.scalar {
                Type::Int => "i",
                Type::Bool => "b",
                _ => "f",
            };
            found.push((name.to_string(), kind, leaf.extents.len()));
        });
    }
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

    /// Returns a derivative by the arguments `by`, with the value on request.
    #[pyo3(signature = (what, by, with_value=false, strategy=None, checkpoints=None))]
    fn derive(
        &self,
        py: Python<'_>,
        what: &str,
        by: Vec<String>,
        with_value: bool,
        strategy: Option<&str>,
        checkpoints: Option<u32>,
    ) -> PyResult<Self> {
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
            let derivation = strategy.into_iter().fold(derivation, chainrule::Derivation::strategy);
            let derivation = checkpoints.into_iter().fold(derivation, chainrule::Derivation::checkpoints);
            derivation.function()
        })
        .map(Self)
    }

    /// Returns a sparse derivative by the arguments `by`.
    fn sparse(&self, py: Python<'_>, what: &str, by: Vec<String>) -> PyResult<Sparse> {
        let by: Vec<&str> = by.iter().map(String::as_str).collect();
        detached(py, Stage::Program, || Sparse::new(&self.0, what, &by))
    }

    /// Returns straight-line code for these sizes and integers.
    fn unrolled(&self, py: Python<'_>, sizes: Vec<(String, i64)>) -> PyResult<Self> {
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        detached(py, Stage::Program, || self.0.unrolled(&sizes)).map(Self)
    }

    /// Returns the function under strict semantics: every operation as in IEEE 754.
    fn strict(&self) -> Self {
        Self(self.0.clone().with_semantics(Semantics::Strict))
    }

    /// Returns the function with these names of its parameters.
    fn renamed(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Self> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        detached(py, Stage::Program, || self.0.clone().with_argument_names(&names)).map(Self)
    }

    /// Returns the names of the parameters. The leaves of a tuple have one name.
    #[getter]
    fn parameters(&self) -> Vec<String> {
        self.0.signature().params.iter().map(|(name, _)| name.to_string()).collect()
    }

    /// Returns the names of sizes, and of integers that unrolling needs like sizes.
    #[getter]
    fn sizes(&self) -> Vec<String> {
        self.0.size_names()
    }

    /// Returns operation counts at these sizes, with their names.
    fn counts(&self, py: Python<'_>, sizes: Vec<(String, i64)>) -> PyResult<Vec<(&'static str, u64)>> {
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let n = detached(py, Stage::Program, || self.0.counts_at(&sizes, chainrule::Rewrite::All))?;
        let Counts { add, mul, div, neg, call, logic, weight } = n;
        Ok(vec![
            ("add", add),
            ("mul", mul),
            ("div", div),
            ("neg", neg),
            ("call", call),
            ("logic", logic),
            ("weight", weight),
        ])
    }

    /// Returns the report of the optimiser; `None` for straight-line code.
    fn explain(&self, py: Python<'_>) -> PyResult<Option<String>> {
        detached(py, Stage::Program, || Ok(self.0.optimisation()?.map(|account| account.to_string())))
    }

    /// Returns the graph of straight-line code in Graphviz's language; `None` for loops.
    fn dot(&self) -> Option<String> {
        (!self.0.keeps_loops()).then(|| self.0.dot())
    }

    /// Returns the function `name` of an F~ text.
    #[staticmethod]
    fn from_text(py: Python<'_>, name: &str, text: &str) -> PyResult<Self> {
        detached(py, Stage::Program, || chainrule::Module::from_text(name, text)?.function(name)).map(Self)
    }

    /// Compiles it, for evaluations on so many threads: see [`chainrule::CompileOptions::threads`].
    #[pyo3(signature = (threads=None))]
    fn compile(&self, py: Python<'_>, threads: Option<usize>) -> PyResult<Compiled> {
        let options = CompileOptions { threads, ..CompileOptions::default() };
        let compiled = detached(py, Stage::Program, || self.0.compile_with(&options))?;
        Ok(Compiled { compiled: Arc::new(compiled) })
    }

    /// Returns the program as F~ text.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, Stage::Program, || Ok(self.0.listing()))
    }

    /// Returns the function as a Rust module.
    fn rust(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, Stage::Program, || self.0.emit_rust().map(|rust| rust.text))
    }

    /// Returns the function as a C file.
    fn c(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, Stage::Program, || self.0.emit_c().map(|c| c.source))
    }
}

/// Compiled code, shared by threads. A number is an array of one element, as argument and as result.
#[pyclass(frozen)]
pub(crate) struct Compiled {
    compiled: Arc<chainrule::Compiled>,
}

impl Compiled {
    /// Shared with workspaces and bound code.
    pub(crate) fn shared(&self) -> Arc<chainrule::Compiled> {
        Arc::clone(&self.compiled)
    }

    /// Returns memory for an evaluation at these arguments.
    pub(crate) fn workspace_at(&self, py: Python<'_>, inputs: &[Bound<'_, PyAny>]) -> PyResult<chainrule::Workspace> {
        let inputs = inputs.iter().map(Input::new).collect::<PyResult<Vec<_>>>()?;
        let ranks: Vec<usize> = self.inputs().iter().map(|(_, _, rank)| *rank).collect();
        let is_number = |k: usize| ranks.get(k) == Some(&0);
        let extents = inputs.iter().enumerate();
        let extents =
            extents.map(|(k, input)| if is_number(k) && input.slice().len() == 1 { &[] } else { input.extents() });
        let extents: Vec<&[usize]> = extents.collect();
        let slices: Vec<chainrule::Slice<'_>> = inputs.iter().map(Input::slice).collect();
        detached(py, Stage::Entry, || self.compiled.workspace_for(&extents, &slices))
    }
}

/// Memory of evaluations at one set of extents; one evaluation at a time.
#[pyclass(frozen)]
pub(crate) struct Workspace(Mutex<chainrule::Workspace>);

#[pymethods]
impl Compiled {
    #[getter]
    fn inputs(&self) -> Leaves {
        all_leaves(&self.compiled.signature().params)
    }

    /// Returns names, kinds and ranks of results.
    #[getter]
    pub(crate) fn outputs(&self) -> Leaves {
        all_leaves(&self.compiled.signature().results)
    }

    /// Returns memory for an evaluation at these arguments.
    fn workspace(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Workspace> {
        Ok(Workspace(Mutex::new(self.workspace_at(py, &inputs)?)))
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

    /// Writes the results at many points to the arrays `outputs`: see [`crate::batch::run`].
    #[pyo3(signature = (n_points, inputs, outputs, threads, progress=None))]
    fn batch(
        &self,
        py: Python<'_>,
        n_points: usize,
        inputs: Vec<(Bound<'_, PyAny>, bool)>,
        outputs: Vec<Bound<'_, PyAny>>,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        crate::batch::run(py, &self.compiled, n_points, &inputs, &outputs, (threads, progress.as_ref()))
    }

    /// Returns the function as bytes, without machine code.
    fn to_bytes(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        detached(py, Stage::Program, || self.compiled.to_bytes_with_sources())
    }

    /// Returns the function that `to_bytes` saved, compiled again.
    #[staticmethod]
    #[pyo3(signature = (bytes, threads=None))]
    fn from_bytes(py: Python<'_>, bytes: &[u8], threads: Option<usize>) -> PyResult<Self> {
        let options = CompileOptions { threads, ..CompileOptions::default() };
        let compiled = detached(py, Stage::Program, || chainrule::Compiled::from_bytes_with(bytes, &[], &options))?;
        Ok(Self { compiled: Arc::new(compiled) })
    }

    /// Returns the integer arguments that determine sizes.
    #[getter]
    fn size_arguments(&self) -> Vec<usize> {
        self.compiled.size_arguments()
    }

    /// Returns the compiled kernel as text.
    fn listing(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, Stage::Program, || Ok(self.compiled.listing()))
    }

    /// Returns the name of its backend: `native`, `interpreter`, ...
    #[getter]
    fn backend(&self) -> String {
        format!("{:?}", self.compiled.backend()).to_lowercase()
    }

    /// Returns why it is not native code although the machine runs that.
    #[getter]
    fn refusal(&self) -> Option<String> {
        self.compiled.refusal().map(|why| {
            why.reason.as_ref().map_or_else(|| why.title.clone(), |reason| format!("{}: {reason}", why.title))
        })
    }
}

#[pymethods]
impl Workspace {
    /// Returns the extents of result `i`.
    fn shape(&self, i: usize) -> Vec<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).output_shape(i).to_vec()
    }
}

/// Replaces the content of a file, which an interrupt leaves old or new.
#[pyfunction]
pub(crate) fn replace(py: Python<'_>, path: PathBuf, content: &[u8]) -> PyResult<()> {
    Ok(py.detach(|| chainrule::files::replace(path, content))?)
}

/// Returns the functions of an F~ file, by name.
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
