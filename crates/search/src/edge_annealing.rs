//! Simulated annealing over edge histories.
//!
//! In: a linearised graph, an objective, a seed. Out: the best history found, or its program.
//!
//! A history is a list of steps, each an edge or a whole vertex (`edge.rs`). Every intermediate has a step of its own,
//! so that every list is a complete elimination; impossible steps are skipped. The search starts from the best vertex
//! order that half of the budget finds (`annealing.rs`), or from a greedy history if that is better. A move shifts a
//! step, inserts an edge that exists at that stage, or removes one. Schedule and acceptance are those of vertex orders.

use crate::annealing::{self, ENOUGH, Options, temperature};
use crate::edge_cost::{EdgeCost, STRIDE, edge_cost};
use chainrule_accumulate::edge::{self, Direction, Step};
use chainrule_accumulate::edge_greedy::{self, Ways};
use chainrule_accumulate::greedy::Ties;
use chainrule_accumulate::random::Random;
use chainrule_accumulate::{Budget, LinearGraph, Outcome, StopReason, VertexId};
use chainrule_base::Id;

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// Best history found, without steps that do nothing.
    pub history: Vec<Step>,
    /// Cost of the history in the objective, without sums of parallel edges. `None` for graphs that are too large for
    /// bit sets; the history is then a vertex order.
    pub cost: Option<u64>,
    /// Cost of the vertex order or greedy history that the search started from.
    pub start_cost: Option<u64>,
    /// Number of evaluated moves.
    pub n_evaluations: u64,
    /// Reason why the search stopped.
    pub stop: StopReason,
}

/// Eliminates along the best history found.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, options: &Options) -> Outcome {
    let search = history(linear, budget, options);
    edge::run(linear, budget, &search.history).found_by(search.stop)
}

/// Returns the best history found.
///
/// ```
/// use chainrule_search::annealing::Options;
/// use chainrule_accumulate::{Budget, Label::Var, LinearGraph};
/// use chainrule_search::edge_annealing;
/// // Naumann's figure 5: 14 multiplications by vertices, 13 by edges.
/// let edges = [(0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (3, 5), (3, 6), (3, 7), (3, 8)];
/// let lion = LinearGraph::from_edges(2, 2, 5, &edges.map(|(i, k)| (i, k, Var)))?;
/// assert_eq!(edge_annealing::history(&lion, &Budget::default(), &Options::plain(1)).cost, Some(13));
/// # Ok::<(), chainrule_base::Diagnostic>(())
/// ```
#[must_use]
pub fn history(linear: &LinearGraph, budget: &Budget, options: &Options) -> Search {
    let half = Budget { evaluations: budget.evaluations / 2, ..*budget };
    let vertices = annealing::order(linear, &half, options);
    let vertex_history: Vec<Step> = vertices.order.iter().map(|v| Step::Vertex(*v)).collect();
    let Some(evaluator) = edge_cost(linear, options.counting, options.objective) else {
        return Search {
            history: vertex_history,
            cost: vertices.cost,
            start_cost: vertices.start_cost,
            n_evaluations: vertices.n_evaluations,
            stop: vertices.stop,
        };
    };
    let mut walk = Walk::new(linear, evaluator, options.seed);
    let (mut best, start_cost) = start(&mut walk, linear, budget, options, &vertex_history);
    let n = linear.n_edges() as u64;
    let n_left = budget.evaluations - half.evaluations;
    // As for vertex orders; there are about twice as many edges as vertices.
    let enough = ENOUGH + n * n * n / 16;
    let n_evaluations = if linear.intermediates().len() > 1 && start_cost > 0 { enough.min(n_left) } else { 0 };
    let mut cost = start_cost;
    for round in 0..N_ROUNDS {
        walk.start(&best);
        let n_moves = n_evaluations * (round + 1) / N_ROUNDS - n_evaluations * round / N_ROUNDS;
        for idx in 0..n_moves {
            if walk.try_move(temperature(FIRST_TEMPERATURE, idx, n_moves)) && walk.cost < cost {
                cost = walk.cost;
                best.clone_from(&walk.history);
            }
        }
    }
    let stop = if n_evaluations < n_left { vertices.stop } else { StopReason::EvaluationBudget };
    let history = walk.done(&best);
    Search {
        history,
        cost: Some(cost),
        start_cost: Some(start_cost),
        n_evaluations: vertices.n_evaluations + n_evaluations,
        stop,
    }
}

/// First temperature of a round. It is lower than for vertex orders, so that the initial order mostly survives.
const FIRST_TEMPERATURE: f64 = 1.5;

/// Number of rounds that share the budget.
const N_ROUNDS: u64 = 2;

/// Returns the best of the vertex order and the greedy histories, and its cost.
fn start(
    walk: &mut Walk,
    linear: &LinearGraph,
    budget: &Budget,
    options: &Options,
    vertex_history: &[Step],
) -> (Vec<Step>, u64) {
    walk.start(vertex_history);
    let (mut best, mut cost) = (vertex_history.to_vec(), walk.cost);
    for ways in [Ways::Front, Ways::Back, Ways::Mixed] {
        for score in [edge_greedy::Score::Markowitz, edge_greedy::Score::FillIn, edge_greedy::Score::Vertex] {
            for ties in [Ties::Lowest, Ties::Highest, Ties::Forward, Ties::Backward] {
                let options = edge_greedy::Options { ways, score, ties, counting: options.counting };
                let Ok(mut history) = edge_greedy::history(linear, budget, &options) else { continue };
                history.extend(vertex_history);
                walk.start(&history);
                if walk.cost < cost {
                    cost = walk.cost;
                    best = history;
                }
            }
        }
    }
    (best, cost)
}

