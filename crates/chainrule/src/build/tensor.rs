//! Vectors and small matrices of expressions.
//!
//! Operators take both sides by value or by reference. Sums and products panic if shapes do not match, like indexing.

use super::Expr;
use chainrule_base::Name;
use chainrule_ops::Op;
use std::ops::{Add, Div, Index, Mul, Neg, Sub};

/// Argument or result of a function: a scalar, a vector, a matrix.
pub trait Tensor {
    /// Returns the extents, outermost first; none for a scalar.
    fn shape(&self) -> Vec<usize>;
    /// Returns the elements in row-major order.
    fn elements(&self) -> Vec<Expr>;
    /// Returns its name in signatures, if it has one.
    fn name(&self) -> Option<Name>;
}

impl Tensor for Expr {
    fn shape(&self) -> Vec<usize> {
        Vec::new()
    }
    fn elements(&self) -> Vec<Expr> {
        vec![self.clone()]
    }
    fn name(&self) -> Option<Name> {
        super::input_name(&self.session.graph(), self.id)
    }
}

/// Vector of expressions.
///
/// ```
/// let v = chainrule::vars("v", 3);
/// assert_eq!(v.dot(&v).to_string(), "((v[0] * v[0]) + (v[1] * v[1])) + (v[2] * v[2])");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vector {
    name: Option<Name>,
    elements: Vec<Expr>,
}

impl Vector {
    /// Returns the vector of `elements`.
    #[must_use]
    pub fn new(elements: Vec<Expr>) -> Self {
        Self { name: None, elements }
    }

    /// Returns the same with a name, for signatures.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(Name::new(name));
        self
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Returns an iterator over the elements.
    pub fn iter(&self) -> std::slice::Iter<'_, Expr> {
        self.elements.iter()
    }

    /// Applies `f` to each element.
    #[must_use]
    pub fn map(&self, f: impl FnMut(&Expr) -> Expr) -> Self {
        self.iter().map(f).collect()
    }

    /// Returns the inner product.
    ///
    /// # Panics
    /// Panics if the lengths differ or are 0.
    #[must_use]
    pub fn dot(&self, other: &Self) -> Expr {
        assert_eq!(self.len(), other.len(), "an inner product of vectors of one length");
        self.iter().zip(other.iter()).map(|(a, b)| a * b).sum()
    }

    /// Returns the cross product of vectors of length 3.
    ///
    /// # Panics
    /// Panics if a length is not 3.
    #[must_use]
    pub fn cross(&self, other: &Self) -> Self {
        assert!(self.len() == 3 && other.len() == 3, "a cross product of vectors of three");
        let (a, b) = (self, other);
        let minor = |i: usize, j: usize| &a[i] * &b[j] - &a[j] * &b[i];
        Self::new(vec![minor(1, 2), minor(2, 0), minor(0, 1)])
    }

    /// Returns the Euclidean norm.
    ///
    /// # Panics
    /// Panics if the vector is empty.
    #[must_use]
    pub fn norm(&self) -> Expr {
        // As the library's `vectorNorm`.
        let larger = |largest: Expr, x: &Expr| Expr::apply(Op::Max, &[&largest, &Expr::apply(Op::Abs, &[x])]);
        let largest = self.elements[1..].iter().fold(Expr::apply(Op::Abs, &[&self.elements[0]]), larger);
        let scale = Expr::apply(Op::Binade, &[&largest]);
        let scaled = Self::new(self.elements.iter().map(|x| Expr::apply(Op::Rescale, &[x, &scale])).collect());
        &scale * scaled.dot(&scaled).sqrt()
    }
}

impl Tensor for Vector {
    fn shape(&self) -> Vec<usize> {
        vec![self.len()]
    }
    fn elements(&self) -> Vec<Expr> {
        self.elements.clone()
    }
    fn name(&self) -> Option<Name> {
        self.name.clone()
    }
}

impl Index<usize> for Vector {
    type Output = Expr;
    fn index(&self, i: usize) -> &Expr {
        &self.elements[i]
    }
}

impl<'a> IntoIterator for &'a Vector {
    type Item = &'a Expr;
    type IntoIter = std::slice::Iter<'a, Expr>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Expr> for Vector {
    fn from_iter<I: IntoIterator<Item = Expr>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}

/// Matrix of expressions, by rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matrix {
    name: Option<Name>,
    rows: Vec<Vec<Expr>>,
    cols: usize,
}

impl Matrix {
    /// Returns the matrix of `rows`.
    ///
    /// # Panics
    /// Panics if rows differ in length.
    #[must_use]
    pub fn new(rows: Vec<Vec<Expr>>) -> Self {
        let cols = rows.first().map_or(0, Vec::len);
        assert!(rows.iter().all(|row| row.len() == cols), "a matrix with rows of one length");
        Self { name: None, rows, cols }
    }

    /// Returns the matrix with elements `f(i, j)`.
    #[must_use]
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> Expr) -> Self {
        Self { name: None, rows: (0..rows).map(|i| (0..cols).map(|j| f(i, j)).collect()).collect(), cols }
    }

    /// Returns the same with a name, for signatures.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(Name::new(name));
        self
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn n_cols(&self) -> usize {
        self.cols
    }

    /// Returns a row.
    #[must_use]
    pub fn row(&self, i: usize) -> Vector {
        Vector::new(self.rows[i].clone())
    }

    /// Returns a column.
    #[must_use]
    pub fn col(&self, j: usize) -> Vector {
        self.rows.iter().map(|row| row[j].clone()).collect()
    }

    /// Returns the transpose.
    #[must_use]
    pub fn transpose(&self) -> Self {
        Self::from_fn(self.cols, self.n_rows(), |i, j| self.rows[j][i].clone())
    }

    /// Returns the sum of the diagonal.
    ///
    /// # Panics
    /// Panics if the matrix is not square, or empty.
    #[must_use]
    pub fn trace(&self) -> Expr {
        assert_eq!(self.n_rows(), self.cols, "the trace of a square matrix");
        (0..self.cols).map(|i| self.rows[i][i].clone()).sum()
    }

    /// Applies `f` to each element.
    #[must_use]
    pub fn map(&self, mut f: impl FnMut(&Expr) -> Expr) -> Self {
        Self::from_fn(self.n_rows(), self.cols, |i, j| f(&self.rows[i][j]))
    }
}

