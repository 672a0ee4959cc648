//! Simulated annealing over vertex orders.
//!
//! In: a linearised graph, what to make small, a seed. Out: the best order found, or its program.
//!
//! It starts from the best of the greedy orders (`greedy.rs`). A move takes a vertex, or a block of them,
//! to another place of the order; only the places between are evaluated anew (`order_cost.rs`). Half of
//! the moves take a vertex next to one that it has an edge to, or a neighbour in common with: others
//! rarely change anything. The temperature falls geometrically in each of several rounds, every one
//! from the best order so far; all is counted in evaluated moves and in their work, never in time.

use crate::greedy::{self, Ties};
use crate::order_cost::{Objective, OrderCost, order_cost};
use crate::random::Random;
use crate::vertex::Elimination;
use crate::{Budget, Counting, LinearGraph, Outcome, Score, StopReason, VertexId, vertex};
use chainrule_base::Id;

/// What is searched for, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What is made small.
    pub objective: Objective,
    /// How multiplications count.
    pub counting: Counting,
    /// The seed.
    pub seed: u64,
}

impl Options {
    /// Multiplications, all of them counted: the literature's problem.
    #[must_use]
    pub fn plain(seed: u64) -> Self {
        Self { objective: Objective::Multiplications, counting: Counting::Plain, seed }
    }
}

/// What generated code pays.
impl Default for Options {
    fn default() -> Self {
        Self { objective: Objective::Operations, counting: Counting::Folded, seed: 1 }
    }
}

/// How often the temperature is halved in a round.
const N_HALVINGS: f64 = 6.0;

/// The first temperature of a round: a move that costs so much more is taken with probability 1/e.
const FIRST_TEMPERATURE: f64 = 4.0;

/// How many rounds share the budget.
const N_ROUNDS: u64 = 4;

/// How many moves are enough for any graph; there are half as many as triples of vertices besides.
pub(crate) const ENOUGH: u64 = 500;

/// The order that is taken as it is where bit sets would be too large.
const START_OF_LARGE_GRAPHS: greedy::Options =
    greedy::Options { score: Score::Markowitz, ties: Ties::Lowest, counting: Counting::Folded, degree_one_first: true };

/// A search's result.
#[derive(Clone, Debug)]
pub struct Search {
    /// The best order found.
    pub order: Vec<VertexId>,
    /// What it costs, in the objective; sums of parallel edges not included. `None` for graphs that are too
    /// large for bit sets, for which the order is a greedy one.
    pub cost: Option<u64>,
    /// What the best of the greedy orders costs.
    pub start_cost: Option<u64>,
    /// How many moves were evaluated.
    pub n_evaluations: u64,
    /// Why it stopped.
    pub stop: StopReason,
}

/// Elimination in the best order found.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, options: &Options) -> Outcome {
    let search = search(linear, None, budget, options);
    vertex::run(linear, budget, &search.order).found_by(search.stop)
}

/// The best order found.
///
/// ```
/// use chainrule_accumulate::annealing::{self, Options};
/// use chainrule_accumulate::{Budget, Label::Var, LinearGraph};
/// // One way round a diamond takes 3 multiplications, the other 4.
/// let edges = [(0, 1, Var), (1, 2, Var), (1, 3, Var), (2, 4, Var), (3, 4, Var)];
/// let graph = LinearGraph::from_edges(1, 3, 1, &edges)?;
/// assert_eq!(annealing::order(&graph, &Budget::default(), &Options::plain(1)).cost, Some(3));
/// # Ok::<(), chainrule_base::Diagnostic>(())
/// ```
#[must_use]
pub fn order(linear: &LinearGraph, budget: &Budget, options: &Options) -> Search {
    search(linear, None, budget, options)
}

/// What an order of all intermediates costs; `None` for graphs that are too large for the bit sets of the
/// search. Sums of parallel edges are not included.
#[must_use]
pub fn cost(linear: &LinearGraph, order: &[VertexId], counting: Counting, objective: Objective) -> Option<u64> {
    let first = linear.sources().len();
    let order: Vec<u32> = order.iter().map(|v| (v.index() - first) as u32).collect();
    let mut evaluator = order_cost(linear, None, counting, objective)?;
    evaluator.seek(&[], 0);
    evaluator.eliminate(&order, &mut Vec::new(), u64::MAX)
}

