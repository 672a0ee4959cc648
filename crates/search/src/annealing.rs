//! Simulated annealing over vertex orders.
//!
//! In: a linearised graph, an objective, a seed. Out: the best order found, or its program.
//!
//! The search starts from the best of the greedy orders (`greedy.rs`). A move shifts a vertex, or a block of vertices,
//! to another position; only the positions between are evaluated again (`order_cost.rs`). Half of the moves shift a
//! vertex next to one that shares an edge or a neighbour with it; other moves rarely change the cost. The temperature
//! falls geometrically in each of several rounds, and each round starts from the best order so far. Effort is counted
//! in evaluated moves and their work, never in time.

use crate::order_cost::{Objective, OrderCost, order_cost};
use chainrule_accumulate::greedy::{self, Ties};
use chainrule_accumulate::random::Random;
use chainrule_accumulate::vertex::Elimination;
use chainrule_accumulate::{Budget, Counting, LinearGraph, Outcome, Score, StopReason, VertexId, vertex};
use chainrule_base::Id;

/// Options of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Objective.
    pub objective: Objective,
    /// Counting rule.
    pub counting: Counting,
    /// Seed.
    pub seed: u64,
}

impl Options {
    /// Returns options that minimise the number of all multiplications, the literature's problem.
    #[must_use]
    pub fn plain(seed: u64) -> Self {
        Self { objective: Objective::Multiplications, counting: Counting::Plain, seed }
    }
}

/// Minimises the operations of generated code.
impl Default for Options {
    fn default() -> Self {
        Self { objective: Objective::Operations, counting: Counting::Folded, seed: 1 }
    }
}

/// Number of halvings of the temperature in a round.
const N_HALVINGS: f64 = 6.0;

/// First temperature of a round: a move of this additional cost is accepted with probability 1/e.
const FIRST_TEMPERATURE: f64 = 4.0;

/// Number of rounds that share the budget.
const N_ROUNDS: u64 = 4;

/// Sufficient number of moves for any graph; half the number of triples of vertices is added.
pub(crate) const ENOUGH: u64 = 500;

/// Order of graphs that are too large for bit sets.
const START_OF_LARGE_GRAPHS: greedy::Options =
    greedy::Options { score: Score::Markowitz, ties: Ties::Lowest, counting: Counting::Folded, degree_one_first: true };

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// Best order found.
    pub order: Vec<VertexId>,
    /// Cost of the order in the objective, without sums of parallel edges. `None` for graphs that are too large for bit
    /// sets; the order is then a greedy one.
    pub cost: Option<u64>,
    /// Cost of the best greedy order.
    pub start_cost: Option<u64>,
    /// Number of evaluated moves.
    pub n_evaluations: u64,
    /// Reason why the search stopped.
    pub stop: StopReason,
}

/// Eliminates in the best order found.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, options: &Options) -> Outcome {
    let search = search(linear, None, budget, options);
    vertex::run(linear, budget, &search.order).found_by(search.stop)
}

/// Returns the best order found.
///
/// ```
/// use chainrule_search::annealing::{self, Options};
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

/// Returns the cost of an order of all intermediates, without sums of parallel edges; `None` for graphs that are too
/// large for the bit sets of the search.
#[must_use]
pub fn cost(linear: &LinearGraph, order: &[VertexId], counting: Counting, objective: Objective) -> Option<u64> {
    let first = linear.sources().len();
    let order: Vec<u32> = order.iter().map(|v| (v.index() - first) as u32).collect();
    let mut evaluator = order_cost(linear, None, counting, objective)?;
    evaluator.seek(&[], 0);
    evaluator.eliminate(&order, &mut Vec::new(), u64::MAX)
}

/// Returns the best order found; `sizes` are those of a vector graph.
pub(crate) fn search(linear: &LinearGraph, sizes: Option<&[u64]>, budget: &Budget, options: &Options) -> Search {
    let first = linear.sources().len();
    let named = |order: &[u32]| order.iter().map(|v| VertexId::new(first + *v as usize)).collect();
    let Some(mut evaluator) = order_cost(linear, sizes, options.counting, options.objective) else {
        let order = greedy_order(linear, sizes, budget, &START_OF_LARGE_GRAPHS, &mut 0).unwrap_or_default();
        return Search { order: named(&order), cost: None, start_cost: None, n_evaluations: 0, stop: StopReason::Done };
    };
    let (mut best, start_cost) = start(linear, sizes, budget, options, evaluator.as_mut());
    // A move evaluates a part of the order, and stores it if it is accepted: about as much work as one order in total.
    evaluator.start(&best);
    let before = evaluator.work();
    evaluator.start(&best);
    let affordable = budget.work / 2 / (evaluator.work() - before).max(1);
    let n = best.len() as u64;
    // Longer walks find nothing more in a small graph.
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

/// Returns the temperature at a move of a round: `first`, halved at equal intervals and linear in between. Logarithms
/// would differ between machines.
pub(crate) fn temperature(first: f64, idx: u64, n_moves: u64) -> f64 {
    let halvings = N_HALVINGS * idx as f64 / n_moves as f64;
    first / (1u64 << halvings as u32) as f64 * (1.0 - 0.5 * halvings.fract())
}

/// Returns the best greedy order and its cost.
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
                // Half of the work is for moves, but some order is needed in any case.
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

/// Returns a greedy order, numbered from the first intermediate.
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

/// State of the random walk through orders.
struct Walk {
    evaluator: Box<dyn OrderCost>,
    random: Random,
    /// For each vertex, those that share an edge or a neighbour with it.
    related: Vec<Vec<u32>>,
    order: Vec<u32>,
    /// Position of each vertex in the order.
    places: Vec<u32>,
    /// Cost of the vertex at each position.
    costs: Vec<u64>,
    cost: u64,
    /// Candidate move: the new content of the positions from `first` on.
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

    /// Tries one move; returns whether it was accepted.
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

    /// Writes the new content of some positions into `candidate`; returns the first position.
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

    /// Moves the block of `n_block` positions from `from` to start at `to`.
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

/// Returns, for each intermediate, those that share an edge or a neighbour with it.
fn related(linear: &LinearGraph) -> Vec<Vec<u32>> {
    let first = linear.sources().len();
    let mut related: Vec<Vec<u32>> = Vec::new();
    for v in linear.intermediates() {
        let before = linear.in_edges(v).map(|e| linear.edge(e).source);
        let behind = linear.out_edges(v).iter().map(|e| linear.edge(*e).target);
        let neighbours: Vec<VertexId> = before.chain(behind).collect();
        let mut near: Vec<VertexId> = neighbours.clone();
        for u in neighbours {
            // Sources and sinks may have edges to every vertex.
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
