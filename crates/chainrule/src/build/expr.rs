//! Scalar expressions.

use super::scope::Session;
use chainrule_graph::NodeId;
use chainrule_ops::Op;
use std::fmt;
use std::iter::{Product, Sum};
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

/// Scalar expression: cheap to clone, shared by all its uses.
///
/// Arithmetic works on values and references, and with numbers on either side.
///
/// ```
/// let (x, y) = (chainrule::var("x"), chainrule::var("y"));
/// let f = (&x * &y).sin() + 2.0 * &x;
/// assert_eq!(f.to_string(), "sin(x * y) + (2.0 * x)");
/// ```
#[derive(Clone)]
pub struct Expr {
    pub(crate) session: Arc<Session>,
    pub(crate) id: NodeId,
}

/// Condition on expressions, for [`select`].
#[derive(Clone, Debug)]
pub struct Cond(Expr);

impl Expr {
    /// Applies `op` to expressions, for operators without a method.
    ///
    /// # Panics
    /// Panics if the number of arguments is not the operator's arity.
    #[must_use]
    pub fn apply(op: Op, args: &[&Self]) -> Self {
        assert_eq!(args.len(), op.arity(), "{op:?} takes {} arguments", op.arity());
        let session = args[0].session.clone();
        let ids: Vec<NodeId> = args.iter().map(|arg| session.adopt(arg)).collect();
        let id = session.graph().apply(op, &ids);
        Self { session, id }
    }

    /// Returns a number in the graph of `self`.
    #[must_use]
    pub fn constant_like(&self, c: f64) -> Self {
        let id = self.session.graph().constant(c);
        Self { session: self.session.clone(), id }
    }

    /// Returns its value if it is a number.
    #[must_use]
    pub fn as_constant(&self) -> Option<f64> {
        self.session.graph().as_const(self.id)
    }

    /// Returns `self` raised to a power: a number or an expression. Small integers become products.
    #[must_use]
    pub fn pow(&self, exponent: impl IntoExpr) -> Self {
        Self::apply(Op::Pow, &[self, &exponent.into_expr(self)])
    }

    /// Returns the angle of the point (`x`, `self`).
    #[must_use]
    pub fn atan2(&self, x: impl IntoExpr) -> Self {
        Self::apply(Op::Atan2, &[self, &x.into_expr(self)])
    }

    /// Returns `sqrt(self^2 + other^2)`.
    #[must_use]
    pub fn hypot(&self, other: impl IntoExpr) -> Self {
        Self::apply(Op::Hypot, &[self, &other.into_expr(self)])
    }

    /// Returns the smaller one.
    #[must_use]
    pub fn min(&self, other: impl IntoExpr) -> Self {
        Self::apply(Op::Min, &[self, &other.into_expr(self)])
    }

    /// Returns the larger one.
    #[must_use]
    pub fn max(&self, other: impl IntoExpr) -> Self {
        Self::apply(Op::Max, &[self, &other.into_expr(self)])
    }

    /// Returns `self < other`.
    #[must_use]
    pub fn less(&self, other: impl IntoExpr) -> Cond {
        Cond(Self::apply(Op::Lt, &[self, &other.into_expr(self)]))
    }

    /// Returns `self <= other`.
    #[must_use]
    pub fn at_most(&self, other: impl IntoExpr) -> Cond {
        Cond(Self::apply(Op::Le, &[self, &other.into_expr(self)]))
    }

    /// Returns `self > other`.
    #[must_use]
    pub fn greater(&self, other: impl IntoExpr) -> Cond {
        Cond(Self::apply(Op::Lt, &[&other.into_expr(self), self]))
    }

    /// Returns `self >= other`.
    #[must_use]
    pub fn at_least(&self, other: impl IntoExpr) -> Cond {
        Cond(Self::apply(Op::Le, &[&other.into_expr(self), self]))
    }

    /// Returns `self == other`.
    #[must_use]
    pub fn equals(&self, other: impl IntoExpr) -> Cond {
        Cond(Self::apply(Op::Eq, &[self, &other.into_expr(self)]))
    }

    /// Returns whether the number is NaN.
    ///
    /// ```
    /// use chainrule::{Function, select, var};
    /// let x = var("x");
    /// let f = select(&x.log().is_nan(), 0.0, &x * &x);
    /// let f = Function::new("f", &x, &f)?.compile()?;
    /// assert_eq!((f.eval(&[&[-1.0]])?, f.eval(&[&[3.0]])?), (vec![vec![0.0]], vec![vec![9.0]]));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn is_nan(&self) -> Cond {
        self.equals(self).negate()
    }

    /// Returns whether the number is neither NaN nor infinite.
    #[must_use]
    pub fn is_finite(&self) -> Cond {
        self.abs().less(f64::INFINITY)
    }
}

