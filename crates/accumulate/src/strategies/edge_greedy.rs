//! Greedy edge elimination: the edge of the lowest score is eliminated next.
//!
//! In: a linearised graph, the directions of elimination, a score, a tie-breaking rule, a counting rule. Out: a program
//! ([`run`]) or only the history ([`history`]).
//!
//! | in the field (Naumann 1999) | here |
//! | --- | --- |
//! | OPS_F, OPS_B, OPS_\[F,B\] (definition 3.1) | [`Score::Markowitz`]; [`Ways::Front`], `Back`, `Mixed` |

use crate::edge::{Direction, EdgeElimination, Step};
use crate::greedy::{Ties, ranks};
use crate::queue::Queue;
use crate::{Budget, Counting, LinearGraph, Outcome, StopReason, VertexId};
use chainrule_base::Id;

/// Directions in which edges may be eliminated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ways {
    /// Forward.
    Front,
    /// Backward.
    Back,
    /// Both; for each edge the cheaper one.
    Mixed,
}

/// Score that selects the next edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Score {
    /// Fewest multiplications.
    Markowitz,
    /// Least fill-in; among equals, fewest multiplications.
    FillIn,
    /// Edges through the intermediate whose elimination takes the fewest multiplications; among equals, fewest
    /// multiplications.
    Vertex,
}

/// Options of greedy edge elimination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Directions.
    pub ways: Ways,
    /// Score.
    pub score: Score,
    /// Tie-breaking rule: ranks of the vertex in the middle, then of the other end.
    pub ties: Ties,
    /// Counting rule of the score.
    pub counting: Counting,
}

/// Eliminates in greedy order. Each step updates the scores of the edges around those that it changes; bounded by
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

/// Returns the history of [`run`].
///
/// # Errors
/// The exhausted budget.
pub fn history(linear: &LinearGraph, budget: &Budget, options: &Options) -> Result<Vec<Step>, StopReason> {
    eliminate(EdgeElimination::new(linear), budget, options).map(|(_, history)| history)
}

/// Score, second score, ranks.
type Key = (u64, u64, u32, u32);

/// Eliminates remaining edges in greedy order; returns the elimination and the history.
pub fn eliminate<'a>(
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
            // At a source or sink, only fill-in depends on the other edges.
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

/// An edge by its ends, and a direction.
type Edge = (VertexId, VertexId, Direction);

/// Updates the scores of the edges around a vertex.
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

/// Returns the number of new label entries of an elimination.
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
