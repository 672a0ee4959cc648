//! The core language: the syntax tree with all names resolved and all types inferred.
//!
//! Inference makes it, elaboration evaluates it. Types are [`TyId`]s of the program's table; inside a generalised
//! definition they contain its type variables, which each use instantiates (`inst`).
//!
//! A local is identified by the nesting of its function and its slot ([`LocalRef`]), so that elaboration has one frame
//! for each inlined function.

use super::builtin::Builtin;
use super::table::TyId;
use chainrule_base::{Name, Span, define_id};
use chainrule_syntax::tree::Infix;
use std::sync::Arc;

define_id! {
    /// A top-level definition.
    pub struct DefId = "d";
}

/// A local variable: slot `slot` of the function at nesting `level`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LocalRef {
    /// Number of functions around its function; 0 is the definition itself.
    pub level: u32,
    /// Slot.
    pub slot: u32,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Core {
    /// Kind.
    pub kind: CoreKind,
    /// Its type.
    pub ty: TyId,
    /// Source span.
    pub span: Span,
}

/// Kind of an expression.
#[derive(Clone, Debug)]
pub enum CoreKind {
    /// A whole number, an `Int` or a `Double` according to its type.
    Literal(i64),
    /// A double.
    Real(f64),
    /// A truth value.
    Bool(bool),
    /// A local; with the instances of its scheme's variables if it is generalised.
    Local(LocalRef, Box<[TyId]>),
    /// A definition, likewise.
    Global(DefId, Box<[TyId]>),
    /// A built-in function.
    Builtin(Builtin),
    /// An application.
    Apply(Box<Core>, Vec<Core>),
    /// A function.
    Fun(Box<CoreFun>),
    /// Bindings, each visible in the following ones.
    Let(Vec<CoreBinding>, Box<Core>),
    /// Conditions with branches, and the last branch.
    If(Vec<(Core, Core)>, Box<Core>),
    /// Operators of one precedence, from left to right.
    Infix(Box<Core>, Vec<(Infix, Span, Core)>),
    /// `-e`
    Neg(Box<Core>),
    /// `a[i][j]`
    Index(Box<Core>, Vec<Core>),
    /// A tuple, or a record if it has names.
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
    /// An error that was reported.
    Error,
}

/// A function.
#[derive(Clone, Debug)]
pub struct CoreFun {
    /// Name in messages.
    pub name: Option<Name>,
    /// Parameters, at least one.
    pub params: Vec<CoreParam>,
    /// Size variables that its annotations introduce: locals of type `Int`.
    pub sizes: Vec<(LocalRef, Name, Span)>,
    /// Annotation of the result.
    pub result: Option<CoreType>,
    /// The body.
    pub body: Core,
    /// Number of its locals.
    pub n_slots: u32,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct CoreParam {
    /// Bound pattern.
    pub pattern: CorePattern,
    /// Annotation.
    pub annotation: Option<CoreType>,
    /// Source span.
    pub span: Span,
}

/// Pattern of a parameter or a `let`.
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
    /// Bound pattern.
    pub pattern: CorePattern,
    /// Annotation.
    pub annotation: Option<CoreType>,
    /// The value.
    pub value: Core,
    /// Variables over which a function or a number is generalised. Such a binding is evaluated at each use.
    pub quantified: Option<Box<[TyId]>>,
}

/// Sizes of an annotation.
#[derive(Clone, Debug)]
pub enum CoreType {
    /// No sizes to check.
    Other,
    /// An array, with its size if written.
    Array(Option<CoreSize>, Arc<CoreType>),
    /// A tuple or record.
    Tuple(Arc<[CoreType]>),
}

impl CoreType {
    /// Returns whether it contains a size.
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
    /// Kind.
    pub kind: CoreSizeKind,
    /// Source span.
    pub span: Span,
}

/// Kind of a size.
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
