//! A priority queue whose entries may go out of date: what greedy orders take the next item from.
//!
//! An item has one key that counts, its newest; entries with older keys are passed over when they come up.
//! So a change of key costs O(log n), and nothing is searched for.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hash;

pub(crate) struct Queue<T, K> {
    heap: BinaryHeap<Reverse<(K, T)>>,
    /// The newest key of each item that is in the queue. Looked up only, never iterated.
    keys: FxHashMap<T, K>,
}

impl<T: Copy + Ord + Hash, K: Copy + Ord> Queue<T, K> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), keys: FxHashMap::default() }
    }

    /// Enters an item, or gives it another key.
    pub(crate) fn update(&mut self, item: T, key: K) {
        if self.keys.insert(item, key) != Some(key) {
            self.heap.push(Reverse((key, item)));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.keys.clear();
    }

    /// Takes out the item of the lowest key; of several the lowest item.
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
