//! Arithmetic on labels for the line graph: products, sums and kinds.
//!
//! There are two implementations: labels of a program being built ([`Recorder`]), and only their kinds ([`Kinds`]),
//! which suffice for a search.

use crate::program::is_unit;
use crate::{Builder, Label, LabelId, LinearGraph};

/// Arithmetic on labels.
pub trait Labels: Clone {
    /// A label.
    type Value: Copy;

    /// Returns the label of an edge.
    fn edge(&self, linear: &LinearGraph, e: crate::EdgeId) -> Self::Value;
    /// Returns the product of the labels of two consecutive lines.
    fn product(&mut self, first: Self::Value, second: Self::Value) -> Self::Value;
    /// Returns the sum of two labels.
    fn sum(&mut self, one: Self::Value, other: Self::Value) -> Self::Value;
    /// Returns the kind of a label.
    fn kind(&self, value: Self::Value) -> Label;
}

/// Labels of a program.
#[derive(Clone, Debug)]
pub struct Recorder {
    builder: Builder,
}

impl Recorder {
    /// Returns an empty program.
    #[must_use]
    pub fn new(linear: &LinearGraph) -> Self {
        Self { builder: Builder::new(linear) }
    }

    /// Returns the number of products so far, including the terms of sums.
    #[must_use]
    pub fn n_products(&self) -> u64 {
        self.builder.n_products()
    }

    /// Returns the builder of the program.
    #[must_use]
    pub fn into_builder(self) -> Builder {
        self.builder
    }
}

impl Labels for Recorder {
    type Value = LabelId;

    fn edge(&self, _linear: &LinearGraph, e: crate::EdgeId) -> LabelId {
        self.builder.edge(e)
    }

    fn product(&mut self, first: LabelId, second: LabelId) -> LabelId {
        self.builder.add(&[first, second]);
        self.builder.close()
    }

    fn sum(&mut self, one: LabelId, other: LabelId) -> LabelId {
        self.builder.add(&[one]);
        self.builder.add(&[other]);
        self.builder.close()
    }

    fn kind(&self, value: LabelId) -> Label {
        self.builder.kind(value)
    }
}

/// Only the kinds of labels.
#[derive(Clone, Copy, Debug)]
pub struct Kinds;

impl Labels for Kinds {
    type Value = Label;

    fn edge(&self, linear: &LinearGraph, e: crate::EdgeId) -> Label {
        linear.edge(e).label
    }

    fn product(&mut self, first: Label, second: Label) -> Label {
        match (first, second) {
            (Label::Var, _) | (_, Label::Var) => Label::Var,
            (Label::Const, _) | (_, Label::Const) => Label::Const,
            _ if first == second => Label::One,
            _ => Label::MinusOne,
        }
    }

    fn sum(&mut self, one: Label, other: Label) -> Label {
        if one == Label::Var || other == Label::Var { Label::Var } else { Label::Const }
    }

    fn kind(&self, value: Label) -> Label {
        value
    }
}

/// Returns whether the product of labels of these kinds is free in generated code: one of them is 1 or -1, or both are
/// numbers.
#[must_use]
pub fn is_free(first: Label, second: Label) -> bool {
    is_unit(first) || is_unit(second) || (first == Label::Const && second == Label::Const)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, face};

    /// Both implementations agree on the kind of every label.
    #[test]
    fn kinds_are_those_of_the_program() {
        use Label::{Const, MinusOne, One, Var};
        let kinds = [One, MinusOne, Const, Var];
        for first in kinds {
            for second in kinds {
                let edges = [(0, 1, first), (1, 2, second), (0, 2, second)];
                let linear = LinearGraph::from_edges(1, 1, 1, &edges).unwrap();
                let program = face::run(&linear, &Budget::default()).program.unwrap();
                let product = Kinds.product(first, second);
                assert_eq!(program.kind(program.step_label(0)), product);
                assert_eq!(program.kind(program.step_label(1)), Kinds.sum(second, product));
            }
        }
    }
}
