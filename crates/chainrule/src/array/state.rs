//! State of a program under construction: open blocks, names in use, the current location.
//!
//! Invariants: block 0 is the function's body and stays open; names are unique in the program, so that no binding
//! shadows another one, a function of the language or one of its library.

use chainrule_base::{Name, Sources, Span};
use chainrule_ir::{check, library};
use chainrule_syntax::token::TokenKind;
use chainrule_syntax::tree::{Binding, Expr, ExprKind, Ident, Param, Pattern};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::OnceLock;

/// Maximum nesting depth of loops and branches.
pub const MAX_BLOCKS: usize = 50;

/// Closed block: a function of its parameters, or a side of a branch if it has none.
#[derive(Clone, Debug)]
pub struct Lambda {
    pub(super) params: Vec<Name>,
    pub(super) body: Expr,
}

impl Lambda {
    pub(super) fn into_expr(self, span: Span) -> Expr {
        if self.params.is_empty() {
            return self.body;
        }
        let param = |name| Param { pattern: Pattern::Name(Ident { name, span }), ty: None };
        let params = self.params.into_iter().map(param).collect();
        Expr { kind: ExprKind::Fun { params, result: None, body: Box::new(self.body) }, span }
    }
}

/// Block under construction.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Number of the block, unique in the program.
    id: u32,
    params: Vec<Name>,
    bindings: Vec<Binding>,
}

/// Value that needs no binding.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Atom {
    /// Binding of a block.
    Name(Name, u32),
    /// Number without a point, an `Int` or a `Double` depending on the context.
    Integer(i64),
    Real(f64),
    Bool(bool),
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) name: String,
    pub(super) sources: Sources,
    pub(super) span: Span,
    /// Whether messages point into texts from the caller.
    pub(super) is_located: bool,
    pub(super) params: Vec<Param>,
    /// Sizes in the types of arguments, with the least number that each may be.
    pub(super) least: Vec<(Name, i64)>,
    /// Functions of the language and its library that occur, separated by spaces.
    pub(super) mentioned: String,
    /// First misuse of the builder: message and remedy.
    pub(super) fault: Option<(String, String)>,
    blocks: Vec<Block>,
    used: FxHashSet<Name>,
    /// For each word the number to try next.
    next_of: FxHashMap<String, u32>,
    n_blocks: u32,
    n_names: u32,
}

fn reserved() -> &'static FxHashSet<&'static str> {
    static RESERVED: OnceLock<FxHashSet<&str>> = OnceLock::new();
    RESERVED.get_or_init(|| check::names().chain(library::names().iter().flatten().copied()).collect())
}

impl State {
    pub(super) fn new(name: &str) -> Self {
        let mut sources = Sources::new();
        let file = sources.add(format!("<{name}>"), "");
        let block = Block { id: 0, params: Vec::new(), bindings: Vec::new() };
        Self {
            name: name.to_string(),
            sources,
            span: Span::new(file, 0, 0),
            is_located: false,
            params: Vec::new(),
            least: Vec::new(),
            mentioned: String::new(),
            fault: None,
            blocks: vec![block],
            used: FxHashSet::default(),
            next_of: FxHashMap::default(),
            n_blocks: 1,
            n_names: 0,
        }
    }

    /// Records the first error; later ones follow from it.
    pub(super) fn fail(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.fault.get_or_insert_with(|| (message.into(), help.into()));
    }

    /// Returns an unused F~ identifier similar to `hint`.
    pub(super) fn fresh(&mut self, hint: &str) -> Name {
        let word: String = hint.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let word = if word.starts_with(|c: char| c.is_ascii_alphabetic()) { word } else { format!("t{word}") };
        let is_free = |state: &Self, name: &str| {
            !state.used.contains(name) && !reserved().contains(name) && TokenKind::keyword(name).is_none()
        };
        let mut k = self.next_of.get(&word).copied().unwrap_or(0);
        let name = loop {
            let name = if k == 0 { word.clone() } else { format!("{word}_{k}") };
            k += 1;
            if is_free(self, &name) {
                break Name::new(&name);
            }
        };
        self.next_of.insert(word, k);
        self.used.insert(name.clone());
        name
    }

