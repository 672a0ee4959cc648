//! Elaboration of checked definitions to the IR: normalisation by evaluation.
//!
//! The core language is evaluated with functions as compile-time values and data as variables of the function under
//! construction. So every application is inlined, every argument is computed once, and sizes are polynomials in types,
//! where they are checked.
//!
//! | module | owns |
//! | --- | --- |
//! | `entry` | parameters, sizes and requirements of the elaborated function |
//! | `eval` | expressions |
//! | `apply` | built-in functions |
//! | `differentiate` | derivatives: one-hot directions, `Jvp` |
//! | `custom` | functions with their own derivative |
//! | `sizes` | equality of sizes, ranges of indices |
//! | `values` | compile-time values |

mod apply;
mod custom;
mod differentiate;
mod entry;
mod eval;
mod sizes;
mod values;

use self::values::{Env, Frame, Value};
use crate::check::Program;
use crate::check::core::DefId;
use crate::check::table::{Table, TyId};
use crate::range::Loop;
use crate::{Builder, Function, Size, Stmt, VarId};
use chainrule_base::{Diagnostic, Diagnostics, Name, Sources, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of variables of a function, and of inlined calls; inlining stops there.
pub const MAX_VARIABLES: usize = 1_000_000;
/// Maximum total number of components of the tuples of a function, including nested ones.
pub const MAX_PARTS: usize = 1_000_000;
/// Maximum nesting of inlined calls.
pub const MAX_CALLS: usize = 200;
/// Maximum nesting of expressions and calls together.
pub const MAX_DEPTH: usize = 4_000;
/// Stack of elaboration: enough for [`MAX_DEPTH`] with a wide margin.
const STACK_BYTES: usize = 256 << 20;

/// Elaboration stops; the reason was reported.
#[derive(Debug)]
pub(super) struct Stop;

impl Program {
    /// Returns the function `name` of the root file as IR. A constant is a function without parameters. Open types are
    /// `Double`; sizes without annotations become size parameters named after the parameters (`x_len`, `a_rows`,
    /// `a_cols`).
    ///
    /// # Errors
    /// Faults of its sizes, or limitations of Chainrule.
    pub fn elaborate(&self, name: &str) -> Result<Function, Diagnostics> {
        let Some(def) = self.globals.get(name).copied() else {
            let mut known: Vec<&str> = self.globals.keys().map(|n| &**n).collect();
            known.sort_unstable();
            let message = Diagnostic::error(format!("the program defines no `{name}`"));
            return Err(Diagnostics::from(match crate::check::messages::nearest(name, &known) {
                Some(best) => message.with_help(format!("did you mean `{best}`?")),
                None => message,
            }));
        };
        self.elaborate_definition(def)
    }

    /// Returns the expression `text`, in the scope of the root file, as a function without parameters.
    ///
    /// # Errors
    /// Faults of the expression.
    pub fn elaborate_expr(&self, sources: &mut Sources, text: &str) -> Result<Function, Diagnostics> {
        let name = Name::new("it");
        let program = self.with_expression(sources, &name, text)?;
        program.elaborate(&name)
    }

    /// Runs `work` on a copy of the types, which it may extend. The copy is reused while it is not much larger, so that
    /// elaborating all definitions of a program takes linear time.
    fn with_table<T>(&self, work: impl FnOnce(&mut Table) -> T) -> T {
        let kept = self.spare.lock().ok().and_then(|mut spare| spare.take());
        let mut table = kept.unwrap_or_else(|| self.table.clone());
        let result = work(&mut table);
        table.woken.clear();
        if table.n_nodes() <= 2 * self.table.n_nodes()
            && let Ok(mut spare) = self.spare.lock()
        {
            *spare = Some(table);
        }
        result
    }

    fn elaborate_definition(&self, def: DefId) -> Result<Function, Diagnostics> {
        // A separate stack: calls nest as deep as those of the program.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("chainrule".to_owned()).stack_size(STACK_BYTES);
            let spawned = thread.spawn_scoped(scope, || self.with_table(|table| Elaborator::new(self, table).run(def)));
            match spawned.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(result)) => result,
                // A panic is resumed in the waiting thread, where it may become a message.
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(why) => Err(Diagnostic::limitation("there is no room for the stack that elaboration needs")
                    .with_reason(why.to_string())
                    .into()),
            }
        })
    }
}

/// State of elaboration.
struct Elaborator<'p> {
    program: &'p Program,
    table: &'p mut Table,
    b: Builder,
    frames: Vec<Frame<'p>>,
    /// Instances of type variables, with the next frame to search.
    types: Vec<(FxHashMap<TyId, TyId>, Option<usize>)>,
    diagnostics: Diagnostics,
    context: Context,
    /// Number of components of all tuples so far.
    n_parts: usize,
    /// Computed constants, and their statements.
    constants: FxHashMap<(DefId, Vec<TyId>), VarId>,
    prelude: Vec<Stmt>,
    /// Components of tuples made by elaboration.
    tuples: FxHashMap<VarId, Vec<VarId>>,
    /// Decided conditions.
    decided: FxHashMap<VarId, bool>,
    descriptions: Descriptions,
    at_entry: AtEntry,
}

/// Constructs around the current expression.
#[derive(Default)]
struct Context {
    /// Enclosing loops, outermost first.
    loops: Vec<Loop>,
    /// Number of enclosing branches and `while`s, whose content may not run.
    conditional: u32,
    /// Current inlined calls, outermost first: callee and span.
    calls: Vec<(Option<Name>, Span)>,
    /// Nesting of the evaluation, at most [`MAX_DEPTH`].
    depth: usize,
}

