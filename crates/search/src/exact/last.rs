//! Branch and bound from the end: the choice of the vertex of a set that is eliminated last.
//!
//! The cost of a vertex v depends on the eliminated vertices on paths to v and from v: on the component of eliminated
//! vertices that it is connected to. So let C be a connected set of intermediates, all others being eliminated later,
//! and `f(C)` the minimum cost of C:
//!
//! ```text
//! f(C) = min over v in C of cost(v after C \ {v}) + sum of f(parts of C \ {v})
//! ```
//!
//! v is eliminated last and remains while the others are eliminated, and no path through them leads from part to part.
//! Choosing the last vertex first separates the graph, as in exact searches for elimination trees.
//!
//! Not every v has to be tried:
//! - If v is at its lower bound when eliminated before all others of C, and no other vertex ever costs more because v
//!   is eliminated, then moving v to the front of any order of C costs nothing. That holds by the first two rules of
//!   `reduce.rs`, treating vertices outside C like sources and sinks. All such v may come first, moved one after the
//!   other, so none of them is last unless C has no others; then every order is best.
//! - Of twins, vertices with the same neighbours, the lowest is last: exchanging them is a symmetry.

use super::masks::{BEFORE, BEHIND, Graph, Mask};
use super::patterns::Patterns;
use rustc_hash::FxHashMap;

/// Result for a set.
#[derive(Clone, Copy)]
struct Known {
    /// Lower bound of its cost.
    bound: u64,
    /// Elimination of this cost, if one is known.
    way: Option<Way>,
}

#[derive(Clone, Copy)]
enum Way {
    /// This vertex is last.
    Last(usize),
    /// In the order to be beaten.
    AsGiven,
}

/// State of a search.
pub(super) struct Search<'a, const W: usize> {
    graph: &'a Graph<W>,
    patterns: Patterns<W>,
    /// Order to be beaten.
    given: &'a [usize],
    known: FxHashMap<Mask<W>, Known>,
    pub(super) evaluations: u64,
    limit: u64,
    /// Maximum work of the graph.
    end: u64,
}

impl<'a, const W: usize> Search<'a, W> {
    pub(super) fn new(graph: &'a Graph<W>, patterns: Patterns<W>, given: &'a [usize], limit: u64, end: u64) -> Self {
        Self { graph, patterns, given, known: FxHashMap::default(), evaluations: 0, limit, end }
    }

    /// Returns whether the work is used up.
    pub(super) fn is_over(&self) -> bool {
        self.graph.work.get() > self.end
    }

    fn has_stopped(&self) -> bool {
        self.evaluations >= self.limit || self.is_over()
    }

    /// Returns a lower bound of eliminating all vertices, raised step by step until it is reached or the limit is, and
    /// the order that reaches it.
    pub(super) fn run(&mut self) -> (u64, Option<Vec<usize>>) {
        let (mut total, mut order) = (0, Some(Vec::new()));
        for part in self.graph.parts(self.graph.inner) {
            let mut known = self.look_up(part);
            while known.way.is_none() && !self.has_stopped() {
                let goal = known.bound + 1;
                known = self.solve(part, goal);
            }
            total += known.bound;
            match (&mut order, known.way) {
                (Some(order), Some(_)) => self.write(part, order),
                _ => order = None,
            }
        }
        (total, order)
    }

    /// Writes the best order of a solved set.
    fn write(&self, set: Mask<W>, order: &mut Vec<usize>) {
        let mut stack = vec![set];
        let mut reversed = Vec::new();
        while let Some(set) = stack.pop() {
            match self.known.get(&set).and_then(|known| known.way) {
                Some(Way::Last(v)) => {
                    reversed.push(v);
                    stack.extend(self.graph.parts(set.without(v)));
                }
                _ => reversed.extend(self.given.iter().rev().filter(|v| set.contains(**v))),
            }
        }
        order.extend(reversed.into_iter().rev());
    }

    /// Returns the result for a connected set before it is searched.
    fn look_up(&mut self, set: Mask<W>) -> Known {
        if let Some(known) = self.known.get(&set) {
            return *known;
        }
        if self.is_over() {
            return Known { bound: self.patterns.bound(set, |_| 0), way: None };
        }
        let singles: Vec<(usize, u64)> = set.iter().map(|v| (v, self.graph.bound(v, set.without(v)))).collect();
        let single = |v: usize| singles.binary_search_by_key(&v, |s| s.0).map_or(0, |idx| singles[idx].1);
        let bound = self.patterns.bound(set, single);
        let given = self.cost_as_given(set);
        let known = Known { bound, way: (bound == given).then_some(Way::AsGiven) };
        self.known.insert(set, known);
        known
    }

