//! Programs: arguments, operations, locations, the function.

use super::state::{Atom, Block, Lambda, State};
use super::term::{Operand, Term};
use crate::{Error, Function, Result};
use chainrule_base::{FileId, Name, Span};
use chainrule_graph::Semantics;
use chainrule_ir as ir;
use chainrule_syntax::tree::{
    Binding, Expr, ExprKind, Ident, Infix, Item, ItemKind, Module, Param, Pattern, Size, SizeKind, Type, TypeKind,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Array program under construction. Clones share the same program.
#[derive(Clone, Debug)]
pub struct Program(Arc<Mutex<State>>);

/// Argument of a function of the language or its library.
#[derive(Clone, Debug)]
pub enum Part {
    /// Value.
    Term(Term),
    /// Function, written between [`Program::open`] and [`Program::close`].
    Lambda(Lambda),
}

/// Suspended block.
#[derive(Debug)]
pub struct Suspended(Option<Block>);

impl From<Term> for Part {
    fn from(term: Term) -> Self {
        Self::Term(term)
    }
}

impl From<&Term> for Part {
    fn from(term: &Term) -> Self {
        Self::Term(term.clone())
    }
}

impl From<Lambda> for Part {
    fn from(lambda: Lambda) -> Self {
        Self::Lambda(lambda)
    }
}

impl Program {
    /// Returns an empty program for a function called `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Arc::new(Mutex::new(State::new(name))))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent between two statements, even after a panic of a thread.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn term(&self, atom: Atom) -> Term {
        Term { program: self.clone(), atom }
    }

    /// Returns the operand as a value of this program.
    pub(super) fn atom(&self, operand: &impl Operand) -> Atom {
        let (atom, owner) = (operand.atom(), operand.owner());
        if owner.is_some_and(|owner| !self.is(owner)) {
            self.state().fail("values of two programs are combined", "make both with one `Program`");
        }
        atom
    }

    /// Adds the next argument of the function, with a type in F~ syntax: `Double`, `[n]Double`, `[n][3]Int`, `{ focal :
    /// Double, centre : [2]Double }`. The first occurrence of a size binds it.
    ///
    /// The argument gets another name, which [`Term::name`] returns, if F~ or its library defines `name`.
    #[must_use]
    pub fn argument(&self, name: &str, ty: &str) -> Term {
        let mut state = self.state();
        let file = state.sources.add(format!("<type of {name}>"), format!("(0 : {ty})"));
        let (expr, diagnostics) = chainrule_syntax::parse_expr(&state.sources, file);
        let ty = match expr.kind {
            ExprKind::Annotated { ty: parsed, .. } if !diagnostics.has_errors() => parsed,
            _ => {
                state.fail(
                    format!("`{ty}` is not a type of F~"),
                    "write `Double`, `Int`, `Bool`, `[n]Double`, `(A, B)` or `{ a : A, b : B }`",
                );
                Type { kind: TypeKind::Error, span: expr.span }
            }
        };
        sizes_of(&ty, &mut |size| state.reserve(size));
        let name = state.fresh(name);
        let pattern = Pattern::Name(Ident { name: name.clone(), span: state.span });
        state.params.push(Param { pattern, ty: Some(ty) });
        drop(state);
        self.term(Atom::Name(name, 0))
    }

    /// Returns the size called `name` in the type of an argument, as an `Int`.
    #[must_use]
    pub fn size(&self, name: &str) -> Term {
        self.term(Atom::Name(Name::new(name), 0))
    }

    /// Requires that the size called `name` in the type of an argument is at least `least`. A call with fewer elements
    /// is an error, and the optimiser knows that there is none: loops over the size run, its first elements exist.
    pub fn require_at_least(&self, name: &str, least: i64) {
        self.state().least.push((Name::new(name), least));
    }

    /// Returns a number or a truth value as a term.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // Literals read best by value.
    pub fn constant(&self, value: impl Operand) -> Term {
        self.term(self.atom(&value))
    }

    /// Returns an `Int`, even in a context of `Double`; [`Self::constant`] of a whole number takes the type of its
    /// context.
    #[must_use]
    pub fn int(&self, value: i64) -> Term {
        let mut state = self.state();
        let (expr, span) = (Box::new(state.expr(&Atom::Integer(value))), state.span);
        let ty = Type { kind: TypeKind::Name(Name::new("Int")), span };
        let atom = state.bind(None, ExprKind::Annotated { expr, ty });
        drop(state);
        self.term(atom)
    }

    /// Returns the values in a tuple; [`Term::component`] accesses them.
    #[must_use]
    pub fn tuple(&self, parts: &[&Term]) -> Term {
        if let [one] = parts {
            return (*one).clone();
        }
        if parts.is_empty() {
            self.state().fail("a tuple has no parts", "give it two parts or more");
        }
        self.bind_of(parts, ExprKind::Tuple)
    }

    /// Returns the array of these elements, of one type.
    #[must_use]
    pub fn array(&self, elements: &[&Term]) -> Term {
        if elements.is_empty() {
            self.state().fail("an array is written without elements", "make an empty array by `build` of 0 elements");
        }
        self.bind_of(elements, ExprKind::Array)
    }

    fn bind_of(&self, parts: &[&Term], kind: impl FnOnce(Vec<Expr>) -> ExprKind) -> Term {
        let atoms: Vec<Atom> = parts.iter().map(|part| self.atom(part)).collect();
        let mut state = self.state();
        let parts = atoms.iter().map(|atom| state.expr(atom)).collect();
        let atom = state.bind(None, kind(parts));
        drop(state);
        self.term(atom)
    }

    /// Returns the record of these fields; [`Term::field`] accesses them.
    #[must_use]
    pub fn record(&self, fields: &[(&str, &Term)]) -> Term {
        let values: Vec<&Term> = fields.iter().map(|(_, value)| *value).collect();
        let span = self.state().span;
        self.bind_of(&values, |values| {
            let field = |((name, _), value): (&(&str, &Term), Expr)| (Ident { name: Name::new(name), span }, value);
            ExprKind::Record(fields.iter().zip(values).map(field).collect())
        })
    }

    /// Returns `left operator right`, by the operator's sign in F~: `+ - * / ** < <= > >= == <> && ||`.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // Literals read best by value.
    pub fn infix(&self, sign: &str, left: impl Operand, right: impl Operand) -> Term {
        let (left, right) = (self.atom(&left), self.atom(&right));
        let mut state = self.state();
        let infix = infix_of(sign).unwrap_or_else(|| {
            state.fail(format!("there is no operator `{sign}`"), "F~ has + - * / ** < <= > >= == <> && ||");
            Infix::Add
        });
        let (first, right) = (Box::new(state.expr(&left)), state.expr(&right));
        let rest = vec![(infix, state.span, right)];
        let atom = state.bind(None, ExprKind::Infix { first, rest });
        drop(state);
        self.term(atom)
    }

    /// Applies `name` to these arguments: a function of the language (`sin`, `div`, `gradient`) or of its library
    /// (`matrixMul`, `solve`).
    #[must_use]
    pub fn apply(&self, name: &str, args: impl IntoIterator<Item = Part>) -> Term {
        let args: Vec<Part> = args.into_iter().collect();
        for part in &args {
            if let Part::Term(term) = part {
                let _ = self.atom(term);
            }
        }
        let mut state = self.state();
        let span = state.span;
        let args = args.into_iter().map(|part| match part {
            Part::Term(term) => state.expr(&term.atom),
            Part::Lambda(lambda) => lambda.into_expr(span),
        });
        let args = args.collect();
        let function = Box::new(Expr { kind: ExprKind::Name(Name::new(name)), span });
        state.mentioned.push_str(name);
        state.mentioned.push(' ');
        let atom = state.bind(None, ExprKind::Apply { function, args });
        drop(state);
        self.term(atom)
    }

    /// Opens a block with these parameters, whose names are hints; the following terms belong to it.
    #[must_use]
    pub fn open(&self, params: &[&str]) -> Vec<Term> {
        let atoms = self.state().open(params);
        atoms.into_iter().map(|atom| self.term(atom)).collect()
    }

    /// Closes the innermost block, with value `result`. Its unused terms are dropped.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // Literals read best by value.
    pub fn close(&self, result: impl Operand) -> Lambda {
        let result = self.atom(&result);
        self.state().close(&result)
    }

    /// Suspends the innermost block; [`Self::resume`] continues it: both sides of a branch are written before their
    /// results are known.
    #[must_use]
    pub fn suspend(&self) -> Suspended {
        Suspended(self.state().suspend())
    }

    /// Continues a suspended block in the block in which it was opened.
    pub fn resume(&self, block: Suspended) {
        if let Some(block) = block.0 {
            self.state().resume(block);
        }
    }

    /// Returns `if condition then .. else ..` of two blocks without parameters, of which one is evaluated.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // Literals read best by value.
    pub fn choose(&self, condition: impl Operand, then: Lambda, otherwise: Lambda) -> Term {
        let condition = self.atom(&condition);
        let mut state = self.state();
        let condition = state.expr(&condition);
        let arms = vec![(condition, then.body)];
        let atom = state.bind(None, ExprKind::If { arms, otherwise: Box::new(otherwise.body) });
        drop(state);
        self.term(atom)
    }

    /// Adds a source text of the program, for [`Self::locate`]; `name` is its path.
    #[must_use]
    pub fn source(&self, name: &str, text: &str) -> FileId {
        self.state().sources.add(name, text)
    }

    /// Sets the source location of the following terms to `span` of a text of [`Self::source`]: messages show it.
    pub fn locate(&self, span: Span) {
        let mut state = self.state();
        (state.span, state.is_located) = (span, true);
    }

    /// Returns the function with this result.
    ///
    /// # Errors
    /// Fails for errors in the program, shown in its own text or, without a location, in F~'s.
    pub fn function(&self, result: impl Operand) -> Result<Function> {
        self.function_with(result, Semantics::default())
    }

    /// Returns the function with this result, under these semantics ([`crate::Module::with_semantics`]).
    ///
    /// # Errors
    /// The errors of [`Self::function`].
    pub fn function_with(&self, result: impl Operand, semantics: Semantics) -> Result<Function> {
        let mut tree = self.tree(&result)?;
        let State { mut sources, mentioned, name, is_located, span, least, .. } = self.state().clone();
        let mut root = span.file;
        if !is_located {
            let text = chainrule_syntax::print_module(&tree);
            root = sources.add(format!("<{name}>"), text);
            let (parsed, diagnostics) = chainrule_syntax::parse(&sources, root);
            if diagnostics.has_errors() {
                return Err(Error::program(diagnostics, &Arc::new(sources)));
            }
            tree = parsed;
        }
        let program = match ir::Program::from_tree(&mut sources, root, &tree, &mentioned) {
            Ok(program) => program,
            Err(diagnostics) => return Err(Error::program(diagnostics, &Arc::new(sources))),
        };
        let sources = Arc::new(sources);
        let mut function = program.elaborate(DEFINITION).map_err(|d| Error::program(d, &sources))?;
        for (name, least) in least {
            let is_named = |size: &&ir::VarId| function.vars[**size].name.as_ref() == Some(&name);
            let Some(size) = function.sizes.iter().find(is_named) else {
                return Err(Error::request(format!("no argument has the size `{name}`"), "name a size of their types"));
            };
            let size = ir::Size::var(*size).sub(&ir::Size::constant(least));
            let message = format!("`{name}` is less than {least}");
            function.requires.push(ir::Requirement { size, exactly_zero: false, message, span: None });
        }
        Ok(Function::from_array(function, sources, semantics).named(&name))
    }

    /// Returns the program with this result as F~ text.
    ///
    /// # Errors
    /// Fails if the builder is used incorrectly.
    pub fn text(&self, result: impl Operand) -> Result<String> {
        Ok(chainrule_syntax::print_module(&self.tree(&result)?))
    }

    fn tree(&self, result: &impl Operand) -> Result<Module> {
        let result = self.atom(result);
        let mut state = self.state();
        if state.n_open() > 0 {
            state.fail("a block is open where the function ends", "close each block");
        }
        if state.params.is_empty() {
            let message = format!("`{}` has no arguments", state.name);
            state.fail(message, "give it at least one");
        }
        let result = state.expr(&result);
        if let Some((message, help)) = state.fault.clone() {
            return Err(Error::request(message, help));
        }
        let span = state.span;
        let body = Box::new(state.body(result));
        let value = Expr { kind: ExprKind::Fun { params: state.params.clone(), result: None, body }, span };
        let pattern = Pattern::Name(Ident { name: Name::new(DEFINITION), span });
        let item = Item { kind: ItemKind::Let(Binding { pattern, ty: None, value }), span, docs: Vec::new() };
        Ok(Module { items: vec![item], span })
    }
}

