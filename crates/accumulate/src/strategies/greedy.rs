//! Greedy vertex orders: the vertex of the lowest score (`score.rs`) is eliminated next.
//!
//! In: a linearised graph, a score, a tie-breaking rule, a counting rule. Out: a program ([`run`]) or only the order
//! ([`order`]).
//!
//! All scores share one mechanism: a priority queue (`queue.rs`) in which a step updates the vertices whose scores it
//! may have changed.

use crate::queue::Queue;
use crate::random::Random;
use crate::score::{Evaluator, Scope, Value, changed};
use crate::vertex::Elimination;
use crate::{Budget, Counting, LinearGraph, Outcome, Score, StopReason, VertexId};
use chainrule_base::Id;
use std::cmp::Reverse;

/// Tie-breaking rule among vertices of the lowest score. Ties matter: on a robot arm, Markowitz takes between 248 and
/// 288 multiplications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    /// Lowest number.
    Lowest,
    /// Highest number.
    Highest,
    /// Shortest distance from the inputs along the longest path; then the lowest number.
    Forward,
    /// Shortest distance to the outputs along the longest path; then the highest number.
    Backward,
    /// Random order with this seed.
    Seeded(u64),
}

/// Options of a greedy order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Score.
    pub score: Score,
    /// Tie-breaking rule.
    pub ties: Ties,
    /// Counting rule of the score.
    pub counting: Counting,
    /// Whether vertices with one predecessor or one successor precede all others.
    pub degree_one_first: bool,
}

impl Options {
    /// Returns options with this score, lowest numbers on ties, all multiplications counted, and no precedence of
    /// degree one.
    #[must_use]
    pub fn new(score: Score) -> Self {
        Self { score, ties: Ties::Lowest, counting: Counting::Plain, degree_one_first: false }
    }
}

/// Eliminates in greedy order. With p products, scores of degrees take O(p log p); fill-in, damage and reduction a
/// factor of the degrees more; path lengths a sweep over the graph for each step. [`Budget::scores`] bounds the scores
/// that are more than a look-up.
///
/// ```
/// use chainrule_accumulate::greedy::{self, Options};
/// use chainrule_accumulate::{Budget, Label, LinearGraph, Score};
/// let chain = LinearGraph::from_edges(1, 1, 1, &[(0, 1, Label::Var), (1, 2, Label::Var)])?;
/// let outcome = greedy::run(&chain, &Budget::default(), &Options::new(Score::FillIn));
/// assert_eq!(outcome.program.map(|p| p.n_steps()), Some(1));
/// # Ok::<(), chainrule_base::Diagnostic>(())
/// ```
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, options: &Options) -> Outcome {
    match eliminate(Elimination::new(linear), budget, options) {
        Ok((elimination, _)) => Outcome::done(elimination.finish()),
        Err(stop) => Outcome::stopped(stop),
    }
}

/// Returns the order of [`run`].
///
/// # Errors
/// The exhausted budget.
pub fn order(linear: &LinearGraph, budget: &Budget, options: &Options) -> Result<Vec<VertexId>, StopReason> {
    eliminate(Elimination::new(linear), budget, options).map(|(_, order)| order)
}

/// Eliminates remaining vertices in greedy order; returns the elimination and the order.
pub fn eliminate<'a>(
    elimination: Elimination<'a>,
    budget: &Budget,
    options: &Options,
) -> Result<(Elimination<'a>, Vec<VertexId>), StopReason> {
    eliminate_counted(elimination, budget, options, &mut 0)
}

/// Word operations charged for a visited pair of neighbours.
const WORK_OF_SCORE: u64 = 32;

/// As [`eliminate`]; adds to `work` in the unit of [`Budget::work`].
pub fn eliminate_counted<'a>(
    mut elimination: Elimination<'a>,
    budget: &Budget,
    options: &Options,
    work: &mut u64,
) -> Result<(Elimination<'a>, Vec<VertexId>), StopReason> {
    let (before_all, mut scored) = (*work, 0);
    let linear = elimination.linear();
    let scope = options.score.scope();
    if options.score.preparation(linear) > budget.scores {
        return Err(StopReason::ScoreBudget);
    }
    let mut scores = Scores::new(&elimination, options);
    let mut order = Vec::with_capacity(linear.intermediates().len());
    while let Some(v) = scores.queue.pop() {
        order.push(v);
        let (before, behind) = elimination.eliminate(v);
        if elimination.n_products() > budget.products {
            return Err(StopReason::ProductBudget);
        }
        scores.evaluator.after_step(&elimination);
        if scope == Scope::All {
            scores.queue.clear();
            scores.work += linear.n_edges() as u64;
        }
        for u in changed(scope, &elimination, linear, &before, &behind) {
            scored += 1;
            scores.update(&elimination, u);
        }
        if scope == Scope::None && options.degree_one_first {
            for u in before.into_iter().chain(behind) {
                scores.update(&elimination, u);
            }
        }
        *work =
            before_all.saturating_add((scores.work + scored + elimination.n_products()).saturating_mul(WORK_OF_SCORE));
        if !matches!(scope, Scope::None | Scope::Neighbours) && scores.work > budget.scores {
            return Err(StopReason::ScoreBudget);
        }
    }
    Ok((elimination, order))
}

