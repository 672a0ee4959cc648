//! Common subproducts (D*, section 4.2): the pair of consecutive factors that occurs in most products becomes one
//! factor, until no pair occurs twice.
//!
//! | D* 2007 | here |
//! | --- | --- |
//! | path count of an `EdgePair` | `Pair::count` |
//! | `Largest` | the heap |
//! | `updateCounts` | `List::forget`, `List::note` |
//!
//! In: products of numbered factors. Out: the same products with new factors, each the product of two earlier ones.
//! Factors commute, so a pair has no order. Among equally frequent pairs, the first one found is taken. O(n log n) for
//! products of n factors in total.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;

/// Replaces common pairs. The new factors are numbered from `n_factors` on, and returned in order.
pub(super) fn share(products: &mut [Vec<u32>], n_factors: u32) -> Vec<(u32, u32)> {
    let mut list = List::new(products);
    let mut made = Vec::new();
    while let Some((first, second, places)) = list.most_frequent() {
        let factor = n_factors + made.len() as u32;
        made.push((first, second));
        for place in places {
            list.merge(place, (first, second), factor);
        }
    }
    let mut start = 0;
    for product in products {
        let end = start + product.len();
        product.clear();
        product.extend(list.factors[start..end].iter().copied().filter(|f| *f != NONE));
        start = end;
    }
    made
}

/// All products in sequence, each a linked list.
struct List {
    /// [`NONE`] if the factor was merged into the previous one.
    factors: Vec<u32>,
    next: Vec<u32>,
    before: Vec<u32>,
    pairs: Vec<Pair>,
    /// Only looked up.
    by_factors: FxHashMap<(u32, u32), u32>,
    heap: BinaryHeap<(u32, Reverse<u32>)>,
}

struct Pair {
    factors: (u32, u32),
    /// Number of occurrences.
    count: u32,
    /// Positions of its first factor, possibly with stale ones.
    places: Vec<u32>,
    /// Count in its heap entry; 0 if it has none.
    queued: u32,
}

impl List {
    fn new(products: &[Vec<u32>]) -> Self {
        let n = products.iter().map(Vec::len).sum();
        let mut list = Self {
            factors: Vec::with_capacity(n),
            next: vec![NONE; n],
            before: vec![NONE; n],
            pairs: Vec::new(),
            by_factors: FxHashMap::default(),
            heap: BinaryHeap::new(),
        };
        for product in products {
            let start = list.factors.len();
            list.factors.extend_from_slice(product);
            for place in start + 1..list.factors.len() {
                list.next[place - 1] = place as u32;
                list.before[place] = place as u32 - 1;
            }
        }
        let mut risen = Vec::new();
        for place in 0..n as u32 {
            list.note(place, &mut risen);
        }
        list.enter(risen);
        list
    }

    /// Returns the pair that starts at a position, in canonical order.
    fn at(&self, place: u32) -> Option<(u32, u32)> {
        let next = *self.next.get(place as usize)?;
        if next == NONE {
            return None;
        }
        let (a, b) = (self.factors[place as usize], self.factors[next as usize]);
        (a != NONE).then_some((a.min(b), a.max(b)))
    }

    /// Records the pair that now starts at a position.
    fn note(&mut self, place: u32, risen: &mut Vec<u32>) {
        let Some(factors) = self.at(place) else { return };
        let idx = *self.by_factors.entry(factors).or_insert_with(|| {
            self.pairs.push(Pair { factors, count: 0, places: Vec::new(), queued: 0 });
            self.pairs.len() as u32 - 1
        });
        let pair = &mut self.pairs[idx as usize];
        pair.count += 1;
        pair.places.push(place);
        if pair.count == pair.queued.max(1) + 1 {
            risen.push(idx);
        }
    }

    /// Removes the pair that starts at a position, before it changes.
    fn forget(&mut self, place: u32) {
        if let Some(idx) = self.at(place).and_then(|factors| self.by_factors.get(&factors)) {
            let pair = &mut self.pairs[*idx as usize];
            pair.count = pair.count.saturating_sub(1);
        }
    }

    fn enter(&mut self, risen: Vec<u32>) {
        for idx in risen {
            let pair = &mut self.pairs[idx as usize];
            if pair.count > pair.queued.max(1) {
                pair.queued = pair.count;
                self.heap.push((pair.count, Reverse(idx)));
            }
        }
    }

    /// Returns the pair with most occurrences, at least two.
    fn most_frequent(&mut self) -> Option<(u32, u32, Vec<u32>)> {
        while let Some((count, Reverse(idx))) = self.heap.pop() {
            let pair = &mut self.pairs[idx as usize];
            if count != pair.queued {
                continue;
            }
            pair.queued = 0;
            if pair.count == count {
                let mut places = std::mem::take(&mut pair.places);
                places.sort_unstable();
                places.dedup();
                return Some((pair.factors.0, pair.factors.1, places));
            }
            self.enter(vec![idx]);
        }
        None
    }

    /// Merges the pair at a position into one factor, if it still exists there.
    fn merge(&mut self, place: u32, pair: (u32, u32), factor: u32) {
        if self.at(place) != Some(pair) {
            return;
        }
        let next = self.next[place as usize];
        let before = self.before[place as usize];
        let after = self.next[next as usize];
        self.forget(place);
        self.forget(next);
        if before != NONE {
            self.forget(before);
        }
        self.factors[place as usize] = factor;
        self.factors[next as usize] = NONE;
        self.next[place as usize] = after;
        self.next[next as usize] = NONE;
        if after != NONE {
            self.before[after as usize] = place;
        }
        let mut risen = Vec::new();
        self.note(place, &mut risen);
        if before != NONE {
            self.note(before, &mut risen);
        }
        self.enter(risen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of multiplications of products, with their shared pairs.
    fn multiplications(products: &mut [Vec<u32>], n_factors: u32) -> usize {
        let made = share(products, n_factors).len();
        made + products.iter().map(|p| p.len().saturating_sub(1)).sum::<usize>()
    }

    #[test]
    fn figure_17_takes_8_multiplications() {
        let mut paths: Vec<Vec<u32>> =
            [0, 1].iter().flat_map(|first| [3, 4, 5].map(|last| vec![*first, 2, last])).collect();
        assert_eq!(multiplications(&mut paths, 6), 8);
    }

    #[test]
    fn runs_of_one_factor_and_pairs_in_both_orders() {
        assert_eq!(multiplications(&mut [vec![0; 8]], 1), 3);
        assert_eq!(multiplications(&mut [vec![0, 1, 2], vec![3, 1, 0]], 4), 3);
        assert_eq!(multiplications(&mut [vec![0, 0, 0]], 1), 2);
        assert_eq!(multiplications(&mut [vec![], vec![1], vec![1, 2]], 3), 1);
    }
}
