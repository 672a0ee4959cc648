//! Origins of nodes, for diagnostics: a mark on each node.
//!
//! In: marks for the existing nodes ([`Graph::track_origins`]), and for those created next ([`Graph::make_for`]). Out:
//! the origin of every node ([`Graph::origin`]).
//!
//! Simplification, value numbering and factoring ignore origins. A node that is created without a mark inherits the
//! origin of its arguments, until [`Graph::settle_origins`] finds a marked node with the same value up to a factor:
//! then it takes that origin. Values are compared as doubles at a few points: sufficient for diagnostics, not for
//! rewriting.
//!
//! Without tracking, nothing is stored and there is no cost.

use crate::graph::{Graph, NodeId};
use chainrule_base::{Id, define_id};

define_id! {
    /// Origin in the numbering of the caller that tracks origins.
    pub struct OriginId = "o";
}

/// Origin of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Origin {
    /// No specific origin: a number, an input, and nodes computed from these alone.
    #[default]
    Nowhere,
    /// A single origin.
    One(OriginId),
    /// Computed from values of several origins.
    Several,
}

/// Marks of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    /// By node: its origin, and the round of the mark; `None` if it was inherited.
    marks: Vec<(Origin, Option<u32>)>,
    /// Origin of nodes created at present.
    current: Origin,
    round: u32,
}

impl Origins {
    /// Returns the number of nodes that have an origin.
    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }
}

impl Graph {
    /// Tracks origins from now on; `marks` are those of a prefix of the existing nodes.
    pub fn track_origins(&mut self, marks: Vec<Origin>) {
        let mut marks: Vec<_> = marks.into_iter().map(|origin| (origin, Some(0))).collect();
        marks.resize(self.len(), (Origin::Nowhere, None));
        self.origins = Some(Box::new(Origins { marks, ..Origins::default() }));
    }

    /// Stops tracking origins.
    pub fn forget_origins(&mut self) {
        self.origins = None;
    }

    /// Returns whether origins are tracked.
    #[must_use]
    pub fn tracks_origins(&self) -> bool {
        self.origins.is_some()
    }

    /// Returns the origin of a node.
    #[must_use]
    pub fn origin(&self, id: NodeId) -> Origin {
        self.origins.as_ref().map_or(Origin::Nowhere, |origins| origins.marks[id.index()].0)
    }

    /// Sets the origin of a node. No effect if origins are not tracked.
    pub fn set_origin(&mut self, id: NodeId, origin: Origin) {
        if let Some(origins) = &mut self.origins {
            origins.marks[id.index()] = (origin, Some(origins.round));
        }
    }

    /// Marks new nodes with this origin until the next call; with [`Origin::Nowhere`], they inherit from their
    /// arguments.
    pub fn make_for(&mut self, origin: Origin) {
        if let Some(origins) = &mut self.origins {
            origins.current = origin;
        }
    }

    /// Starts a new round, whose marks take precedence over those since the first round for equal values.
    pub fn next_origin_round(&mut self) {
        if let Some(origins) = &mut self.origins {
            origins.round += 1;
        }
    }

    /// Marks the last created node.
    pub(crate) fn mark_new(&mut self, id: NodeId) {
        let Some(origins) = &self.origins else { return };
        let mark = match origins.current {
            _ if self.args(id).is_empty() => (Origin::Nowhere, None),
            Origin::Nowhere => (self.inherited(id, &origins.marks), None),
            current => (current, Some(origins.round)),
        };
        if let Some(origins) = &mut self.origins {
            origins.marks.push(mark);
        }
    }

    /// Returns the origin inherited from the arguments. A shared value used by a single origin takes that origin.
    fn inherited(&self, id: NodeId, marks: &[(Origin, Option<u32>)]) -> Origin {
        let mut one = None;
        let mut shared = false;
        for arg in self.args(id) {
            match marks[arg.index()].0 {
                Origin::Nowhere => {}
                Origin::Several => shared = true,
                Origin::One(place) if one.is_none_or(|one| one == place) => one = Some(place),
                Origin::One(_) => return Origin::Several,
            }
        }
        match one {
            Some(place) => Origin::One(place),
            None if shared => Origin::Several,
            None => Origin::Nowhere,
        }
    }

