//! Range analysis of sizes and indices: interval reasoning over polynomials.
//!
//! Facts: size parameters are nonnegative, a loop index is between 0 and its count, inside a loop its count is at least
//! 1, and the requirements of a function hold.

use crate::{Size, VarId};
use rustc_hash::FxHashSet;

/// A loop around a statement.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Index of the loop.
    pub index: VarId,
    /// Trip count of the loop.
    pub count: Size,
}

/// Facts that hold at a statement.
pub struct Facts<'a> {
    /// Loops around the statement, outermost first.
    pub loops: &'a [Loop],
    /// Variables that are not negative.
    pub natural: &'a FxHashSet<VarId>,
    /// Polynomials that are not negative.
    pub known: &'a [Size],
}

/// Maximum number of facts added up in a proof.
const MAX_STEPS: u32 = 3;
/// Maximum number of facts tried in one step.
const MAX_FACTS: usize = 24;

impl Facts<'_> {
    /// Returns whether `size >= 0` is proved for all values of the indices.
    #[must_use]
    pub fn holds(&self, size: &Size) -> bool {
        self.holds_given(size, &[])
    }

    /// As [`Self::holds`], given that no polynomial in `given` is negative.
    #[must_use]
    pub fn holds_given(&self, size: &Size, given: &[Size]) -> bool {
        let (least, _) = self.minimum(size);
        let mut facts: Vec<Size> = given.to_vec();
        let ones = self.loops.iter().map(|l| l.count.sub(&Size::constant(1)));
        facts.extend(ones.chain(self.known.iter().rev().cloned()));
        self.combine(&least, &facts, MAX_STEPS)
    }

    /// Returns `size` at the values of the indices that minimise it, with these values, innermost loop first. An index
    /// in which `size` is not obviously monotonic stays.
    #[must_use]
    pub fn minimum(&self, size: &Size) -> (Size, Vec<(VarId, Size)>) {
        let mut least = size.clone();
        let mut corner = Vec::new();
        for l in self.loops.iter().rev() {
            if !least.vars().contains(&l.index) {
                continue;
            }
            let Some((slope, rest)) = least.split_linear(l.index) else { continue };
            if self.plainly_natural(&slope) {
                corner.push((l.index, Size::zero()));
                least = rest;
            } else if self.plainly_natural(&slope.neg()) {
                let last = l.count.sub(&Size::constant(1));
                least = slope.mul(&last).add(&rest);
                corner.push((l.index, last));
            }
        }
        (least, corner)
    }

    /// Returns whether every term is obviously nonnegative.
    fn plainly_natural(&self, size: &Size) -> bool {
        size.terms().all(|(vars, c)| {
            c >= 0 && vars.iter().all(|v| self.natural.contains(v) || self.loops.iter().any(|l| l.index == *v))
        })
    }

    fn combine(&self, size: &Size, facts: &[Size], steps: u32) -> bool {
        if self.plainly_natural(size) {
            return true;
        }
        if steps == 0 {
            return false;
        }
        let vars = size.vars();
        let related = facts.iter().filter(|fact| fact.vars().iter().any(|v| vars.contains(v)));
        related.take(MAX_FACTS).any(|fact| {
            // A fact times a natural factor is a fact: enough for `count * columns`.
            let rest = size.sub(fact);
            rest.terms().len() <= size.terms().len() + 1 && self.combine(&self.minimum(&rest).0, facts, steps - 1)
        })
    }
}
