//! The core language: the syntax tree with every name resolved and every type found.
//!
//! Inference makes it, elaboration evaluates it. Types are [`TyId`]s of the program's table; inside a
//! generalised definition they contain its variables, which each use instantiates (`inst`).
//!
//! A local is found by the nesting of its function and its slot there ([`LocalRef`]), so that
//! elaboration keeps one frame for each function that it inlines.

use super::builtin::Builtin;
use super::table::TyId;
use chainrule_base::{Name, Span, define_id};
use chainrule_syntax::tree::Infix;
use std::sync::Arc;

define_id! {
    /// A definition at the top of some file.
    pub struct DefId = "d";
}

/// A local variable: the `slot`th of the function that is `level` functions deep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LocalRef {
    /// How many functions are around the one that owns it; 0 is the definition itself.
    pub level: u32,
    /// Its place there.
    pub slot: u32,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Core {
    /// What it is.
    pub kind: CoreKind,
    /// Its type.
    pub ty: TyId,
    /// Its place.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum CoreKind {
    /// A whole number, an `Int` or a `Double` as its type says.
    Literal(i64),
    /// A double.
    Real(f64),
    /// A truth value.
    Bool(bool),
    /// A local; the types of its scheme's variables where it is generalised.
    Local(LocalRef, Box<[TyId]>),
    /// A definition, likewise.
    Global(DefId, Box<[TyId]>),
    /// A function of the language.
    Builtin(Builtin),
    /// An application.
    Apply(Box<Core>, Vec<Core>),
    /// A function.
    Fun(Box<CoreFun>),
    /// Bindings, each seen by those after it.
    Let(Vec<CoreBinding>, Box<Core>),
    /// Conditions with branches, and the last branch.
    If(Vec<(Core, Core)>, Box<Core>),
    /// Operators of one precedence, from left to right.
    Infix(Box<Core>, Vec<(Infix, Span, Core)>),
    /// `-e`
    Neg(Box<Core>),
    /// `a[i][j]`
    Index(Box<Core>, Vec<Core>),
    /// A tuple, or a record where it has names.
    Tuple(Vec<Core>, Option<Arc<[Name]>>),
    /// `e.0`
    Component(Box<Core>, usize),
    /// `e.name`
    Field(Box<Core>, Name),
    /// `[a, b]`
    Array(Vec<Core>),
    /// `(e : T)`
    Annotated(Box<Core>, CoreType),
    /// `deriv e x`
    Deriv(Box<Core>, LocalRef),
    /// `forward f (a, a_tan) (b, b_tan)`
    Forward(Box<Core>, Vec<Core>),
    /// What was wrong and was reported.
    Error,
}

/// A function.
#[derive(Clone, Debug)]
pub struct CoreFun {
    /// What messages call it.
    pub name: Option<Name>,
    /// At least one.
    pub params: Vec<CoreParam>,
    /// Size names that its annotations bring in: locals of type `Int`.
    pub sizes: Vec<(LocalRef, Name, Span)>,
    /// The annotation of the result.
    pub result: Option<CoreType>,
    /// The body.
    pub body: Core,
    /// How many locals it owns.
    pub n_slots: u32,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct CoreParam {
    /// What it binds.
    pub pattern: CorePattern,
    /// Its annotation.
    pub annotation: Option<CoreType>,
    /// Its place.
    pub span: Span,
}

/// What a parameter or a `let` binds.
#[derive(Clone, Debug)]
pub enum CorePattern {
    /// A local.
    Local(LocalRef, Name, Span),
    /// Nothing.
    Wildcard,
    /// The components of a tuple.
    Tuple(Vec<CorePattern>),
}

/// `pattern : annotation = value`.
#[derive(Clone, Debug)]
pub struct CoreBinding {
    /// What is bound.
    pub pattern: CorePattern,
    /// The annotation.
    pub annotation: Option<CoreType>,
    /// The value.
    pub value: Core,
    /// The variables over which a function or a number is generalised. Such a binding is evaluated
    /// at each use.
    pub quantified: Option<Box<[TyId]>>,
}

/// The sizes of an annotation.
#[derive(Clone, Debug)]
pub enum CoreType {
    /// Nothing in it has a size to be checked.
    Other,
    /// An array, with its size where it is written.
    Array(Option<CoreSize>, Arc<CoreType>),
    /// A tuple or record.
    Tuple(Arc<[CoreType]>),
}

impl CoreType {
    /// Whether it has a size anywhere.
    #[must_use]
    pub fn has_size(&self) -> bool {
        match self {
            Self::Other => false,
            Self::Array(size, element) => size.is_some() || element.has_size(),
            Self::Tuple(fields) => fields.iter().any(Self::has_size),
        }
    }
}

/// A size in an annotation.
#[derive(Clone, Debug)]
pub struct CoreSize {
    /// What it is.
    pub kind: CoreSizeKind,
    /// Its place.
    pub span: Span,
}

/// What a size is.
#[derive(Clone, Debug)]
pub enum CoreSizeKind {
    /// A number.
    Number(i64),
    /// A local of type `Int`.
    Local(LocalRef, Name),
    /// A definition of type `Int`.
    Global(DefId, Box<[TyId]>),
    /// A sum, difference or product.
    Infix(Infix, Box<CoreSize>, Box<CoreSize>),
}
