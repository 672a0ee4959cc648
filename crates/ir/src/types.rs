//! Types with sizes.

pub mod leaves;

use crate::VarId;
use chainrule_base::{Name, Poly};
use std::sync::Arc;

/// The size of an array dimension: a polynomial over variables of type `Int`.
///
/// Only *base* variables occur: size parameters, `Int` parameters, loop indices, and `Int` variables whose value is not
/// a polynomial of others ([`crate::Var::value`] is `None`). Equal sizes are therefore equal polynomials.
pub type Size = Poly<VarId>;

/// The type of a variable. There are no function types: elaboration has inlined functions.
#[derive(Clone, Eq, Debug)]
pub enum Type {
    /// A double.
    Double,
    /// A 64-bit integer: F~'s `Index`, `Card` and `Int`.
    Int,
    /// A truth value.
    Bool,
    /// An array; every element has the same type, sizes included (arrays are never ragged).
    Array(Size, Box<Type>),
    /// A tuple, or a record if the fields have names (as many as there are fields).
    Tuple(Vec<Type>, Option<Arc<[Name]>>),
}

// Fast path: nearly all types are of numbers, and are compared frequently.
impl PartialEq for Type {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Double, Self::Double) | (Self::Int, Self::Int) | (Self::Bool, Self::Bool) => true,
            (Self::Array(..), Self::Array(..)) | (Self::Tuple(..), Self::Tuple(..)) => self.has_same_parts(other),
            _ => false,
        }
    }
}

impl Type {
    fn has_same_parts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(size, element), Self::Array(other_size, other)) => size == other_size && element == other,
            (Self::Tuple(fields, names), Self::Tuple(others, other_names)) => fields == others && names == other_names,
            _ => false,
        }
    }

    /// Tests whether both are equal once all sizes are.
    pub(crate) fn differs_in_sizes_only(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(_, element), Self::Array(_, other)) => element.differs_in_sizes_only(other),
            (Self::Tuple(fields, names), Self::Tuple(others, other_names)) => {
                let mut pairs = fields.iter().zip(others);
                fields.len() == others.len() && names == other_names && pairs.all(|(a, b)| a.differs_in_sizes_only(b))
            }
            _ => self == other,
        }
    }

    /// Returns an array of `size` elements.
    #[must_use]
    pub fn array(size: Size, element: Self) -> Self {
        Self::Array(size, Box::new(element))
    }

    /// Returns a tuple without names.
    #[must_use]
    pub fn tuple(fields: Vec<Self>) -> Self {
        Self::Tuple(fields, None)
    }

    /// Returns the type of dual numbers over it (figure 6, DT): each `Double` becomes a pair of value and tangent,
    /// arrays and tuples elementwise. `Int` and `Bool` have no tangent and stay.
    #[must_use]
    pub fn dual(&self) -> Self {
        match self {
            Self::Double => Self::tuple(vec![Self::Double, Self::Double]),
            Self::Int => Self::Int,
            Self::Bool => Self::Bool,
            Self::Array(size, element) => Self::array(size.clone(), element.dual()),
            Self::Tuple(fields, names) => Self::Tuple(fields.iter().map(Self::dual).collect(), names.clone()),
        }
    }

    /// Returns the type of its tangents and cotangents: `self` without its integers and truth values, and without
    /// tuples and arrays that contain nothing else. `None` if nothing is left. A linear type.
    #[must_use]
    pub fn tangent(&self) -> Option<Self> {
        match self {
            Self::Double => Some(Self::Double),
            Self::Int | Self::Bool => None,
            Self::Array(size, element) => Some(Self::array(size.clone(), element.tangent()?)),
            Self::Tuple(fields, names) => {
                let kept: Vec<(usize, Self)> =
                    fields.iter().enumerate().filter_map(|(k, field)| Some((k, field.tangent()?))).collect();
                if kept.is_empty() {
                    return None;
                }
                let names =
                    names.as_ref().map(|names| kept.iter().filter_map(|(k, _)| names.get(*k).cloned()).collect());
                Some(Self::Tuple(kept.into_iter().map(|(_, field)| field).collect(), names))
            }
        }
    }

    /// Returns whether its values can be added elementwise: it contains neither `Int` nor `Bool`.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        match self {
            Self::Double => true,
            Self::Int | Self::Bool => false,
            Self::Array(_, element) => element.is_linear(),
            Self::Tuple(fields, _) => fields.iter().all(Self::is_linear),
        }
    }

    /// Returns whether it contains a `Double`, and so can carry a derivative.
    #[must_use]
    pub fn has_double(&self) -> bool {
        match self {
            Self::Double => true,
            Self::Int | Self::Bool => false,
            Self::Array(_, element) => element.has_double(),
            Self::Tuple(fields, _) => fields.iter().any(Self::has_double),
        }
    }

    /// Replaces each size by `by(size)`.
    #[must_use]
    pub fn map_sizes(&self, by: &mut impl FnMut(&Size) -> Size) -> Self {
        match self {
            Self::Double => Self::Double,
            Self::Int => Self::Int,
            Self::Bool => Self::Bool,
            Self::Array(size, element) => {
                let size = by(size);
                Self::array(size, element.map_sizes(by))
            }
            Self::Tuple(fields, names) => Self::Tuple(fields.iter().map(|f| f.map_sizes(by)).collect(), names.clone()),
        }
    }

    /// Returns its sizes, outermost first, fields from left to right.
    #[must_use]
    pub fn sizes(&self) -> Vec<Size> {
        let mut sizes = Vec::new();
        self.for_each_size(&mut |size| sizes.push(size.clone()));
        sizes
    }

    /// Calls `see` for the sizes of [`Self::sizes`], in order.
    #[inline]
    pub fn for_each_size(&self, see: &mut impl FnMut(&Size)) {
        if matches!(self, Self::Array(..) | Self::Tuple(..)) {
            self.for_each_size_of_parts(see);
        }
    }

    fn for_each_size_of_parts(&self, see: &mut impl FnMut(&Size)) {
        match self {
            Self::Double | Self::Int | Self::Bool => {}
            Self::Array(size, element) => {
                see(size);
                element.for_each_size(see);
            }
            Self::Tuple(fields, _) => fields.iter().for_each(|field| field.for_each_size(see)),
        }
    }
}
