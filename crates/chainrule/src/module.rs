//! F~ files: the entrance to the compiler for programs as text.
//!
//! In: a file or a text, with its imports. Out: a [`Module`], whose definitions are parsed and have types (`syntax`,
//! `ir::check`). [`Module::function`] elaborates one definition (`ir::elaborate`) to a [`Function`] of the array IR;
//! derivatives are requested from it, and it is compiled.

use crate::guard::{guard, guard_on_own_stack};
use crate::passes::{CHECK, ELABORATE};
use crate::{Error, Function, Result};
use chainrule_base::{Diagnostics, FileId, Sources, timing};
use chainrule_graph::Semantics;
use chainrule_ir::Program;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checked F~ file with its imports.
///
/// ```
/// use chainrule::Module;
/// let module = Module::from_text("<text>", "let square = fun (x : Double) -> x * x")?;
/// let gradient = module.function("square")?.gradient().compile()?;
/// assert_eq!(gradient.eval(&[&[3.0]])?, [[6.0]]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone)]
pub struct Module {
    program: Arc<Program>,
    /// The module's own text, not an imported one.
    root: FileId,
    sources: Arc<Sources>,
    semantics: Semantics,
}

/// Definition of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Name.
    pub name: String,
    /// Type in F~.
    pub ty: String,
    /// Comment above it.
    pub docs: Vec<String>,
    /// Whether it is a function, not a constant.
    pub is_function: bool,
    /// Whether its arguments and results are numbers, arrays and tuples only, no functions, so that it can be compiled.
    pub is_first_order: bool,
}

impl Module {
    /// Reads and checks the file `path`; imports are relative to the importing file.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if the program contains errors: returns all of them, with locations.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = read_source(path)
            .map_err(|source| Error::Io { path: path.display().to_string(), source: Arc::new(source) })?;
        Self::from_text(&path.display().to_string(), &text)
    }

    /// Checks `text`, which messages call `name`; imports are relative to `name`.
    ///
    /// # Errors
    /// Fails if the program contains errors, or an import cannot be read.
    pub fn from_text(name: &str, text: &str) -> Result<Self> {
        timing::time(CHECK, || guard_on_own_stack(|| Self::check(name, text)))
    }

    fn check(name: &str, text: &str) -> Result<Self> {
        let mut sources = Sources::new();
        let root = sources.add(name, text);
        let read = |path: &str, importer: &str| -> std::result::Result<(String, String), String> {
            let path: PathBuf = Path::new(importer).parent().unwrap_or(Path::new("")).join(path);
            let text = read_source(&path).map_err(|e| unreadable(&path, &e))?;
            Ok((path.display().to_string(), text))
        };
        match Program::load(&mut sources, root, read) {
            Ok(program) => {
                let (program, sources) = (Arc::new(program), Arc::new(sources));
                Ok(Self { program, root, sources, semantics: Semantics::default() })
            }
            Err(diagnostics) => Err(Error::program(diagnostics, &Arc::new(sources))),
        }
    }

    /// Returns the same program under these semantics, which apply to its functions and their derivatives:
    /// [`Semantics::Algebraic`], the default, treats doubles as real numbers; under [`Semantics::Strict`] functions
    /// compute the program literally, operation by operation, each rounded to nearest: no sum is reordered, no product
    /// is fused with one, and rewrites are limited to rules that are exact in IEEE 754, with all NaNs equal.
    ///
    /// Derivatives are programs that differentiation generates; they are computed literally, too. Straight-line code
    /// ([`Function::unrolled`]) differs in one respect: `if c then x else 0` times a number is 0 if `c` does not hold,
    /// for any number, so that derivatives of branches are lazy.
    ///
    /// ```
    /// use chainrule::{Module, Semantics};
    /// let module = Module::from_text("f.ft", "let f = fun (x : Double) -> x * (1 / x)")?;
    /// assert_eq!(module.function("f")?.compile()?.eval(&[&[49.0]])?, [[1.0]]);
    /// let strict = module.with_semantics(Semantics::Strict);
    /// assert_eq!(strict.function("f")?.compile()?.eval(&[&[49.0]])?, [[1.0 - f64::EPSILON / 2.0]]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn with_semantics(mut self, semantics: Semantics) -> Self {
        self.semantics = semantics;
        self
    }

    /// Returns the definitions of the file, in order.
    #[must_use]
    pub fn definitions(&self) -> Vec<Definition> {
        let define = |d: &chainrule_ir::Definition| Definition {
            name: d.name.to_string(),
            ty: d.ty.clone(),
            docs: d.docs.clone(),
            is_function: d.is_function,
            is_first_order: d.is_first_order,
        };
        self.program.definitions().map(define).collect()
    }

    /// Returns the warnings of the checker.
    #[must_use]
    pub fn warnings(&self) -> &Diagnostics {
        self.program.warnings()
    }

    /// Draws the warnings about the module's own text beside it; empty if there are none. Warnings about imported texts
    /// are shown when those are checked themselves.
    #[must_use]
    pub fn render_warnings(&self) -> String {
        let own = self.warnings().iter().filter(|warning| warning.span().is_none_or(|span| span.file == self.root));
        crate::report::render_some(own, &self.sources, crate::report::Style::Plain)
    }

    /// Returns the texts to which messages refer.
    #[must_use]
    pub fn sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// Returns the function (or constant) `name`.
    ///
    /// # Errors
    /// Fails if there is none, or it cannot be compiled: its shapes do not match, it takes functions as arguments, ...
    pub fn function(&self, name: &str) -> Result<Function> {
        guard(|| {
            let function = timing::time(ELABORATE, || self.program.elaborate(name))
                .map_err(|d| Error::program(d, &self.sources))?;
            Ok(Function::from_array(function, self.sources.clone(), self.semantics))
        })
    }
}

/// Maximum length of a program's file, in bytes, so that reading an endless device terminates.
const MAX_SOURCE: u64 = 64 << 20;

/// Returns the text of a program's file.
fn read_source(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(MAX_SOURCE + 1).read_to_string(&mut text)? as u64 > MAX_SOURCE {
        let why = format!("it has more than {} MiB, the most that a file of a program may have", MAX_SOURCE >> 20);
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// Returns why `path` could not be read, in words that do not depend on the system.
fn unreadable(path: &Path, error: &std::io::Error) -> String {
    let path = path.display();
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no file {path}; imports are looked for beside their file"),
        std::io::ErrorKind::IsADirectory => format!("{path} is a folder, not a file"),
        std::io::ErrorKind::InvalidData => format!("{path} is not text: it has bytes that are not UTF-8"),
        _ => format!("{path} cannot be read: {error}"),
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("definitions", &self.definitions()).finish_non_exhaustive()
    }
}
