//! Greedy edge elimination: the next edge is the one of the lowest score.
//!
//! In: a linearised graph, which ways edges may be eliminated, a score, what decides ties, how
//! multiplications count. Out: a program ([`run`]) or the history alone ([`history`]).
//!
//! | in the field (Naumann 1999) | here |
//! | --- | --- |
//! | OPS_F, OPS_B, OPS_\[F,B\] (definition 3.1) | [`Score::Markowitz`] with [`Ways::Front`], [`Ways::Back`], [`Ways::Mixed`] |

use crate::edge::{Direction, EdgeElimination, Step};
use crate::greedy::{Ties, ranks};
use crate::queue::Queue;
use crate::{Budget, Counting, LinearGraph, Outcome, StopReason, VertexId};
use chainrule_base::Id;

/// Which ways edges may be eliminated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ways {
    /// Forward only.
    Front,
    /// Backward only.
    Back,
    /// Either way, each edge the cheaper one.
    Mixed,
}

/// Which edge is next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Score {
    /// The fewest multiplications.
    Markowitz,
    /// The fewest new edges; of those, the fewest multiplications.
    FillIn,
    /// Edges through the intermediate that takes the fewest multiplications as a whole; of those, the fewest
    /// multiplications.
    Vertex,
}

/// How to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which ways.
    pub ways: Ways,
    /// Which edge is next.
    pub score: Score,
    /// Which of several: ranks of the vertex in the middle, then of the other end.
    pub ties: Ties,
    /// How multiplications count in the score.
    pub counting: Counting,
}

/// Elimination in greedy order. Each step scores anew the edges around those that it changes; bounded by
/// [`Budget::scores`].
///
/// ```
/// use chainrule_accumulate::edge_greedy::{self, Options, Score, Ways};
/// use chainrule_accumulate::greedy::Ties;
/// use chainrule_accumulate::{Budget, Counting, Label::Var, LinearGraph};
/// let chain = LinearGraph::from_edges(1, 2, 1, &[(0, 1, Var), (1, 2, Var), (2, 3, Var)])?;
/// let options = Options { ways: Ways::Mixed, score: Score::Markowitz, ties: Ties::Lowest, counting: Counting::Plain };
/// let program = edge_greedy::run(&chain, &Budget::default(), &options).program;
/// assert_eq!(program.map(|p| p.count(Counting::Plain).mul), Some(2));
/// # Ok::<(), chainrule_base::Diagnostic>(())
/// ```
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, options: &Options) -> Outcome {
    match eliminate(EdgeElimination::new(linear), budget, options) {
        Ok((elimination, _)) => Outcome::done(elimination.finish()),
        Err(stop) => Outcome::stopped(stop),
    }
}

/// The history that [`run`] takes.
///
/// # Errors
/// The budget that is too small.
pub fn history(linear: &LinearGraph, budget: &Budget, options: &Options) -> Result<Vec<Step>, StopReason> {
    eliminate(EdgeElimination::new(linear), budget, options).map(|(_, history)| history)
}

/// Score, the second score, ranks.
type Key = (u64, u64, u32, u32);

/// Eliminates what is there in greedy order; returns the elimination and the history.
pub(crate) fn eliminate<'a>(
    mut elimination: EdgeElimination<'a>,
    budget: &Budget,
    options: &Options,
) -> Result<(EdgeElimination<'a>, Vec<Step>), StopReason> {
    let linear = elimination.linear();
    let ranks = ranks(linear, options.ties);
    let mut queue: Queue<Edge, Key> = Queue::new();
    let mut work = 0;
    elimination.take_touched();
    for v in linear.intermediates() {
        update_around(&mut queue, &elimination, v, options, &ranks, &mut work);
    }
    let mut history = Vec::new();
    while let Some((i, j, direction)) = queue.pop() {
        if !elimination.eliminate(i, j, direction) {
            continue;
        }
        history.push(Step::Edge(i, j, direction));
        if elimination.n_products() > budget.products {
            return Err(StopReason::ProductBudget);
        }
        for v in elimination.take_touched() {
            // What is around an end of the graph depends on its other edges for fill-in only.
            let end = linear.is_source(v) || linear.is_sink(v);
            if !end || options.score == Score::FillIn {
                update_around(&mut queue, &elimination, v, options, &ranks, &mut work);
            }
        }
        if work > budget.scores {
            return Err(StopReason::ScoreBudget);
        }
    }
    Ok((elimination, history))
}

/// An edge by its ends, and a way.
type Edge = (VertexId, VertexId, Direction);

/// Scores the edges around a vertex anew.
fn update_around(
    queue: &mut Queue<Edge, Key>,
    elimination: &EdgeElimination<'_>,
    v: VertexId,
    options: &Options,
    ranks: &[u32],
    work: &mut u64,
) {
    let into = elimination.predecessors(v).map(|i| (i, v));
    for (i, j) in into.chain(elimination.successors(v).map(|k| (v, k))) {
        for direction in [Direction::Front, Direction::Back] {
            let other_way = match direction {
                Direction::Front => Ways::Back,
                Direction::Back => Ways::Front,
            };
            if options.ways == other_way || !elimination.can_eliminate(i, j, direction) {
                continue;
            }
            let cost = elimination.cost(i, j, direction, options.counting);
            let (middle, end) = match direction {
                Direction::Front => (i, j),
                Direction::Back => (j, i),
            };
            let (score, second) = match options.score {
                Score::Markowitz => (cost, 0),
                Score::FillIn => (fill_in(elimination, i, j, direction), cost),
                Score::Vertex => (elimination.vertex_cost(middle, options.counting), cost),
            };
            *work += if options.score == Score::FillIn { 1 + cost } else { 1 };
            queue.update((i, j, direction), (score, second, ranks[middle.index()], ranks[end.index()]));
        }
    }
}

/// How many entries of labels an elimination makes anew.
fn fill_in(elimination: &EdgeElimination<'_>, i: VertexId, j: VertexId, direction: Direction) -> u64 {
    let new = |l: VertexId, k: VertexId| {
        let is_new = elimination.label(l, k).is_none() && elimination.serves(l, k);
        if is_new { elimination.size(l) * elimination.size(k) } else { 0 }
    };
    match direction {
        Direction::Front => elimination.predecessors(i).map(|l| new(l, j)).sum(),
        Direction::Back => elimination.successors(j).map(|k| new(i, k)).sum(),
    }
}
