//! Random values for all nodes: in the field and in real numbers, three times each.
//!
//! In: a graph and the nodes below its roots. Out: a [`Value`] for each.
//!
//! A *model* assigns each input a random element and evaluates the arithmetic. Every other operation is a random
//! element keyed by the operator and the values of its arguments, so equal calls are equal; identities that hold
//! wherever both sides are defined are built in:
//!
//! | operators | model |
//! | --- | --- |
//! | `+ - * /`, negation | themselves; a quotient by zero is unknown |
//! | `x ** n`, n an integer | the power |
//! | `sin x`, `cos x`, `tan x` | `2t/(1+t^2)`, `(1-t^2)/(1+t^2)`, their quotient, t keyed by x up to sign |
//! | `sinh x`, `cosh x`, `tanh x` | `2t/(1-t^2)`, `(1+t^2)/(1-t^2)`, their quotient |
//! | `exp x` | t or `1/t`, by the sign of x |
//! | odd and even functions | keyed by the argument up to sign |
//! | any other, users' functions, unexpanded derivatives | keyed by operator and arguments |
//!
//! Square roots and absolute values are among the last: a root of a square in a field is `x` or `-x`, not `|x|`.
//! Hyperbolic functions are not related to `exp`, nor `expm1` and `log1p` to `exp` and `log`: such identities are true
//! but lose digits.
//!
//! Real models differ from the field's only in their numbers: they follow the same table.
//!
//! Unknown values propagate in the real models (NaN), and [`Value::is_known`] reports them.

use super::constant::{self, Exact};
use super::field::{Fp, P};
use super::real::{Double2, Real};
use crate::graph::{Graph, Node, NodeId};
use crate::simplify::{Parity, parity};
use crate::traverse::NodeSet;
use chainrule_base::Id;
use chainrule_ops::Op;
use rustc_hash::FxHashMap;

/// Draws in the field. One determines the factor between two values, the others the confidence in their ratio.
pub(super) const FIELD_DRAWS: usize = 3;
/// Draws in the reals.
pub(super) const REAL_DRAWS: usize = 3;
/// Maximum exponent of a power that is evaluated.
const MAX_EXPONENT: f64 = 65536.0;

/// Values of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) field: [Fp; FIELD_DRAWS],
    pub(super) real: [Real; REAL_DRAWS],
}

impl Value {
    pub(super) const ONE: Self = Self { field: [Fp::ONE; FIELD_DRAWS], real: [Real::ONE; REAL_DRAWS] };

    fn unary(self, field: impl Fn(Fp) -> Fp, real: impl Fn(Real) -> Real) -> Self {
        Self { field: self.field.map(field), real: self.real.map(real) }
    }

    fn binary(self, other: Self, field: impl Fn(Fp, Fp) -> Fp, real: impl Fn(Real, Real) -> Real) -> Self {
        Self {
            field: std::array::from_fn(|d| field(self.field[d], other.field[d])),
            real: std::array::from_fn(|d| real(self.real[d], other.real[d])),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.binary(other, |a, b| a + b, |a, b| a + b)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.binary(other, |a, b| a - b, |a, b| a - b)
    }

    pub(super) fn times(self, other: Self) -> Self {
        self.binary(other, |a, b| a * b, |a, b| a * b)
    }

    pub(super) fn negated(self) -> Self {
        self.unary(|a| -a, |a| -a)
    }

    /// Returns the quotient; `None` if the divisor is zero in one of the draws.
    pub(super) fn over(self, other: Self) -> Option<Self> {
        let mut field = self.field;
        for (a, b) in field.iter_mut().zip(other.field) {
            *a = *a * b.inverse()?;
        }
        Some(Self { field, real: std::array::from_fn(|d| self.real[d] / other.real[d]) })
    }

    fn power(self, exponent: f64) -> Option<Self> {
        let n = exponent.abs() as u64;
        let power = self.unary(|a| a.pow(n), |a| a.powi(n));
        if exponent < 0.0 { Self::ONE.over(power) } else { Some(power) }
    }

    /// Returns whether the value is zero in the field.
    pub(super) fn is_zero(&self) -> bool {
        self.field.iter().all(|f| f.is_zero())
    }

    /// Returns whether the real models know the value.
    pub(super) fn is_known(&self) -> bool {
        self.real.iter().all(|r| r.error.is_finite() && r.value.high.is_finite())
    }

    fn exact(exact: Exact) -> Self {
        Self { field: [exact.field; FIELD_DRAWS], real: [Real::new(exact.real); REAL_DRAWS] }
    }

    /// Returns one of two signs, the same for a value and its negation.
    fn sign(&self) -> bool {
        self.field[0].get() > P / 2
    }
}

/// Values of some nodes of a graph.
pub(super) struct Values {
    /// Position of a node's value, by the node's index; meaningless for other nodes.
    places: Vec<u32>,
    values: Vec<Value>,
}

impl std::ops::Index<usize> for Values {
    type Output = Value;