impl Tensor for Matrix {
    fn shape(&self) -> Vec<usize> {
        vec![self.n_rows(), self.cols]
    }
    fn elements(&self) -> Vec<Expr> {
        self.rows.iter().flatten().cloned().collect()
    }
    fn name(&self) -> Option<Name> {
        self.name.clone()
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = Expr;
    fn index(&self, (i, j): (usize, usize)) -> &Expr {
        &self.rows[i][j]
    }
}

macro_rules! by_value_and_reference {
    ($($left:ty, $right:ty, $trait:ident $method:ident -> $out:ty;)*) => {$(
        impl $trait<$right> for $left {
            type Output = $out;
            fn $method(self, right: $right) -> $out {
                (&self).$method(&right)
            }
        }
        impl $trait<&$right> for $left {
            type Output = $out;
            fn $method(self, right: &$right) -> $out {
                (&self).$method(right)
            }
        }
        impl $trait<$right> for &$left {
            type Output = $out;
            fn $method(self, right: $right) -> $out {
                self.$method(&right)
            }
        }
    )*};
}

impl Add<&Vector> for &Vector {
    type Output = Vector;
    fn add(self, right: &Vector) -> Vector {
        assert_eq!(self.len(), right.len(), "a sum of vectors of one length");
        self.iter().zip(right).map(|(a, b)| a + b).collect()
    }
}

impl Sub<&Vector> for &Vector {
    type Output = Vector;
    fn sub(self, right: &Vector) -> Vector {
        assert_eq!(self.len(), right.len(), "a difference of vectors of one length");
        self.iter().zip(right).map(|(a, b)| a - b).collect()
    }
}

impl Add<&Matrix> for &Matrix {
    type Output = Matrix;
    fn add(self, right: &Matrix) -> Matrix {
        assert_eq!(self.shape(), right.shape(), "a sum of matrices of one shape");
        Matrix::from_fn(self.n_rows(), self.cols, |i, j| &self[(i, j)] + &right[(i, j)])
    }
}

impl Sub<&Matrix> for &Matrix {
    type Output = Matrix;
    fn sub(self, right: &Matrix) -> Matrix {
        assert_eq!(self.shape(), right.shape(), "a difference of matrices of one shape");
        Matrix::from_fn(self.n_rows(), self.cols, |i, j| &self[(i, j)] - &right[(i, j)])
    }
}

impl Mul<&Matrix> for &Matrix {
    type Output = Matrix;
    fn mul(self, right: &Matrix) -> Matrix {
        assert_eq!(self.cols, right.n_rows(), "a product of matrices that fit");
        Matrix::from_fn(self.n_rows(), right.cols, |i, j| (0..self.cols).map(|k| &self[(i, k)] * &right[(k, j)]).sum())
    }
}

impl Mul<&Vector> for &Matrix {
    type Output = Vector;
    fn mul(self, right: &Vector) -> Vector {
        assert_eq!(self.cols, right.len(), "a matrix times a vector that fits");
        self.rows.iter().map(|row| row.iter().zip(right).map(|(a, b)| a * b).sum()).collect()
    }
}

macro_rules! scaled_and_negated {
    ($($tensor:ident)*) => {$(
        impl Mul<&Expr> for &$tensor {
            type Output = $tensor;
            fn mul(self, right: &Expr) -> $tensor {
                self.map(|a| a * right)
            }
        }
        impl Mul<&$tensor> for &Expr {
            type Output = $tensor;
            fn mul(self, right: &$tensor) -> $tensor {
                right.map(|a| self * a)
            }
        }
        impl Div<&Expr> for &$tensor {
            type Output = $tensor;
            fn div(self, right: &Expr) -> $tensor {
                self.map(|a| a / right)
            }
        }
        by_value_and_reference! {
            $tensor, Expr, Mul mul -> $tensor;
            Expr, $tensor, Mul mul -> $tensor;
            $tensor, Expr, Div div -> $tensor;
        }
        scaled_and_negated! { @owner $tensor; $tensor; &$tensor; }
    )*};
    (@owner $out:ident; $($tensor:ty;)*) => {$(
        impl Mul<f64> for $tensor {
            type Output = $out;
            fn mul(self, right: f64) -> $out {
                self.map(|a| a * right)
            }
        }
        impl Mul<$tensor> for f64 {
            type Output = $out;
            fn mul(self, right: $tensor) -> $out {
                right.map(|a| self * a)
            }
        }
        impl Div<f64> for $tensor {
            type Output = $out;
            fn div(self, right: f64) -> $out {
                self.map(|a| a / right)
            }
        }
        impl Neg for $tensor {
            type Output = $out;
            fn neg(self) -> $out {
                self.map(|a| -a)
            }
        }
    )*};
}

by_value_and_reference! {
    Vector, Vector, Add add -> Vector;
    Vector, Vector, Sub sub -> Vector;
    Matrix, Matrix, Add add -> Matrix;
    Matrix, Matrix, Sub sub -> Matrix;
    Matrix, Matrix, Mul mul -> Matrix;
    Matrix, Vector, Mul mul -> Vector;
}

scaled_and_negated! { Vector Matrix }
