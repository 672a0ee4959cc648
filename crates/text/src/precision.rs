//! Numbers of 64 or of 32 bits.

use chainrule_kernel::Class;

/// Precision of the numbers of emitted code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// 64 bits, as a kernel is defined.
    #[default]
    Double,
    /// 32 bits: constants and every operation are rounded to them, and functions are those for 32 bits.
    Single,
}

impl Precision {
    /// Returns the size of an element of a class, in bytes.
    #[must_use]
    pub fn bytes(self, class: Class) -> usize {
        if self == Self::Single && class == Class::Real { 4 } else { 8 }
    }

    /// Returns the nearest number of this precision.
    #[must_use]
    pub fn round(self, value: f64) -> f64 {
        match self {
            Self::Double => value,
            Self::Single => f64::from(value as f32),
        }
    }
}
