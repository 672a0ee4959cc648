//! Network: every value as a leaf, an opaque operation, or a sum of cubes.
//!
//! Invariants: a literal depends on others only through its form, and never on itself; the cubes of a sum have
//! different powers (unless their coefficients cannot be added) and coefficients that are normal numbers; a sum has at
//! least one cube.

use super::cube::{Cube, Literal, Powers};
use crate::graph::NodeId;
use chainrule_base::{Arena, Id};
use chainrule_ops::Op;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::Hasher;

/// Number, or a literal times a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Term {
    /// Coefficient.
    pub coef: f64,
    /// Literal that it multiplies.
    pub literal: Option<Literal>,
}

/// Definition of a literal.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// Node that is copied unchanged: an input, a number that is not a coefficient, an unexpanded derivative.
    Leaf(NodeId),
    /// Operation of this node on other arguments.
    Opaque(NodeId, SmallVec<[Term; 3]>),
    /// Sum of cubes; a product if there is only one.
    Sum(Vec<Cube>),
}

/// Graph as sums of products.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// Definition of each literal.
    pub forms: Arena<Literal, Form>,
    /// Roots.
    pub roots: Vec<Term>,
    /// Whether the value of each literal has been rounded. Literals beyond are sums and products.
    pub inexact: Vec<bool>,
    /// Whether each literal is masked.
    pub masked: Vec<bool>,
}

impl Network {
    /// Returns a hash of the network. Networks of one graph with equal forms and roots have the same.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        let term = |hasher: &mut FxHasher, term: &Term| {
            hasher.write_u64(term.coef.to_bits());
            hasher.write_usize(term.literal.map_or(usize::MAX, Id::index));
        };
        self.roots.iter().for_each(|root| term(&mut hasher, root));
        for (_, form) in self.forms.iter() {
            match form {
                Form::Leaf(id) => hasher.write_usize(id.index() << 2),
                Form::Opaque(id, args) => {
                    hasher.write_usize(id.index() << 2 | 1);
                    args.iter().for_each(|arg| term(&mut hasher, arg));
                }
                Form::Sum(cubes) => {
                    hasher.write_usize(cubes.len() << 2 | 2);
                    for Cube { coef, powers } in cubes {
                        hasher.write_u64(coef.to_bits());
                        hasher.write_usize(powers.len());
                        for (literal, e) in powers {
                            hasher.write_u64((literal.index() as u64) << 32 | u64::from(e.cast_unsigned()));
                        }
                    }
                }
            }
        }
        hasher.finish()
    }
}

/// Weights of operations, from the operator table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    /// Addition or subtraction.
    pub add: i64,
    /// Multiplication.
    pub mul: i64,
}

/// Weights of the operator table.
impl Default for Weights {
    fn default() -> Self {
        Self { add: i64::from(Op::Add.row().weight), mul: i64::from(Op::Mul.row().weight) }
    }
}

impl Weights {
    /// Returns the cost of a cube of this degree.
    pub fn cube(self, coef: f64, degree: u32) -> i64 {
        if degree == 0 {
            return 0;
        }
        self.mul * (i64::from(degree) - 1 + i64::from(!is_unit(coef)))
    }
}

/// Returns whether a coefficient costs nothing.
pub(super) fn is_unit(coef: f64) -> bool {
    coef.abs() == 1.0
}

/// Returns whether a coefficient may be moved: products of a few such numbers stay far inside the normal numbers.
pub(super) fn is_tame(coef: f64) -> bool {
    const LARGEST: f64 = 18_446_744_073_709_551_616.0;
    (LARGEST.recip()..=LARGEST).contains(&coef.abs())
}

/// Merges cubes with equal powers, in the order of their first occurrences; removes those that cancel. If the sum of
/// two coefficients is not tame, both cubes stay.
pub(super) fn like_terms(mut cubes: Vec<Cube>) -> Vec<Cube> {
    /// Below this number, comparing is cheaper than hashing.
    const FEW: usize = 8;
    let mut places: FxHashMap<Powers, usize> = FxHashMap::default();
    let few = cubes.len() <= FEW;
    // Remaining cubes come first.
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
