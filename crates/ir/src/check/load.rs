//! Loading of files and imports, in order.
//!
//! Visible names are those of the library, then those of the imported files in the order of the imports, then the
//! file's own, each visible to those below it. Later names shadow earlier ones.

use super::annotation::Alias;
use super::core::{Core, CoreKind, DefId};
use super::infer::Checker;
use super::pending::Scheme;
use super::{Definition, Program, messages, show_scheme};
use crate::library;
use chainrule_base::{Diagnostic, Diagnostics, FileId, Name, Sources, Span};
use chainrule_syntax::tree::{Binding, Ident, Item, ItemKind, Module, Pattern};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// Loads an imported file: takes the path as written and the name of the importing file; returns the canonical name of
/// the file (equal for the same file) and its text, or the reason for a failure.
pub trait Loader: FnMut(&str, &str) -> Result<(String, String), String> {}

impl<F: FnMut(&str, &str) -> Result<(String, String), String>> Loader for F {}

/// Maximum length of a chain of imports.
pub const MAX_IMPORT_DEPTH: usize = 100;

/// Names that a file exports.
#[derive(Clone, Default)]
struct Exports {
    globals: Vec<(Name, DefId)>,
    aliases: Vec<(Name, Alias)>,
    /// Whether there are further names that could not be read.
    incomplete: bool,
}

impl Exports {
    /// Returns the exports of a file that cannot be read.
    fn unknown() -> Self {
        Self { incomplete: true, ..Self::default() }
    }
}

enum State {
    /// Being loaded: an import of it closes a cycle.
    Open,
    Done(Exports),
}

struct Loading<'a, L> {
    sources: &'a mut Sources,
    loader: L,
    checker: Checker,
    files: FxHashMap<String, State>,
    library: Library,
    depth: usize,
}

/// State of the library.
#[derive(Default)]
struct Library {
    exports: Exports,
    read: [bool; library::MODULES.len()],
}

impl Library {
    /// Reads the modules that `text` may use.
    fn serve(&mut self, checker: &mut Checker, sources: &mut Sources, text: &str) {
        for (idx, module) in library::MODULES.iter().enumerate() {
            if !self.read[idx] && library::mentions(text, idx) {
                self.read[idx] = true;
                let file = sources.add(format!("<{}>", module.name), module.text);
                let (tree, diagnostics) = chainrule_syntax::parse(sources, file);
                checker.diagnostics.extend(diagnostics);
                checker.globals = self.exports.globals.iter().cloned().collect();
                checker.aliases = self.exports.aliases.iter().cloned().collect();
                checker.library = true;
                let exports = check_items(checker, &tree);
                checker.library = false;
                self.exports.globals.extend(exports.globals.into_iter().filter(|(name, _)| !name.starts_with('_')));
                self.exports.aliases.extend(exports.aliases);
            }
        }
    }
}

impl Program {
    /// Loads and checks the file `root`, its imports, and the library.
    ///
    /// # Errors
    /// All messages about all files, if one of them is not a warning.
    pub fn load(sources: &mut Sources, root: FileId, loader: impl Loader) -> Result<Self, Diagnostics> {
        let checker = Checker::new();
        let mut loading =
            Loading { sources, loader, checker, files: FxHashMap::default(), library: Library::default(), depth: 0 };
        let name = loading.sources.file(root).name.clone();
        loading.files.insert(name, State::Open);
        let _ = loading.file(root);
        let Checker { table, defs, diagnostics, globals, aliases, .. } = loading.checker;
        let program =
            Self { table, spare: Mutex::default(), defs, globals, aliases, root, warnings: Diagnostics::new() };
        let warnings = diagnostics.clone();
        diagnostics.into_result(())?;
        Ok(Self { warnings, ..program })
    }

    /// Checks a tree that was not read from a text, with the library names in `mentioned`, separated by other
    /// characters. Its spans are in `sources`, its items in `root`; it imports nothing.
    ///
    /// # Errors
    /// All messages, if one of them is not a warning.
    pub fn from_tree(sources: &mut Sources, root: FileId, tree: &Module, mentioned: &str) -> Result<Self, Diagnostics> {
        let mut checker = Checker::new();
        let mut library = Library::default();
        library.serve(&mut checker, sources, mentioned);
        checker.globals = library.exports.globals.into_iter().collect();
        checker.aliases = library.exports.aliases.into_iter().collect();
        check_items(&mut checker, tree);
        let Checker { table, defs, diagnostics, globals, aliases, .. } = checker;
        let warnings = diagnostics.clone();
        diagnostics.into_result(())?;
        Ok(Self { table, spare: Mutex::default(), defs, globals, aliases, root, warnings })
    }

    /// Returns the library modules that this program has read.
    fn library_read(&self, sources: &Sources) -> Library {
        let mut library = Library::default();
        let mut known: FxHashMap<Name, DefId> = FxHashMap::default();
        for (id, def) in self.defs.iter().filter(|(_, def)| def.library) {
            known.insert(def.name.clone(), id);
            let file = &sources.file(def.span.file).name;
            for (read, module) in library.read.iter_mut().zip(library::MODULES) {
                *read |= *file == format!("<{}>", module.name);
            }
        }
        for name in library::names().iter().flatten() {
            library.exports.globals.extend(known.get_key_value(*name).map(|(name, def)| (name.clone(), *def)));
        }
        library
    }