/// The best order found; `sizes` are those of a vector graph.
pub(crate) fn search(linear: &LinearGraph, sizes: Option<&[u64]>, budget: &Budget, options: &Options) -> Search {
    let first = linear.sources().len();
    let named = |order: &[u32]| order.iter().map(|v| VertexId::new(first + *v as usize)).collect();
    let Some(mut evaluator) = order_cost(linear, sizes, options.counting, options.objective) else {
        let order = greedy_order(linear, sizes, budget, &START_OF_LARGE_GRAPHS, &mut 0).unwrap_or_default();
        return Search { order: named(&order), cost: None, start_cost: None, n_evaluations: 0, stop: StopReason::Done };
    };
    let (mut best, start_cost) = start(linear, sizes, budget, options, evaluator.as_mut());
    // A move evaluates part of the order, and stores it anew if it is taken: about as much as one order in all.
    evaluator.start(&best);
    let before = evaluator.work();
    evaluator.start(&best);
    let affordable = budget.work / 2 / (evaluator.work() - before).max(1);
    let n = best.len() as u64;
    // A walk of this length has seen what there is to see in a small graph.
    let enough = ENOUGH + n * n * n / 2;
    let stop = match enough {
        _ if enough <= budget.evaluations.min(affordable) => StopReason::Done,
        _ if budget.evaluations <= affordable => StopReason::EvaluationBudget,
        _ => StopReason::WorkBudget,
    };
    let n_evaluations = if n > 1 { enough.min(budget.evaluations).min(affordable) } else { 0 };
    let mut cost = start_cost;
    let mut walk = Walk::new(linear, evaluator, options.seed);
    for round in 0..N_ROUNDS {
        walk.start(&best);
        let n_moves = n_evaluations * (round + 1) / N_ROUNDS - n_evaluations * round / N_ROUNDS;
        for idx in 0..n_moves {
            if walk.try_move(temperature(FIRST_TEMPERATURE, idx, n_moves)) && walk.cost < cost {
                cost = walk.cost;
                best.clone_from(&walk.order);
            }
        }
    }
    Search { order: named(&best), cost: Some(cost), start_cost: Some(start_cost), n_evaluations, stop }
}

/// The temperature at a move of a round: from `first` halved at even distances, straight between, so that no
/// logarithm is needed; those differ between machines.
pub(crate) fn temperature(first: f64, idx: u64, n_moves: u64) -> f64 {
    let halvings = N_HALVINGS * idx as f64 / n_moves as f64;
    first / (1u64 << halvings as u32) as f64 * (1.0 - 0.5 * halvings.fract())
}

/// The best greedy order and its cost.
fn start(
    linear: &LinearGraph,
    sizes: Option<&[u64]>,
    budget: &Budget,
    options: &Options,
    evaluator: &mut dyn OrderCost,
) -> (Vec<u32>, u64) {
    let mut best: Option<(u64, Vec<u32>)> = None;
    let mut work = 0;
    for score in Score::ALL {
        for ties in [Ties::Lowest, Ties::Highest, Ties::Forward, Ties::Backward] {
            for degree_one_first in [true, false] {
                let options = greedy::Options { score, ties, counting: options.counting, degree_one_first };
                // Half of the work is for moves; some order there is in any case.
                if best.is_some() && work + evaluator.work() > budget.work / 2 {
                    continue;
                }
                let Some(order) = greedy_order(linear, sizes, budget, &options, &mut work) else { continue };
                evaluator.seek(&order, 0);
                let limit = best.as_ref().map_or(u64::MAX, |(least, _)| least - 1);
                if let Some(cost) = evaluator.eliminate(&order, &mut Vec::new(), limit) {
                    if cost == 0 {
                        return (order, 0);
                    }
                    best = Some((cost, order));
                }
            }
        }
    }
    let (cost, order) = best.unwrap_or_else(|| {
        let order: Vec<u32> = (0..linear.intermediates().len() as u32).collect();
        evaluator.seek(&order, 0);
        let cost = evaluator.eliminate(&order, &mut Vec::new(), u64::MAX);
        (cost.unwrap_or(u64::MAX), order)
    });
    (order, cost)
}

/// A greedy order, numbered from the first intermediate.
fn greedy_order(
    linear: &LinearGraph,
    sizes: Option<&[u64]>,
    budget: &Budget,
    options: &greedy::Options,
    work: &mut u64,
) -> Option<Vec<u32>> {
    let first = linear.sources().len();
    let elimination = sizes.map_or_else(|| Elimination::new(linear), |sizes| Elimination::with_sizes(linear, sizes));
    let (_, order) = greedy::eliminate_counted(elimination, budget, options, work).ok()?;
    Some(order.iter().map(|v| (v.index() - first) as u32).collect())
}

