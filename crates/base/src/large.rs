//! Vectors for large data, in huge pages, and prefetching of data.
//!
//! Lowering a graph of a million nodes takes tens of megabytes. With pages of 4 KiB, the first write to each page is a
//! page fault, which costs as much as the work on the page. Reads in an order that the processor does not predict wait
//! for memory, one cache line at a time. This module only affects time: no value depends on it.

use std::hint::black_box;

/// Minimum size for huge pages, in bytes. Smaller vectors fit into caches, and their memory has mostly been used
/// before.
const LARGE: usize = 2 << 20;

/// Size of a cache line, in bytes.
const LINE: usize = 64;

/// Returns an empty vector with capacity for `n` elements, in huge pages if it is large and the system supports them.
#[must_use]
pub fn with_capacity<T>(n: usize) -> Vec<T> {
    let room: Vec<T> = Vec::with_capacity(n);
    #[cfg(target_os = "linux")]
    ask_for_large_pages(room.as_ptr().addr(), n.saturating_mul(size_of::<T>()));
    room
}

/// Returns a vector of `n` copies of `item`, in such memory.
#[must_use]
pub fn filled<T: Clone>(n: usize, item: T) -> Vec<T> {
    let mut all = with_capacity(n);
    all.resize(n, item);
    all
}

/// Returns a vector of `n` zeros, in such memory.
#[must_use]
pub fn zeros(n: usize) -> Vec<f64> {
    // The system maps zeros at no cost until they are touched.
    let all = vec![0.0; n];
    #[cfg(target_os = "linux")]
    ask_for_large_pages(all.as_ptr().addr(), n.saturating_mul(size_of::<f64>()));
    all
}

/// Requests huge pages for the memory of a vector; ignores a system without them.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the system is told how memory is used, which changes nothing in it")]
fn ask_for_large_pages(start: usize, bytes: usize) {
    /// The system requires whole pages; this is a multiple of the page sizes of all Linux systems.
    const PAGE: usize = 64 << 10;
    if bytes < LARGE {
        return;
    }
    let first = start.next_multiple_of(PAGE);
    let len = (start + bytes - first) / PAGE * PAGE;
    // SAFETY: the advice covers whole pages that belong to the vector, which only its owner uses; it changes neither
    // their contents nor their permitted accesses.
    unsafe { libc::madvise(std::ptr::without_provenance_mut(first), len, libc::MADV_HUGEPAGE) };
}

/// Reads the memory of these elements in order, so that a subsequent walk in another order finds them in the cache.
/// Several lines are fetched in parallel this way; otherwise they would be fetched one by one.
#[inline(never)]
pub fn fetch<T: Copy>(elements: &[T]) {
    // One element of each line; the reads do not depend on each other.
    elements.iter().step_by((LINE / size_of::<T>().max(1)).max(1)).for_each(|element| {
        black_box(*element);
    });
}

#[cfg(test)]
mod tests {
    use super::{LARGE, fetch, with_capacity, zeros};

    #[test]
    fn vectors_of_any_size_are_ordinary() {
        for n in [0, 1, 1000, LARGE / 8 - 1, LARGE / 8, LARGE / 8 + 12_345, 3 * LARGE / 8] {
            let mut all = with_capacity(n);
            assert!(all.is_empty() && all.capacity() >= n);
            all.extend((0..n).map(|i| i as u64));
            fetch(&all);
            assert!(all.iter().enumerate().all(|(i, x)| *x == i as u64));
            all.push(0);
            all.shrink_to_fit();
            assert_eq!(all.len(), n + 1);
            assert!(zeros(n) == vec![0.0; n]);
        }
        assert!(with_capacity::<()>(LARGE).is_empty());
        fetch(&[(); 3]);
    }
}