    /// Returns the program with an additional definition, called `name`, from the text of an expression.
    ///
    /// # Errors
    /// The faults of the expression.
    pub(crate) fn with_expression(&self, sources: &mut Sources, name: &Name, text: &str) -> Result<Self, Diagnostics> {
        let mut checker = Checker::new();
        checker.table = self.table.clone();
        checker.defs = self.defs.clone();
        // Modules that the program has not used shadow nothing, so they come first.
        let mut library = self.library_read(sources);
        library.serve(&mut checker, sources, text);
        checker.globals = library.exports.globals.into_iter().collect();
        checker.globals.extend(self.globals.iter().map(|(name, def)| (name.clone(), *def)));
        checker.aliases = self.aliases.clone();
        let file = sources.add("<expression>", text);
        let (value, mut diagnostics) = chainrule_syntax::parse_expr(sources, file);
        let span = value.span;
        let pattern = Pattern::Name(Ident { name: name.clone(), span });
        let binding = Binding { pattern, ty: None, value };
        let item = Item { kind: ItemKind::Let(binding.clone()), span, docs: Vec::new() };
        define(&mut checker, &item, &binding, &mut Exports::default());
        diagnostics.extend(checker.diagnostics);
        diagnostics.into_result(())?;
        let Checker { table, defs, globals, aliases, .. } = checker;
        Ok(Self {
            table,
            spare: Mutex::default(),
            defs,
            globals,
            aliases,
            root: self.root,
            warnings: Diagnostics::new(),
        })
    }
}

impl<L: Loader> Loading<'_, L> {
    /// Checks a file; the checker then sees its names.
    fn file(&mut self, file: FileId) -> Exports {
        let (module, diagnostics) = chainrule_syntax::parse(self.sources, file);
        let incomplete = diagnostics.has_errors();
        self.checker.diagnostics.extend(diagnostics);
        let text = self.sources.file(file).text.clone();
        self.library.serve(&mut self.checker, self.sources, &text);
        let mut imported = self.library.exports.clone();
        for item in &module.items {
            if let ItemKind::Import { path, library, path_span } = &item.kind {
                let exports = self.import(path, *library, *path_span, file);
                imported.globals.extend(exports.globals);
                imported.aliases.extend(exports.aliases);
                imported.incomplete |= exports.incomplete;
            }
        }
        self.checker.globals = imported.globals.into_iter().collect();
        self.checker.aliases = imported.aliases.into_iter().collect();
        self.checker.incomplete = imported.incomplete;
        Exports { incomplete, ..check_items(&mut self.checker, &module) }
    }

    fn import(&mut self, path: &str, library: bool, span: Span, importer: FileId) -> Exports {
        if library {
            let known = library::MODULES.iter().any(|module| module.name == path);
            if !known {
                let names: Vec<&str> = library::MODULES.iter().map(|module| module.name).collect();
                self.checker.diagnostics.push(
                    Diagnostic::error(format!("there is no library `{path}`"))
                        .with_label(span, "asked for here")
                        .with_help(match messages::nearest(path, &names) {
                            Some(best) => format!("did you mean `{best}`?"),
                            None => format!("a file is imported by its path: `import \"{path}.ft\"`"),
                        }),
                );
            }
            // The library is visible everywhere.
            return Exports { incomplete: !known, ..Exports::default() };
        }
        let (name, text) = match (self.loader)(path, &self.sources.file(importer).name) {
            Ok(found) => found,
            Err(why) => {
                self.checker.diagnostics.push(
                    Diagnostic::error(format!("cannot import \"{path}\""))
                        .with_label(span, "asked for here")
                        .with_reason(why),
                );
                return Exports::unknown();
            }
        };
        match self.files.get(&name) {
            Some(State::Done(exports)) => return exports.clone(),
            Some(State::Open) => {
                self.checker.diagnostics.push(
                    Diagnostic::error("files import each other in a circle")
                        .with_label(span, format!("\"{name}\" is being loaded already"))
                        .with_reason("a definition sees those before it; in a circle there is no before")
                        .with_help("move what both files need into a third one"),
                );
                return Exports::unknown();
            }
            None => {}
        }
        if self.depth >= MAX_IMPORT_DEPTH {
            self.checker.diagnostics.push(
                Diagnostic::limitation(format!("more than {MAX_IMPORT_DEPTH} files import each other in a row"))
                    .with_label(span, "the next one is asked for here"),
            );
            return Exports::unknown();
        }
        let file = self.sources.add(name.clone(), text);
        self.files.insert(name.clone(), State::Open);
        self.depth += 1;
        let exports = self.file(file);
        self.depth -= 1;
        self.files.insert(name, State::Done(exports.clone()));
        exports
    }
}

