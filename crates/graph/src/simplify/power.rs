//! Rules that start from a power.

use crate::graph::{Graph, NodeId};
use chainrule_ops::{Op, power};

impl Graph {
    /// Simplifies `base ** exponent`.
    pub(super) fn power(&mut self, base: NodeId, exponent: NodeId) -> NodeId {
        if self.as_const(base) == Some(1.0) {
            return base;
        }
        let chain = match self.as_const(exponent) {
            Some(0.0) => Some(self.constant(1.0)),
            Some(1.0) => Some(base),
            Some(e) if self.is_algebraic() => power(self, &base, e),
            _ => None,
        };
        chain.unwrap_or_else(|| self.raw(Op::Pow, &[base, exponent]))
    }
}
