//! Vectors for much data, and data that is soon walked through.
//!
//! What a graph of a million nodes is lowered with takes tens of megabytes. In pages of 4 KiB each page is a fault when it is first
//! written, which costs as much as the work on it; and what is read in an order that a processor does not foresee waits for
//! memory, line by line. Both is a matter of time alone: no value depends on it.

use std::hint::black_box;

/// Bytes from which on large pages are asked for. Below, what stands in a vector fits into caches, and its memory has mostly
/// been used before.
const LARGE: usize = 2 << 20;

/// Bytes that a processor fetches at once.
const LINE: usize = 64;

/// An empty vector with room for `n` elements; in large pages, where that is much and the system has such.
#[must_use]
pub fn with_capacity<T>(n: usize) -> Vec<T> {
    let room: Vec<T> = Vec::with_capacity(n);
    #[cfg(target_os = "linux")]
    ask_for_large_pages(room.as_ptr().addr(), n.saturating_mul(size_of::<T>()));
    room
}

/// A vector of `n` times the same, in such memory.
#[must_use]
pub fn filled<T: Clone>(n: usize, item: T) -> Vec<T> {
    let mut all = with_capacity(n);
    all.resize(n, item);
    all
}

/// Asks for large pages for the memory of a vector; that the system has none is no error.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the system is told how memory is used, which changes nothing in it")]
fn ask_for_large_pages(start: usize, bytes: usize) {
    /// The system wants whole pages; those of any Linux divide this.
    const PAGE: usize = 64 << 10;
    if bytes < LARGE {
        return;
    }
    let first = start.next_multiple_of(PAGE);
    let len = (start + bytes - first) / PAGE * PAGE;
    // SAFETY: the advice is about pages as a whole that belong to the vector, which its owner alone uses; it changes neither
    // what is in them nor what may be done with them.
    unsafe { libc::madvise(std::ptr::without_provenance_mut(first), len, libc::MADV_HUGEPAGE) };
}

/// Reads these elements' memory in order, so that a walk which comes to them soon, in another order, finds them in the cache:
/// several lines come at a time so, and one after the other otherwise.
#[inline(never)]
pub fn fetch<T: Copy>(elements: &[T]) {
    // One element of each line; the reads do not wait for each other.
    elements.iter().step_by((LINE / size_of::<T>().max(1)).max(1)).for_each(|element| {
        black_box(*element);
    });
}

#[cfg(test)]
mod tests {
    use super::{LARGE, fetch, with_capacity};

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
        }
        assert!(with_capacity::<()>(LARGE).is_empty());
        fetch(&[(); 3]);
    }
}
