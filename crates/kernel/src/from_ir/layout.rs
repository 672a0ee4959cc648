//! Flattening types: the scalars of a value as a list of leaves.
//!
//! A tuple is the list of its components' leaves; an array of tuples is one array for each leaf of the
//! tuple (a structure of arrays); nested arrays are one contiguous array in row-major order. Arrays are
//! never ragged, so a leaf has a list of extents and nothing else.

use crate::kernel::{BufferId, Class, Reg};
use chainrule_base::Poly;
use chainrule_ir::{Function, Size, Type, VarId};

/// Element type of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scalar {
    Double,
    Int,
    Bool,
}

impl Scalar {
    pub fn class(self) -> Class {
        match self {
            Self::Double => Class::Real,
            Self::Int | Self::Bool => Class::Int,
        }
    }
}

/// A leaf of a type.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct LeafType {
    /// Path in the type, such as `.rotation.0`; empty for a type that is one leaf.
    pub path: String,
    /// Its extents, outermost first.
    pub dims: Vec<Size>,
    pub scalar: Scalar,
}

impl LeafType {
    /// Returns whether it has the same element type and extents as another leaf.
    pub fn is_like(&self, other: &Self) -> bool {
        self.scalar == other.scalar && self.dims == other.dims
    }
}

/// Returns the leaves of `ty` from left to right.
pub(super) fn leaves(ty: &Type) -> Vec<LeafType> {
    let mut found = Vec::new();
    ty.for_each_leaf(&mut |leaf| {
        let scalar = match leaf.scalar {
            Type::Int => Scalar::Int,
            Type::Bool => Scalar::Bool,
            _ => Scalar::Double,
        };
        found.push(LeafType { path: leaf.dotted(), dims: leaf.sizes(), scalar });
    });
    found
}

/// Returns the argument of a tuple that contains its leaf `leaf`, and the leaf's index in that argument.
pub(super) fn argument(function: &Function, args: &[VarId], mut leaf: usize) -> Option<(VarId, usize)> {
    for arg in args {
        let n = function.ty(*arg).n_leaves();
        if leaf < n {
            return Some((*arg, leaf));
        }
        leaf -= n;
    }
    None
}

/// Returns whether leaf `leaf` of `ty` is an array rather than a scalar.
pub(super) fn is_array(ty: &Type, mut leaf: usize) -> bool {
    let mut ty = ty;
    loop {
        match ty {
            Type::Double | Type::Int | Type::Bool => return false,
            Type::Array(..) => return leaf < ty.n_leaves(),
            Type::Tuple(fields, _) => {
                let Some(field) = fields.iter().find(|field| {
                    let n = field.n_leaves();
                    let is_here = leaf < n;
                    if !is_here {
                        leaf -= n;
                    }
                    is_here
                }) else {
                    return false;
                };
                ty = field;
            }
        }
    }
}

/// Part of a buffer: an array with extents `dims`, or one element when there are none.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View {
    pub buffer: BufferId,
    /// Offset of its first element, over registers in scope.
    pub offset: Poly<Reg>,
    /// Extents, outermost first, over registers in scope.
    pub dims: Vec<Poly<Reg>>,
}

impl View {
    /// Returns the number of scalars.
    pub fn len(&self) -> Poly<Reg> {
        product(&self.dims)
    }

    /// Returns the view of element `index` of the array.
    pub fn row(&self, index: &Poly<Reg>) -> Self {
        let dims = self.dims.get(1..).unwrap_or_default().to_vec();
        let offset = self.offset.add(&index.mul(&product(&dims)));
        Self { buffer: self.buffer, offset, dims }
    }
}

/// Returns the product of extents: 1 for none.
pub(super) fn product(dims: &[Poly<Reg>]) -> Poly<Reg> {
    dims.iter().fold(Poly::constant(1), |len, extent| len.mul(extent))
}

/// A leaf of a value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Leaf {
    /// A double or a truth value.
    Reg(Reg),
    /// An integer: a polynomial over registers in scope.
    Int(Poly<Reg>),
    /// An array. Nothing is written to it as long as the value can be used.
    Array(View),
    /// No value of its own: it is already added to the destination of its only consumer.
    Delivered,
}

/// The leaves of a value, in the order of [`leaves`].
pub(super) type Value = Vec<Leaf>;
