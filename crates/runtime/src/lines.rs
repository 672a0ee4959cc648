//! Alignment of memory to cache lines and pages.
//!
//! A vector that crosses a cache line takes twice as long, and store forwarding from it is slow. A store across a page
//! boundary takes as long as thirty operations.

use chainrule_base::{Id, Poly, large};
use chainrule_kernel::{Buffer, BufferId, Event, Instr, Kernel, Order, Place, Reg, Stmt, walk};
use std::ops::{Deref, DerefMut};

/// Doubles in a cache line.
const LINE: usize = 8;

/// Bytes in a cache line.
const LINE_BYTES: usize = 64;

/// Doubles in a page.
const PAGE: usize = 512;

/// Bytes in a page.
pub const PAGE_BYTES: usize = 4096;

/// Returns the address for `bytes` bytes behind `address`: its cache line or the next one, or the start of the next
/// page if the bytes would otherwise cross a page boundary.
#[must_use]
pub fn behind(address: usize, bytes: usize) -> usize {
    let line = address.next_multiple_of(LINE_BYTES);
    if line % PAGE_BYTES + bytes > PAGE_BYTES { line.next_multiple_of(PAGE_BYTES) } else { line }
}

/// Doubles that begin at a cache line, where the allocator allows it, and do not cross a page boundary if they fit into
/// one page.
#[derive(Clone, Debug, Default)]
pub struct Doubles {
    all: Vec<f64>,
    /// Number of unused doubles before the first.
    start: usize,
}

impl Doubles {
    /// Returns `n` zeros.
    #[must_use]
    pub fn zeros(n: usize) -> Self {
        let mut all = large::zeros(room(n));
        let start = start(&all, n);
        all.truncate(start + n);
        Self { all, start }
    }

    /// Returns `n` zeros whose offset in their page is that of memory [`behind`] this address.
    fn zeros_behind(n: usize, address: usize) -> Self {
        let place = behind(address, n * size_of::<f64>());
        let mut all = vec![0.0; n + PAGE];
        let start = place.wrapping_sub(all.as_ptr().addr()) % PAGE_BYTES / size_of::<f64>();
        all.truncate(start + n);
        Self { all, start }
    }

    /// Moves the numbers to memory whose offset in its page is behind `address`, and sets `address` to their end.
    ///
    /// Processors first compare the page offsets of loads and stores, so that a load waits for an earlier store with
    /// the same offset in another page (4K aliasing). Buffers placed behind each other have different offsets. A buffer
    /// that fills a page has every offset, and stays where it is.
    #[must_use]
    pub fn behind(self, address: &mut usize) -> Self {
        if self.len() >= PAGE {
            return self;
        }
        let mut moved = Self::zeros_behind(self.len(), *address);
        moved.copy_from_slice(&self);
        *address = moved.as_ptr_range().end.addr();
        moved
    }

    /// Appends a number in amortised constant time.
    pub fn push(&mut self, x: f64) {
        if self.all.len() == self.all.capacity() {
            self.grow(2 * self.len() + LINE);
        }
        self.all.push(x);
    }

    /// Grows the capacity to `n` numbers.
    fn grow(&mut self, n: usize) {
        let mut all: Vec<f64> = Vec::with_capacity(room(n));
        let start = start(&all, n);
        all.resize(start, 0.0);
        all.extend_from_slice(self);
        *self = Self { all, start };
    }
}

/// Returns the capacity that `n` numbers need for their alignment.
fn room(n: usize) -> usize {
    n + LINE + if n <= PAGE { n } else { 0 }
}

/// Returns the number of unused doubles before the first, so that `n` numbers begin at a cache line and, if they fit
/// into one page, do not cross a page boundary.
fn start(all: &[f64], n: usize) -> usize {
    let line = all.as_ptr().align_offset(LINE_BYTES).min(LINE);
    let left = (PAGE_BYTES - all.as_ptr().wrapping_add(line).addr() % PAGE_BYTES) / size_of::<f64>();
    if left < n && n <= PAGE { line + left } else { line }
}

impl Deref for Doubles {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.all[self.start..]
    }
}

impl DerefMut for Doubles {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.all[self.start..]
    }
}

/// Returns, for each buffer of the workspace, the position in a cache line that its first element should have, so that
/// vector accesses are aligned. Empty if the kernel is straight-line code. `O(n)`.
#[must_use]
pub fn first_in_line(kernel: &Kernel) -> Vec<usize> {
    if kernel.body.iter().all(|stmt| matches!(stmt, Stmt::Straight(_))) {
        return Vec::new();
    }
    let mut vectors = vec![[0u32; LINE]; kernel.buffers.len()];
    let mut lane = None;
    for event in walk(&kernel.body) {
        match event {
            Event::For { index, count, order: Order::Lanes, .. } if *count == Poly::constant(LINE as i64) => {
                lane = Some(index);
            }
            Event::EndFor { index, .. } if lane == Some(index) => lane = None,
            Event::Instr(Instr::Load { buffer, at, .. }) => note(&mut vectors, *buffer, at, lane, OF_LOAD),
            Event::Instr(Instr::Store { buffer, at, .. }) => note(&mut vectors, *buffer, at, lane, OF_STORE),
            _ => {}
        }
    }
    let first = |(vectors, buffer): (&[u32; LINE], &Buffer)| {
        let most = vectors.iter().copied().max().unwrap_or(0);
        let begin = vectors.iter().position(|n| *n == most).unwrap_or(0);
        if matches!(buffer.place, Place::Workspace(_)) { (LINE - begin) % LINE } else { 0 }
    };
    vectors.iter().zip(kernel.buffers.as_slice()).map(first).collect()
}

