//! F~ files.

use crate::guard::{guard, guard_on_own_stack};
use crate::{Error, Function, Result};
use chainrule_base::{Diagnostics, FileId, Sources};
use chainrule_graph::Semantics;
use chainrule_ir::Program;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A checked F~ file with what it imports.
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
    /// The module's own text, not one that it imports.
    root: FileId,
    sources: Arc<Sources>,
    semantics: Semantics,
}

/// Something that a module defines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Its type in F~.
    pub ty: String,
    /// The comment above it.
    pub docs: Vec<String>,
    /// Whether it is a function, not a constant.
    pub is_function: bool,
    /// Whether it takes and gives numbers, arrays and tuples only, no functions, so that it can be compiled.
    pub is_first_order: bool,
}

impl Module {
    /// Reads and checks the file `path`; imports are looked for beside the file that imports.
    ///
    /// # Errors
    /// When a file cannot be read, or the program is wrong: all that is wrong, with places.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = read_source(path)
            .map_err(|source| Error::Io { path: path.display().to_string(), source: Arc::new(source) })?;
        Self::from_text(&path.display().to_string(), &text)
    }

    /// Checks `text`, which messages call `name`; imports are looked for beside `name`.
    ///
    /// # Errors
    /// When the program is wrong, or an import cannot be read.
    pub fn from_text(name: &str, text: &str) -> Result<Self> {
        guard_on_own_stack(|| Self::check(name, text))
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

    /// The same program under these semantics, which its functions have and what is derived from them:
    /// [`Semantics::Algebraic`], where nothing is said, takes doubles for real numbers; under [`Semantics::Strict`] functions
    /// compute what the program says, operation by operation, each rounded to the nearest: no sum is added in another order, no
    /// product is fused with one, nothing is rewritten but by rules that are exact in IEEE 754, NaN counted as one
    /// number.
    ///
    /// Derivatives are programs that differentiation writes; they are computed as they are written, too. Straight-line code
    /// ([`Function::unrolled`]) tells one thing apart less: `if c then x else 0` times a number is 0 where `c` does not hold,
    /// whatever the number is, so that derivatives of branches are lazy.
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

    /// What the file defines, in its order.
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

    /// What the checker warned of.
    #[must_use]
    pub fn warnings(&self) -> &Diagnostics {
        self.program.warnings()
    }

    /// Draws the warnings about the module's own text beside it; empty if there are none. Warnings about imported texts are
    /// shown where those are checked themselves.
    #[must_use]
    pub fn render_warnings(&self) -> String {
        let own = self.warnings().iter().filter(|warning| warning.span().is_none_or(|span| span.file == self.root));
        crate::report::render_some(own, &self.sources, false)
    }

    /// The texts that messages speak of.
    #[must_use]
    pub fn sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// The function (or constant) `name`.
    ///
    /// # Errors
    /// When there is none, or it cannot be compiled as it stands: its shapes do not fit, it takes
    /// functions as arguments, ...
    pub fn function(&self, name: &str) -> Result<Function> {
        guard(|| {
            let function = self.program.elaborate(name).map_err(|d| Error::program(d, &self.sources))?;
            Ok(Function::from_array(function, self.sources.clone(), self.semantics))
        })
    }
}

/// Maximum length of a program's file, in bytes: no device that never ends is read for ever.
const MAX_SOURCE: u64 = 64 << 20;

/// The text of a program's file.
fn read_source(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(MAX_SOURCE + 1).read_to_string(&mut text)? as u64 > MAX_SOURCE {
        let why = format!("it has more than {} MiB, the most that a file of a program may have", MAX_SOURCE >> 20);
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// Why `path` could not be read, in words that do not depend on the system.
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
