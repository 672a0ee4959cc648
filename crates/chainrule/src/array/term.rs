//! Values of a program under construction: operators, elements, functions of numbers.

use super::program::{Part, Program};
use super::state::Atom;
use chainrule_base::Name;
use chainrule_syntax::tree::{ExprKind, Ident};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Value of a [`Program`]: a number, an array, a tuple, a record. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Term {
    pub(super) program: Program,
    pub(super) atom: Atom,
}

mod sealed {
    pub trait Sealed {}
}

/// Operand of an operation: a [`Term`], a number, a truth value.
pub trait Operand: sealed::Sealed {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn atom(&self) -> Atom;
    #[doc(hidden)]
    fn owner(&self) -> Option<&Program> {
        None
    }
}

impl sealed::Sealed for Term {}
impl Operand for Term {
    #[allow(private_interfaces)]
    fn atom(&self) -> Atom {
        self.atom.clone()
    }
    fn owner(&self) -> Option<&Program> {
        Some(&self.program)
    }
}

impl<T: Operand> sealed::Sealed for &T {}
impl<T: Operand> Operand for &T {
    #[allow(private_interfaces)]
    fn atom(&self) -> Atom {
        T::atom(self)
    }
    fn owner(&self) -> Option<&Program> {
        T::owner(self)
    }
}

macro_rules! literals {
    ($($ty:ty => $make:expr),* $(,)?) => {$(
        impl sealed::Sealed for $ty {}
        impl Operand for $ty {
            #[allow(private_interfaces)]
            fn atom(&self) -> Atom {
                $make(*self)
            }
        }
    )*};
}
literals! {
    f64 => Atom::Real,
    i64 => Atom::Integer,
    i32 => |value| Atom::Integer(i64::from(value)),
    bool => Atom::Bool,
}

macro_rules! operators {
    ($($trait:ident $method:ident $sign:literal),*) => {$(
        impl<R: Operand> $trait<R> for Term {
            type Output = Term;
            fn $method(self, right: R) -> Term {
                self.program.infix($sign, &self, right)
            }
        }
        impl<R: Operand> $trait<R> for &Term {
            type Output = Term;
            fn $method(self, right: R) -> Term {
                self.program.infix($sign, self, right)
            }
        }
        operators!(@left $trait $method $sign, f64, i64, i32);
    )*};
    (@left $trait:ident $method:ident $sign:literal, $($ty:ty),*) => {$(
        impl $trait<Term> for $ty {
            type Output = Term;
            fn $method(self, right: Term) -> Term {
                right.program.infix($sign, self, &right)
            }
        }
        impl $trait<&Term> for $ty {
            type Output = Term;
            fn $method(self, right: &Term) -> Term {
                right.program.infix($sign, self, right)
            }
        }
    )*};
}
operators! { Add add "+", Sub sub "-", Mul mul "*", Div div "/" }

impl Neg for &Term {
    type Output = Term;
    fn neg(self) -> Term {
        self.bind(|value| ExprKind::Neg(Box::new(value)))
    }
}

impl Neg for Term {
    type Output = Term;
    fn neg(self) -> Term {
        -&self
    }
}

macro_rules! functions {
    ($($name:ident $sign:literal $doc:literal),* $(,)?) => {$(
        #[doc = $doc]
        #[must_use]
        pub fn $name(&self) -> Term {
            self.program.apply($sign, [self.into()])
        }
    )*};
}

macro_rules! comparisons {
    ($($name:ident $sign:literal $doc:literal),* $(,)?) => {$(
        #[doc = $doc]
        #[must_use]
        pub fn $name(&self, other: impl Operand) -> Term {
            self.program.infix($sign, self, other)
        }
    )*};
}

// Literals read best by value.
#[allow(clippy::needless_pass_by_value)]
impl Term {
    fn bind(&self, kind: impl FnOnce(chainrule_syntax::tree::Expr) -> ExprKind) -> Self {
        let mut state = self.program.state();
        let value = state.expr(&self.atom);
        let atom = state.bind(None, kind(value));
        drop(state);
        self.program.term(atom)
    }

    /// Returns the program to which it belongs.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns its name in the program; `None` for a literal.
    #[must_use]
    pub fn name(&self) -> Option<&Name> {
        match &self.atom {
            Atom::Name(name, _) => Some(name),
            _ => None,
        }
    }

