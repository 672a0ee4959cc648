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

/// Bit for bit; every NaN is as good as another (its sign and payload depend on how an operation is compiled).
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
    /// `len` elements that no test expects: NaN, or a senseless integer.
    #[must_use]
    pub fn new(class: Class, len: usize) -> Self {
        match class {
            Class::Real => Self::Real(vec![f64::NAN; len]),
            Class::Int => Self::Int(vec![i64::MIN; len]),
        }
    }

    /// How many elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Real(data) => data.len(),
            Self::Int(data) => data.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same in memory that begins with a line of the cache.
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

    /// What these elements are.
    #[must_use]
    pub fn of(elements: Slice<'_>) -> Self {
        match elements {
            Slice::Real(data) => Self::Real(data.to_vec()),
            Slice::Int(data) => Self::Int(data.to_vec()),
        }
    }

    /// The elements, to be read.
    #[must_use]
    pub fn slice(&self) -> Slice<'_> {
        match self {
            Self::Real(data) => Slice::Real(data),
            Self::Int(data) => Slice::Int(data),
        }
    }

    /// The elements, to be written.
    pub fn slice_mut(&mut self) -> SliceMut<'_> {
        match self {
            Self::Real(data) => SliceMut::Real(data),
            Self::Int(data) => SliceMut::Int(data),
        }
    }

    /// The elements from `start` on, `len` of them.
    #[must_use]
    pub fn part(&self, start: usize, len: usize) -> Self {
        match self {
            Self::Real(data) => Self::Real(data[start..start + len].to_vec()),
            Self::Int(data) => Self::Int(data[start..start + len].to_vec()),
        }
    }

    /// Adds the elements of `other`, which are of the same class.
    pub fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.extend(b),
            (Self::Int(a), Self::Int(b)) => a.extend(b),
            _ => panic!("arrays of two classes"),
        }
    }

    /// `rows` rows of equal length become columns.
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

    /// The elements as words.
    #[must_use]
    pub fn bits(&self) -> Vec<u64> {
        match self {
            Self::Real(data) => data.iter().map(|x| x.to_bits()).collect(),
            Self::Int(data) => data.iter().map(|x| *x as u64).collect(),
        }
    }

    /// The elements that the words are.
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
    /// Its extents, outermost first; none for a scalar.
    pub shape: Vec<usize>,
    /// Its elements, row by row.
    pub data: Data,
}

/// Other points, so many: the same integers and sizes, other doubles.
#[must_use]
pub fn around(inputs: &[Array], n: usize) -> Vec<Vec<Array>> {
    (0..n).map(|p| inputs.iter().map(|array| array.moved(p)).collect()).collect()
}

impl Array {
    /// The same integers, other doubles, for each point others; at point 0 the same.
    #[must_use]
    pub fn moved(&self, point: usize) -> Self {
        let data = match &self.data {
            Data::Real(x) => Data::Real(x.iter().map(|x| x + point as f64 / 64.0).collect()),
            Data::Int(x) => Data::Int(x.clone()),
        };
        Self { shape: self.shape.clone(), data }
    }
}

/// A vector of doubles.
#[must_use]
pub fn reals(data: &[f64]) -> Array {
    Array { shape: vec![data.len()], data: Data::Real(data.to_vec()) }
}

/// A vector of integers.
#[must_use]
pub fn ints(data: &[i64]) -> Array {
    Array { shape: vec![data.len()], data: Data::Int(data.to_vec()) }
}

/// A double.
#[must_use]
pub fn real(x: f64) -> Array {
    Array { shape: vec![], data: Data::Real(vec![x]) }
}

/// An integer.
#[must_use]
pub fn int(x: i64) -> Array {
    Array { shape: vec![], data: Data::Int(vec![x]) }
}

/// The leaves of a value of type `ty`, in the order of a kernel's ports.
///
/// # Panics
/// When the value is not of the type.
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