macro_rules! functions {
    ($($name:ident $op:ident)*) => {
        impl Expr {$(
            #[doc = concat!("`", stringify!($name), "` of the expression.")]
            #[must_use]
            pub fn $name(&self) -> Self {
                Self::apply(Op::$op, &[self])
            }
        )*}
    };
}

functions! {
    sqrt Sqrt cbrt Cbrt exp Exp expm1 Expm1 log Log log1p Log1p sin Sin cos Cos tan Tan asin Asin acos Acos
    atan Atan sinh Sinh cosh Cosh tanh Tanh asinh Asinh acosh Acosh atanh Atanh abs Abs sign Sign floor Floor
    ceil Ceil erf Erf erfc Erfc lgamma Lgamma digamma Digamma
}

impl Cond {
    /// Returns the conjunction of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(Expr::apply(Op::And, &[&self.0, &other.0]))
    }

    /// Returns the disjunction of both.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(Expr::apply(Op::Or, &[&self.0, &other.0]))
    }

    /// Returns the negation.
    #[must_use]
    pub fn negate(&self) -> Self {
        Self(Expr::apply(Op::Not, &[&self.0]))
    }
}

/// Returns `then` if `condition` holds, `otherwise` if it does not. The side that is not selected, NaN or not, reaches
/// neither the value nor a derivative.
///
/// ```
/// use chainrule::{Function, select, var};
/// let x = var("x");
/// let f = select(&x.greater(0.0), x.log(), 0.0);
/// let df = Function::new("f", &x, &f)?.gradient().compile()?;
/// assert_eq!(df.eval(&[&[-1.0]])?, [[0.0]]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[must_use]
pub fn select(condition: &Cond, then: impl IntoExpr, otherwise: impl IntoExpr) -> Expr {
    let c = &condition.0;
    Expr::apply(Op::Select, &[c, &then.into_expr(c), &otherwise.into_expr(c)])
}

/// Operand in place of an expression: expressions and numbers.
pub trait IntoExpr {
    /// Converts to an expression; numbers are added to the graph of `like`.
    fn into_expr(self, like: &Expr) -> Expr;
}

impl IntoExpr for Expr {
    fn into_expr(self, _: &Expr) -> Expr {
        self
    }
}

impl IntoExpr for &Expr {
    fn into_expr(self, _: &Expr) -> Expr {
        self.clone()
    }
}

impl IntoExpr for f64 {
    fn into_expr(self, like: &Expr) -> Expr {
        like.constant_like(self)
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $op:ident)*) => {$(
        impl<R: IntoExpr> $trait<R> for &Expr {
            type Output = Expr;
            fn $method(self, right: R) -> Expr {
                Expr::apply(Op::$op, &[self, &right.into_expr(self)])
            }
        }
        impl<R: IntoExpr> $trait<R> for Expr {
            type Output = Expr;
            fn $method(self, right: R) -> Expr {
                (&self).$method(right)
            }
        }
        impl $trait<Expr> for f64 {
            type Output = Expr;
            fn $method(self, right: Expr) -> Expr {
                self.$method(&right)
            }
        }
        impl $trait<&Expr> for f64 {
            type Output = Expr;
            fn $method(self, right: &Expr) -> Expr {
                Expr::apply(Op::$op, &[&right.constant_like(self), right])
            }
        }
    )*};
}
arithmetic! { Add add Add Sub sub Sub Mul mul Mul Div div Div }

impl Neg for &Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        Expr::apply(Op::Neg, &[self])
    }
}

impl Neg for Expr {
    type Output = Self;
    fn neg(self) -> Self {
        -&self
    }
}

impl std::ops::AddAssign for Expr {
    fn add_assign(&mut self, right: Self) {
        *self = &*self + right;
    }
}

impl std::ops::SubAssign for Expr {
    fn sub_assign(&mut self, right: Self) {
        *self = &*self - right;
    }
}

impl std::ops::MulAssign for Expr {
    fn mul_assign(&mut self, right: Self) {
        *self = &*self * right;
    }
}

/// From left to right; an empty sum has no graph and panics.
impl Sum for Expr {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.reduce(|a, b| a + b).expect("a sum of expressions has a term")
    }
}

/// From left to right; an empty product has no graph and panics.
impl Product for Expr {
    fn product<I: Iterator<Item = Self>>(items: I) -> Self {
        items.reduce(|a, b| a * b).expect("a product of expressions has a factor")
    }
}

/// Identity of nodes of one graph: for expressions of one graph, structural equality.
impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.session, &other.session) && self.id == other.id
    }
}

impl Eq for Expr {}

/// Writes a formula, with `...` for long parts; never a whole tree.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.session.graph().expression(self.id, 200))
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