/// A walk through the orders.
struct Walk {
    evaluator: Box<dyn OrderCost>,
    random: Random,
    /// By vertex, those with an edge to or from it, or a neighbour in common.
    related: Vec<Vec<u32>>,
    order: Vec<u32>,
    /// By vertex, where it is in the order.
    places: Vec<u32>,
    /// By place, what the vertex there costs.
    costs: Vec<u64>,
    cost: u64,
    /// The move that is tried: what comes in the places from `first`.
    candidate: Vec<u32>,
    candidate_costs: Vec<u64>,
}

impl Walk {
    fn new(linear: &LinearGraph, evaluator: Box<dyn OrderCost>, seed: u64) -> Self {
        Self {
            evaluator,
            random: Random::new(seed),
            related: related(linear),
            order: Vec::new(),
            places: vec![0; linear.intermediates().len()],
            costs: Vec::new(),
            cost: 0,
            candidate: Vec::new(),
            candidate_costs: Vec::new(),
        }
    }

    fn start(&mut self, order: &[u32]) {
        self.order = order.to_vec();
        for (place, v) in order.iter().enumerate() {
            self.places[*v as usize] = place as u32;
        }
        self.evaluator.start(order);
        self.evaluator.seek(order, 0);
        self.cost = self.evaluator.eliminate(order, &mut self.costs, u64::MAX).unwrap_or(u64::MAX);
    }

    /// Tries one move; whether it was taken.
    fn try_move(&mut self, temperature: f64) -> bool {
        let first = self.propose();
        let end = first + self.candidate.len();
        if end < first + 2 {
            return false;
        }
        let old: u64 = self.costs[first..end].iter().sum();
        let limit = old + (temperature * self.random.exponential()) as u64;
        self.evaluator.seek(&self.order, first);
        let new = self.evaluator.eliminate(&self.candidate, &mut self.candidate_costs, limit);
        let Some(new) = new else { return false };
        self.cost = self.cost - old + new;
        self.order[first..end].copy_from_slice(&self.candidate);
        self.costs[first..end].copy_from_slice(&self.candidate_costs);
        for place in first..end {
            self.places[self.order[place] as usize] = place as u32;
        }
        self.evaluator.accept(&self.order, first, end);
        true
    }

    /// Writes a new content of some places into `candidate`; the first place.
    fn propose(&mut self) -> usize {
        let n = self.order.len();
        let kind = self.random.below(8);
        let place = self.random.below(n);
        match kind {
            0..4 => {
                let related = &self.related[self.order[place] as usize];
                if related.is_empty() {
                    self.candidate.clear();
                    return 0;
                }
                let other = related[self.random.below(related.len())];
                self.shift(place, 1, self.places[other as usize] as usize)
            }
            4..6 => {
                let to = self.random.below(n);
                self.shift(place, 1, to)
            }
            6 => {
                let other = self.random.below(n);
                let (first, last) = (place.min(other), place.max(other));
                self.candidate.clear();
                self.candidate.extend_from_slice(&self.order[first..=last]);
                let n_places = self.candidate.len();
                self.candidate.swap(0, n_places - 1);
                first
            }
            _ => {
                let n_block = (2 + self.random.below(7)).min(n - place);
                let to = self.random.below(n + 1 - n_block);
                self.shift(place, n_block, to)
            }
        }
    }

    /// The block of `n_block` places from `from` comes to start at `to`.
    fn shift(&mut self, from: usize, n_block: usize, to: usize) -> usize {
        let first = from.min(to);
        let end = from.max(to) + n_block;
        self.candidate.clear();
        self.candidate.extend_from_slice(&self.order[first..end]);
        if from < to {
            self.candidate.rotate_left(n_block);
        } else {
            self.candidate.rotate_right(n_block);
        }
        first
    }
}

/// By intermediate, those with an edge to or from it, or a neighbour in common.
fn related(linear: &LinearGraph) -> Vec<Vec<u32>> {
    let first = linear.sources().len();
    let mut related: Vec<Vec<u32>> = Vec::new();
    for v in linear.intermediates() {
        let before = linear.in_edges(v).map(|e| linear.edge(e).source);
        let behind = linear.out_edges(v).iter().map(|e| linear.edge(*e).target);
        let neighbours: Vec<VertexId> = before.chain(behind).collect();
        let mut near: Vec<VertexId> = neighbours.clone();
        for u in neighbours {
            // Ends of the graph may have edges to everything.
            near.extend(linear.in_edges(u).take(32).map(|e| linear.edge(e).source));
            near.extend(linear.out_edges(u).iter().take(32).map(|e| linear.edge(*e).target));
        }
        near.retain(|u| *u != v && !linear.is_source(*u) && !linear.is_sink(*u));
        near.sort_unstable();
        near.dedup();
        related.push(near.iter().map(|u| (u.index() - first) as u32).collect());
    }
    related
}
