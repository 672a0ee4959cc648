//! Powers as products.

use crate::{Algebra, Op};

/// Maximum exponent that is expanded to multiplications.
const MAX_CHAIN: f64 = 8.0;

/// Returns `base ** exponent` as a chain of multiplications, with a square root for half an exponent and one division
/// for a negative one; `None` if there is no chain, and the operator stays. Over the real numbers: `pow` rounds once, a
/// chain after every multiplication.
///
/// ```
/// use chainrule_ops::{F64, power};
/// assert_eq!(power(&mut F64, &3.0, 5.0), Some(243.0));
/// assert_eq!(power(&mut F64, &4.0, -1.5), Some(0.125));
/// assert_eq!(power(&mut F64, &3.0, 0.3), None);
/// ```
pub fn power<A: Algebra>(algebra: &mut A, base: &A::Value, exponent: f64) -> Option<A::Value> {
    if exponent.abs() > MAX_CHAIN || !is_chain(exponent) {
        return None;
    }
    if exponent == 0.0 {
        return Some(algebra.constant(1.0));
    }
    let power = chain(algebra, base, exponent.abs());
    if exponent > 0.0 {
        return Some(power);
    }
    let one = algebra.constant(1.0);
    Some(algebra.apply(Op::Div, &[one, power]))
}

/// Returns the chain for a positive multiple of one half.
// Recursive on an exponent up to MAX_CHAIN.
fn chain<A: Algebra>(algebra: &mut A, base: &A::Value, e: f64) -> A::Value {
    if e == 0.5 {
        return algebra.apply(Op::Sqrt, std::slice::from_ref(base));
    }
    if e == 1.0 {
        return base.clone();
    }
    if e % 2.0 == 0.0 {
        let root = chain(algebra, base, e / 2.0);
        return algebra.apply(Op::Mul, &[root.clone(), root]);
    }
    let (rest, factor) = if e.fract() == 0.0 {
        (chain(algebra, base, e - 1.0), base.clone())
    } else {
        let rest = chain(algebra, base, e.trunc());
        (rest, algebra.apply(Op::Sqrt, std::slice::from_ref(base)))
    };
    algebra.apply(Op::Mul, &[rest, factor])
}

/// Returns whether `x**e` is expanded to multiplications and a root. Not for 1.5, 2.5 and so on: `x * sqrt(x)` has a
/// derivative at 0, but its product rule gives `sqrt(x) + x * (0.5 / sqrt(x))`, which is 0 times infinity there. A
/// negative power has no derivative at 0 that could be lost.
fn is_chain(e: f64) -> bool {
    e.fract() == 0.0 || e == 0.5 || (e < 0.0 && (2.0 * e).fract() == 0.0)
}