    fn cost_as_given(&self, set: Mask<W>) -> u64 {
        let mut gone = Mask::EMPTY;
        let mut cost = 0;
        for &v in self.given.iter().filter(|v| set.contains(**v)) {
            gone.insert(v);
            cost += self.graph.cost(v, gone);
        }
        cost
    }

    /// Searches a connected set until it is solved, its bound is at least `below`, or the limit is reached.
    ///
    /// Recursive in the number of vertices, which [`super::MAX_VERTICES`] bounds.
    fn solve(&mut self, set: Mask<W>, below: u64) -> Known {
        let mut known = self.look_up(set);
        if known.way.is_some() || known.bound >= below || self.has_stopped() {
            return known;
        }
        self.evaluations += 1;
        let last = self.last(set);
        if last.is_empty() {
            known = Known { bound: self.cost_as_given(set), way: Some(Way::AsGiven) };
            self.known.insert(set, known);
            return known;
        }
        let mut candidates = Vec::new();
        for v in last.iter() {
            let cost = self.graph.cost(v, set);
            let mut bound = cost;
            let mut parts = Vec::new();
            for part in self.graph.parts(set.without(v)) {
                // Bounds by cuts are computed only at the candidate's turn.
                let of_part = self.known.get(&part).map_or_else(|| self.patterns.bound(part, |_| 0), |k| k.bound);
                bound += of_part;
                parts.push((part, of_part));
            }
            candidates.push((bound, v, parts));
        }
        candidates.sort_by_key(|(bound, v, _)| (*bound, *v));
        // Least bound of all candidates, and the best solved candidate.
        let (mut least, mut best) = (u64::MAX, None);
        let mut limit = below;
        for (bound, v, mut parts) in candidates {
            let mut total = bound;
            for (part, of_part) in &mut parts {
                if total >= limit {
                    break;
                }
                let better = self.look_up(*part).bound.max(*of_part);
                total += better - *of_part;
                *of_part = better;
            }
            let mut solved = true;
            for (part, of_part) in parts {
                if total >= limit {
                    break;
                }
                let found = self.solve(part, limit - (total - of_part));
                total += found.bound.max(of_part) - of_part;
                solved &= found.way.is_some();
            }
            if total < limit && solved {
                limit = total;
                best = Some(v);
            }
            least = least.min(total);
            if bound >= limit {
                break;
            }
        }
        known.bound = known.bound.max(least);
        known.way = best.filter(|_| limit == known.bound).map(Way::Last);
        self.known.insert(set, known);
        known
    }

    /// Returns the vertices of `set` of which one is last in some best order; none if all orders are best.
    fn last(&self, set: Mask<W>) -> Mask<W> {
        let mut last = set;
        for v in set.iter() {
            if self.is_safe(v, set) || self.has_lower_twin(v, set) {
                last = last.without(v);
            }
        }
        last
    }

    fn is_safe(&self, v: usize, set: Mask<W>) -> bool {
        let sides = &self.graph.sides;
        let [before, behind] = [BEFORE, BEHIND].map(|side| sides[side][v]);
        // The only neighbour on a side, where `set` has no vertex: rule 2.
        let one_end = |side: usize| {
            let (near, beyond) = (sides[side][v], sides[1 - side][v]);
            let end = near.all.first().filter(|_| near.all.len() == 1 && near.all.and(set).is_empty());
            end.is_some_and(|end| {
                let others_are_paid = sides[1 - side][end].unit.without(v).is_empty();
                beyond.unit.is_empty() || !near.unit.is_empty() && others_are_paid
            })
        };
        let paid = before.all.minus(before.unit).len() * behind.all.minus(behind.unit).len();
        (one_end(BEFORE) || one_end(BEHIND) || self.graph.fills_nothing(v))
            && paid == self.graph.bound(v, set.without(v))
    }

    fn has_lower_twin(&self, v: usize, set: Mask<W>) -> bool {
        let Some(u) = self.graph.sides[BEFORE][v].all.first() else { return false };
        let same = |w: usize| {
            [BEFORE, BEHIND].iter().all(|side| {
                let (a, b) = (self.graph.sides[*side][w], self.graph.sides[*side][v]);
                a.all == b.all && a.unit == b.unit
            })
        };
        self.graph.sides[BEHIND][u].all.and(set).iter().take_while(|w| *w < v).any(same)
    }
}
