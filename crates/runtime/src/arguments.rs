//! Arguments of a call: borrowed or owned elements of one point, strided arrays of many points.

use crate::Doubles;
use chainrule_kernel::Class;

/// An input of one point, in row-major order; a scalar has one element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Slice<'a> {
    /// Doubles.
    Real(&'a [f64]),
    /// Integers and truth values.
    Int(&'a [i64]),
}

/// An output of one point.
#[derive(PartialEq, Debug)]
pub enum SliceMut<'a> {
    /// Doubles.
    Real(&'a mut [f64]),
    /// Integers and truth values.
    Int(&'a mut [i64]),
}

impl Slice<'_> {
    /// Returns the class of the elements.
    #[must_use]
    pub fn class(&self) -> Class {
        if matches!(self, Self::Real(_)) { Class::Real } else { Class::Int }
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Real(data) => data.len(),
            Self::Int(data) => data.len(),
        }
    }
}

impl SliceMut<'_> {
    /// Returns a shared view of the elements.
    #[must_use]
    pub fn as_slice(&self) -> Slice<'_> {
        match self {
            Self::Real(data) => Slice::Real(data),
            Self::Int(data) => Slice::Int(data),
        }
    }
}

/// Owned elements of an input or an output of one point. Their address stays the same when the value is moved.
#[derive(Clone, Debug)]
pub enum Elements {
    /// Doubles.
    Real(Doubles),
    /// Integers and truth values.
    Int(Vec<i64>),
}

impl Elements {
    /// Returns `n` zeros.
    #[must_use]
    pub fn zeros(class: Class, n: usize) -> Self {
        match class {
            Class::Real => Self::Real(Doubles::zeros(n)),
            Class::Int => Self::Int(vec![0; n]),
        }
    }

    /// Returns the same elements; doubles are moved [behind](Doubles::behind) `address`, which becomes their end.
    #[must_use]
    pub fn behind(self, address: &mut usize) -> Self {
        match self {
            Self::Real(data) => Self::Real(data.behind(address)),
            ints @ Self::Int(_) => ints,
        }
    }

    /// Returns a shared view of the elements.
    #[must_use]
    pub fn slice(&self) -> Slice<'_> {
        match self {
            Self::Real(data) => Slice::Real(data),
            Self::Int(data) => Slice::Int(data),
        }
    }

    /// Returns a mutable view of the elements.
    pub fn slice_mut(&mut self) -> SliceMut<'_> {
        match self {
            Self::Real(data) => SliceMut::Real(data),
            Self::Int(data) => SliceMut::Int(data),
        }
    }

    /// Returns the doubles; empty for integers.
    #[must_use]
    #[inline]
    pub fn reals(&self) -> &[f64] {
        match self {
            Self::Real(data) => data,
            Self::Int(_) => &[],
        }
    }

    /// Returns the doubles for writing; empty for integers.
    #[inline]
    pub fn reals_mut(&mut self) -> &mut [f64] {
        match self {
            Self::Real(data) => data,
            Self::Int(_) => &mut [],
        }
    }
}

/// An input of many points: element `k` of point `p` is `data[p*point + k*element]`.
///
/// An array of structures of length `n` has `point = n, element = 1`; a structure of arrays of `p`
/// points has `point = 1, element = p`; an input that all points share has `point = 0`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Strided<'a> {
    /// The elements of all points.
    pub data: Slice<'a>,
    /// Stride from one point to the next, in elements.
    pub point: usize,
    /// Stride from one element to the next.
    pub element: usize,
}

/// An output of many points, laid out as in [`Strided`]. No two elements may have the same address.
#[derive(PartialEq, Debug)]
pub struct StridedMut<'a> {
    /// The elements of all points.
    pub data: SliceMut<'a>,
    /// Stride from one point to the next, in elements.
    pub point: usize,
    /// Stride from one element to the next.
    pub element: usize,
}

#[cfg(test)]
mod tests {
    use super::Elements;
    use chainrule_kernel::Class;

    #[test]
    fn what_lies_behind_each_other_shares_no_place_in_a_page() {
        const PAGE: usize = 4096;
        let frame = Elements::zeros(Class::Real, 40);
        let begin = frame.reals().as_ptr().addr();
        let mut end = frame.reals().as_ptr_range().end.addr();
        let mut inside = vec![(begin % PAGE, 40 * 8)];
        for n in [3, 32, 21] {
            let mut elements = Elements::zeros(Class::Real, n);
            elements.reals_mut()[0] = 1.5;
            let moved = elements.behind(&mut end);
            assert_eq!((moved.reals().len(), moved.reals()[0]), (n, 1.5));
            inside.push((moved.reals().as_ptr().addr() % PAGE, n * 8));
            assert_eq!(end, moved.reals().as_ptr_range().end.addr());
        }
        inside.sort_unstable();
        assert!(inside.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{inside:?}");
        let ints = Elements::Int(vec![7, 8]).behind(&mut end);
        assert!(matches!(ints, Elements::Int(data) if data == [7, 8]));
    }
}
