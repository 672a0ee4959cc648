//! Numbers of 64 or of 32 bits.

use chainrule_kernel::Class;

/// How many bits the numbers of emitted code have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// 64 bits: the meaning of a kernel.
    #[default]
    Double,
    /// 32 bits: constants are rounded to them, functions are those for them, and so is every operation.
    Single,
}

impl Precision {
    /// How many bytes an element of a class has.
    #[must_use]
    pub fn bytes(self, class: Class) -> usize {
        if self == Self::Single && class == Class::Real { 4 } else { 8 }
    }

    /// The nearest number of this precision.
    #[must_use]
    pub fn round(self, value: f64) -> f64 {
        match self {
            Self::Double => value,
            Self::Single => f64::from(value as f32),
        }
    }
}
