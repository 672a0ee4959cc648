//! Emission of functions as C and Rust; formatting of F~.

use crate::function::Body;
use crate::guard::{guard, guard_on_own_stack};
use crate::passes::{BACKEND, Passes};
use crate::{Error, Function, Result};
use chainrule_base::{Sources, timing};
use chainrule_kernel::Kernel;
use std::sync::Arc;

pub use chainrule_c::{Batch as CBatch, Options as COptions, Precision};
pub use chainrule_rust::{Fma as RustFma, Library as RustLibrary, Options as RustOptions};

/// C header and the source that it declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CSource {
    /// C functions, one for each emitted function.
    pub functions: Vec<String>,
    /// Text of the .h file.
    pub header: String,
    /// Text of the .c file.
    pub source: String,
}

/// Emits several functions, such as a value and its derivatives, in one pair of C files with the names `file` with `.h`
/// and `.c`. See [`Function::emit_c`].
///
/// ```
/// use chainrule::{emit_c, Function, vars};
/// let x = vars("x", 2);
/// let f = Function::new("energy", &x, &x.dot(&x))?;
/// let c = emit_c("model", &[&f, &f.gradient().function()?])?;
/// assert_eq!(c.functions, ["energy", "energy_gradient"]);
/// assert!(c.source.contains("#include \"model.h\""));
/// # Ok::<(), chainrule::Error>(())
/// ```
///
/// # Errors
/// Fails if a function cannot be lowered, or calls a user's function that has no C name.
pub fn emit_c(file: &str, functions: &[&Function]) -> Result<CSource> {
    emit_c_with(file, functions, &COptions::default())
}

/// Does the same with options: floats instead of doubles, functions over many points, parallel loops.
///
/// ```
/// use chainrule::{CBatch, COptions, Function, emit_c_with, vars};
/// let x = vars("x", 2);
/// let f = Function::new("energy", &x, &x.dot(&x))?;
/// let options = COptions { batch: Some(CBatch { lanes: 8, threads: true }), ..COptions::default() };
/// let c = emit_c_with("energy", &[&f], &options)?;
/// assert!(c.header.contains("int energy_batch(int64_t n_points, const double *x, int64_t x_point, "));
/// # Ok::<(), chainrule::Error>(())
/// ```
///
/// # Errors
/// The errors of [`emit_c`], and if no vector has so many lanes.
pub fn emit_c_with(file: &str, functions: &[&Function], options: &COptions) -> Result<CSource> {
    guard(|| {
        let kernels = kernels(functions, Passes::from(options))?;
        let kernels: Vec<&Kernel> = kernels.iter().collect();
        let emit = || chainrule_c::emit_with_patterns(file, &kernels, &patterns(functions), options);
        let c = timing::time(BACKEND, emit).map_err(|d| Error::program(d, &Arc::default()))?;
        Ok(CSource { functions: c.functions, header: c.header, source: c.source })
    })
}

/// Rust module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RustSource {
    /// Functions, one for each emitted function.
    pub functions: Vec<String>,
    /// Text of the .rs file.
    pub text: String,
    /// Whether it calls methods that `core` does not have.
    pub needs_std: bool,
    /// Whether it calls the crate `libm`.
    pub needs_libm: bool,
}

/// Emits several functions as one Rust module with the name `file` with `.rs`. See [`Function::emit_rust`].
///
/// ```
/// use chainrule::{Function, RustOptions, Precision, emit_rust, vars};
/// let x = vars("x", 2);
/// let f = Function::new("energy", &x, &x.dot(&x))?;
/// let rust = emit_rust("model", &[&f, &f.gradient().function()?], &RustOptions::default())?;
/// assert_eq!(rust.functions, ["energy", "energy_gradient"]);
/// assert!(rust.text.contains("pub fn energy(x: &[f64], "), "{}", rust.text);
/// let single = RustOptions { precision: Precision::Single, ..RustOptions::default() };
/// assert!(emit_rust("model", &[&f], &single)?.text.contains("pub fn energy(x: &[f32], "));
/// # Ok::<(), chainrule::Error>(())
/// ```
///
/// # Errors
/// Fails if a function cannot be lowered, or calls a user's function whose name is not valid in Rust.
pub fn emit_rust(file: &str, functions: &[&Function], options: &RustOptions) -> Result<RustSource> {
    guard(|| {
        let kernels = kernels(functions, Passes::from(options))?;
        let kernels: Vec<&Kernel> = kernels.iter().collect();
        let emit = || chainrule_rust::emit_with_patterns(file, &kernels, &patterns(functions), options);
        let module = timing::time(BACKEND, emit).map_err(|d| Error::program(d, &Arc::default()))?;
        let chainrule_rust::Module { functions, text, needs_std, needs_libm, .. } = module;
        Ok(RustSource { functions, text, needs_std, needs_libm })
    })
}

/// Returns the patterns of the sparse results of each function.
fn patterns(functions: &[&Function]) -> Vec<Vec<chainrule_c::Pattern>> {
    let of = |function: &&Function| {
        let Body::Scalar(body) = &function.decided_or_self().body else { return Vec::new() };
        let sparse = body.outputs.iter().filter_map(|port| {
            let pattern = port.pattern.as_ref()?;
            let (n_rows, n_columns) = pattern.shape();
            let (rows, columns) = pattern.coo().iter().copied().unzip();
            Some(chainrule_c::Pattern { result: port.name.clone(), n_rows, n_columns, rows, columns })
        });
        sparse.collect()
    };
    functions.iter().map(of).collect()
}

fn kernels(functions: &[&Function], passes: Passes) -> Result<Vec<Kernel>> {
    functions.iter().map(|f| passes.form(f).and_then(|f| passes.kernel(&f))).collect()
}

impl Function {
    /// Emits the function in C99, self-contained, in files with the function's name: no allocation, workspace from the
    /// caller, functions of about 2,000 operations at most. Emission is deterministic.
    ///
    /// # Errors
    /// Fails if the function cannot be lowered, or calls a user's function that has no C name.
    pub fn emit_c(&self) -> Result<CSource> {
        emit_c(self.name(), &[self])
    }

    /// Emits the function as a Rust module: no dependencies, no allocation, no panics, workspace from the caller,
    /// functions of about 2,000 operations at most. Emission is deterministic.
    ///
    /// # Errors
    /// The errors of [`emit_rust`].
    pub fn emit_rust(&self) -> Result<RustSource> {
        emit_rust(self.name(), &[self], &RustOptions::default())
    }

    /// Returns the graph in Graphviz's language: the operations of straight-line code, or the statements of a function
    /// that keeps its loops, with a cluster for each loop and branch.
    #[must_use]
    pub fn dot(&self) -> String {
        match &self.decided_or_self().body {
            Body::Scalar(body) => body.graph.dot(&body.roots()),
            Body::Array(body) => crate::array_dot::dot(&body.function),
        }
    }
}

/// Formats the F~ text `text`, which messages call `name`; comments stay.
///
/// # Errors
/// Fails if it does not parse.
pub fn format_source(name: &str, text: &str) -> Result<String> {
    guard_on_own_stack(|| {
        let mut sources = Sources::new();
        let file = sources.add(name, text);
        chainrule_syntax::format(&sources, file).map_err(|d| Error::program(d, &Arc::new(sources)))
    })
}
