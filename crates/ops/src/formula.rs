//! Partial derivatives as data: a formula over the operator's arguments and its value.

use crate::Op;

/// Formula over the arguments and the value of one application of an operator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Formula {
    /// Argument of this index.
    Arg(usize),
    /// Value of the application itself: `exp'(x)` is the value, and costs nothing.
    Value,
    /// Constant.
    Const(f64),
    /// Operator applied to formulas.
    Apply(Op, &'static [Formula]),
}

impl Formula {
    /// Partial derivative that is zero everywhere.
    pub const ZERO: Self = Self::Const(0.0);
    /// Partial derivative that is one everywhere.
    pub const ONE: Self = Self::Const(1.0);

    /// Returns its operators, each computed once for equal arguments, arguments first.
    #[must_use]
    pub fn operators(&self) -> Vec<Op> {
        let mut known = Vec::new();
        self.note(&mut known);
        known.into_iter().filter_map(|f| if let Self::Apply(op, _) = f { Some(op) } else { None }).collect()
    }

    // Recursive on the depth of a formula of the table.
    fn note(&self, known: &mut Vec<Self>) {
        if let Self::Apply(_, inner) = self
            && !known.contains(self)
        {
            inner.iter().for_each(|f| f.note(known));
            known.push(*self);
        }
    }
}
