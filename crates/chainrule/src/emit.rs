//! Text made from functions: C, Rust; and F~ made tidy.

use crate::function::Body;
use crate::guard::{guard, guard_on_own_stack};
use crate::passes::Passes;
use crate::{Error, Function, Result};
use chainrule_base::Sources;
use chainrule_kernel::Kernel;
use std::sync::Arc;

pub use chainrule_c::{Batch as CBatch, Options as COptions, Precision};
pub use chainrule_rust::{Fma as RustFma, Library as RustLibrary, Options as RustOptions};

/// A C header and the source that it declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CSource {
    /// The C functions, one for each function that was emitted.
    pub functions: Vec<String>,
    /// The text of the .h file.
    pub header: String,
    /// The text of the .c file.
    pub source: String,
}

/// Several functions, such as a value and its derivatives apart, in one pair of C files that are to be
/// called `file` with `.h` and `.c`. See [`Function::emit_c`].
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
/// When a function cannot be lowered, or calls a user's function that has no C name.
pub fn emit_c(file: &str, functions: &[&Function]) -> Result<CSource> {
    emit_c_with(file, functions, &COptions::default())
}

/// The same with options: floats instead of doubles, functions over many points, loops shared out to threads.
///
/// ```
/// use chainrule::{CBatch, COptions, Function, emit_c_with, vars};
/// let x = vars("x", 2);
/// let f = Function::new("energy", &x, &x.dot(&x))?;
/// let options = COptions { batch: Some(CBatch { lanes: 8, threads: true }), ..COptions::default() };
/// let c = emit_c_with("energy", &[&f], &options)?;
/// assert!(c.header.contains("int energy_batch(int64_t n_points, const double *x, int64_t x_point, int64_t x_element,"));
/// # Ok::<(), chainrule::Error>(())
/// ```
///
/// # Errors
/// As [`emit_c`], and when no vector has so many lanes.
pub fn emit_c_with(file: &str, functions: &[&Function], options: &COptions) -> Result<CSource> {
    guard(|| {
        let kernels = kernels(functions, Passes::from(options))?;
        let kernels: Vec<&Kernel> = kernels.iter().collect();
        let c = chainrule_c::emit_with_patterns(file, &kernels, &patterns(functions), options)
            .map_err(|d| Error::program(d, &Arc::default()))?;
        Ok(CSource { functions: c.functions, header: c.header, source: c.source })
    })
}

/// A Rust module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RustSource {
    /// The functions, one for each function that was emitted.
    pub functions: Vec<String>,
    /// The text of the .rs file.
    pub text: String,
    /// Whether it calls methods that `core` does not have.
    pub needs_std: bool,
    /// Whether it calls the crate `libm`.
    pub needs_libm: bool,
}

/// Several functions as one Rust module that is to be called `file` with `.rs`. See [`Function::emit_rust`].
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
/// When a function cannot be lowered, or calls a user's function whose name cannot be one in Rust.
pub fn emit_rust(file: &str, functions: &[&Function], options: &RustOptions) -> Result<RustSource> {
    guard(|| {
        let kernels = kernels(functions, Passes::from(options))?;
        let kernels: Vec<&Kernel> = kernels.iter().collect();
        let module = chainrule_rust::emit_with_patterns(file, &kernels, &patterns(functions), options)
            .map_err(|d| Error::program(d, &Arc::default()))?;
        let chainrule_rust::Module { functions, text, needs_std, needs_libm, .. } = module;
        Ok(RustSource { functions, text, needs_std, needs_libm })
    })
}

/// The patterns of the sparse results of each function.
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
    /// The function in C99, self-contained, in files that are to be called by the function's name: no
    /// allocation, workspace from the caller, functions of about 2,000 operations at most. The same
    /// function gives the same bytes.
    ///
    /// # Errors
    /// When the function cannot be lowered, or calls a user's function that has no C name.
    pub fn emit_c(&self) -> Result<CSource> {
        emit_c(self.name(), &[self])
    }

    /// The function as a Rust module: no dependencies, no allocation, no panics, workspace from the caller,
    /// functions of about 2,000 operations at most. The same function gives the same bytes.
    ///
    /// # Errors
    /// As [`emit_rust`].
    pub fn emit_rust(&self) -> Result<RustSource> {
        emit_rust(self.name(), &[self], &RustOptions::default())
    }

    /// The graph in Graphviz's language: of straight-line code its operations, of a function that keeps its loops its statements,
    /// with a cluster for each loop and branch.
    #[must_use]
    pub fn dot(&self) -> String {
        match &self.decided_or_self().body {
            Body::Scalar(body) => body.graph.dot(&body.roots()),
            Body::Array(body) => crate::array_dot::dot(&body.function),
        }
    }
}

/// The F~ text `text`, which messages call `name`, formatted; comments stay.
///
/// # Errors
/// When it does not parse.
pub fn format_source(name: &str, text: &str) -> Result<String> {
    guard_on_own_stack(|| {
        let mut sources = Sources::new();
        let file = sources.add(name, text);
        chainrule_syntax::format(&sources, file).map_err(|d| Error::program(d, &Arc::new(sources)))
    })
}