    /// Returns whether it can be used in the current block: its loop or branch is open.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        match &self.atom {
            Atom::Name(_, block) => self.program.state().is_open(*block),
            _ => true,
        }
    }

    /// Returns the same value with a name like `name`, which messages and listings show.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let mut state = self.program.state();
        let value = state.expr(&self.atom);
        let atom = state.bind(Some(name), value.kind);
        drop(state);
        self.program.term(atom)
    }

    /// Returns element `index` of an array, from 0.
    #[must_use]
    pub fn at(&self, index: impl Operand) -> Self {
        let index = self.program.atom(&index);
        self.get(&[&self.program.term(index)])
    }

    /// Returns the element at these indices, outermost first.
    #[must_use]
    pub fn get(&self, indices: &[&Self]) -> Self {
        let atoms: Vec<Atom> = indices.iter().map(|index| self.program.atom(index)).collect();
        if atoms.is_empty() {
            return self.clone();
        }
        let mut state = self.program.state();
        let (array, indices) = (Box::new(state.expr(&self.atom)), atoms.iter().map(|atom| state.expr(atom)).collect());
        let atom = state.bind(None, ExprKind::Index { array, indices });
        drop(state);
        self.program.term(atom)
    }

    /// Returns component `index` of a tuple, from 0.
    #[must_use]
    pub fn component(&self, index: usize) -> Self {
        self.bind(|tuple| ExprKind::Component { tuple: Box::new(tuple), index })
    }

    /// Returns the field `name` of a record.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.bind(|record| {
            let field = Ident { name: Name::new(name), span: record.span };
            ExprKind::Field { record: Box::new(record), field }
        })
    }

    /// Returns `self` to a power. A whole number becomes products; for any other exponent `self` must be positive.
    #[must_use]
    pub fn pow(&self, exponent: impl Operand) -> Self {
        self.program.infix("**", self, exponent)
    }

    /// Applies `name` to `self` and another number: `min`, `max`, `atan2`, `hypot`, `div`, `mod`.
    #[must_use]
    pub fn with(&self, name: &str, other: impl Operand) -> Self {
        let other = self.program.term(self.program.atom(&other));
        self.program.apply(name, [Part::from(self), other.into()])
    }

    comparisons! {
        less "<" "Returns whether it is less.",
        at_most "<=" "Returns whether it is less or equal.",
        greater ">" "Returns whether it is greater.",
        at_least ">=" "Returns whether it is greater or equal.",
        equals "==" "Returns whether it is equal.",
        differs "<>" "Returns whether it is not equal.",
        and "&&" "Returns whether both hold. Both are evaluated, for both are written before; [`Program::branch`] is lazy.",
        or "||" "Returns whether one of both holds. Both are evaluated, for both are written before; [`Program::branch`] is lazy.",
    }

    functions! {
        not "not" "Returns whether it does not hold.",
        length "length" "The number of elements of an array.",
        real "real" "An `Int` as a `Double`.",
        truncate "truncate" "A `Double` as an `Int`, rounded towards zero; the least `Int` for NaN and beyond 64 bits.",
        sqrt "sqrt" "The square root.",
        cbrt "cbrt" "The cubic root.",
        exp "exp" "The exponential.",
        exp_m1 "expm1" "The exponential less 1, exact near 0.",
        ln "log" "The natural logarithm.",
        ln_1p "log1p" "The natural logarithm of 1 more, exact near 0.",
        sin "sin" "The sine.",
        cos "cos" "The cosine.",
        tan "tan" "The tangent.",
        asin "asin" "The inverse sine.",
        acos "acos" "The inverse cosine.",
        atan "atan" "The inverse tangent.",
        sinh "sinh" "The hyperbolic sine.",
        cosh "cosh" "The hyperbolic cosine.",
        tanh "tanh" "The hyperbolic tangent.",
        asinh "asinh" "The inverse hyperbolic sine.",
        acosh "acosh" "The inverse hyperbolic cosine.",
        atanh "atanh" "The inverse hyperbolic tangent.",
        abs "abs" "The absolute value.",
        sign "sign" "The sign: -1, 0 or 1.",
        floor "floor" "The largest whole number that is not greater.",
        ceil "ceil" "The least whole number that is not less.",
        erf "erf" "The error function.",
        erfc "erfc" "1 less the error function, accurate where that is nearly 1.",
        ln_gamma "lgamma" "The logarithm of the absolute value of the gamma function.",
        digamma "digamma" "The derivative of [`Self::ln_gamma`].",
    }
}