    /// Gives unmarked nodes below the roots the origin of an equal one, up to a factor: of the first round if there is
    /// one, else of the last. A node without an equal one inherits from its arguments. Evaluates the whole graph; no
    /// effect if a value cannot be computed.
    pub fn settle_origins(&mut self, roots: &[NodeId]) {
        let Some(origins) = &self.origins else { return };
        let said = |id: &NodeId| origins.marks[id.index()].1.is_some();
        let open: Vec<NodeId> =
            self.reachable(roots).iter().filter(|id| !said(id) && !self.args(*id).is_empty()).collect();
        let known: Vec<NodeId> = self.ids().filter(|id| said(id) && !self.args(*id).is_empty()).collect();
        let (Some(open_ratios), Some(known_ratios)) = (self.ratios(&open), self.ratios(&known)) else { return };
        let mut by_ratio: Vec<([f64; 2], NodeId)> = known_ratios.into_iter().zip(known).collect();
        by_ratio.retain(|(ratios, _)| ratios.iter().all(|r| r.is_finite()));
        by_ratio.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]).then(a.1.cmp(&b.1)));
        let mut marks = origins.marks.clone();
        for (id, ratios) in open.into_iter().zip(open_ratios) {
            let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * b.abs();
            let first = by_ratio.partition_point(|(other, _)| other[0] < ratios[0] - TOLERANCE * ratios[0].abs());
            let equal = by_ratio[first..]
                .iter()
                .take_while(|(other, _)| near(other[0], ratios[0]))
                .filter(|(other, _)| near(other[1], ratios[1]));
            let is_number = ratios.iter().all(|r| near(*r, 1.0));
            // The first round before all others, of those the last, and there the first node.
            let rank = |id: NodeId| (origins.marks[id.index()].1.map(|r| r.wrapping_sub(1)), std::cmp::Reverse(id));
            let best = equal.map(|(_, other)| *other).max_by_key(|other| rank(*other)).filter(|_| !is_number);
            marks[id.index()].0 = best.map_or_else(|| self.inherited(id, &marks), |other| marks[other.index()].0);
        }
        if let Some(origins) = &mut self.origins {
            origins.marks = marks;
        }
    }

    /// Returns, by node, its values at two points relative to that at a third: equal for nodes that are equal up to a
    /// factor.
    fn ratios(&self, nodes: &[NodeId]) -> Option<Vec<[f64; 2]>> {
        let values: Option<Vec<Vec<f64>>> = (0..3).map(|draw| self.f64_at(&self.point(draw), nodes).ok()).collect();
        let values = values?;
        Some((0..nodes.len()).map(|n| [values[1][n] / values[0][n], values[2][n] / values[0][n]]).collect())
    }

    /// Returns a number between 1/4 and 5/4 for each input.
    fn point(&self, draw: u64) -> Vec<f64> {
        (0..self.inputs().len() as u64).map(|input| 0.25 + fraction(3 * input + draw)).collect()
    }
}

/// Returns a pseudorandom number between 0 and 1: Steele, Lea, Flood, "Fast splittable pseudorandom number generators"
/// (2014).
fn fraction(n: u64) -> f64 {
    let z = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Maximum difference of values that are equal up to rounding.
const TOLERANCE: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Semantics;
    use chainrule_ops::Op;

    #[test]
    fn nodes_come_from_where_they_are_made_for_or_their_arguments_come_from() {
        let mut g = Graph::new(Semantics::Algebraic);
        let (x, y) = (g.input("x"), g.input("y"));
        let before = g.mul(x, y);
        let [first, second] = [0, 1].map(|n| Origin::One(OriginId::new(n)));
        g.track_origins(vec![Origin::Nowhere, Origin::Nowhere, first]);
        g.make_for(second);
        let sum = g.add(x, y);
        assert_eq!((g.origin(before), g.origin(sum), g.mul(y, x)), (first, second, before));
        g.make_for(Origin::Nowhere);
        let of_inputs = g.sub(x, y);
        let of_first = g.mul(before, of_inputs);
        let of_both = g.mul(before, sum);
        let of_shared_and_second = g.mul(of_both, sum);
        assert_eq!(g.origin(of_inputs), Origin::Nowhere);
        assert_eq!(g.origin(of_first), first);
        assert_eq!(g.origin(of_both), Origin::Several);
        assert_eq!(g.origin(of_shared_and_second), second);
        let (extracted, roots) = g.extract(&[of_both, of_first]);
        assert_eq!(roots.iter().map(|r| extracted.origin(*r)).collect::<Vec<_>>(), [Origin::Several, first]);
    }

    #[test]
    fn equal_values_come_from_the_same_place() {
        let mut g = Graph::new(Semantics::Algebraic);
        let (x, y) = (g.input("x"), g.input("y"));
        let (sum, difference) = (g.add(x, y), g.sub(x, y));
        let [first, second, third] = [0, 1, 2].map(|n| Origin::One(OriginId::new(n)));
        g.track_origins(vec![Origin::Nowhere, Origin::Nowhere, first, first]);
        g.next_origin_round();
        g.make_for(second);
        let (xx, yy) = (g.mul(x, x), g.mul(y, y));
        let squares = g.sub(xx, yy);
        g.next_origin_round();
        g.make_for(third);
        let three = g.constant(3.0);
        let scaled = g.raw(Op::Mul, &[three, xx]);
        g.make_for(Origin::Nowhere);
        // (x + y)(x - y) is x^2 - y^2; 2 x^2 is 3 x^2 up to a factor, marked last; x * (x + y) equals no marked node.
        let product = g.mul(sum, difference);
        let twice = g.add(xx, xx);
        let other = g.mul(x, sum);
        assert_eq!(g.origin(product), first);
        g.settle_origins(&[product, twice, other, scaled]);
        assert_eq!(
            [product, twice, other, scaled, squares].map(|n| g.origin(n)),
            [second, third, first, third, second]
        );
    }
}
