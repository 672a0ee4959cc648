//! Checkers: compare two lists of roots, exactly in a finite field and in doubles.
//!
//! Optimisation changes values by rounding only; in exact arithmetic it changes nothing. [`Field`] computes modulo the
//! prime 2^61 - 1 (Schwartz 1980, Zippel 1979: two different rational functions of degree d agree at a random point
//! with probability at most d/p); functions that are not rational are random functions of their arguments, by a hash,
//! with parity as in simplification.
//!
//! A double represents exactly its own fraction, so constants that were combined with rounding differ here: compare
//! programs whose constants are small dyadic fractions, without division by other numbers. Rules such as
//! `sqrt(x)*sqrt(x) -> x` and `min(-x, -y) -> -max(x, y)` do not hold here either.

use crate::evaluate::evaluate;
use crate::graph::{Graph, NodeId};
use chainrule_base::Diagnostic;
use chainrule_ops::{Algebra, Op, Type};

/// The prime 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;

/// Arithmetic modulo the prime 2^61 - 1; `None` after a division by zero, and propagated.
#[derive(Clone, Copy, Default, Debug)]
pub struct Field;

/// Element of [`Field`].
pub type Element = Option<u64>;

fn reduce(x: u128) -> u64 {
    let folded = (x & u128::from(PRIME)) as u64 + (x >> 61) as u64;
    let folded = (folded & PRIME) + (folded >> 61);
    if folded >= PRIME { folded - PRIME } else { folded }
}

fn times(a: u64, b: u64) -> u64 {
    reduce(u128::from(a) * u128::from(b))
}

fn power(mut base: u64, mut e: u64) -> u64 {
    let mut product = 1;
    while e > 0 {
        if e & 1 == 1 {
            product = times(product, base);
        }
        base = times(base, base);
        e >>= 1;
    }
    product
}

fn inverse(a: u64) -> Element {
    (a != 0).then(|| power(a, PRIME - 2))
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn hashed(op: Op, args: &[u64]) -> u64 {
    args.iter().fold(mix(op as u64 + 1), |hash, x| mix(hash ^ mix(*x))) % PRIME
}

/// Returns whether a function is odd (true) or even (false), by its values.
fn parity(op: Op) -> Option<bool> {
    let (value, mirrored) = (op.value(&[0.7]), op.value(&[-0.7]));
    if value == -mirrored { Some(true) } else { (value == mirrored).then_some(false) }
}

impl Algebra for Field {
    type Value = Element;

    fn constant(&mut self, c: f64) -> Element {
        if !c.is_finite() {
            return None;
        }
        // c = mantissa * 2^exponent
        let bits = c.to_bits();
        let (biased, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
        let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        // 2^61 = 1 here.
        let value = times(mantissa % PRIME, power(2, exponent.rem_euclid(61) as u64));
        Some(if c.is_sign_negative() { reduce(u128::from(PRIME - value)) } else { value })
    }

    fn apply(&mut self, op: Op, args: &[Element]) -> Element {
        let values: Option<Vec<u64>> = args.iter().copied().collect();
        if op == Op::Select {
            return if args[0]? != 0 { args[1] } else { args[2] };
        }
        let values = values?;
        let a = values[0];
        let negative = |x: u64| reduce(u128::from(PRIME - x));
        match (op, values.as_slice()) {
            (Op::Add, &[a, b]) => Some(reduce(u128::from(a) + u128::from(b))),
            (Op::Sub, &[a, b]) => Some(reduce(u128::from(a) + u128::from(negative(b)))),
            (Op::Mul, &[a, b]) => Some(times(a, b)),
            (Op::Div, &[a, b]) => inverse(b).map(|b| times(a, b)),
            (Op::Neg, _) => Some(negative(a)),
            // Truth values are preserved, so that selections work; comparisons use the difference only.
            (Op::Lt | Op::Le, &[a, b]) => Some(hashed(op, &[reduce(u128::from(a) + u128::from(negative(b)))]) & 1),
            _ if op.row().result == Type::Bool => Some(hashed(op, &values) & 1),
            // Constants are folded, and a cancellation yields 0.
            (_, &[0]) => self.constant(op.value(&[0.0])),
            (_, &[a]) => Some(match parity(op) {
                Some(odd) if negative(a) < a => {
                    let value = hashed(op, &[negative(a)]);
                    if odd { negative(value) } else { value }
                }
                _ => hashed(op, &values),
            }),
            _ => Some(hashed(op, &values)),
        }
    }
}

/// Returns whether `a` and `b` have pairwise equal values at random points of the field; `None` if no point could be
/// evaluated.
///
/// # Errors
/// The errors of [`evaluate`]: users' functions and unexpanded derivatives have no values here.
pub fn agree_exactly(graph: &Graph, a: &[NodeId], b: &[NodeId], seed: u64) -> Result<Option<bool>, Diagnostic> {
    const POINTS: u64 = 3;
    let roots = [a, b].concat();
    let mut seen = None;
    for point in 0..POINTS {
        let input = |i: usize| Some(mix(seed ^ mix(point << 32 | i as u64)) % PRIME);
        let inputs: Vec<Element> = (0..graph.inputs().len()).map(input).collect();
        let values = evaluate(graph, &mut Field, &inputs, &roots)?;
        let (first, second) = values.split_at(a.len());
        if first.iter().all(Option::is_some) {
            seen = Some(seen.unwrap_or(true) && first == second && a.len() == b.len());
        }
    }
    Ok(seen)
}

/// Returns the largest difference of `a` and `b` at a point, relative to the larger of 1 and the value; 0 for values
/// that are both not finite.
///
/// # Errors
/// The errors of [`evaluate`].
pub fn difference(graph: &Graph, a: &[NodeId], b: &[NodeId], point: &[f64]) -> Result<f64, Diagnostic> {
    let (a, b) = (graph.f64_at(point, a)?, graph.f64_at(point, b)?);
    let apart = |(x, y): (&f64, &f64)| match (x.is_finite(), y.is_finite()) {
        (true, true) => (x - y).abs() / x.abs().max(1.0),
        (false, false) => 0.0,
        _ => f64::INFINITY,
    };
    Ok(a.iter().zip(&b).map(apart).fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_computes_as_fractions_do() {
        let mut f = Field;
        let (half, quarter, minus) = (f.constant(0.5), f.constant(-0.25), f.constant(-3.0));
        let sum = f.apply(Op::Add, &[half, quarter]);
        let opposite = f.constant(0.25);
        assert_eq!(sum, opposite);
        assert_eq!(f.apply(Op::Div, &[minus, quarter]), f.constant(12.0));
        let zero = f.constant(0.0);
        assert_eq!(f.apply(Op::Div, &[half, zero]), None);
    }
}
