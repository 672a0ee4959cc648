//! Derivatives inside of expressions: D*'s section 2.
//!
//! | paper | here |
//! | --- | --- |
//! | `D(g, i, a, b)`, a Derivative node | [`Graph::derivative`], [`Node::Derivative`] |
//! | leafDerivatives | [`Graph::leaf_derivatives`] |
//!
//! A derivative node is only a specification. The library expands those without others below them, replaces them by
//! [`Graph::substitute`], and repeats until none is left. Variables are sorted and nested derivatives merged, so that a
//! derivative is computed once for any order of its variables.

use crate::graph::{Graph, Node, NodeId};
use chainrule_base::Diagnostic;
use smallvec::SmallVec;

impl Graph {
    /// Returns the derivative of `of` by all of `by`, one after the other; `of` itself if there are none. It is 0 if
    /// `of` does not depend on one of them, 1 or 0 if `of` is an input. Linear in the nodes below `of`.
    ///
    /// # Errors
    /// Fails if one of `by` is not an input.
    pub fn derivative(&mut self, of: NodeId, by: &[NodeId]) -> Result<NodeId, Diagnostic> {
        if let Some(other) = by.iter().find(|x| !matches!(self.node(**x), Node::Input(_))) {
            return Err(Diagnostic::error(format!("cannot differentiate by {}", self.short(*other)))
                .with_reason("it is not an input")
                .with_help(
                    "differentiate by inputs; make an input for what is to vary, and substitute it afterwards",
                ));
        }
        if by.is_empty() {
            return Ok(of);
        }
        if matches!(self.node(of), Node::Input(_)) {
            return Ok(self.constant(if by == [of] { 1.0 } else { 0.0 }));
        }
        if self.depends_on(&[of], by)[0].len() < by.len() {
            return Ok(self.constant(0.0));
        }
        let (of, inner) = self.derivative_parts(of).unwrap_or((of, &[]));
        let mut list: SmallVec<[NodeId; 4]> = inner.iter().chain(by).copied().collect();
        list.sort_unstable();
        list.insert(0, of);
        Ok(self.with_list(&list, Node::Derivative))
    }

    /// Returns the expression and the sorted variables of an unexpanded derivative.
    #[must_use]
    pub fn derivative_parts(&self, id: NodeId) -> Option<(NodeId, &[NodeId])> {
        match (self.node(id), self.args(id)) {
            (Node::Derivative(_), [of, by @ ..]) => Some((*of, by)),
            _ => None,
        }
    }

    /// Returns the unexpanded derivatives at or below `roots` that have none below them, ascending.
    #[must_use]
    pub fn leaf_derivatives(&self, roots: &[NodeId]) -> Vec<NodeId> {
        let below = self.reachable(roots);
        let mut leaves = Vec::new();
        let mut above = crate::NodeSet::default();
        for id in below.iter() {
            let has_below = self.args(id).iter().any(|a| above.contains(*a));
            let is_derivative = matches!(self.node(id), Node::Derivative(_));
            if is_derivative && !has_below {
                leaves.push(id);
            }
            if is_derivative || has_below {
                above.insert(id);
            }
        }
        leaves
    }
}
