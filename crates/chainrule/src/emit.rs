//! Text made from functions: C; and F~ made tidy.

use crate::compiled::lower;
use crate::function::Body;
use crate::{Error, Function, Result};
use chainrule_base::Sources;
use std::sync::Arc;

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
    let kernels = functions.iter().map(|f| lower(f)).collect::<Result<Vec<_>>>()?;
    let kernels: Vec<&chainrule_kernel::Kernel> = kernels.iter().collect();
    let c = chainrule_c::emit_many(file, &kernels, &chainrule_c::Options::default())
        .map_err(|d| Error::program(d, &Arc::default()))?;
    Ok(CSource { functions: c.functions, header: c.header, source: c.source })
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

    /// The graph of straight-line code in Graphviz's language; `None` for a function that keeps its loops.
    #[must_use]
    pub fn dot(&self) -> Option<String> {
        match &self.body {
            Body::Scalar(body) => Some(body.graph.dot(&body.roots())),
            Body::Array(_) => None,
        }
    }
}

/// The F~ text `text`, which messages call `name`, formatted; comments stay.
///
/// # Errors
/// When it does not parse.
pub fn format_source(name: &str, text: &str) -> Result<String> {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    chainrule_syntax::format(&sources, file).map_err(|d| Error::program(d, &Arc::new(sources)))
}
