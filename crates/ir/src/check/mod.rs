//! The checker: module loading, name resolution, inference.
//!
//! In: texts, from a loader (this module does no IO). Out: a [`Program`], whose definitions have types and are ready
//! for elaboration.
//!
//! | module | owns |
//! | --- | --- |
//! | `load` | files and imports, in order |
//! | `infer` | Hindley-Milner inference on the tree |
//! | `forms` | `deriv`, `forward` |
//! | `locals` | local names of a definition |
//! | `table` | types, unification |
//! | `constraint`, `pending` | constraints on types that are not known yet |
//! | `annotation` | written types |
//! | `builtin` | built-in functions |
//! | `core` | the core language, its output |
//! | `messages` | its messages |
//!
//! ```
//! use chainrule_base::Sources;
//! use chainrule_ir::{Program, Value, evaluate};
//! let mut sources = Sources::new();
//! let root = sources.add("main.ft", "let f = fun v -> gradient (fun w -> vectorDot w w) v");
//! let no_files = |path: &str, _: &str| Err(format!("there is no file {path}"));
//! let program = Program::load(&mut sources, root, no_files)?;
//! assert_eq!(program.definition("f").map(|f| &*f.ty), Some("[]Double => []Double"));
//! let f = program.elaborate("f")?;
//! let result = evaluate(&f, &mut chainrule_ops::F64, &[Value::from(vec![1.0, 2.0])]);
//! assert_eq!(result.ok(), Some(Value::from(vec![2.0, 4.0])));
//! # Ok::<(), chainrule_base::Diagnostics>(())
//! ```

mod annotation;
pub(crate) mod builtin;
pub(crate) mod constraint;
pub(crate) mod core;
mod forms;
mod infer;
mod load;
mod locals;
pub(crate) mod messages;
pub(crate) mod pending;
pub(crate) mod table;

use self::core::{Core, DefId};
use self::pending::{Defaults, Pending, Scheme};
use self::table::{Class, Table, TypeNames};
use chainrule_base::{Arena, Diagnostics, FileId, Name, Span};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

pub use self::builtin::names;
pub use self::load::Loader;

/// A checked program: the definitions of a file, of the files it imports, and of the library.
pub struct Program {
    pub(crate) table: Table,
    /// Reusable copy of the types, extended by elaboration.
    pub(crate) spare: Mutex<Option<Table>>,
    pub(crate) defs: Arena<DefId, Definition>,
    /// Names visible to an expression after the last line of the root file.
    pub(crate) globals: FxHashMap<Name, DefId>,
    aliases: FxHashMap<Name, annotation::Alias>,
    root: FileId,
    warnings: Diagnostics,
}

/// A definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its name.
    pub name: Name,
    /// Span of the name.
    pub span: Span,
    /// Comment lines above it.
    pub docs: Vec<String>,
    /// Type in the syntax of F~, without sizes.
    pub ty: String,
    /// Whether it is a function, not a constant.
    pub is_function: bool,
    /// Whether neither its arguments nor its data contain functions.
    pub is_first_order: bool,
    /// Whether it belongs to the library.
    pub library: bool,
    pub(crate) core: Core,
    pub(crate) scheme: Scheme,
    pub(crate) n_slots: u32,
    /// Whether it had no errors.
    pub(crate) ok: bool,
}

impl Program {
    /// Returns the definitions of the root file, in the order of the text.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.defs.iter().map(|(_, def)| def).filter(|def| def.span.file == self.root && def.is_visible())
    }

    /// Returns whether `span` is in the text of the library.
    #[must_use]
    pub fn is_library(&self, span: Span) -> bool {
        self.library().any(|def| def.span.file == span.file)
    }

    /// Returns the definitions of the loaded library modules, in the order of the text.
    pub fn library(&self) -> impl Iterator<Item = &Definition> {
        self.defs.iter().map(|(_, def)| def).filter(|def| def.library)
    }

    /// Returns the definition of `name` at the end of the root file.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.globals.get(name).map(|def| &self.defs[*def])
    }

    /// Returns the warnings, except those of the library's files.
    #[must_use]
    pub const fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Returns the root file.
    #[must_use]
    pub const fn root(&self) -> FileId {
        self.root
    }
}

impl Definition {
    /// Returns whether its name was written by a person; false for the whole of a tuple pattern.
    fn is_visible(&self) -> bool {
        !self.name.contains(' ')
    }
}

/// Returns the type of a definition for people: related numbers have one type.
fn show_scheme(table: &mut Table, scheme: &Scheme) -> String {
    let mut pending = Pending::default();
    let mut ty = scheme.ty;
    if scheme.constraints.len() <= 1000
        && let Ok((_, fresh, constraints)) = scheme.instantiate(table)
    {
        ty = fresh;
        for asked in constraints {
            let _ = pending.add(table, asked);
        }
        let _ = pending.assume(table, 0, Defaults::Equality);
    }
    let mut names = TypeNames::default();
    let mut text = table.show(ty, &mut names);
    let numbers: Vec<String> = names
        .named()
        .filter(|(var, _)| table.as_var(*var).is_some_and(|v| v.class == Class::Num))
        .map(|(_, name)| name)
        .collect();
    if !numbers.is_empty() {
        let (verb, noun) = if numbers.len() == 1 { ("is", "a number") } else { ("are", "numbers") };
        text.push_str(&format!(" where {} {verb} {noun}", numbers.join(", ")));
    }
    text
}