/// Checks the definitions of a file, whose imports are visible.
fn check_items(checker: &mut Checker, module: &Module) -> Exports {
    let mut exports = Exports::default();
    let mut first: FxHashMap<Name, Span> = FxHashMap::default();
    checker.later.clear();
    for item in &module.items {
        if let ItemKind::Let(binding) = &item.kind {
            names(&binding.pattern, &mut |ident| {
                if let Some(at) = first.get(&ident.name) {
                    checker.diagnostics.push(
                        Diagnostic::warning(format!("`{}` is defined twice", ident.name))
                            .with_label(ident.span, "again here; this one counts below")
                            .with_label(*at, "first here"),
                    );
                }
                first.insert(ident.name.clone(), ident.span);
                checker.later.insert(ident.name.clone(), ident.span);
            });
        }
    }
    for item in &module.items {
        match &item.kind {
            ItemKind::Import { .. } => {}
            ItemKind::TypeAlias { name, ty } => {
                checker.alias(&name.name, ty);
                if let Some(alias) = checker.aliases.get(&name.name) {
                    exports.aliases.push((name.name.clone(), alias.clone()));
                }
            }
            ItemKind::Let(binding) => define(checker, item, binding, &mut exports),
        }
    }
    exports
}

fn names(pattern: &Pattern, visit: &mut impl FnMut(&Ident)) {
    match pattern {
        Pattern::Name(ident) => visit(ident),
        Pattern::Wildcard(_) => {}
        Pattern::Tuple(parts, _) => parts.iter().for_each(|p| names(p, visit)),
    }
}

/// Returns the numbers of reported and of suppressed messages.
fn said(checker: &Checker) -> (usize, usize) {
    (checker.diagnostics.len(), checker.silenced)
}

/// Returns whether there were errors since, reported or not.
fn has_errors(checker: &Checker, (told, silenced): (usize, usize)) -> bool {
    checker.silenced > silenced
        || checker.diagnostics.iter().skip(told).any(|d| d.kind != chainrule_base::Kind::Warning)
}

/// Checks a definition and makes it visible.
fn define(checker: &mut Checker, item: &Item, binding: &Binding, exports: &mut Exports) {
    let said = said(checker);
    checker.current = match &binding.pattern {
        Pattern::Name(ident) => Some((ident.name.clone(), ident.span)),
        _ => None,
    };
    let (core, scheme, n_slots) = checker.definition(binding);
    let ok = !has_errors(checker, said);
    let checked = Checked { core, scheme, n_slots, ok };
    match &binding.pattern {
        Pattern::Name(ident) => {
            add(checker, exports, ident, item, checked);
        }
        Pattern::Wildcard(_) => {}
        Pattern::Tuple(..) => {
            // The tuple has a name that cannot be written; its parts are its components.
            let whole = Ident { name: Name::new(" tuple"), span: binding.pattern.span() };
            let def = add(checker, exports, &whole, item, checked);
            let mut whole = Whole { def, ok, path: Vec::new() };
            add_components(checker, exports, item, &binding.pattern, &mut whole);
        }
    }
}

/// Checked value of a definition.
struct Checked {
    core: Core,
    scheme: Scheme,
    n_slots: u32,
    /// Whether there was no error.
    ok: bool,
}

/// Tuple whose components become definitions.
struct Whole {
    def: DefId,
    /// Whether there was no error in the tuple.
    ok: bool,
    /// Path to the component, as for [`Checker::component_of`].
    path: Vec<(usize, usize)>,
}

/// Defines the names of `pattern` as components of `whole`.
fn add_components(checker: &mut Checker, exports: &mut Exports, item: &Item, pattern: &Pattern, whole: &mut Whole) {
    match pattern {
        Pattern::Wildcard(_) => {}
        Pattern::Tuple(parts, _) => {
            for (k, part) in parts.iter().enumerate() {
                whole.path.push((k, parts.len()));
                add_components(checker, exports, item, part, whole);
                whole.path.pop();
            }
        }
        Pattern::Name(ident) => {
            let before = said(checker);
            let (core, scheme) = checker.component_of(whole.def, &whole.path, ident.span);
            let ok = whole.ok && !has_errors(checker, before);
            add(checker, exports, ident, item, Checked { core, scheme, n_slots: 0, ok });
        }
    }
}

fn add(checker: &mut Checker, exports: &mut Exports, ident: &Ident, item: &Item, checked: Checked) -> DefId {
    let Checked { core, scheme, n_slots, ok } = checked;
    let ty = if ok { show_scheme(&mut checker.table, &scheme) } else { "?".to_owned() };
    let (is_function, is_first_order) = (checker.table.is_function(scheme.ty), checker.table.is_first_order(scheme.ty));
    let core = if ok { core } else { Core { kind: CoreKind::Error, ty: checker.table.error, span: ident.span } };
    let scheme = if ok { scheme } else { Scheme::mono(checker.table.error) };
    let def = checker.defs.push(Definition {
        name: ident.name.clone(),
        span: ident.span,
        docs: item.docs.clone(),
        ty,
        is_function,
        is_first_order,
        library: checker.library,
        core,
        scheme,
        n_slots,
        ok,
    });
    checker.globals.insert(ident.name.clone(), def);
    checker.later.remove(&ident.name);
    exports.globals.push((ident.name.clone(), def));
    def
}
