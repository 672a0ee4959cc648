//! Greedy orders of face elimination.
//!
//! Each elimination is one multiplication, so a good order keeps the number of faces small.
//!
//! | known as | [`Order`] | next face (i, j) |
//! | --- | --- | --- |
//! | lowest Markowitz | `Markowitz` | fewest predecessors of j times successors of i |
//! | maximal reduction | `Reduction` | fewest new faces minus removed faces |
//! | minimal distance | `Distance` | least number of its end minus that of its start, as vertices of the graph |
//!
//! In: a linearised graph. Out: a program, or the reason for its absence.

use super::labels::{Labels, Recorder, is_free};
use super::line_graph::{LineGraph, LineId, Rules};
use crate::greedy::{Ties, ranks};
use crate::{Budget, LinearGraph, Outcome, StopReason};
use chainrule_base::Id;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Score that selects the next face. See the module's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Lowest Markowitz degree.
    #[default]
    Markowitz,
    /// Maximal reduction of the number of faces.
    Reduction,
    /// Minimal distance.
    Distance,
}

/// Rank of faces whose product is free (a label is 1 or -1, or both are numbers).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Free {
    /// The same rank as others.
    #[default]
    Alike,
    /// Before others of equal rank.
    OnTies,
}

/// Rank of faces whose product is absorbed by an existing line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Absorbed {
    /// The same rank as others.
    #[default]
    Alike,
    /// Before all others: no fill-in. Only this finds the optimum of the lion.
    First,
}

/// Options of greedy face elimination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Score.
    pub order: Order,
    /// Tie-breaking rule: by the vertex of the graph at which faces lie, then by their lines.
    pub ties: Ties,
    /// Rules after an elimination.
    pub rules: Rules,
    /// Rank of free products.
    pub free: Free,
    /// Rank of absorbed products.
    pub absorbed: Absorbed,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            order: Order::default(),
            ties: Ties::Lowest,
            rules: Rules::default(),
            free: Free::default(),
            absorbed: Absorbed::default(),
        }
    }
}

/// Eliminates greedily, with one product for each elimination. Each takes time in the sizes of the sets around the face
/// and in the logarithm of the number of faces.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, options: &Options) -> Outcome {
    // Initially, each vertex of the graph has a face for each pair of its edges.
    let faces = linear.intermediates().map(|v| (linear.in_edges(v).len() * linear.out_edges(v).len()) as u64);
    if faces.fold(0, u64::saturating_add) > budget.scores {
        return Outcome::stopped(StopReason::ScoreBudget);
    }
    let mut graph = LineGraph::new(linear, Recorder::new(linear), options.rules);
    let mut queue = Queue { heap: BinaryHeap::new(), options: *options, ranks: ranks(linear, options.ties), work: 0 };
    queue.renew(&mut graph);
    while let Some((i, j)) = queue.next(&graph) {
        graph.eliminate(i, j);
        queue.renew(&mut graph);
        if graph.labels().n_products() > budget.products {
            return Outcome::stopped(StopReason::ProductBudget);
        }
        if graph.work() + queue.work > budget.scores {
            return Outcome::stopped(StopReason::ScoreBudget);
        }
    }
    let (labels, ends) = graph.finish();
    Outcome::done(labels.into_builder().finish(linear, &ends))
}

/// Work of an insertion into the queue, in visited set entries.
const ENTERED: u64 = 4;

/// Key of a face: its rank, then the tie-breaking rank.
type Key = (bool, i64, bool, u32, u64, u64);

/// Faces by rank. An entry is stale if the rank has changed since; the face is then inserted again.
struct Queue {
    heap: BinaryHeap<Reverse<(Key, LineId, LineId)>>,
    options: Options,
    /// Tie-breaking rank of each vertex of the graph.
    ranks: Vec<u32>,
    work: u64,
}

impl Queue {
    fn next<L: Labels>(&mut self, graph: &LineGraph<'_, L>) -> Option<(LineId, LineId)> {
        while let Some(Reverse((key, i, j))) = self.heap.pop() {
            self.work += 1;
            if !graph.is_face(i, j) {
                continue;
            }
            let now = self.key(graph, i, j);
            if now == key {
                return Some((i, j));
            }
            // If a set shrank or grew, an entry with a lower key already exists.
            if self.options.order == Order::Reduction || self.options.absorbed == Absorbed::First {
                self.heap.push(Reverse((now, i, j)));
            }
        }
        None
    }

    /// Updates the faces whose rank may have changed.
    fn renew<L: Labels>(&mut self, graph: &mut LineGraph<'_, L>) {
        for touched in graph.take_touched() {
            let line = graph.line(touched.line);
            if !line.live || (line.before.len(), line.behind.len()) == (touched.n_before, touched.n_behind) {
                continue;
            }
            let made = touched.n_before + touched.n_behind == 0;
            if self.options.order == Order::Distance && !made {
                continue;
            }
            // The Markowitz degree of a face (i, j) depends on the successors of i and the predecessors of j.
            let markowitz = self.options.order == Order::Markowitz && !made;
            if !(markowitz && line.before.len() == touched.n_before) {
                for &p in &line.before {
                    let key = self.key(graph, p, touched.line);
                    self.heap.push(Reverse((key, p, touched.line)));
                }
                self.work += ENTERED * line.before.len() as u64;
            }
            if !(markowitz && line.behind.len() == touched.n_behind) {
                for &s in &line.behind {
                    let key = self.key(graph, touched.line, s);
                    self.heap.push(Reverse((key, touched.line, s)));
                }
                self.work += ENTERED * line.behind.len() as u64;
            }
        }
    }

    fn key<L: Labels>(&self, graph: &LineGraph<'_, L>, i: LineId, j: LineId) -> Key {
        let (first, second) = (graph.line(i), graph.line(j));
        let rank = match self.options.order {
            Order::Markowitz => first.behind.len() as i64 * second.before.len() as i64,
            Order::Reduction => growth(graph, i, j),
            Order::Distance => second.target.index() as i64 - first.source.index() as i64,
        };
        let dear = self.options.free == Free::OnTies && !is_free(graph.kind(i), graph.kind(j));
        let filled = self.options.absorbed == Absorbed::First && !graph.is_absorbed(i, j);
        let (i, j) = match self.options.ties {
            Ties::Highest | Ties::Backward => (u64::MAX - i.index() as u64, u64::MAX - j.index() as u64),
            Ties::Lowest | Ties::Forward | Ties::Seeded(_) => (i.index() as u64, j.index() as u64),
        };
        (filled, rank, dear, self.ranks[first.target.index()], i, j)
    }
}

/// Returns the change of the number of faces by the elimination of (i, j), without merges.
fn growth<L: Labels>(graph: &LineGraph<'_, L>, i: LineId, j: LineId) -> i64 {
    let (first, second) = (graph.line(i), graph.line(j));
    let (n_before, n_behind) = (first.before.len() as i64, second.behind.len() as i64);
    let made = if graph.is_absorbed(i, j) { 0 } else { n_before + n_behind };
    let gone_with_first = if first.behind.len() == 1 { n_before } else { 0 };
    let gone_with_second = if second.before.len() == 1 { n_behind } else { 0 };
    made - gone_with_first - gone_with_second - 1
}