/// Descriptions in messages.
#[derive(Default)]
struct Descriptions {
    /// Unnamed arrays.
    arrays: FxHashMap<VarId, String>,
    /// Sizes: the array, and the kind of its dimension.
    sizes: FxHashMap<VarId, (String, &'static str)>,
}

/// Facts about integers at entry.
#[derive(Default)]
struct AtEntry {
    /// Size parameters.
    natural: FxHashSet<VarId>,
    /// `Int` parameters and size parameters: variables of requirements.
    ints: FxHashSet<VarId>,
    /// Polynomials that are not negative.
    known: Vec<Size>,
}

impl<'p> Elaborator<'p> {
    fn new(program: &'p Program, table: &'p mut Table) -> Self {
        Self {
            program,
            table,
            b: Builder::new(""),
            frames: Vec::new(),
            types: Vec::new(),
            diagnostics: Diagnostics::new(),
            context: Context::default(),
            n_parts: 0,
            constants: FxHashMap::default(),
            prelude: Vec::new(),
            tuples: FxHashMap::default(),
            decided: FxHashMap::default(),
            descriptions: Descriptions::default(),
            at_entry: AtEntry::default(),
        }
    }

    fn run(mut self, def: DefId) -> Result<Function, Diagnostics> {
        let name = self.program.defs[def].name.clone();
        self.b = Builder::new(&name);
        let result = self.entry(def).and_then(|result| self.sizes_are_known(def, result).map(|()| result));
        let diagnostics = std::mem::take(&mut self.diagnostics);
        match result {
            Ok(result) => {
                let mut function = self.b.finish(result);
                let body = std::mem::take(&mut function.body.stmts);
                function.body.stmts = self.prelude;
                function.body.stmts.extend(body);
                diagnostics.into_result(function)
            }
            Err(Stop) if diagnostics.has_errors() => Err(diagnostics),
            Err(Stop) => Err(Diagnostic::bug(format!("`{name}` could not be elaborated, and nothing said why")).into()),
        }
    }

    /// Reports `message` about `span`, in the program's text, with the calls that led into the library.
    fn say(&mut self, span: Span, label: &str, message: Diagnostic) {
        let program = self.program;
        let in_library = |span: Span| program.is_library(span);
        let mut message = message;
        if in_library(span) {
            // The reader knows the call, not the library's text.
            let call = self.context.calls.iter().rev().find(|(_, at)| !in_library(*at)).cloned();
            if let Some((name, at)) = call {
                let inside = name.as_ref().map_or("in this call".to_owned(), |n| format!("in this call of `{n}`"));
                if let (Some(name), sizes::OUT_OF_RANGE) = (name, message.title.as_str()) {
                    // The fault is in the sizes of its arguments; one span is enough.
                    message.title = format!("`{name}` cannot take arguments of these sizes");
                    if self.diagnostics.iter().any(|said| said.title == message.title && said.span() == Some(at)) {
                        return;
                    }
                }
                message = message.with_label(at, inside);
            }
        }
        message.labels.insert(
            usize::from(in_library(span) && !message.labels.is_empty()),
            chainrule_base::diagnostic::Label { span, text: label.to_owned() },
        );
        // The outermost call is the elaborated function.
        let named = self.context.calls.iter().skip(1).rev().find_map(|(name, at)| Some((name.clone()?, *at)));
        if let Some((name, at)) = named
            && !in_library(span)
            && at != span
        {
            message = message.with_label(at, format!("in this call of `{name}`"));
        }
        if !self.diagnostics.iter().any(|said| *said == message) {
            self.diagnostics.push(message);
        }
    }

    /// Reports `message` and stops.
    fn stop<T>(&mut self, span: Span, label: &str, message: Diagnostic) -> Result<T, Stop> {
        self.say(span, label, message);
        Err(Stop)
    }

    /// Reports a state that inference should have excluded.
    fn bug<T>(&mut self, span: Span, what: &str) -> Result<T, Stop> {
        self.stop(span, "here", Diagnostic::bug(format!("elaboration met {what}")))
    }

    fn frame(&mut self, parent: usize, level: u32, n_slots: u32) -> usize {
        self.frames.push(Frame { parent, level, values: vec![Value::Unbound; n_slots as usize] });
        self.frames.len() - 1
    }

    fn type_frame(&mut self, vars: &[TyId], inst: &[TyId], at: Env, parent: Option<usize>) -> usize {
        let map = vars.iter().copied().zip(inst.iter().map(|ty| self.concrete(*ty, at.types))).collect();
        self.types.push((map, parent));
        self.types.len() - 1
    }

    /// Returns `ty` with its variables replaced by their instances in the type frame `at`.
    fn concrete(&mut self, ty: TyId, at: usize) -> TyId {
        let types = &self.types;
        let look = |var: TyId| {
            let mut frame = Some(at);
            while let Some((map, parent)) = frame.and_then(|f| types.get(f)) {
                if let Some(ty) = map.get(&var) {
                    return Some(*ty);
                }
                frame = *parent;
            }
            None
        };
        self.table.substitute(ty, &look).unwrap_or(ty)
    }

    fn is_int(&mut self, ty: TyId, at: usize) -> bool {
        let ty = self.concrete(ty, at);
        self.table.is(ty, self.table.int)
    }
}
