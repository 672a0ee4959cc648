//! Patterns of the arguments of a call: what a [plan](crate::call) requires, and the leaves of arguments that match.

use crate::numpy::{Array, Class, Numpy, item};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};

/// Maximum extent that is known in code for the sizes of a call: loops of so many iterations are unrolled, and vectors
/// have so many lanes.
pub(crate) const SHORT: isize = 8;

/// Extent in a key for those above [`SHORT`].
pub(crate) const LONG: isize = -1;

/// Integers in place of doubles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ints {
    Taken,
    Refused,
}

/// Requirement on an argument.
pub(crate) enum Pattern {
    /// A number, also as an array without dimensions.
    Number(Class, Ints),
    /// An array, with the extent of each axis: [`LONG`], or `None` for any of at least 2.
    Array(Class, Vec<Option<isize>>),
    Tuple(Vec<Self>),
    /// This object.
    Known(Py<PyAny>),
}

impl Pattern {
    /// Returns the pattern that a key of the package's Python code describes, if any.
    pub(crate) fn new(key: &Bound<'_, PyTuple>, ints: Ints) -> PyResult<Option<Self>> {
        let kind: String = key.get_item(0)?.extract()?;
        Ok(match kind.as_str() {
            "num" => {
                let extents: Vec<Option<isize>> = key.get_item(2)?.extract()?;
                let class = match key.get_item(1)?.extract::<char>()? {
                    'f' => Class::Real,
                    'i' => Class::Int,
                    'b' if !extents.is_empty() => Class::Bool,
                    _ => return Ok(None),
                };
                let number = Self::Number(class, ints);
                Some(if extents.is_empty() { number } else { Self::Array(class, extents) })
            }
            "row" if key.len() == 3 && !key.get_item(2)?.is_truthy()? => {
                let parts = key.get_item(1)?.cast_into::<PyTuple>()?;
                let parts = parts.iter().map(|part| Self::new(part.cast::<PyTuple>()?, ints));
                parts.collect::<PyResult<Option<Vec<Self>>>>()?.map(Self::Tuple)
            }
            "known" => Some(Self::Known(key.get_item(1)?.getattr("value")?.unbind())),
            _ => None,
        })
    }

    /// Adds the leaves of `value` if it matches.
    #[inline]
    pub(crate) fn take<'a>(
        &self,
        numpy: &Numpy,
        value: Borrowed<'a, '_, PyAny>,
        leaves: &mut Vec<Leaf<'a>>,
    ) -> Option<()> {
        match self {
            Self::Number(Class::Real, ints) => {
                let leaf = if let Some(x) = numpy.real(value) {
                    Leaf::Real(x)
                } else if *ints == Ints::Taken
                    && let Some(x) = Numpy::int(value)
                {
                    #[allow(clippy::cast_precision_loss)]
                    Leaf::Real(x as f64)
                } else {
                    let array = numpy.view(value)?;
                    (array.class == Class::Real && array.extents.is_empty()).then_some(Leaf::Array(array))?
                };
                leaves.push(leaf);
            }
            Self::Number(..) => leaves.push(Leaf::Int(Numpy::int(value)?)),
            Self::Array(class, extents) => {
                let array = numpy.view(value)?;
                let fits = array.class == *class && array.extents.len() == extents.len();
                let agrees = |(extent, known): (&isize, &Option<isize>)| match *known {
                    None => *extent >= 2,
                    Some(LONG) => *extent > SHORT,
                    Some(known) => *extent == known,
                };
                if !fits || !array.extents.iter().zip(extents).all(agrees) {
                    return None;
                }
                leaves.push(Leaf::Array(array));
            }
            Self::Tuple(parts) => {
                if value.cast_exact::<PyTuple>().ok()?.len() != parts.len() {
                    return None;
                }
                for (k, part) in parts.iter().enumerate() {
                    part.take(numpy, item(value, k)?, leaves)?;
                }
            }
            Self::Known(known) => {
                let is_same = value.is(known) || both_equal(known.bind(value.py()), &value);
                is_same.then_some(())?;
            }
        }
        Some(())
    }

    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Known(known) => visit.call(known),
            Self::Tuple(parts) => parts.iter().try_for_each(|part| part.visit(visit)),
            Self::Number(..) | Self::Array(..) => Ok(()),
        }
    }
}

/// Returns whether both are equal strings, or equal ints.
fn both_equal(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    let both = |is: fn(&Bound<'_, PyAny>) -> bool| is(a) && is(b);
    (both(|x| x.is_exact_instance_of::<PyString>()) || both(|x| x.is_exact_instance_of::<PyInt>()))
        && a.eq(b).unwrap_or(false)
}

/// A number or an array among the arguments.
#[derive(Clone, Copy)]
pub(crate) enum Leaf<'a> {
    Real(f64),
    Int(i64),
    Array(Array<'a>),
}