    #[inline]
    fn index(&self, node: usize) -> &Value {
        &self.values[self.places[node] as usize]
    }
}

/// Random elements by key.
struct Source {
    seed: u64,
}

/// Finaliser of Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Source {
    fn key(&self, kind: u64, parts: impl IntoIterator<Item = u64>) -> u64 {
        parts.into_iter().fold(mix(self.seed ^ mix(kind)), |key, part| mix(key.rotate_left(7) ^ mix(part)))
    }

    /// Returns the element of this key. Real numbers are between 0.6 and 1.6 in magnitude in the first model, and
    /// smaller than 1 in the others: an expression that is stable at large arguments may be unstable at small ones.
    fn element(&self, key: u64) -> Value {
        let field = std::array::from_fn(|d| Fp::new(mix(key ^ mix(d as u64 + 1))));
        let real = std::array::from_fn(|d| {
            let bits = mix(key ^ mix(d as u64 + 101));
            let unit = (bits >> 12) as f64 / (1u64 << 52) as f64;
            let size = [0.6 + unit, 0.2 + 0.5 * unit, 0.4 + 0.6 * unit][d];
            Real::from(if bits & 1 == 1 { -size } else { size })
        });
        Value { field, real }
    }
}

/// Kinds of keys in addition to the operators.
const INPUT: u64 = 1 << 32;
const UNKNOWN: u64 = 2 << 32;
const EXTERNAL: u64 = 3 << 32;
const CIRCLE: u64 = 4 << 32;
const HYPERBOLA: u64 = 5 << 32;

/// Model of the constants and the arithmetic of a graph.
pub(super) struct Model {
    source: Source,
    constants: FxHashMap<u64, Exact>,
}

impl Model {
    /// Returns the model for a graph with these constants.
    pub(super) fn new(seed: u64, constants: impl IntoIterator<Item = f64>) -> Self {
        let mut finite: Vec<f64> = constants.into_iter().filter(|c| c.is_finite()).collect();
        finite.sort_unstable_by(f64::total_cmp);
        finite.dedup_by_key(|c| c.to_bits());
        let exact = constant::interpret(&finite);
        let constants = finite.iter().map(|c| c.to_bits()).zip(exact).collect();
        Self { source: Source { seed }, constants }
    }

    /// Returns a value that is equal to no other.
    fn unknown(&self, id: NodeId) -> Value {
        let mut value = self.source.element(self.source.key(UNKNOWN, [id.index() as u64]));
        for r in &mut value.real {
            *r = Real { value: Double2::from(f64::NAN), error: f64::INFINITY };
        }
        value
    }

    /// Returns the element for an operator on these arguments.
    fn opaque(&self, kind: u64, args: &[&Value]) -> Value {
        let parts = args.iter().flat_map(|a| a.field).map(Fp::get);
        self.source.element(self.source.key(kind, parts))
    }