/// Name of the one definition of a program's tree; the function has the program's name.
const DEFINITION: &str = "program";

/// Returns the operator with this sign.
fn infix_of(sign: &str) -> Option<Infix> {
    Some(match sign {
        "+" => Infix::Add,
        "-" => Infix::Sub,
        "*" => Infix::Mul,
        "/" => Infix::Div,
        "**" => Infix::Pow,
        "<" => Infix::Lt,
        "<=" => Infix::Le,
        ">" => Infix::Gt,
        ">=" => Infix::Ge,
        "==" => Infix::Eq,
        "<>" => Infix::Ne,
        "&&" => Infix::And,
        "||" => Infix::Or,
        _ => return None,
    })
}

/// Visits every name in the sizes of a type. The parser bounds the nesting of types.
fn sizes_of(ty: &Type, see: &mut impl FnMut(&Name)) {
    match &ty.kind {
        TypeKind::Array { size, element } => {
            if let Some(size) = size {
                names_of(size, see);
            }
            sizes_of(element, see);
        }
        TypeKind::Tuple(parts) => parts.iter().for_each(|part| sizes_of(part, see)),
        TypeKind::Record(fields) => fields.iter().for_each(|(_, field)| sizes_of(field, see)),
        TypeKind::Name(_) | TypeKind::Function(..) | TypeKind::Error => {}
    }
}

fn names_of(size: &Size, see: &mut impl FnMut(&Name)) {
    match &size.kind {
        SizeKind::Number(_) => {}
        SizeKind::Name(name) => see(name),
        SizeKind::Infix(_, left, right) => {
            names_of(left, see);
            names_of(right, see);
        }
    }
}