/// Key of a vertex: whether its degree is above one, score, rank.
type Key = (bool, Value, u32);

/// Scores of all remaining vertices.
struct Scores {
    queue: Queue<VertexId, Key>,
    evaluator: Evaluator,
    degree_one_first: bool,
    /// Tie-breaking rank of each vertex.
    ranks: Vec<u32>,
    /// Number of visited pairs of neighbours.
    work: u64,
}

impl Scores {
    fn new(elimination: &Elimination<'_>, options: &Options) -> Self {
        let linear = elimination.linear();
        let mut scores = Self {
            queue: Queue::new(),
            evaluator: Evaluator::new(options.score, options.counting, elimination),
            degree_one_first: options.degree_one_first,
            ranks: ranks(linear, options.ties),
            work: 0,
        };
        for v in linear.intermediates() {
            scores.update(elimination, v);
        }
        scores
    }

    fn update(&mut self, elimination: &Elimination<'_>, v: VertexId) {
        if !elimination.can_eliminate(v) {
            return;
        }
        let (n_before, n_behind) = elimination.degrees(v);
        self.work += 1 + n_before as u64 * n_behind as u64;
        let late = self.degree_one_first && n_before.min(n_behind) > 1;
        self.queue.update(v, (late, self.evaluator.value(elimination, v), self.ranks[v.index()]));
    }
}

/// Returns the tie-breaking rank of each vertex.
pub fn ranks(linear: &LinearGraph, ties: Ties) -> Vec<u32> {
    let n = linear.n_vertices();
    let mut vertices: Vec<VertexId> = (0..n).map(VertexId::new).collect();
    match ties {
        Ties::Lowest => {}
        Ties::Highest => vertices.reverse(),
        Ties::Forward => {
            let mut depth = vec![0u32; n];
            for (_, edge) in linear.edges() {
                depth[edge.target.index()] = depth[edge.target.index()].max(depth[edge.source.index()] + 1);
            }
            vertices.sort_by_key(|v| depth[v.index()]);
        }
        Ties::Backward => {
            let mut height = vec![0u32; n];
            for (_, edge) in linear.edges().rev() {
                height[edge.source.index()] = height[edge.source.index()].max(height[edge.target.index()] + 1);
            }
            vertices.sort_by_key(|v| (height[v.index()], Reverse(*v)));
        }
        Ties::Seeded(seed) => Random::new(seed).shuffle(&mut vertices),
    }
    let mut ranks = vec![0; n];
    for (rank, v) in vertices.iter().enumerate() {
        ranks[v.index()] = rank as u32;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Label;

    /// Returns a graph of layers of random edges.
    fn random_graph(random: &mut Random) -> LinearGraph {
        let (n_inputs, n_intermediates, n_outputs) = (1 + random.below(3), random.below(14), 1 + random.below(3));
        let first_output = n_inputs + n_intermediates;
        let mut edges = Vec::new();
        for target in n_inputs..first_output + n_outputs {
            for _ in 0..1 + random.below(3) {
                let label = [Label::Var, Label::Const, Label::One, Label::MinusOne][random.below(4)];
                edges.push((random.below(target.min(first_output)), target, label));
            }
        }
        LinearGraph::from_edges(n_inputs, n_intermediates, n_outputs, &edges).unwrap()
    }

    /// Degrees whose work is sources times vertices are not computed beyond the budget.
    #[test]
    fn relative_degrees_meet_the_budget() {
        let stops = |n: usize| {
            let mut edges: Vec<_> =
                (0..n).flat_map(|i| [(i, n + i, Label::Var), (0, n + i, Label::Var)]).skip(1).collect();
            edges.extend((0..n).map(|i| (n + i, 2 * n, Label::One)));
            let linear = LinearGraph::from_edges(n, n, 1, &edges).unwrap();
            let budget = Budget { scores: 100_000, ..Budget::default() };
            let options = Options::new(Score::RelativeMarkowitz);
            let work = Score::RelativeMarkowitz.preparation(&linear);
            (order(&linear, &budget, &options).err(), work)
        };
        let (small, large) = (stops(200), stops(3200));
        assert_eq!(small.0, None);
        assert_eq!(large.0, Some(StopReason::ScoreBudget));
        assert!(large.1 > 100 * small.1);
    }

    /// A queue with local updates selects the same vertices as a search over all of them.
    #[test]
    fn updates_reach_every_score_that_changes() {
        let mut random = Random::new(1);
        for _ in 0..400 {
            let linear = random_graph(&mut random);
            for score in Score::ALL {
                for counting in [Counting::Plain, Counting::UnitFree, Counting::Folded] {
                    let options = Options { counting, ..Options::new(score) };
                    let mut elimination = Elimination::new(&linear);
                    for v in order(&linear, &Budget::default(), &options).unwrap() {
                        let evaluator = Evaluator::new(score, counting, &elimination);
                        let left = linear.intermediates().filter(|u| elimination.can_eliminate(*u));
                        let best = left.min_by_key(|u| (evaluator.value(&elimination, *u), *u));
                        assert_eq!(best, Some(v), "{score:?} {counting:?} on {linear:?}");
                        elimination.eliminate(v);
                    }
                }
            }
        }
    }
}
