//! Products of the chain rule in which a zero meets an infinity.
//!
//! A direction that is zero contributes zero, whatever it is multiplied with: 0 times infinity would be no number.
//! Hardly any product needs a test for that. A [`Factor`] says where a partial derivative is infinite and where it is
//! zero, [`multiply`] chooses the product from those of its factors.

use crate::{Algebra, Formula, Op};

/// Where a partial derivative is infinite or no number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Slope {
    /// Nowhere, as long as all numbers are finite; or only where a division is by zero.
    #[default]
    Finite,
    /// Where the value is infinite or no number too: a zero direction hides it.
    Pole,
    /// Where the value has overflowed. A function that saturates makes a finite number of it again, and has the slope 0
    /// there, which hides it.
    Overflow,
    /// Where the value is finite: any zero hides it.
    Border,
}

/// Where a factor is zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Zero {
    /// Nowhere.
    Never,
    /// At some arguments.
    Somewhere,
    /// At some arguments, among them often those where a function behind it is at the border of its domain: the factor of a
    /// product, the slope of a power.
    Often,
    /// Anywhere: it contains a direction or a cotangent, which the caller chooses.
    Direction,
}

/// A factor of a product of the chain rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor {
    /// Where it is infinite.
    pub slope: Slope,
    /// Where it is zero.
    pub zero: Zero,
    /// Whether it is zero where an argument has overflowed.
    pub saturates: bool,
}

impl Factor {
    /// Returns a number.
    #[must_use]
    pub fn constant(c: f64) -> Self {
        let slope = if c.is_finite() { Slope::Finite } else { Slope::Border };
        Self { slope, zero: if c == 0.0 { Zero::Direction } else { Zero::Never }, saturates: false }
    }

    /// Returns a component of a direction, or of a cotangent.
    #[must_use]
    pub fn direction(slope: Slope, saturates: bool) -> Self {
        Self { slope, zero: Zero::Direction, saturates }
    }

    /// Returns the partial derivative of `op` by argument `idx`; `constant` gives the number that an argument is known
    /// to be.
    #[must_use]
    pub fn partial(op: Op, idx: usize, constant: impl Fn(usize) -> Option<f64>) -> Self {
        let row = op.row();
        let exponent = if op == Op::Pow { constant(1) } else { None };
        let slope = match exponent {
            Some(b) if b < 0.0 => Slope::Pole,
            Some(b) if b == 0.0 || b >= 1.0 => Slope::Finite,
            _ => row.slope,
        };
        let is_zero = !row.partials.get(idx).is_some_and(is_never_zero);
        let zero = match op {
            _ if !is_zero => Zero::Never,
            Op::Mul | Op::MaskedMul | Op::StrongMul | Op::Pow | Op::Hypot => Zero::Often,
            _ => Zero::Somewhere,
        };
        let saturates = is_zero && (row.saturates || exponent.is_some_and(|b| b < 0.0));
        Self { slope, zero, saturates }
    }

    /// Returns whether a zero of this factor has to hide what `other` is there.
    fn hides(self, other: Self) -> bool {
        match other.slope {
            Slope::Finite => false,
            Slope::Pole => self.zero == Zero::Direction,
            Slope::Overflow => self.saturates,
            Slope::Border => self.zero >= Zero::Somewhere,
        }
    }

    /// Returns their product. Once the slope of a function has hidden an infinity at a border, only directions hide it.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            slope: self.slope_behind(other).max(other.slope_behind(self)),
            zero: self.zero.max(other.zero),
            saturates: self.saturates || other.saturates,
        }
    }

    /// Where this factor is infinite after `by` has hidden it.
    #[must_use]
    pub fn slope_behind(self, by: Self) -> Slope {
        match self.slope {
            Slope::Border if by.zero == Zero::Somewhere => Slope::Pole,
            Slope::Overflow if by.saturates => Slope::Pole,
            slope => slope,
        }
    }

    /// Their sum, which may cancel.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            slope: self.slope.max(other.slope),
            zero: self.zero.max(other.zero).max(Zero::Somewhere),
            saturates: self.saturates || other.saturates,
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

/// Returns the product of two factors: `a * b`, or one that a zero of `a`, of `b` or of either makes zero.
pub fn multiply<A: Algebra>(algebra: &mut A, (a, of_a): (A::Value, Factor), (b, of_b): (A::Value, Factor)) -> A::Value {
    let (op, args) = match (of_a.hides(of_b), of_b.hides(of_a)) {
        (false, false) => (Op::Mul, [a, b]),
        (true, false) => (Op::MaskedMul, [a, b]),
        (false, true) => (Op::MaskedMul, [b, a]),
        (true, true) => (Op::StrongMul, [a, b]),
    };
    algebra.apply(op, &args)
}
