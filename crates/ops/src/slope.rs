//! Products of the chain rule in which a zero is multiplied by an infinity.
//!
//! A zero direction contributes zero for any cofactor, although 0 times infinity is NaN. Few products need a test for
//! that. A [`Factor`] states where a partial derivative is infinite and where it is zero; [`multiply`] selects the
//! product from those of its factors.

use crate::{Algebra, Formula, Op};

/// Arguments at which a partial derivative is infinite or NaN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Slope {
    /// None, as long as all numbers are finite.
    #[default]
    Finite,
    /// Those at which the value is infinite too, as in a division by zero. A mask would keep products from being
    /// simplified, and only a product that hides the value masks them.
    Pole,
    /// Those at which the value has overflowed. A saturating function makes it finite again, and its slope there is 0,
    /// which masks the infinity.
    Overflow,
    /// Those at which the value is finite, but only a chosen direction masks them: a root in straight-line code, whose
    /// other zeros are found beforehand.
    Root,
    /// Those at which the value is finite: any zero masks it.
    Border,
}

/// Arguments at which a factor is zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Zero {
    /// None.
    Never,
    /// Some arguments.
    Somewhere,
    /// Any: it contains a direction or a cotangent, which the caller chooses.
    Direction,
}

/// Factor of a product of the chain rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor {
    /// Arguments at which it is infinite.
    pub slope: Slope,
    /// Arguments at which it is zero.
    pub zero: Zero,
    /// Whether it is zero if an argument has overflowed.
    pub saturates: bool,
    /// Whether it is zero if a masked product hides an infinite value.
    pub hides_poles: bool,
}

impl Factor {
    /// Returns a number.
    #[must_use]
    pub fn constant(c: f64) -> Self {
        let slope = if c.is_finite() { Slope::Finite } else { Slope::Border };
        let zero = if c == 0.0 { Zero::Direction } else { Zero::Never };
        Self { slope, zero, saturates: false, hides_poles: false }
    }

    /// Returns a component of a direction, or of a cotangent.
    #[must_use]
    pub fn direction(slope: Slope, saturates: bool) -> Self {
        Self { slope, zero: Zero::Direction, saturates, hides_poles: false }
    }

    /// Returns the partial derivative of `op` by argument `idx`; `constant` returns the known value of an argument.
    #[must_use]
    pub fn partial(op: Op, idx: usize, constant: impl Fn(usize) -> Option<f64>) -> Self {
        let row = op.row();
        let exponent = if op == Op::Pow { constant(1) } else { None };
        let slope = match exponent {
            Some(b) if b >= 1.0 => Slope::Finite,
            // By the exponent, it is finite wherever the power is.
            _ if op == Op::Pow && idx == 1 => Slope::Pole,
            // The partial derivative is the factor that masks.
            _ if op == Op::MaskedMul && idx == 1 => Slope::Finite,
            Some(b) if b <= 0.0 => Slope::Pole,
            _ => row.slope,
        };
        let is_zero = !row.partials.get(idx).is_some_and(is_never_zero);
        let zero = if is_zero { Zero::Somewhere } else { Zero::Never };
        let saturates = is_zero && (row.saturates || exponent.is_some_and(|b| b < 0.0));
        let hides_poles = op == Op::StrongMul || (op == Op::MaskedMul && idx == 1);
        Self { slope, zero, saturates, hides_poles }
    }

    /// Returns whether a zero of this factor must mask an infinity of `other`.
    fn hides(self, other: Self) -> bool {
        match other.slope {
            Slope::Finite => false,
            Slope::Pole => self.hides_poles,
            Slope::Overflow => self.saturates,
            Slope::Root => self.zero == Zero::Direction || self.hides_poles,
            Slope::Border => self.zero >= Zero::Somewhere,
        }
    }

    /// Returns their product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            slope: self.slope_behind(other).max(other.slope_behind(self)),
            zero: self.zero.max(other.zero),
            saturates: self.saturates || other.saturates,
            hides_poles: self.hides_poles || other.hides_poles,
        }
    }

    /// Returns where this factor is infinite after `by` has masked it.
    #[must_use]
    pub fn slope_behind(self, by: Self) -> Slope {
        match self.slope {
            Slope::Overflow if by.saturates => Slope::Finite,
            slope => slope,
        }
    }

    /// Returns their sum, which may cancel.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            slope: self.slope.max(other.slope),
            zero: self.zero.max(other.zero).max(Zero::Somewhere),
            saturates: self.saturates || other.saturates,
            hides_poles: self.hides_poles || other.hides_poles,
        }
    }
}

// Recursive on the depth of a formula of the table.
fn is_never_zero(formula: &Formula) -> bool {
    match formula {
        Formula::Const(c) => *c != 0.0,
        Formula::Apply(Op::Div, [Formula::Const(c), _]) => *c != 0.0,
        Formula::Apply(Op::Neg, [inner]) => is_never_zero(inner),
        _ => false,
    }
}

/// Returns the product of two factors: `a * b`, or one that is zero at a zero of `a`, of `b` or of either.
pub fn multiply<A: Algebra>(algebra: &mut A, (a, of_a): (A::Value, Factor), (b, of_b): (A::Value, Factor)) -> A::Value {
    let (op, args) = match (of_a.hides(of_b), of_b.hides(of_a)) {
        (false, false) => (Op::Mul, [a, b]),
        (true, false) => (Op::MaskedMul, [a, b]),
        (false, true) => (Op::MaskedMul, [b, a]),
        (true, true) => (Op::StrongMul, [a, b]),
    };
    algebra.apply(op, &args)
}