/// State of the random walk through histories.
struct Walk {
    evaluator: Box<dyn EdgeCost>,
    random: Random,
    is_end: Vec<bool>,
    history: Vec<Step>,
    /// Cost of each step.
    costs: Vec<u64>,
    cost: u64,
    candidate: Vec<Step>,
    candidate_costs: Vec<u64>,
    neighbours: Vec<VertexId>,
}

impl Walk {
    fn new(linear: &LinearGraph, evaluator: Box<dyn EdgeCost>, seed: u64) -> Self {
        let is_end = |v| linear.is_source(v) || linear.is_sink(v);
        Self {
            evaluator,
            random: Random::new(seed),
            is_end: (0..linear.n_vertices()).map(|v| is_end(VertexId::new(v))).collect(),
            history: Vec::new(),
            costs: Vec::new(),
            cost: 0,
            candidate: Vec::new(),
            candidate_costs: Vec::new(),
            neighbours: Vec::new(),
        }
    }

    /// Sets a history, without edges that cannot be eliminated at their turn.
    fn start(&mut self, history: &[Step]) {
        self.history.clear();
        self.costs.clear();
        self.evaluator.seek(&[], 0);
        for &step in history {
            let cost = self.evaluator.step(step);
            if cost.is_some() || matches!(step, Step::Vertex(_)) {
                self.history.push(step);
                self.costs.push(cost.unwrap_or(0));
            }
        }
        self.cost = self.costs.iter().sum();
        self.evaluator.accept(&self.history, 0);
    }

    /// Returns the steps of a history that are possible at their turn.
    fn done(&mut self, history: &[Step]) -> Vec<Step> {
        self.evaluator.seek(&[], 0);
        history.iter().copied().filter(|step| self.evaluator.step(*step).is_some()).collect()
    }

    /// Tries one move; returns whether it was accepted.
    fn try_move(&mut self, temperature: f64) -> bool {
        let Some(first) = self.propose() else { return false };
        let limit = self.cost + (temperature * self.random.exponential()) as u64;
        let mut cost: u64 = self.costs[..first].iter().sum();
        // Behind the change, steps are equal except for their position.
        let n_same = self.history.iter().rev().zip(self.candidate.iter().rev()).take_while(|(a, b)| a == b).count();
        let end = self.candidate.len() - n_same.min(self.candidate.len() - first);
        self.candidate_costs.truncate(0);
        self.candidate_costs.extend_from_slice(&self.costs[..first]);
        self.evaluator.seek(&self.history, first);
        for place in first..self.candidate.len() {
            let old = (place + self.history.len()).saturating_sub(self.candidate.len());
            if place >= end && old.is_multiple_of(STRIDE) && self.evaluator.is_stored(old) {
                self.candidate_costs.extend_from_slice(&self.costs[old..]);
                cost += self.costs[old..].iter().sum::<u64>();
                break;
            }
            let step_cost = self.evaluator.step(self.candidate[place]).unwrap_or(0);
            self.candidate_costs.push(step_cost);
            cost += step_cost;
            if cost > limit {
                return false;
            }
        }
        if cost > limit {
            return false;
        }
        self.cost = cost;
        std::mem::swap(&mut self.history, &mut self.candidate);
        std::mem::swap(&mut self.costs, &mut self.candidate_costs);
        self.evaluator.accept(&self.history, first);
        true
    }

    /// Writes a changed history into `candidate`; returns the first changed position.
    fn propose(&mut self) -> Option<usize> {
        let n = self.history.len();
        let place = self.random.below(n);
        match self.random.below(8) {
            0..3 => {
                let to = self.random.below(n);
                self.copy_history();
                let step = self.candidate.remove(place);
                self.candidate.insert(to, step);
                (place != to).then_some(place.min(to))
            }
            3..5 => {
                // Nearby: steps that are close in the history are often close in the graph.
                let to = (place + self.random.below(17)).checked_sub(8).filter(|to| *to < n && *to != place)?;
                self.copy_history();
                let step = self.candidate.remove(place);
                self.candidate.insert(to, step);
                Some(place.min(to))
            }
            5..7 => {
                if n > 2 * self.is_end.len() {
                    return None;
                }
                let step = self.edge_at(place)?;
                self.copy_history();
                self.candidate.insert(place, step);
                Some(place)
            }
            _ => {
                if matches!(self.history[place], Step::Vertex(_)) {
                    return None;
                }
                self.copy_history();
                self.candidate.remove(place);
                Some(place)
            }
        }
    }

    fn copy_history(&mut self) {
        self.candidate.clone_from(&self.history);
    }

    /// Returns an edge that can be eliminated after the first `place` steps, near a vertex of one of the next steps.
    fn edge_at(&mut self, place: usize) -> Option<Step> {
        let near = (place + self.random.below(12)).min(self.history.len() - 1);
        let v = match self.history[near] {
            Step::Vertex(v) => v,
            Step::Edge(i, j, _) => [i, j][self.random.below(2)],
        };
        let direction = [Direction::Front, Direction::Back][self.random.below(2)];
        if self.is_end[v.index()] {
            return None;
        }
        self.evaluator.seek(&self.history, place);
        self.evaluator.neighbours(v, direction, &mut self.neighbours);
        if self.neighbours.len() < 2 {
            // The only edge: eliminating it eliminates the vertex.
            return None;
        }
        let u = self.neighbours[self.random.below(self.neighbours.len())];
        Some(match direction {
            Direction::Front => Step::Edge(v, u, direction),
            Direction::Back => Step::Edge(u, v, direction),
        })
    }
}
