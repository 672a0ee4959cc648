//! Branch and bound over the set of vertices that are left, which decides everything behind it.
//!
//! A set is left with the least cost of eliminating it once it is known, with a lower bound until then.
//! Sets that fall apart (no edge between their parts) are searched part by part: what is done in one
//! part changes nothing in another. Of twins, vertices with the same predecessors and successors, the
//! lowest goes first: exchanging them is a symmetry of the graph. Safe eliminations (`reduce.rs`) are
//! done without branching. What a set costs at least is the bound of its clusters.

use super::clusters::Clusters;
use super::reduce;
use super::state::{Set, State};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// An order in which to eliminate, shared between the sets that end alike.
pub(super) type Order = Option<Rc<Link>>;

/// The first vertex of an order, and the others.
pub(super) struct Link {
    pub(super) first: usize,
    pub(super) others: Order,
}

/// What is known of a set.
#[derive(Clone)]
enum Known {
    /// It costs at least this.
    AtLeast(u64),
    /// It costs this, in this order.
    Exactly(u64, Order),
}

/// A search.
pub(super) struct Search<'a> {
    clusters: &'a Clusters,
    /// Whether the rules of `reduce.rs` hold: every product counts.
    reduces: bool,
    known: FxHashMap<Set, Known>,
    pub(super) evaluations: u64,
    limit: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(clusters: &'a Clusters, reduces: bool, limit: u64) -> Self {
        Self { clusters, reduces, known: FxHashMap::default(), evaluations: 0, limit }
    }

    /// Whether the search ended because of its limit: bounds hold, but may not be reached.
    pub(super) fn stopped(&self) -> bool {
        self.evaluations >= self.limit
    }

    /// What eliminating `rest` costs: exactly, with an order, if it is below `below`; otherwise a lower
    /// bound, at least `below` unless the search was stopped.
    ///
    /// Recursive in the number of vertices, which [`super::MAX_VERTICES`] bounds.
    pub(super) fn solve(&mut self, state: &State, rest: &Set, below: u64) -> (u64, Option<Order>) {
        if rest.is_empty() {
            return (0, Some(None));
        }
        let bound = match self.known.get(rest) {
            Some(Known::Exactly(cost, order)) => return (*cost, Some(order.clone())),
            Some(Known::AtLeast(bound)) => *bound,
            None => self.clusters.bound(rest),
        };
        if bound >= below || self.stopped() {
            return (bound, None);
        }
        self.evaluations += 1;
        let (cost, order) = self.expand(state, rest, below);
        let cost = cost.max(bound);
        let known = order.clone().map_or(Known::AtLeast(cost), |order| Known::Exactly(cost, order));
        self.known.insert(rest.clone(), known);
        (cost, order)
    }

    fn expand(&mut self, state: &State, rest: &Set, below: u64) -> (u64, Option<Order>) {
        if self.reduces
            && let Some(v) = reduce::safe(state, rest)
        {
            return self.after(state, rest, v, below);
        }
        let parts = parts(state, rest);
        if parts.len() > 1 {
            return self.apart(state, &parts, below);
        }
        let mut candidates: Vec<(u64, u64, usize)> = rest
            .iter()
            .filter(|v| !has_lower_twin(state, rest, *v))
            .map(|v| {
                let mut others = rest.clone();
                others.remove(v);
                (state.cost(v) + self.clusters.bound(&others), state.cost(v), v)
            })
            .collect();
        candidates.sort_unstable();
        let (mut least, mut best) = (u64::MAX, None);
        for (bound, _, v) in candidates {
            let limit = least.min(below);
            if bound >= limit {
                if bound < least {
                    (least, best) = (bound, None);
                }
                break;
            }
            let (cost, order) = self.after(state, rest, v, limit);
            if cost < least {
                (least, best) = (cost, order);
            } else if cost == least && best.is_none() {
                best = order;
            }
        }
        (least, best)
    }

    /// `v` first, then the others at best.
    fn after(&mut self, state: &State, rest: &Set, v: usize, below: u64) -> (u64, Option<Order>) {
        let cost = state.cost(v);
        let mut others = rest.clone();
        others.remove(v);
        let mut now = state.clone();
        now.eliminate(v);
        let (behind, order) = self.solve(&now, &others, below.saturating_sub(cost));
        (cost + behind, order.map(|others| Some(Rc::new(Link { first: v, others }))))
    }

    fn apart(&mut self, state: &State, parts: &[Set], below: u64) -> (u64, Option<Order>) {
        let bounds: Vec<u64> = parts.iter().map(|part| self.clusters.bound(part)).collect();
        let mut total: u64 = bounds.iter().sum();
        let mut order: Option<Order> = Some(None);
        for (part, bound) in parts.iter().zip(bounds) {
            if total >= below {
                return (total, None);
            }
            let (cost, part_order) = self.solve(state, part, below - (total - bound));
            total += cost - bound;
            order = match (order, part_order) {
                (Some(first), Some(second)) => Some(joined(&second, first)),
                _ => None,
            };
        }
        (total, order)
    }
}

/// One order after the other.
fn joined(first: &Order, second: Order) -> Order {
    let mut vertices = Vec::new();
    let mut at = first;
    while let Some(link) = at {
        vertices.push(link.first);
        at = &link.others;
    }
    vertices.into_iter().rev().fold(second, |others, first| Some(Rc::new(Link { first, others })))
}

/// The parts of `rest` between which there is no edge, by their lowest vertices.
fn parts(state: &State, rest: &Set) -> Vec<Set> {
    let mut left = rest.clone();
    let mut parts = Vec::new();
    while let Some(first) = left.first() {
        let mut part = Set::empty(state.n_vertices());
        part.insert(first);
        let mut stack = vec![first];
        while let Some(v) = stack.pop() {
            let mut near = state.before[v].all.clone();
            near.unite(&state.behind[v].all);
            near.intersect(rest);
            near.subtract(&part);
            stack.extend(near.iter());
            part.unite(&near);
        }
        left.subtract(&part);
        parts.push(part);
    }
    parts
}

/// Whether exchanging `v` with a lower vertex changes nothing.
fn has_lower_twin(state: &State, rest: &Set, v: usize) -> bool {
    let Some(u) = state.before[v].all.first() else { return false };
    let same = |w: usize| {
        let (a, b) = (&state.before[w], &state.before[v]);
        let (c, d) = (&state.behind[w], &state.behind[v]);
        a.all == b.all && a.unit == b.unit && c.all == d.all && c.unit == d.unit
    };
    state.behind[u].all.iter().take_while(|w| *w < v).any(|w| rest.contains(w) && same(w))
}
