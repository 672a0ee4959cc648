//! From checked definitions to the IR: normalisation by evaluation.
//!
//! The core language is evaluated with functions as values of the compiler and data as variables of
//! the function in the making. Every application is so inlined, every argument is computed once, and
//! sizes appear in the types as polynomials, where they are checked.
//!
//! | module | owns |
//! | --- | --- |
//! | `entry` | parameters, sizes and requirements of the function that is made |
//! | `eval` | expressions |
//! | `apply` | the language's own functions |
//! | `differentiate` | derivatives: one-hot directions, `Jvp` |
//! | `custom` | functions that state their own derivative |
//! | `sizes` | sizes that must be equal, indices that must be in range |
//! | `values` | functions and data at compile time |

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

/// The most variables that a function may have before inlining is stopped.
pub const MAX_VARIABLES: usize = 1_000_000;
/// The most components that the tuples of a function may have, with those of tuples inside of others.
pub const MAX_PARTS: usize = 1_000_000;
/// How many calls may be inlined inside each other.
pub const MAX_CALLS: usize = 200;
/// How deep expressions and calls together may nest.
pub const MAX_DEPTH: usize = 4_000;
/// The stack that elaboration runs on: room for [`MAX_DEPTH`] with a wide margin.
const STACK_BYTES: usize = 256 << 20;

/// Elaboration cannot go on; why was said.
#[derive(Debug)]
pub(super) struct Stop;

impl Program {
    /// The function that `name` means at the end of the root file, as IR. A constant is a function
    /// without parameters. Types that are still open are `Double`; sizes that no annotation names
    /// become size parameters called after the parameters (`x_len`, `a_rows`, `a_cols`).
    ///
    /// # Errors
    /// What is wrong with its sizes, or what Chainrule cannot do.
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

    /// The expression `text`, which sees what the root file sees, as a function without parameters.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn elaborate_expr(&self, sources: &mut Sources, text: &str) -> Result<Function, Diagnostics> {
        let name = Name::new("it");
        let program = self.with_expression(sources, &name, text)?;
        program.elaborate(&name)
    }

    /// `work` on a copy of the types, to which it adds. It is kept for the next one while it is not much larger: to elaborate
    /// all definitions of a program takes time in proportion to them.
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
        // A stack of its own: calls nest as deep as the program nests them.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("chainrule".to_owned()).stack_size(STACK_BYTES);
            let spawned = thread.spawn_scoped(scope, || self.with_table(|table| Elaborator::new(self, table).run(def)));
            match spawned.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(result)) => result,
                // A panic goes on in the thread that waits, where somebody may turn it into a message.
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(why) => Err(Diagnostic::limitation("there is no room for the stack that elaboration needs")
                    .with_reason(why.to_string())
                    .into()),
            }
        })
    }
}

/// The state of elaboration.
struct Elaborator<'p> {
    program: &'p Program,
    table: &'p mut Table,
    b: Builder,
    frames: Vec<Frame<'p>>,
    /// What type variables are, with the frame to look in next.
    types: Vec<(FxHashMap<TyId, TyId>, Option<usize>)>,
    diagnostics: Diagnostics,
    /// Loops around the place at hand, outermost first.
    loops: Vec<Loop>,
    /// How many branches and `while`s are around the place at hand: what is in them may not happen.
    conditional: u32,
    /// The calls that are being inlined, outermost first: what is called, and where.
    calls: Vec<(Option<Name>, Span)>,
    depth: usize,
    /// Number of components of all tuples so far.
    n_parts: usize,
    /// Constants that were computed, and the statements that do so.
    constants: FxHashMap<(DefId, Vec<TyId>), VarId>,
    prelude: Vec<Stmt>,
    /// The components of tuples that were made here.
    tuples: FxHashMap<VarId, Vec<VarId>>,
    /// Conditions that are decided.
    decided: FxHashMap<VarId, bool>,
    /// What messages call arrays without a name.
    described: FxHashMap<VarId, String>,
    /// What messages call sizes: of what they are the number of what.
    owners: FxHashMap<VarId, (String, &'static str)>,
    /// Size parameters.
    natural: FxHashSet<VarId>,
    /// `Int` parameters and size parameters: what requirements may be about.
    at_entry: FxHashSet<VarId>,
    /// Polynomials that are not negative at entry.
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
            loops: Vec::new(),
            conditional: 0,
            calls: Vec::new(),
            depth: 0,
            n_parts: 0,
            constants: FxHashMap::default(),
            prelude: Vec::new(),
            tuples: FxHashMap::default(),
            decided: FxHashMap::default(),
            described: FxHashMap::default(),
            owners: FxHashMap::default(),
            natural: FxHashSet::default(),
            at_entry: FxHashSet::default(),
            known: Vec::new(),
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

    /// Says `message` about `span`: in the program's text, with the calls that led into the library.
    fn say(&mut self, span: Span, label: &str, message: Diagnostic) {
        let program = self.program;
        let in_library = |span: Span| program.is_library(span);
        let mut message = message;
        if in_library(span) {
            // The reader knows the call, not the library's text.
            let call = self.calls.iter().rev().find(|(_, at)| !in_library(*at)).cloned();
            if let Some((name, at)) = call {
                let inside = name.as_ref().map_or("in this call".to_owned(), |n| format!("in this call of `{n}`"));
                if let (Some(name), sizes::OUT_OF_RANGE) = (name, message.title.as_str()) {
                    // What is wrong are the sizes that it was given; one place that shows it is enough.
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
        // The outermost call is the function that is made.
        let named = self.calls.iter().skip(1).rev().find_map(|(name, at)| Some((name.clone()?, *at)));
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

    /// Says `message` and stops.
    fn stop<T>(&mut self, span: Span, label: &str, message: Diagnostic) -> Result<T, Stop> {
        self.say(span, label, message);
        Err(Stop)
    }

    /// What cannot be, had inference done its work.
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

    /// `ty` with its variables replaced by what they are in the type frame `at`.
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
