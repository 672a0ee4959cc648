//! Arguments and results that own their elements.

use chainrule_ir::{Size, Type, Value};
use chainrule_kernel::Class;
use chainrule_runtime::{Doubles, Elements, Slice, SliceMut};

/// Elements of one class.
#[derive(Clone, Debug)]
pub enum Data {
    /// Doubles.
    Real(Vec<f64>),
    /// Integers and truth values.
    Int(Vec<i64>),
}

/// Compares bit for bit; all NaN are equal (sign and payload depend on how an operation is compiled).
impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &f64, b: &f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Self::Int(a), Self::Int(b)) => a == b,
            _ => false,
        }
    }
}

impl Data {
    /// Returns `len` elements that no test expects: NaN, or an absurd integer.
    #[must_use]
    pub fn new(class: Class, len: usize) -> Self {
        match class {
            Class::Real => Self::Real(vec![f64::NAN; len]),
            Class::Int => Self::Int(vec![i64::MIN; len]),
        }
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Real(data) => data.len(),
            Self::Int(data) => data.len(),
        }
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the same elements in memory that is aligned to a cache line.
    #[must_use]
    pub fn elements(&self) -> Elements {
        match self {
            Self::Real(data) => {
                let mut doubles = Doubles::zeros(data.len());
                doubles.copy_from_slice(data);
                Elements::Real(doubles)
            }
            Self::Int(data) => Elements::Int(data.clone()),
        }
    }

    /// Returns a copy of these elements.
    #[must_use]
    pub fn of(elements: Slice<'_>) -> Self {
        match elements {
            Slice::Real(data) => Self::Real(data.to_vec()),
            Slice::Int(data) => Self::Int(data.to_vec()),
        }
    }

    /// Returns the elements for reading.
    #[must_use]
    pub fn slice(&self) -> Slice<'_> {
        match self {
            Self::Real(data) => Slice::Real(data),
            Self::Int(data) => Slice::Int(data),
        }
    }

    /// Returns the elements for writing.
    pub fn slice_mut(&mut self) -> SliceMut<'_> {
        match self {
            Self::Real(data) => SliceMut::Real(data),
            Self::Int(data) => SliceMut::Int(data),
        }
    }

    /// Returns `len` elements from `start` on.
    #[must_use]
    pub fn part(&self, start: usize, len: usize) -> Self {
        match self {
            Self::Real(data) => Self::Real(data[start..start + len].to_vec()),
            Self::Int(data) => Self::Int(data[start..start + len].to_vec()),
        }
    }

    /// Appends the elements of `other`, which has the same class.
    pub fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.extend(b),
            (Self::Int(a), Self::Int(b)) => a.extend(b),
            _ => panic!("arrays of two classes"),
        }
    }

    /// Transposes: `rows` rows of equal length become columns.
    #[must_use]
    pub fn transposed(&self, rows: usize) -> Self {
        fn go<T: Copy>(data: &[T], rows: usize) -> Vec<T> {
            let columns = data.len().checked_div(rows).unwrap_or(0);
            (0..data.len()).map(|k| data[(k % rows) * columns + k / rows]).collect()
        }
        match self {
            Self::Real(data) => Self::Real(go(data, rows)),
            Self::Int(data) => Self::Int(go(data, rows)),
        }
    }

    /// Returns the elements as words.
    #[must_use]
    pub fn bits(&self) -> Vec<u64> {
        match self {
            Self::Real(data) => data.iter().map(|x| x.to_bits()).collect(),
            Self::Int(data) => data.iter().map(|x| *x as u64).collect(),
        }
    }

    /// Returns the elements given by words.
    #[must_use]
    pub fn from_bits(class: Class, bits: &[u64]) -> Self {
        match class {
            Class::Real => Self::Real(bits.iter().map(|b| f64::from_bits(*b)).collect()),
            Class::Int => Self::Int(bits.iter().map(|b| *b as i64).collect()),
        }
    }
}

/// An argument or a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Elements in row-major order.
    pub data: Data,
}

/// Returns `n` other points: the same integers and sizes, other doubles.
#[must_use]
pub fn around(inputs: &[Array], n: usize) -> Vec<Vec<Array>> {
    (0..n).map(|p| inputs.iter().map(|array| array.moved(p)).collect()).collect()
}

impl Array {
    /// Returns the same integers, and other doubles for each point; at point 0 the same ones.
    #[must_use]
    pub fn moved(&self, point: usize) -> Self {
        let data = match &self.data {
            // Adding 0 would change the sign of a zero.
            Data::Real(x) if point > 0 => Data::Real(x.iter().map(|x| x + point as f64 / 64.0).collect()),
            data => data.clone(),
        };
        Self { shape: self.shape.clone(), data }
    }
}

/// Returns a vector of doubles.
#[must_use]
pub fn reals(data: &[f64]) -> Array {
    Array { shape: vec![data.len()], data: Data::Real(data.to_vec()) }
}

/// Returns a vector of integers.
#[must_use]
pub fn ints(data: &[i64]) -> Array {
    Array { shape: vec![data.len()], data: Data::Int(data.to_vec()) }
}

/// Returns a double.
#[must_use]
pub fn real(x: f64) -> Array {
    Array { shape: vec![], data: Data::Real(vec![x]) }
}

/// Returns an integer.
#[must_use]
pub fn int(x: i64) -> Array {
    Array { shape: vec![], data: Data::Int(vec![x]) }
}

/// Returns the leaves of a value of type `ty`, in the order of a kernel's ports.
///
/// # Panics
/// Panics if the value is not of the type.
#[must_use]
pub fn flatten(ty: &Type, value: &Value<f64>, size: &dyn Fn(&Size) -> usize) -> Vec<Array> {
    match (ty, value) {
        (Type::Double, Value::Real(x)) => vec![real(*x)],
        (Type::Int, Value::Int(i)) => vec![int(*i)],
        (Type::Bool, Value::Bool(b)) => vec![int(i64::from(*b))],
        (Type::Tuple(fields, _), Value::Tuple(items)) => {
            fields.iter().zip(items).flat_map(|(ty, value)| flatten(ty, value, size)).collect()
        }
        (Type::Array(n, element), Value::Array(items)) => {
            assert_eq!(size(n), items.len(), "an array has the size of its type");
            let mut leaves = empty(element, size);
            leaves.iter_mut().for_each(|leaf| leaf.shape.insert(0, items.len()));
            for item in items {
                for (leaf, part) in leaves.iter_mut().zip(flatten(element, item, size)) {
                    leaf.data.append(&part.data);
                }
            }
            leaves
        }
        _ => panic!("{value:?} is not of type {ty:?}"),
    }
}

fn empty(ty: &Type, size: &dyn Fn(&Size) -> usize) -> Vec<Array> {
    match ty {
        Type::Double => vec![Array { shape: vec![], data: Data::Real(vec![]) }],
        Type::Int | Type::Bool => vec![Array { shape: vec![], data: Data::Int(vec![]) }],
        Type::Tuple(fields, _) => fields.iter().flat_map(|ty| empty(ty, size)).collect(),
        Type::Array(n, element) => {
            let mut leaves = empty(element, size);
            leaves.iter_mut().for_each(|leaf| leaf.shape.insert(0, size(n)));
            leaves
        }
    }
}