    /// Returns a name for an intermediate value.
    fn temporary(&mut self) -> Name {
        loop {
            self.n_names += 1;
            let name = Name::from(format!("t{}", self.n_names));
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Reserves the names of sizes in a type.
    pub(super) fn reserve(&mut self, name: &Name) {
        self.used.insert(name.clone());
    }

    pub(super) fn open(&mut self, hints: &[&str]) -> Vec<Atom> {
        if self.blocks.len() >= MAX_BLOCKS {
            let message = format!("`{}` nests more than {MAX_BLOCKS} loops and branches", self.name);
            self.fail(message, "write inner loops as functions of whole arrays, or flatten the branches");
        }
        let id = self.n_blocks;
        self.n_blocks += 1;
        let params: Vec<Name> = hints.iter().map(|hint| self.fresh(hint)).collect();
        let atoms = params.iter().map(|name| Atom::Name(name.clone(), id)).collect();
        self.blocks.push(Block { id, params, bindings: Vec::new() });
        atoms
    }

    pub(super) fn close(&mut self, result: &Atom) -> Lambda {
        let result = self.expr(result);
        if self.blocks.len() < 2 {
            self.fail("a block was closed that was not opened", "close each block once");
            return Lambda { params: Vec::new(), body: result };
        }
        let Some(block) = self.blocks.pop() else { return Lambda { params: Vec::new(), body: result } };
        Lambda { params: block.params, body: chain(block.bindings, result) }
    }

    pub(super) fn suspend(&mut self) -> Option<Block> {
        if self.blocks.len() < 2 {
            self.fail("a block was suspended that was not opened", "open it first");
            return None;
        }
        self.blocks.pop()
    }

    pub(super) fn resume(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// Returns the body of the whole function with this result.
    pub(super) fn body(&self, result: Expr) -> Expr {
        chain(self.blocks[0].bindings.clone(), result)
    }

    pub(super) fn is_open(&self, block: u32) -> bool {
        self.blocks.iter().any(|open| open.id == block)
    }

    pub(super) fn n_open(&self) -> usize {
        self.blocks.len() - 1
    }

    pub(super) fn node(&self, kind: ExprKind) -> Expr {
        Expr { kind, span: self.span }
    }

    /// Returns the expression of an atom, which must be visible in the innermost open block.
    pub(super) fn expr(&mut self, atom: &Atom) -> Expr {
        let kind = match atom {
            Atom::Name(name, block) => {
                if !self.is_open(*block) {
                    self.fail(
                        format!("`{name}` is used outside of the loop or branch that makes it"),
                        "let the body of the loop or branch return it",
                    );
                }
                ExprKind::Name(name.clone())
            }
            Atom::Integer(i64::MIN) => {
                // Its digits exceed an integer of 64 bits.
                let (first, one) = (self.expr(&Atom::Integer(i64::MIN + 1)), self.node(ExprKind::Integer(1)));
                let rest = vec![(chainrule_syntax::tree::Infix::Sub, self.span, one)];
                ExprKind::Infix { first: Box::new(first), rest }
            }
            Atom::Integer(value) => match value.checked_neg() {
                Some(positive) if *value < 0 => ExprKind::Neg(Box::new(self.node(ExprKind::Integer(positive)))),
                _ => ExprKind::Integer(*value),
            },
            Atom::Real(value) if !value.is_finite() => {
                // A literal is a finite number.
                let (above, below) = (if value.is_nan() { 0.0 } else { 1.0_f64.copysign(*value) }, 0.0);
                let (above, below) = (self.expr(&Atom::Real(above)), self.expr(&Atom::Real(below)));
                let rest = vec![(chainrule_syntax::tree::Infix::Div, self.span, below)];
                ExprKind::Infix { first: Box::new(above), rest }
            }
            Atom::Real(value) if value.is_sign_negative() => ExprKind::Neg(Box::new(self.node(ExprKind::Real(-value)))),
            Atom::Real(value) => ExprKind::Real(*value),
            Atom::Bool(value) => ExprKind::Bool(*value),
        };
        self.node(kind)
    }

    /// Binds a value in the innermost open block.
    pub(super) fn bind(&mut self, hint: Option<&str>, kind: ExprKind) -> Atom {
        let name = match hint {
            Some(hint) => self.fresh(hint),
            None => self.temporary(),
        };
        let pattern = Pattern::Name(Ident { name: name.clone(), span: self.span });
        let value = self.node(kind);
        let Some(block) = self.blocks.last_mut() else { return Atom::Integer(0) };
        block.bindings.push(Binding { pattern, ty: None, value });
        Atom::Name(name, block.id)
    }
}

/// Builds a chain of `let`s; removes a last one that only names the result.
fn chain(mut bindings: Vec<Binding>, result: Expr) -> Expr {
    if let (Some(last), ExprKind::Name(name)) = (bindings.last(), &result.kind)
        && matches!(&last.pattern, Pattern::Name(ident) if ident.name == *name)
        && let Some(last) = bindings.pop()
    {
        return chain_of(bindings, last.value);
    }
    chain_of(bindings, result)
}

fn chain_of(bindings: Vec<Binding>, body: Expr) -> Expr {
    if bindings.is_empty() {
        return body;
    }
    let span = body.span;
    Expr { kind: ExprKind::Let { bindings, body: Box::new(body) }, span }
}
