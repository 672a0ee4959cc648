//! Exact edge elimination: the shortest path through the metagraph, by best-first search without building the
//! metagraph.
//!
//! In: a small linearised graph, an upper bound. Out: the minimum number of multiplications; the upper bound if no
//! history is below it; or a lower bound if the budget is used up.
//!
//! A stage is the set of remaining edges (see `metagraph.rs` for the transitions; parallel edges are merged, every
//! product counts). Stages are expanded in the order of the cost so far plus a lower bound of the remaining cost (Hart,
//! Nilsson, Raphael 1968): a pair of a source and a sink that a path of several edges connects needs at least one
//! product that makes the edge between them. A product serves one pair, so the bound decreases by at most the cost of a
//! step, and a stage is final when it is expanded.

use chainrule_accumulate::{Budget, LinearGraph};
use chainrule_base::Id;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum number of vertices of a graph to be searched.
pub const MAX_VERTICES: usize = 16;

/// The remaining graph: the successors of each vertex, as bits.
type Stage = [u16; MAX_VERTICES];

/// Returns a lower bound of all histories, at most `beat`; if it equals `beat`, no history takes fewer multiplications.
/// `None` for graphs of more than [`MAX_VERTICES`] vertices. [`Budget::evaluations`] limits the number of expanded
/// stages. Exponential.
///
/// ```
/// use chainrule_accumulate::{Budget, Label::Var, LinearGraph};
/// use chainrule_search::edge_exact;
/// // Naumann's figure 5: 13 multiplications, and no history takes fewer.
/// let edges = [(0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (3, 5), (3, 6), (3, 7), (3, 8)];
/// let lion = LinearGraph::from_edges(2, 2, 5, &edges.map(|(i, k)| (i, k, Var)))?;
/// assert_eq!(edge_exact::least(&lion, &Budget::default(), 14), Some(13));
/// # Ok::<(), chainrule_base::Diagnostic>(())
/// ```
#[must_use]
pub fn least(linear: &LinearGraph, budget: &Budget, beat: u64) -> Option<u64> {
    let n = linear.n_vertices();
    if n > MAX_VERTICES || linear.pairs().is_some() {
        return None;
    }
    let ends = Ends { n, n_sources: linear.sources().len(), first_sink: n - linear.sinks().len() };
    let mut start = [0; MAX_VERTICES];
    for (_, edge) in linear.edges() {
        start[edge.source.index()] |= 1 << edge.target.index();
    }
    let mut known: FxHashMap<Stage, u64> = FxHashMap::default();
    known.insert(start, 0);
    let mut open = BinaryHeap::from([Reverse((ends.bound(&start), Reverse(0), start))]);
    let mut evaluations = 0;
    while let Some(Reverse((total, Reverse(done), stage))) = open.pop() {
        if total >= beat || ends.is_done(&stage) || evaluations >= budget.evaluations {
            return Some(total.min(beat));
        }
        if known.get(&stage).is_some_and(|best| *best < done) {
            continue;
        }
        evaluations += 1;
        ends.each_step(&stage, |next, cost| {
            let through = done + cost;
            let total = through + ends.bound(next);
            if total < beat && known.get(next).is_none_or(|best| through < *best) {
                known.insert(*next, through);
                open.push(Reverse((total, Reverse(through), *next)));
            }
        });
    }
    Some(beat)
}

/// Sources and sinks, as bits.
struct Ends {
    n: usize,
    n_sources: usize,
    first_sink: usize,
}

impl Ends {
    fn is_done(&self, stage: &Stage) -> bool {
        stage[self.n_sources..self.first_sink].iter().all(|behind| *behind == 0)
    }

    /// Returns the number of pairs of a source and a sink with a path of several edges.
    fn bound(&self, stage: &Stage) -> u64 {
        let inner = ((1_u32 << self.first_sink) - (1_u32 << self.n_sources)) as u16;
        let mut reached = *stage;
        for v in (self.n_sources..self.first_sink).rev() {
            reached[v] = bits(stage[v] & inner).fold(stage[v], |all, k| all | reached[k]);
        }
        let pairs = |v: usize| bits(stage[v] & inner).fold(0, |all: u16, k| all | reached[k]) >> self.first_sink;
        (0..self.n_sources).map(|v| u64::from(pairs(v).count_ones())).sum()
    }

    /// Visits all stages that one edge elimination leads to, with its cost.
    fn each_step(&self, stage: &Stage, mut visit: impl FnMut(&Stage, u64)) {
        let mut before = [0_u16; MAX_VERTICES];
        for (i, behind) in stage[..self.n].iter().enumerate() {
            bits(*behind).for_each(|k| before[k] |= 1 << i);
        }
        for i in 0..self.first_sink {
            for j in bits(stage[i]) {
                if i >= self.n_sources {
                    let mut next = *stage;
                    bits(before[i]).for_each(|l| next[l] |= 1 << j);
                    next[i] &= !(1 << j);
                    self.retain_paths(&mut next);
                    visit(&next, u64::from(before[i].count_ones()));
                }
                if j < self.first_sink {
                    let mut next = *stage;
                    next[i] = (next[i] | stage[j]) & !(1 << j);
                    self.retain_paths(&mut next);
                    visit(&next, u64::from(stage[j].count_ones()));
                }
            }
        }
    }

    /// Removes edges that lie on no path from a source to a sink.
    fn retain_paths(&self, stage: &mut Stage) {
        let mut above = ((1_u32 << self.n_sources) - 1) as u16;
        for (i, behind) in stage[..self.first_sink].iter_mut().enumerate() {
            if above >> i & 1 == 1 {
                above |= *behind;
            } else {
                *behind = 0;
            }
        }
        let mut below: u16 = ((1_u32 << self.n) - (1_u32 << self.first_sink)) as u16;
        for (i, behind) in stage[..self.first_sink].iter_mut().enumerate().rev() {
            *behind &= below;
            below |= u16::from(*behind != 0) << i;
        }
    }
}

fn bits(mut set: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(lowest)
    })
}
