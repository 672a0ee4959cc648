//! The network: every value as a leaf, an opaque operation, or a sum of cubes.
//!
//! Invariants: a literal depends on others only through its form, and never on itself; the cubes of a
//! sum have different powers (but where their coefficients do not add up) and coefficients that are
//! normal numbers; a sum has at least one cube.

use super::cube::{Cube, Literal, Powers};
use crate::graph::NodeId;
use chainrule_base::Arena;
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A number, or a literal times a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Term {
    /// The number.
    pub coef: f64,
    /// What it multiplies.
    pub literal: Option<Literal>,
}

/// What a literal stands for.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// A node that is copied as it is: an input, a number that is no coefficient, a derivative to be made.
    Leaf(NodeId),
    /// The operation of this node on other arguments.
    Opaque(NodeId, SmallVec<[Term; 3]>),
    /// A sum of cubes; of one cube, a product.
    Sum(Vec<Cube>),
}

/// A graph as sums of products.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// What each literal stands for.
    pub forms: Arena<Literal, Form>,
    /// What is wanted.
    pub roots: Vec<Term>,
    /// By literal: whether its value has been rounded. Literals beyond are sums and products.
    pub inexact: Vec<bool>,
    /// By literal: whether it is masked.
    pub masked: Vec<bool>,
}

/// What operations weigh, from the table of operators.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    /// An addition or a subtraction.
    pub add: i64,
    /// A multiplication.
    pub mul: i64,
}

/// Those of the table.
impl Default for Weights {
    fn default() -> Self {
        Self { add: i64::from(Op::Add.row().weight), mul: i64::from(Op::Mul.row().weight) }
    }
}

impl Weights {
    /// What a cube of this degree costs.
    pub fn cube(self, coef: f64, degree: u32) -> i64 {
        if degree == 0 {
            return 0;
        }
        self.mul * (i64::from(degree) - 1 + i64::from(!is_unit(coef)))
    }
}

/// Whether a coefficient costs nothing.
pub(super) fn is_unit(coef: f64) -> bool {
    coef.abs() == 1.0
}

/// Whether a coefficient may be moved: products of a few such numbers stay far inside the normal numbers.
pub(super) fn is_tame(coef: f64) -> bool {
    const LARGEST: f64 = 18_446_744_073_709_551_616.0;
    (LARGEST.recip()..=LARGEST).contains(&coef.abs())
}

/// Cubes with equal powers put together, in the order of their first occurrences; those that cancel, gone.
/// Where the sum of two coefficients is not tame, both cubes stay.
pub(super) fn like_terms(mut cubes: Vec<Cube>) -> Vec<Cube> {
    /// Below this, comparing is cheaper than hashing.
    const FEW: usize = 8;
    let mut places: FxHashMap<Powers, usize> = FxHashMap::default();
    let few = cubes.len() <= FEW;
    // Those that stay come first.
    let mut n = 0;
    for i in 0..cubes.len() {
        let place = if few {
            cubes[..n].iter().position(|c| c.powers == cubes[i].powers)
        } else {
            Some(*places.entry(cubes[i].powers.clone()).or_insert(n)).filter(|p| *p < n)
        };
        let coef = cubes[i].coef;
        match place {
            Some(place) if is_tame(cubes[place].coef + coef) || cubes[place].coef == -coef => {
                cubes[place].coef += coef;
            }
            _ => {
                cubes.swap(n, i);
                n += 1;
            }
        }
    }
    cubes.truncate(n);
    cubes.retain(|c| c.coef != 0.0);
    cubes
}
