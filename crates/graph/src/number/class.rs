//! Classes: nodes that are equal up to a constant factor.
//!
//! In: the values and hazards of nodes. Out: for each node its class and its factor, and for each class the ways in
//! which its nodes compute it.
//!
//! Invariants: the first class is the number 1, so each of its nodes is a constant. A class is defined wherever each of
//! its nodes is. Ways refer to older classes, so there is no cycle.
//!
//! A node belongs to a class if the ratios between its draws in the field are the class's, its factors in all real
//! models agree within their error bounds (they then are the factor), and the class's hazards are a subset of its own.
//! It adds a way to the class only if the hazards are equal.

use super::field::Fp;
use super::hazard::Hazards;
use super::model::{FIELD_DRAWS, REAL_DRAWS, Value, Values};
use super::real::Double2;
use crate::graph::{Graph, Node, NodeId};
use crate::traverse::NodeSet;
use chainrule_base::{Arena, Id, define_id};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

define_id! {
    /// Class of nodes that are equal up to a factor.
    pub(super) struct ClassId = "c";
}

/// Node in terms of classes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Place {
    /// Constant 0.
    Zero,
    /// Factor times a class.
    Times(Double2, ClassId),
}

/// Way to compute a class, up to the class's unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Way {
    /// This node: an input, or a call with its arguments unchanged, times a factor.
    Call(NodeId, Double2),
    /// `factor * a * b`.
    Product(Double2, ClassId, ClassId),
    /// `factor * a / b`.
    Quotient(Double2, ClassId, ClassId),
    /// `x*a + y*b`.
    Sum(Double2, ClassId, Double2, ClassId),
}

/// Class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Values of its unit: those of its first node.
    pub(super) unit: Value,
    pub(super) hazards: Hazards,
    /// Ways in the order of its nodes. Empty only for the class of the number 1.
    pub(super) ways: SmallVec<[Way; 1]>,
}

/// Classes of a graph.
pub(super) struct Classes {
    pub(super) classes: Arena<ClassId, Class>,
    /// Places by node id; unreachable nodes are zero.
    pub(super) places: Vec<Place>,
}

/// Returns the class of the number 1.
pub(super) fn one() -> ClassId {
    ClassId::new(0)
}

/// Returns the second and further draws relative to the first: equal for values that are equal up to a factor. `None`
/// if the first is 0.
pub(super) fn ratios(value: &Value) -> Option<[Fp; FIELD_DRAWS - 1]> {
    let inverse = value.field[0].inverse()?;
    Some(std::array::from_fn(|d| value.field[d + 1] * inverse))
}

/// Returns the factor of `value` by `unit`, whose ratios are equal, if it exists.
pub(super) fn factor(value: &Value, unit: &Value) -> Option<Double2> {
    let uncertainty = |d: usize| value.real[d].uncertainty() + unit.real[d].uncertainty();
    let first = value.real[0].value / unit.real[0].value;
    let certain = (0..REAL_DRAWS).all(|d| uncertainty(d) <= 1e-18);
    let agree = (1..REAL_DRAWS).all(|d| {
        let product = first * unit.real[d].value;
        let difference = (product - value.real[d].value).high.abs();
        difference <= (4.0 * (uncertainty(0) + uncertainty(d)) + 1e-28) * product.high.abs()
    });
    (certain && agree && first.high.is_normal()).then(|| snapped(first))
}

/// Rounds to the intended integer or inverse of an integer.
fn snapped(x: Double2) -> Double2 {
    let whole = Double2::from(x.high.round());
    if x.is_near(whole) { whole } else { x }
}

