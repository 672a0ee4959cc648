//! Integers that are equal: one stands for all.

use crate::{Size, VarId};

/// Variables that equal others, each with the one that stands for both; that one is not replaced itself.
#[derive(Clone, Default, Debug)]
pub struct EqualSizes {
    pairs: Vec<(VarId, VarId)>,
}

impl EqualSizes {
    /// Records that `kept` stands for `replaced`, and for the variables for which `replaced` stood.
    pub fn equate(&mut self, replaced: VarId, kept: VarId) {
        for (_, same) in self.pairs.iter_mut().filter(|(_, same)| *same == replaced) {
            *same = kept;
        }
        self.pairs.push((replaced, kept));
    }

    /// Returns each replaced variable with the one that stands for it.
    #[must_use]
    pub fn pairs(&self) -> &[(VarId, VarId)] {
        &self.pairs
    }

    /// Returns the variable that stands for `var`.
    #[must_use]
    pub fn same(&self, var: VarId) -> VarId {
        self.pairs.iter().find(|(replaced, _)| *replaced == var).map_or(var, |(_, kept)| *kept)
    }

    /// Returns `size` with one variable for each group of equal ones.
    #[must_use]
    pub fn canonical(&self, size: &Size) -> Size {
        let is_replaced = |v: &VarId| self.same(*v) != *v;
        if self.pairs.is_empty() || !size.terms().any(|(monomial, _)| monomial.iter().any(is_replaced)) {
            return size.clone();
        }
        size.substitute(|v| Size::var(self.same(v)))
    }
}
