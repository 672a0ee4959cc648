//! A priority queue with lazy deletion, used by greedy orders.
//!
//! Only the newest key of an item counts; entries with older keys are skipped when they are popped. A change of a key
//! costs O(log n), without a search.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hash;

pub(crate) struct Queue<T, K> {
    heap: BinaryHeap<Reverse<(K, T)>>,
    /// Newest key of each item in the queue. Only looked up, never iterated.
    keys: FxHashMap<T, K>,
}

impl<T: Copy + Ord + Hash, K: Copy + Ord> Queue<T, K> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), keys: FxHashMap::default() }
    }

    /// Inserts an item or changes its key.
    pub(crate) fn update(&mut self, item: T, key: K) {
        if self.keys.insert(item, key) != Some(key) {
            self.heap.push(Reverse((key, item)));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.keys.clear();
    }

    /// Removes and returns the item of the lowest key; the lowest item on ties.
    pub(crate) fn pop(&mut self) -> Option<T> {
        while let Some(Reverse((key, item))) = self.heap.pop() {
            if self.keys.get(&item) == Some(&key) {
                self.keys.remove(&item);
                return Some(item);
            }
        }
        None
    }
}