/// Relative cost of a vector store that crosses a cache line.
const OF_STORE: u32 = 4;
/// Relative cost of a vector load that crosses a cache line.
const OF_LOAD: u32 = 1;

/// Counts a vector access to the elements from `at` on, one for each `lane`, if the position of the first one in its
/// cache line is known.
fn note(vectors: &mut [[u32; LINE]], buffer: BufferId, at: &Poly<Reg>, lane: Option<Reg>, cost: u32) {
    let Some((slope, rest)) = lane.and_then(|lane| at.split_linear(lane)) else { return };
    let (rest, first) = rest.split_constant();
    if slope == Poly::constant(1) && rest.terms().all(|(_, c)| c % LINE as i64 == 0) {
        vectors[buffer.index()][first.rem_euclid(LINE as i64) as usize] += cost;
    }
}

/// Returns new offsets of ranges (offset, length) and their total length, such that ranges are adjacent but for padding
/// to cache lines.
///
/// Overlapping ranges keep their relative offsets, since they share memory in turn. Every other range begins at the
/// position in a cache line that `first` returns ([`first_in_line`]), or lies in one line, so that few vectors cross a
/// line. `O(n log n)`.
#[must_use]
pub fn in_lines(ranges: &[(usize, usize)], first: impl Fn(usize) -> usize) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|i| ranges[*i].1 > 0).collect();
    order.sort_unstable_by_key(|i| (ranges[*i], *i));
    // Overlapping ranges: start, end, position in a line.
    let mut islands: Vec<(usize, usize, usize)> = Vec::new();
    let mut island_of = vec![0; ranges.len()];
    for i in order {
        let (start, len) = ranges[i];
        match islands.last_mut() {
            Some((_, end, _)) if start < *end => *end = start.saturating_add(len).max(*end),
            _ => islands.push((start, start.saturating_add(len), first(i))),
        }
        island_of[i] = islands.len() - 1;
    }
    let mut n = 0usize;
    let place = |(start, end, first): &(usize, usize, usize)| {
        let len = end - start;
        if n % LINE + len > LINE {
            n = n.next_multiple_of(LINE) + first;
        }
        n += len;
        n - len
    };
    let places: Vec<usize> = islands.iter().map(place).collect();
    let place = |(i, (start, len)): (usize, &(usize, usize))| {
        if *len == 0 { 0 } else { places[island_of[i]] + (start - islands[island_of[i]].0) }
    };
    (ranges.iter().enumerate().map(place).collect(), n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_with_lines() {
        let mut grown = Doubles::default();
        for i in 0..1000 {
            grown.push(f64::from(i));
            assert_eq!(grown.as_ptr().align_offset(LINE_BYTES), 0);
        }
        assert!(grown.iter().copied().eq((0..1000).map(f64::from)));
        for n in [0, 1, 8, 1000] {
            let zeros = Doubles::zeros(n);
            assert_eq!((zeros.as_ptr().align_offset(LINE_BYTES), &*zeros), (0, &*vec![0.0; n]));
        }
    }

    #[test]
    fn few_numbers_lie_in_one_page() {
        let page_of = |x: &f64| std::ptr::from_ref(x).addr() / PAGE_BYTES;
        let mut kept = Vec::new();
        for n in (1..=PAGE).chain((1..=PAGE).rev()) {
            let zeros = Doubles::zeros(n);
            assert_eq!((zeros.len(), page_of(&zeros[0])), (n, page_of(&zeros[n - 1])));
            kept.push(zeros);
        }
    }

    #[test]
    fn numbers_lie_where_they_are_asked_to() {
        for (n, address, place) in [
            (1, 0x4d40, 0xd40),
            (21, 0x7c41, 0xc80),
            (88, 0xd40, 0xd40),
            (89, 0xd40, 0),
            (PAGE, 0x5000, 0),
            (PAGE, 0x5001, 0),
            (5000, 0x5240, 0),
            (0, 0x5fff, 0),
        ] {
            let zeros = Doubles::zeros_behind(n, address);
            assert_eq!((zeros.as_ptr().addr() % PAGE_BYTES, &*zeros), (place, &*vec![0.0; n]), "{n} {address:x}");
        }
    }

    #[test]
    fn ranges_begin_with_lines_or_lie_in_one() {
        assert_eq!(in_lines(&[(13, 9), (23, 8), (22, 1)], |_| 0), (vec![0, 16, 9], 24));
        assert_eq!(in_lines(&[(13, 9), (23, 8), (22, 1)], |i| 7 - i), (vec![7, 30, 16], 38));
    }

    #[test]
    fn what_overlaps_keeps_how_it_lies() {
        // 10..14, 12..20 and 13..15 are one island, 20..21 another; nothing is at 15.
        let (offsets, n) = in_lines(&[(12, 8), (20, 1), (10, 4), (15, 0), (13, 2)], |_| 0);
        assert_eq!((offsets, n), (vec![2, 10, 0, 0, 3], 11));
    }
}
