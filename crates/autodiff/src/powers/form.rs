//! Values as powers of one number.
//!
//! A form is `scale * base ** exponent`, with a meaning for negative bases ([`Kind`]). It is equal to its value
//! wherever the value is a number.

use chainrule_ir::VarId;
use chainrule_ops::Op;

/// Maximum exponent of a form.
pub(super) const MAX_EXPONENT: f64 = 64.0;

/// Meaning of a power of a negative number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Whole exponent: any base.
    Whole,
    /// Multiple of 1/3: any base, as powers of its cubic root.
    Cubic,
    /// No power: the base is not negative.
    Root,
    /// No power: the base is not positive, and its negation is raised.
    NegatedRoot,
    /// The absolute value of the base is raised.
    Abs,
}

/// Number as a power, so that `sqrt 2 * sqrt 2` is 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    is_negative: bool,
    size: f64,
    exponent: f64,
}

impl Scale {
    pub const ONE: Self = Self { is_negative: false, size: 1.0, exponent: 1.0 };

    fn new(number: f64) -> Self {
        Self { is_negative: number < 0.0, size: number.abs(), exponent: 1.0 }
    }

    /// Returns the number.
    pub fn value(self) -> f64 {
        let size = match self.exponent {
            1.0 => self.size,
            0.5 => self.size.sqrt(),
            exponent => Op::Pow.value(&[self.size, exponent]),
        };
        if self.is_negative { -size } else { size }
    }

    fn times(self, other: Self) -> Self {
        let is_negative = self.is_negative != other.is_negative;
        if other.size == 1.0 {
            return Self { is_negative, ..self };
        }
        if self.size == 1.0 {
            return Self { is_negative, ..other };
        }
        if self.exponent == other.exponent {
            return Self { is_negative, size: self.size * other.size, ..self };
        }
        if self.size == other.size {
            return Self { is_negative, exponent: rounded(self.exponent + other.exponent), ..self };
        }
        Self::new(self.value() * other.value())
    }

    /// Returns the power. The exponent is whole if the number is negative.
    pub fn to(self, exponent: f64) -> Self {
        let is_negative = self.is_negative && exponent % 2.0 != 0.0;
        Self { is_negative, size: self.size, exponent: rounded(self.exponent * exponent) }
    }
}

/// Value as a power of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub scale: Scale,
    pub base: VarId,
    pub exponent: f64,
    pub kind: Kind,
}

impl Form {
    /// Returns the form of `base` itself.
    pub fn itself(base: VarId) -> Self {
        Self { scale: Scale::ONE, base, exponent: 1.0, kind: Kind::Whole }
    }

    /// Returns whether it is a root of its base: the exponent is no whole number.
    pub fn is_root(&self) -> bool {
        self.exponent.fract() != 0.0
    }

    fn valid(self) -> Option<Self> {
        let is_bounded = self.exponent > 0.0 && self.exponent <= MAX_EXPONENT;
        let is_valid = is_bounded && self.scale.size.is_normal() && self.scale.value().is_normal();
        is_valid.then_some(Self { exponent: rounded(self.exponent), ..self })
    }

    /// Returns the form times a number.
    pub fn scaled(self, by: f64) -> Option<Self> {
        Self { scale: self.scale.times(Scale::new(by)), ..self }.valid()
    }

    /// Returns the product of forms with the same base.
    pub fn times(self, other: Self) -> Option<Self> {
        let (kind, sign) = match (self.kind, other.kind) {
            (Kind::Whole, Kind::Whole) => (Kind::Whole, 1.0),
            (Kind::Whole | Kind::Cubic, Kind::Whole | Kind::Cubic) => (Kind::Cubic, 1.0),
            (Kind::Root, Kind::Root | Kind::Whole | Kind::Cubic | Kind::Abs)
            | (Kind::Whole | Kind::Cubic | Kind::Abs, Kind::Root) => (Kind::Root, 1.0),
            (Kind::NegatedRoot, Kind::NegatedRoot | Kind::Abs) | (Kind::Abs, Kind::NegatedRoot) => {
                (Kind::NegatedRoot, 1.0)
            }
            (Kind::NegatedRoot, Kind::Whole) => (Kind::NegatedRoot, sign(other.exponent)),
            (Kind::Whole, Kind::NegatedRoot) => (Kind::NegatedRoot, sign(self.exponent)),
            (Kind::Abs, Kind::Abs) => (Kind::Abs, 1.0),
            _ => return None,
        };
        let scale = self.scale.times(other.scale).times(Scale::new(sign));
        Self { scale, exponent: self.exponent + other.exponent, base: self.base, kind }.valid()
    }

    /// Returns the form to the power of a positive whole number.
    pub fn to_whole(self, times: f64) -> Option<Self> {
        Self { scale: self.scale.to(times), exponent: self.exponent * times, ..self }.valid()
    }

    /// Returns the square root or another power with a fraction as its exponent.
    pub fn to_root(self, root: f64) -> Option<Self> {
        let is_odd = self.thirds() % 2.0 != 0.0;
        let kind = match (self.kind, self.scale.is_negative) {
            (Kind::Whole | Kind::Cubic, false) => {
                if is_odd {
                    Kind::Root
                } else {
                    Kind::Abs
                }
            }
            (Kind::Whole | Kind::Cubic, true) if is_odd => Kind::NegatedRoot,
            (kind @ (Kind::Root | Kind::NegatedRoot | Kind::Abs), false) => kind,
            _ => return None,
        };
        let scale = Scale { is_negative: false, ..self.scale }.to(root);
        Self { scale, exponent: self.exponent * root, base: self.base, kind }.valid()
    }

    /// Returns the cubic root.
    pub fn to_cubic_root(self) -> Option<Self> {
        let kind = match self.kind {
            Kind::Whole => Kind::Cubic,
            Kind::Cubic => return None,
            kind => kind,
        };
        let scale = Scale { is_negative: self.scale.is_negative, ..self.scale.to(1.0 / 3.0) };
        Self { scale, exponent: self.exponent / 3.0, base: self.base, kind }.valid()
    }

    /// Returns the absolute value of a multiple of the base.
    pub fn to_abs(self) -> Option<Self> {
        let scale = Scale { is_negative: false, ..self.scale };
        (self.exponent == 1.0 && self.kind == Kind::Whole).then_some(Self { scale, kind: Kind::Abs, ..self })
    }

    /// Returns the exponent in thirds, which are whole for [`Kind::Whole`] and [`Kind::Cubic`]. Odd powers of a number
    /// have odd thirds.
    fn thirds(&self) -> f64 {
        (self.exponent * 3.0).round()
    }

    /// Returns whether there are operators that raise the base to the exponent.
    pub fn has_operators(&self) -> bool {
        self.kind != Kind::Cubic || self.thirds() % 3.0 <= 1.0
    }
}

/// Returns the power of -1.
fn sign(exponent: f64) -> f64 {
    if exponent % 2.0 == 0.0 { 1.0 } else { -1.0 }
}

/// Returns the exponent without the rounding errors of sixths, which are no doubles.
fn rounded(exponent: f64) -> f64 {
    let sixths = (exponent * 6.0).round();
    if (exponent * 6.0 - sixths).abs() < 1e-12 { sixths / 6.0 } else { exponent }
}