    /// Returns `numerator(t) / denominator(t)`, with t keyed by the argument up to sign; and the sign.
    fn parameter(&self, kind: u64, x: &Value) -> (Value, bool) {
        let negative = x.sign();
        let positive = if negative { x.negated() } else { *x };
        (self.opaque(kind, &[&positive]), negative)
    }

    /// Returns the sine and the cosine, or the hyperbolic ones, times the common denominator, and the denominator.
    fn conic(&self, kind: u64, x: &Value) -> [Value; 3] {
        let (t, negative) = self.parameter(kind, x);
        let (square, twice) = (t.times(t), t.plus(t));
        let odd = if negative { twice.negated() } else { twice };
        let (less, more) = (Value::ONE.minus(square), Value::ONE.plus(square));
        if kind == CIRCLE { [odd, less, more] } else { [odd, more, less] }
    }

    /// Computes the values of all nodes of `reachable`. O(1) per node, except for powers.
    pub(super) fn values(&self, graph: &Graph, reachable: &NodeSet) -> Values {
        let mut values = Values { places: vec![0; graph.len()], values: Vec::with_capacity(reachable.len()) };
        for id in reachable.iter() {
            let args: smallvec::SmallVec<[&Value; 3]> = graph.args(id).iter().map(|a| &values[a.index()]).collect();
            let value = match graph.node(id) {
                Node::Const(c) => self.constants.get(&c.to_bits()).map(|e| Value::exact(*e)),
                Node::Input(input) => Some(self.source.element(self.source.key(INPUT, [input.index() as u64]))),
                Node::External(function, _) => Some(self.opaque(EXTERNAL + function.index() as u64, &args)),
                Node::Derivative(_) => None,
                Node::Apply(op, [_, second, _]) => self.apply(op, &args, graph.as_const(second)),
            };
            drop(args);
            values.places[id.index()] = values.values.len() as u32;
            values.values.push(value.unwrap_or_else(|| self.unknown(id)));
        }
        values
    }

    /// Applies `op`; `second` is the constant in the second place, if there is one.
    fn apply(&self, op: Op, args: &[&Value], second: Option<f64>) -> Option<Value> {
        if args.iter().any(|a| !a.is_known()) {
            return None;
        }
        let a = args[0];
        match op {
            Op::Add => Some(a.plus(*args[1])),
            Op::Sub => Some(a.minus(*args[1])),
            Op::Mul => Some(a.times(*args[1])),
            Op::Neg => Some(a.negated()),
            Op::Div => a.over(*args[1]),
            Op::Pow => match second {
                Some(n) if n.fract() == 0.0 && n.abs() <= MAX_EXPONENT => a.power(n),
                _ => Some(self.opaque(op as u64, args)),
            },
            Op::Sin | Op::Cos | Op::Tan => self.on_conic(CIRCLE, a, op == Op::Sin, op == Op::Cos),
            Op::Sinh | Op::Cosh | Op::Tanh => self.on_conic(HYPERBOLA, a, op == Op::Sinh, op == Op::Cosh),
            Op::Exp => {
                let (t, negative) = self.parameter(op as u64, a);
                if negative { Value::ONE.over(t) } else { Some(t) }
            }
            _ => Some(match parity(op) {
                Some(parity) => {
                    let (value, negative) = self.parameter(op as u64, a);
                    if negative && parity == Parity::Odd { value.negated() } else { value }
                }
                None if op.is_commutative() && args[0].field > args[1].field => {
                    self.opaque(op as u64, &[args[1], args[0]])
                }
                None => self.opaque(op as u64, args),
            }),
        }
    }

    fn on_conic(&self, kind: u64, x: &Value, is_odd: bool, is_even: bool) -> Option<Value> {
        let [odd, even, denominator] = self.conic(kind, x);
        match (is_odd, is_even) {
            (true, _) => odd.over(denominator),
            (_, true) => even.over(denominator),
            _ => odd.over(even),
        }
    }
}
