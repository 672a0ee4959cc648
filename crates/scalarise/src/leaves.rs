//! Decomposition of types: one leaf for each scalar field, arrays of tuples as tuples of arrays.
//!
//! The order is that of the ports of a kernel: depth first, fields from left to right.

use crate::Tree;
use chainrule_base::Name;
use chainrule_graph::NodeId;
use chainrule_ir::{Size, Type};
use chainrule_kernel::Class;

/// Scalar field of a type.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Path: `camera.focal`, `result.0`.
    pub name: Name,
    /// Extents, outermost first.
    pub extents: Vec<Size>,
    /// `Double`, `Int` or `Bool`.
    pub scalar: Type,
}

impl Leaf {
    /// Returns the number of its elements; infinite if an extent is unknown.
    pub fn n_elements(&self) -> f64 {
        self.extents.iter().map(|n| n.as_constant().map_or(f64::INFINITY, |n| n as f64)).product()
    }
}

/// Returns the class of a `Double`, an `Int` or a `Bool` in a kernel.
pub fn class_of(scalar: &Type) -> Class {
    if *scalar == Type::Double { Class::Real } else { Class::Int }
}

/// Returns the leaves of a value of type `ty` with the name `name`.
pub fn leaves(ty: &Type, name: &str) -> Vec<Leaf> {
    let mut found = Vec::new();
    ty.for_each_leaf(&mut |leaf| {
        let name = Name::from(format!("{name}{}", leaf.dotted()));
        found.push(Leaf { name, extents: leaf.sizes(), scalar: leaf.scalar.clone() });
    });
    found
}

/// Returns the tree of type `ty` whose leaves' elements are `nodes`, one list per leaf in row-major order.
pub fn assemble(ty: &Type, nodes: &[Vec<NodeId>], extent: &impl Fn(&Size) -> usize) -> Tree {
    build(ty, nodes, &mut 0, 0, extent)
}

// Recursive on the nesting of types only, here and below.
fn build(
    ty: &Type,
    nodes: &[Vec<NodeId>],
    leaf: &mut usize,
    position: usize,
    extent: &impl Fn(&Size) -> usize,
) -> Tree {
    match ty {
        Type::Double | Type::Int | Type::Bool => {
            *leaf += 1;
            Tree::Real(nodes[*leaf - 1][position])
        }
        Type::Array(size, element) => {
            let (start, n) = (*leaf, extent(size));
            let parts: Vec<Tree> = (0..n)
                .map(|i| {
                    *leaf = start;
                    build(element, nodes, leaf, position * n + i, extent)
                })
                .collect();
            *leaf = start + leaves(element, "").len();
            Tree::Many(parts.into())
        }
        Type::Tuple(fields, _) => {
            let parts: Vec<Tree> = fields.iter().map(|f| build(f, nodes, leaf, position, extent)).collect();
            Tree::Many(parts.into())
        }
    }
}

/// Returns the elements of each leaf of `tree`, in row-major order; `None` if one is not a double.
pub fn take_apart(ty: &Type, tree: &Tree) -> Option<Vec<Vec<NodeId>>> {
    let mut nodes = vec![Vec::new(); leaves(ty, "").len()];
    scatter(ty, tree, &mut 0, &mut nodes)?;
    Some(nodes)
}

fn scatter(ty: &Type, tree: &Tree, leaf: &mut usize, nodes: &mut [Vec<NodeId>]) -> Option<()> {
    match (ty, tree) {
        (Type::Double, Tree::Real(node)) => {
            nodes[*leaf].push(*node);
            *leaf += 1;
            Some(())
        }
        (Type::Array(_, element), Tree::Many(parts)) => {
            let start = *leaf;
            for part in parts.iter() {
                *leaf = start;
                scatter(element, part, leaf, nodes)?;
            }
            *leaf = start + leaves(element, "").len();
            Some(())
        }
        (Type::Tuple(fields, _), Tree::Many(parts)) => {
            fields.iter().zip(parts.iter()).try_for_each(|(field, part)| scatter(field, part, leaf, nodes))
        }
        _ => None,
    }
}