impl Classes {
    /// Computes the classes of the nodes of `reachable`. O(1) per node.
    pub(super) fn new(graph: &Graph, reachable: &NodeSet, values: &Values, hazards: &[Hazards]) -> Self {
        let unit = Class { unit: Value::ONE, hazards: Hazards::NONE, ways: SmallVec::new() };
        let mut this = Self { classes: std::iter::once(unit).collect(), places: vec![Place::Zero; graph.len()] };
        let mut by_ratios: FxHashMap<[Fp; FIELD_DRAWS - 1], SmallVec<[ClassId; 1]>> = FxHashMap::default();
        by_ratios.insert([Fp::ONE; FIELD_DRAWS - 1], smallvec![one()]);
        let ids: Vec<NodeId> = reachable.iter().collect();
        let firsts: Vec<Fp> = ids.iter().map(|id| values[id.index()].field[0]).collect();
        for (id, inverse) in ids.iter().zip(Fp::invert_all(&firsts)) {
            let (value, own) = (&values[id.index()], hazards[id.index()]);
            if is_zero(graph, *id, values) {
                continue;
            }
            let ratios: [Fp; FIELD_DRAWS - 1] = std::array::from_fn(|d| value.field[d + 1] * inverse);
            let known = value.is_known() && !inverse.is_zero();
            let candidates = if known { by_ratios.get(&ratios).map_or(&[][..], |c| c.as_slice()) } else { &[] };
            let found = candidates.iter().find_map(|c| {
                let class = &this.classes[*c];
                let fits = class.hazards.are_among(own);
                fits.then(|| factor(value, &class.unit)).flatten().map(|f| (*c, f))
            });
            let (class, factor) = found.unwrap_or_else(|| {
                let class = this.classes.push(Class { unit: *value, hazards: own, ways: SmallVec::new() });
                if known {
                    by_ratios.entry(ratios).or_default().push(class);
                }
                (class, Double2::ONE)
            });
            this.places[id.index()] = Place::Times(factor, class);
            if this.classes[class].hazards == own && class != one() {
                this.add_way(graph, *id, class, factor);
            }
        }
        this
    }

    fn add_way(&mut self, graph: &Graph, id: NodeId, class: ClassId, factor: Double2) {
        let is_first = self.classes[class].ways.is_empty();
        let way = self.way(graph, id, factor);
        let older = way.args().iter().all(|c| *c < class);
        let class = &mut self.classes[class];
        if is_first || older && !class.ways.contains(&way) && !matches!(way, Way::Call(..)) {
            class.ways.push(way);
        }
    }

    fn way(&self, graph: &Graph, id: NodeId, factor: Double2) -> Way {
        let call = Way::Call(id, Double2::ONE / factor);
        let Node::Apply(op, [a, b, _]) = graph.node(id) else { return call };
        let (Place::Times(fa, a), Place::Times(fb, b)) = (self.places[a.index()], self.places[b.index()]) else {
            return call;
        };
        match op {
            Op::Add => Way::Sum(fa / factor, a, fb / factor, b),
            Op::Sub => Way::Sum(fa / factor, a, -fb / factor, b),
            Op::Mul if a == one() || b == one() => call,
            Op::Mul => Way::Product(fa * fb / factor, a.min(b), a.max(b)),
            Op::Div if b == one() => call,
            Op::Div => Way::Quotient(fa / (fb * factor), a, b),
            _ => call,
        }
    }
}

impl Way {
    /// Returns the classes of which some multiple is needed; calls use theirs unscaled.
    pub(super) fn args(&self) -> SmallVec<[ClassId; 2]> {
        match *self {
            Self::Call(..) => SmallVec::new(),
            Self::Product(_, a, b) | Self::Quotient(_, a, b) | Self::Sum(_, a, _, b) => smallvec![a, b],
        }
    }
}

/// Returns whether the node is 0: in the field, and in the real models within their precision.
fn is_zero(graph: &Graph, id: NodeId, values: &Values) -> bool {
    let value = &values[id.index()];
    if graph.as_const(id).is_some_and(|c| c == 0.0) {
        return true;
    }
    if !value.is_zero() || !value.is_known() {
        return false;
    }
    let Node::Apply(op, [a, b, _]) = graph.node(id) else { return false };
    let args = [a, b].map(|x| &values[x.index()]);
    match op {
        Op::Mul => args.iter().any(|a| a.is_zero()),
        Op::Add | Op::Sub => (0..value.real.len()).all(|d| {
            let scale = args[0].real[d].magnitude() + args[1].real[d].magnitude();
            scale <= 4.0 * (args[0].real[d].error + args[1].real[d].error) || value.real[d].is_zero_beside(scale)
        }),
        Op::Neg | Op::Div => args[0].is_zero(),
        _ => false,
    }
}
