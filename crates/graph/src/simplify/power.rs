//! Rules that start from a power.

use crate::graph::{Graph, NodeId};
use chainrule_ops::Op;

/// The largest exponent that is written as multiplications.
const MAX_CHAIN: f64 = 8.0;

impl Graph {
    /// `base ** exponent`.
    pub(super) fn power(&mut self, base: NodeId, exponent: NodeId) -> NodeId {
        if self.as_const(base) == Some(1.0) {
            return base;
        }
        match self.as_const(exponent) {
            Some(0.0) => self.constant(1.0),
            Some(1.0) => base,
            Some(e) if self.is_algebraic() && e.abs() <= MAX_CHAIN && is_chain(e) => {
                let power = self.power_by_chain(base, e.abs());
                if e > 0.0 {
                    return power;
                }
                let one = self.constant(1.0);
                self.quotient(one, power)
            }
            _ => self.raw(Op::Pow, &[base, exponent]),
        }
    }

    /// `base ** e` for a positive multiple of one half up to [`MAX_CHAIN`].
    fn power_by_chain(&mut self, base: NodeId, e: f64) -> NodeId {
        if e == 0.5 {
            return self.function(Op::Sqrt, base);
        }
        if e == 1.0 {
            return base;
        }
        if e % 2.0 == 0.0 {
            let root = self.power_by_chain(base, e / 2.0);
            return self.product(root, root);
        }
        let (rest, factor) = if e.fract() == 0.0 {
            (self.power_by_chain(base, e - 1.0), base)
        } else {
            (self.power_by_chain(base, e.trunc()), self.function(Op::Sqrt, base))
        };
        self.product(rest, factor)
    }
}

/// Whether `x**e` is written as multiplications and a root. Not for 1.5, 2.5 and so on: `x * sqrt(x)` has a derivative
/// at 0, but its product rule gives `sqrt(x) + x * (0.5 / sqrt(x))`, which is 0 times infinity there. Below 0 there is no
/// derivative at 0 to lose.
fn is_chain(e: f64) -> bool {
    e.fract() == 0.0 || e == 0.5 || (e < 0.0 && (2.0 * e).fract() == 0.0)
}
