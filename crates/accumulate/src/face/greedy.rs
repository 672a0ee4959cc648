//! Greedy orders of face elimination.
//!
//! Each elimination is one multiplication, so an order is good when it keeps the faces few.
//!
//! | known as | [`Order`] | the next face (i, j) has the least |
//! | --- | --- | --- |
//! | lowest Markowitz | `Markowitz` | predecessors of j times successors of i: the product of the degrees of the vertex that the face lies at, while the line graph is that of a graph |
//! | maximal reduction | `Reduction` | faces that come less faces that go |
//! | minimal distance | `Distance` | number of its end less that of its start, as vertices of the graph |
//!
//! In: a linearised graph. Out: a program, or the reason why not.

use super::labels::{Labels, Recorder, is_free};
use super::line_graph::{LineGraph, LineId, Rules};
use crate::greedy::{Ties, ranks};
use crate::{Budget, LinearGraph, Outcome, StopReason};
use chainrule_base::Id;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which face is next. See the module's table.
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

/// How faces whose product is free (a label is 1 or -1, or both are numbers) are ranked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Free {
    /// As any other.
    #[default]
    Alike,
    /// Before all others of equal rank.
    OnTies,
}

/// How faces whose product is absorbed by a line that is there are ranked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Absorbed {
    /// As any other.
    #[default]
    Alike,
    /// Before all others: nothing is filled in. This alone finds the optimum of the lion.
    First,
}

/// The options of greedy face elimination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which face is next.
    pub order: Order,
    /// Which of several faces of equal rank: by the vertex of the graph that they lie at, then by their lines.
    pub ties: Ties,
    /// Which rules hold.
    pub rules: Rules,
    /// What free products are worth.
    pub free: Free,
    /// What absorption is worth.
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

/// Greedy face elimination. One product for each elimination; each takes time in the sizes of the sets
/// around the face and in the logarithm of the number of faces.
#[must_use]
pub fn run(linear: &LinearGraph, budget: &Budget, options: &Options) -> Outcome {
    // Each vertex of the graph gives a face for each pair of its edges, before anything is done.
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

/// What it takes to enter a face into the queue, a look at an entry of a set being 1.
const ENTERED: u64 = 4;

/// What faces are ordered by: their rank, then how ties are decided.
type Key = (bool, i64, bool, u32, u64, u64);

/// Faces by rank. An entry is out of date when the rank has changed since; then the face is entered again.
struct Queue {
    heap: BinaryHeap<Reverse<(Key, LineId, LineId)>>,
    options: Options,
    /// By vertex of the graph, its place among equals.
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
            // An entry under a lower key is there already where a set has shrunk or grown.
            if self.options.order == Order::Reduction || self.options.absorbed == Absorbed::First {
                self.heap.push(Reverse((now, i, j)));
            }
        }
        None
    }

    /// Enters the faces whose rank may have changed.
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
            // The Markowitz degree of a face (i, j) depends on what is behind i and before j.
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

/// How many faces there will be more after the elimination of (i, j), merges not foreseen.
fn growth<L: Labels>(graph: &LineGraph<'_, L>, i: LineId, j: LineId) -> i64 {
    let (first, second) = (graph.line(i), graph.line(j));
    let (n_before, n_behind) = (first.before.len() as i64, second.behind.len() as i64);
    let made = if graph.is_absorbed(i, j) { 0 } else { n_before + n_behind };
    let gone_with_first = if first.behind.len() == 1 { n_before } else { 0 };
    let gone_with_second = if second.before.len() == 1 { n_behind } else { 0 };
    made - gone_with_first - gone_with_second - 1
}
