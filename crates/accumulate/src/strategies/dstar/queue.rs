//! Priority queue of factor subgraphs by frequency: the number of derivative graphs that contain them (D*, section
//! 4.1).
//!
//! A subgraph \[b, c\] is identified by its ends as vertices; [`Ties`] decides between equally frequent ones. Heap
//! entries with too large frequencies are corrected when they are popped.

use super::Ties;
use super::derivative_graph::Ends;
use crate::VertexId;
use chainrule_base::Id;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Occurrence of a factor subgraph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    pub(super) graph: u32,
    pub(super) ends: Ends,
}

/// The queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    ties: Ties,
    /// Only looked up.
    by_ends: FxHashMap<(VertexId, VertexId), u32>,
    subgraphs: Vec<FactorSubgraph>,
    heap: BinaryHeap<Entry>,
    /// Subgraphs that have become more frequent since the last pop.
    risen: Vec<u32>,
}

#[derive(Clone, Debug)]
struct FactorSubgraph {
    upper: VertexId,
    lower: VertexId,
    frequency: u32,
    /// Largest frequency of its heap entries; 0 if it has none.
    queued: u32,
    /// All occurrences, possibly with stale ones.
    places: Vec<Place>,
}

/// Frequency, rank among equally frequent ones, index.
type Entry = (u32, (u32, u32), Reverse<u32>);

impl Queue {
    /// Returns an empty queue.
    pub(super) fn new(ties: Ties) -> Self {
        Self { ties, by_ends: FxHashMap::default(), subgraphs: Vec::new(), heap: BinaryHeap::new(), risen: Vec::new() }
    }

    /// Adds an occurrence of a factor subgraph in a derivative graph.
    pub(super) fn found(&mut self, place: Place, upper: VertexId, lower: VertexId) {
        let idx = *self.by_ends.entry((upper, lower)).or_insert_with(|| {
            self.subgraphs.push(FactorSubgraph { upper, lower, frequency: 0, queued: 0, places: Vec::new() });
            self.subgraphs.len() as u32 - 1
        });
        let subgraph = &mut self.subgraphs[idx as usize];
        subgraph.frequency += 1;
        subgraph.places.push(place);
        if subgraph.frequency == subgraph.queued + 1 {
            self.risen.push(idx);
        }
    }

    /// Removes an occurrence of a factor subgraph.
    pub(super) fn lost(&mut self, upper: VertexId, lower: VertexId) {
        if let Some(idx) = self.by_ends.get(&(upper, lower)) {
            self.subgraphs[*idx as usize].frequency -= 1;
        }
    }

    /// Returns the occurrences of the most frequent factor subgraph, each once; some may be stale.
    pub(super) fn next(&mut self) -> Option<Vec<Place>> {
        for idx in std::mem::take(&mut self.risen) {
            if self.subgraphs[idx as usize].frequency > self.subgraphs[idx as usize].queued {
                self.enter(idx);
            }
        }
        while let Some((frequency, _, Reverse(idx))) = self.heap.pop() {
            let subgraph = &mut self.subgraphs[idx as usize];
            if frequency != subgraph.queued {
                continue;
            }
            subgraph.queued = 0;
            if subgraph.frequency == frequency {
                let mut places = std::mem::take(&mut subgraph.places);
                places.sort_unstable();
                places.dedup();
                return Some(places);
            }
            if subgraph.frequency > 0 {
                self.enter(idx);
            }
        }
        None
    }

    fn enter(&mut self, idx: u32) {
        let subgraph = &mut self.subgraphs[idx as usize];
        subgraph.queued = subgraph.frequency;
        let (upper, lower) = (subgraph.upper.index() as u32, subgraph.lower.index() as u32);
        let rank = match self.ties {
            Ties::Nearest => (u32::MAX - (upper - lower), u32::MAX - lower),
            Ties::Highest => (lower, u32::MAX - upper),
        };
        self.heap.push((subgraph.frequency, rank, Reverse(idx)));
    }
}
