//! Values of parts at a random point of a finite field: parts of equal values are treated as equal.
//!
//! Labels are random elements of the integers modulo the prime 2^61 - 1, with equal elements for equal nodes of the
//! scalar graph, drawn twice. A part is a polynomial in the labels. Two different polynomials have equal values with
//! probability at most (d / 2^61)^2, where d is the length of the longest path (Schwartz 1980, Zippel 1979). So parts
//! that were factored differently are still found to be equal. The checker uses other draws, and would find a mistake.

use crate::random::Random;
use crate::{Edge, EdgeId, Label};
use chainrule_base::Id;

const PRIME: u64 = (1 << 61) - 1;

/// Two draws.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Value([u64; 2]);

impl Value {
    pub(super) const ZERO: Self = Self([0; 2]);
    pub(super) const ONE: Self = Self([1; 2]);

    /// Returns the value of a label.
    pub(super) fn label(e: EdgeId, edge: &Edge) -> Self {
        let seed = match (edge.label, edge.node) {
            (Label::One, _) => return Self::ONE,
            (Label::MinusOne, _) => return Self::ONE.negated(),
            (_, Some(node)) => 2 * node.index() as u64,
            (_, None) => 2 * e.index() as u64 + 1,
        };
        let mut random = Random::new(seed ^ 0xd57a_2007_0000_0000);
        Self([0, 1].map(|_| random.bits() % PRIME))
    }

    pub(super) fn negated(self) -> Self {
        Self(self.0.map(|a| (PRIME - a) % PRIME))
    }

    /// Returns `self + a * b`.
    pub(super) fn plus_product(self, a: Self, b: Self) -> Self {
        let prime = u128::from(PRIME);
        Self([0, 1].map(|i| ((u128::from(a.0[i]) * u128::from(b.0[i]) + u128::from(self.0[i])) % prime) as u64))
    }
}
