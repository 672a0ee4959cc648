//! Integers that are equal: one stands for all, or a number.

use crate::{Size, VarId};

/// Variables that equal others, each with the one that stands for both, which is not replaced by another variable;
/// and variables that equal numbers.
#[derive(Clone, Default, Debug)]
pub struct EqualSizes {
    pairs: Vec<(VarId, VarId)>,
    numbers: Vec<(VarId, i64)>,
}

impl EqualSizes {
    /// Records that `kept` stands for `replaced`, and for the variables for which `replaced` stood.
    pub fn equate(&mut self, replaced: VarId, kept: VarId) {
        for (_, same) in self.pairs.iter_mut().filter(|(_, same)| *same == replaced) {
            *same = kept;
        }
        self.pairs.push((replaced, kept));
    }

    /// Records that a variable that stands for itself equals `number`.
    pub fn equate_number(&mut self, var: VarId, number: i64) {
        self.numbers.push((var, number));
    }

    /// Returns each variable that another one stands for, with that one.
    #[must_use]
    pub fn pairs(&self) -> &[(VarId, VarId)] {
        &self.pairs
    }

    /// Returns each variable that stands for itself and equals a number, with the number.
    #[must_use]
    pub fn numbers(&self) -> &[(VarId, i64)] {
        &self.numbers
    }

    /// Returns whether no variable is replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.numbers.is_empty()
    }

    /// Returns what is written for `var`.
    fn size(&self, var: VarId) -> Size {
        let var = self.same(var);
        let number = self.numbers.iter().find(|(other, _)| *other == var);
        number.map_or_else(|| Size::var(var), |(_, number)| Size::constant(*number))
    }

    /// Returns the variable that stands for `var`.
    #[must_use]
    pub fn same(&self, var: VarId) -> VarId {
        self.pairs.iter().find(|(replaced, _)| *replaced == var).map_or(var, |(_, kept)| *kept)
    }

    /// Returns `size` with one variable, or the number, for each group of equal ones.
    #[must_use]
    pub fn canonical(&self, size: &Size) -> Size {
        let is_replaced = |v: &VarId| self.size(*v).as_var() != Some(*v);
        if self.is_empty() || !size.terms().any(|(monomial, _)| monomial.iter().any(is_replaced)) {
            return size.clone();
        }
        size.substitute(|v| self.size(v))
    }
}
