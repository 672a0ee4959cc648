//! Checker: compares new roots with old ones, by evaluating both from scratch.
//!
//! In: a graph, old and new roots. Out: whether the new ones have the same values in the real models, which share only
//! constants with the search, and the rounding errors of both.
//!
//! Rounding is measured, not bounded: the arithmetic is done in doubles at the points of the real models and compared
//! with 32 digits; functions are assumed to have the error of their arguments. The error of a set of roots is the
//! largest difference relative to the largest root, as in the benchmarks' record.

use super::model::{Model, REAL_DRAWS, Values};
use crate::graph::{Graph, Node, NodeId};
use crate::traverse::NodeSet;
use chainrule_base::Id;
use chainrule_ops::Op;

/// Maximum difference of values due to the rounding of constants, relative to the largest.
const TOLERANCE: f64 = 1e-9;
/// Maximum growth of the rounding error,
const MAX_GROWTH: f64 = 1.5;
/// and an additional allowance.
const ALLOWANCE: f64 = 4.0 * f64::EPSILON;

/// Verdict of the checker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Equal values, rounded about as well.
    Good,
    /// Equal values, but rounded worse.
    Rough,
    /// Different values: a bug.
    Wrong,
}

/// Compares old and new roots. Linear in the nodes below the roots.
pub(super) fn compare(graph: &Graph, seed: u64, old: &[NodeId], new: &[NodeId]) -> Verdict {
    if old.len() != new.len() {
        return Verdict::Wrong;
    }
    let all = graph.reachable(&[old, new].concat());
    let model = Model::new(seed, all.iter().filter_map(|id| graph.as_const(id)));
    let values = model.values(graph, &all);
    let (mut worst_old, mut worst_new) = (0.0f64, 0.0f64);
    for draw in 0..REAL_DRAWS {
        let doubles = doubles(graph, &all, &values, draw);
        let exact = |id: &NodeId| values[id.index()].real[draw].value;
        let is_known = |id: &NodeId| exact(id).high.is_finite() && doubles[id.index()].is_finite();
        let pairs = || old.iter().zip(new).filter(|(a, b)| is_known(a) && is_known(b));
        let largest = pairs().map(|(a, _)| exact(a).high.abs()).fold(0.0, f64::max);
        let bound = |a: &NodeId, b: &NodeId| {
            let errors = [a, b].map(|id| values[id.index()].real[draw].error);
            TOLERANCE * largest + 4.0 * (errors[0] + errors[1])
        };
        if pairs().any(|(a, b)| (exact(a) - exact(b)).high.abs() > bound(a, b)) {
            return Verdict::Wrong;
        }
        let error = |id: &NodeId| (exact(id) - doubles[id.index()].into()).high.abs();
        if largest > 0.0 {
            worst_old = pairs().map(|(a, _)| error(a) / largest).fold(worst_old, f64::max);
            worst_new = pairs().map(|(_, b)| error(b) / largest).fold(worst_new, f64::max);
        }
    }
    if worst_new <= MAX_GROWTH * worst_old + ALLOWANCE { Verdict::Good } else { Verdict::Rough }
}

/// Returns the values of `all` with arithmetic in doubles, by id.
fn doubles(graph: &Graph, all: &NodeSet, values: &Values, draw: usize) -> Vec<f64> {
    let mut doubles = vec![f64::NAN; graph.len()];
    for id in all.iter() {
        let exact = values[id.index()].real[draw].value.high;
        let args = graph.args(id);
        doubles[id.index()] = match graph.node(id) {
            Node::Const(c) => c,
            Node::Apply(op @ (Op::Add | Op::Sub | Op::Mul | Op::Div), _) => {
                op.value(&[doubles[args[0].index()], doubles[args[1].index()]])
            }
            Node::Apply(Op::Neg, _) => -doubles[args[0].index()],
            _ => {
                let relative = |a: &NodeId| {
                    let exact = values[a.index()].real[draw].value.high;
                    if exact == 0.0 { 0.0 } else { (doubles[a.index()] - exact) / exact }
                };
                exact * (1.0 + args.iter().map(relative).sum::<f64>())
            }
        };
    }
    doubles
}
