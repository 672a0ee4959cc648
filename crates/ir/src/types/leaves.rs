//! Leaves of types: one for each scalar field, depth first, fields from left to right. Arrays of tuples are tuples of
//! arrays. Kernels have a port for each leaf, in this order.

use crate::{Size, Type};
use chainrule_base::Name;
use std::fmt;

/// Step from a tuple to one of its fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field<'t> {
    /// Number of the field.
    pub index: usize,
    /// Name of the field, in a record.
    pub name: Option<&'t Name>,
}

/// Prints the name, or the number if there is none.
impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "{}", self.index),
        }
    }
}

/// Leaf of a type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leaf<'a, 't> {
    /// Fields on the way to the leaf.
    pub path: &'a [Field<'t>],
    /// Extents of the arrays on the way, outermost first.
    pub extents: &'a [&'t Size],
    /// `Double`, `Int` or `Bool`.
    pub scalar: &'t Type,
}

impl Leaf<'_, '_> {
    /// Returns the path as text: `.camera.0`, or nothing for a type that is one leaf.
    #[must_use]
    pub fn dotted(&self) -> String {
        self.path.iter().map(|field| format!(".{field}")).collect()
    }

    /// Returns the extents.
    #[must_use]
    pub fn sizes(&self) -> Vec<Size> {
        self.extents.iter().map(|size| (*size).clone()).collect()
    }
}

impl Type {
    /// Calls `visit` with each leaf, in order.
    pub fn for_each_leaf<'t>(&'t self, visit: &mut dyn FnMut(Leaf<'_, 't>)) {
        self.visit_leaves(&mut Vec::new(), &mut Vec::new(), visit);
    }

    // Recursive on the nesting of types.
    fn visit_leaves<'t>(
        &'t self,
        path: &mut Vec<Field<'t>>,
        extents: &mut Vec<&'t Size>,
        visit: &mut dyn FnMut(Leaf<'_, 't>),
    ) {
        match self {
            Self::Double | Self::Int | Self::Bool => visit(Leaf { path, extents, scalar: self }),
            Self::Array(size, element) => {
                extents.push(size);
                element.visit_leaves(path, extents, visit);
                extents.pop();
            }
            Self::Tuple(fields, names) => {
                for (index, field) in fields.iter().enumerate() {
                    let name = names.as_ref().and_then(|names| names.get(index));
                    path.push(Field { index, name });
                    field.visit_leaves(path, extents, visit);
                    path.pop();
                }
            }
        }
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn n_leaves(&self) -> usize {
        match self {
            Self::Double | Self::Int | Self::Bool => 1,
            Self::Array(_, element) => element.n_leaves(),
            Self::Tuple(fields, _) => fields.iter().map(Self::n_leaves).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn leaves_have_the_extents_and_fields_around_them() {
        let named: Arc<[Name]> = [Name::new("point"), Name::new("count")].into();
        let point = Type::array(Size::constant(3), Type::tuple(vec![Type::Double, Type::Bool]));
        let record = Type::Tuple(vec![point, Type::Int], Some(named));
        let all = Type::array(Size::constant(2), record);
        let mut found = Vec::new();
        all.for_each_leaf(&mut |leaf| found.push((leaf.dotted(), leaf.sizes(), leaf.scalar.clone())));
        let sizes = |sizes: &[i64]| sizes.iter().map(|n| Size::constant(*n)).collect::<Vec<_>>();
        let expected = [
            (".point.0".to_owned(), sizes(&[2, 3]), Type::Double),
            (".point.1".to_owned(), sizes(&[2, 3]), Type::Bool),
            (".count".to_owned(), sizes(&[2]), Type::Int),
        ];
        assert_eq!(found, expected);
        assert_eq!((all.n_leaves(), Type::Double.n_leaves(), Type::tuple(Vec::new()).n_leaves()), (3, 1, 0));
    }
}
