//! The syntax tree of F~ (figure 3 of the dF~ paper, with extensions).
//!
//! Long sequences are flat, so that no stage recurses on their length: a chain of `let`s, `a + b - c + ...`, `f x y z`,
//! `m[i][j]`, `if .. else if ..`. Nesting is bounded by [`MAX_DEPTH`], which the parser enforces.
//!
//! Every expression has its span: the text from its first to its last character, parentheses included.

use chainrule_base::{Name, Span};

/// Maximum nesting of expressions and types; the parser reports deeper ones as a limitation.
pub const MAX_DEPTH: usize = 256;

/// A file.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    /// Items in the order of the text.
    pub items: Vec<Item>,
    /// The whole text.
    pub span: Span,
}

/// A name with its source span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ident {
    /// The name.
    pub name: Name,
    /// Source span.
    pub span: Span,
}

/// A top-level declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// Kind.
    pub kind: ItemKind,
    /// Span from its keyword to its end.
    pub span: Span,
    /// Documentation: the comment lines right above it (`// ...`, without the slashes).
    pub docs: Vec<String>,
}

/// Kind of an item.
#[derive(Clone, PartialEq, Debug)]
pub enum ItemKind {
    /// `import "path/file.ft"` (relative to the importing file) or `import linalg` (a library module).
    Import {
        /// Path, or name of the library module.
        path: String,
        /// Whether it is a bare name: a library module.
        library: bool,
        /// Source span.
        path_span: Span,
    },
    /// `type Camera = { rotation : [3]Double, focal : Double }`.
    TypeAlias {
        /// Its name.
        name: Ident,
        /// Aliased type.
        ty: Type,
    },
    /// `let f = fun x -> e`, `let pi = 3.14`, and the sugar `let f (x : Double) y = e` for the first.
    Let(Binding),
}

/// `name : type = value`.
#[derive(Clone, PartialEq, Debug)]
pub struct Binding {
    /// Bound pattern.
    pub pattern: Pattern,
    /// Annotation after the name.
    pub ty: Option<Type>,
    /// Value; sugar for functions is already a [`ExprKind::Fun`].
    pub value: Expr,
}

/// Pattern of a parameter or a `let`.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// One name.
    Name(Ident),
    /// `_`.
    Wildcard(Span),
    /// `(a, b)`; two or more.
    Tuple(Vec<Pattern>, Span),
}

impl Pattern {
    /// Source span.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Self::Name(ident) => ident.span,
            Self::Wildcard(span) | Self::Tuple(_, span) => *span,
        }
    }
}

/// A parameter: `x` or `(x : [n]Double)`.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// Bound pattern.
    pub pattern: Pattern,
    /// Its annotation.
    pub ty: Option<Type>,
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Kind.
    pub kind: ExprKind,
    /// Source span.
    pub span: Span,
}

/// Kind of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// A number without point or exponent: a double, an index or a cardinality, depending on the context.
    Integer(i64),
    /// A number with point or exponent: a double.
    Real(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A name.
    Name(Name),
    /// An operator as a function: `(+)`.
    Operator(Infix),
    /// `f x y`: a function and one or more arguments.
    Apply {
        /// The function.
        function: Box<Expr>,
        /// The arguments, at least one.
        args: Vec<Expr>,
    },
    /// `fun x (y : Double) -> e`.
    Fun {
        /// At least one.
        params: Vec<Param>,
        /// Annotation of the result, after the parameters: `fun x : Double -> e`.
        result: Option<Type>,
        /// The body.
        body: Box<Expr>,
    },
    /// `let a = e1 in let b = e2 in e` as one node; the `in`s may be omitted at line ends.
    Let {
        /// Bindings, at least one; each sees the previous ones.
        bindings: Vec<Binding>,
        /// The result.
        body: Box<Expr>,
    },
    /// `if c1 then e1 else if c2 then e2 else e`.
    If {
        /// Conditions with their branches, at least one.
        arms: Vec<(Expr, Expr)>,
        /// Result after the last `else`.
        otherwise: Box<Expr>,
    },
    /// `a + b - c`: operators of one precedence, applied from left to right.
    Infix {
        /// The first operand.
        first: Box<Expr>,
        /// Operators with their right operands, at least one.
        rest: Vec<(Infix, Span, Expr)>,
    },
    /// `-e`.
    Neg(Box<Expr>),
    /// `a[i][j]`.
    Index {
        /// The array.
        array: Box<Expr>,
        /// At least one.
        indices: Vec<Expr>,
    },
    /// `(a, b, c)`; two or more.
    Tuple(Vec<Expr>),
    /// `e.0`, `e.1`, ...
    Component {
        /// The tuple.
        tuple: Box<Expr>,
        /// Index of the component, from 0.
        index: usize,
    },
    /// `{ a = e1, b = e2 }`.
    Record(Vec<(Ident, Expr)>),
    /// `e.name`.
    Field {
        /// The record.
        record: Box<Expr>,
        /// Name of the field.
        field: Ident,
    },
    /// `[a, b, c]`, an array literal; at least one element.
    Array(Vec<Expr>),
    /// `(e : T)`.
    Annotated {
        /// The expression.
        expr: Box<Expr>,
        /// Its type.
        ty: Type,
    },
    /// Invalid text, already reported.
    Error,
}

/// An operator between two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Infix {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`, also spelt `×`
    Mul,
    /// `/`: division of real numbers
    Div,
    /// `**`, right-associative; also spelt `^`
    Pow,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`, also spelt `=` as in the paper
    Eq,
    /// `<>`, also spelt `!=`
    Ne,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// A type as written.
#[derive(Clone, PartialEq, Debug)]
pub struct Type {
    /// Kind.
    pub kind: TypeKind,
    /// Source span.
    pub span: Span,
}

/// Kind of a type.
#[derive(Clone, PartialEq, Debug)]
pub enum TypeKind {
    /// `Double`, `Index`, `Card`, `Int`, `Bool`, `Vector`, `Matrix`, `DoubleD`, `VectorD`, `MatrixD`, or an alias; `_`
    /// for a type to be inferred.
    Name(Name),
    /// `[n]T`: an array of `n` elements; `[]T` and `Array<T>` omit the size.
    Array {
        /// Its size.
        size: Option<Size>,
        /// Type of the elements.
        element: Box<Type>,
    },
    /// `(A, B)` or `A * B` or `A × B`.
    Tuple(Vec<Type>),
    /// `{ a : A, b : B }`.
    Record(Vec<(Ident, Type)>),
    /// `A => B`, also spelt `A -> B`, right-associative.
    Function(Box<Type>, Box<Type>),
    /// Invalid text, already reported.
    Error,
}

/// The size of an array type: sums and products of numbers and names, `2*n + 1`.
#[derive(Clone, PartialEq, Debug)]
pub struct Size {
    /// Kind.
    pub kind: SizeKind,
    /// Source span.
    pub span: Span,
}

/// Kind of a size.
#[derive(Clone, PartialEq, Debug)]
pub enum SizeKind {
    /// A number.
    Number(i64),
    /// A size variable, or a parameter of type `Card`.
    Name(Name),
    /// `a + b`, `a - b`, `a * b`: operator and operands.
    Infix(Infix, Box<Size>, Box<Size>),
}
