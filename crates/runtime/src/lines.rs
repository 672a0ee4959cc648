//! Memory in lines of a cache: a vector that lies in two takes twice as long, and what was stored so is read back late. A store
//! into two pages takes as long as thirty operations.

use chainrule_base::{Id, Poly};
use chainrule_kernel::{Buffer, BufferId, Event, Instr, Kernel, Order, Place, Reg, Stmt, walk};
use std::ops::{Deref, DerefMut};

/// How many numbers a line of a cache has.
const LINE: usize = 8;

/// How many bytes.
const LINE_BYTES: usize = 64;

/// How many numbers a page has.
const PAGE: usize = 512;

/// How many bytes.
pub const PAGE_BYTES: usize = 4096;

/// Where so many bytes lie that are put behind an address: at the line of the cache there or next to it, or where the next page
/// begins if they went over its end otherwise.
#[must_use]
pub fn behind(address: usize, bytes: usize) -> usize {
    let line = address.next_multiple_of(LINE_BYTES);
    if line % PAGE_BYTES + bytes > PAGE_BYTES { line.next_multiple_of(PAGE_BYTES) } else { line }
}

/// Numbers that begin with a line of a cache, where memory can be had so, and lie in one page where they fit into one.
#[derive(Clone, Debug, Default)]
pub struct Doubles {
    all: Vec<f64>,
    /// So many come before the first.
    start: usize,
}

impl Doubles {
    /// So many zeros.
    #[must_use]
    pub fn zeros(n: usize) -> Self {
        // The system gives zeros for nothing until they are touched.
        let mut all = vec![0.0; room(n)];
        let start = start(&all, n);
        all.truncate(start + n);
        Self { all, start }
    }

    /// So many zeros, of which the first lies as far into a page as if they were [`behind`] this address.
    fn zeros_behind(n: usize, address: usize) -> Self {
        let place = behind(address, n * size_of::<f64>());
        let mut all = vec![0.0; n + PAGE];
        let start = place.wrapping_sub(all.as_ptr().addr()) % PAGE_BYTES / size_of::<f64>();
        all.truncate(start + n);
        Self { all, start }
    }

    /// The same numbers in other memory: where they lie in a page is behind `address`, which is the end of them then. Processors compare the
    /// places of loads and stores in pages at first, and a load waits for the stores before it at the same place in another page; of what lies
    /// behind each other so, in pages or not, none waits for another. As many as a page has are everywhere in one, and stay.
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

    /// Adds one at the end. Takes constant time, on average over many.
    pub fn push(&mut self, x: f64) {
        if self.all.len() == self.all.capacity() {
            self.grow(2 * self.len() + LINE);
        }
        self.all.push(x);
    }

    /// Makes room for `n`.
    fn grow(&mut self, n: usize) {
        let mut all: Vec<f64> = Vec::with_capacity(room(n));
        let start = start(&all, n);
        all.resize(start, 0.0);
        all.extend_from_slice(self);
        *self = Self { all, start };
    }
}

/// In so many numbers `n` can lie as they should.
fn room(n: usize) -> usize {
    n + LINE + if n <= PAGE { n } else { 0 }
}

/// How many numbers come before the first of `n` that begin with a line and, if they fit into one, lie in one page.
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

/// A buffer of a kernel's workspace of which vectors begin with the element of this number, or some whole lines behind it:
/// which of a line's elements the buffer's first one is to be, for that; nothing where there are straight lines only. `O(n)`.
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

/// What a vector that is stored in two lines costs, beside one that is read.
const OF_STORE: u32 = 4;
const OF_LOAD: u32 = 1;

/// Notes a vector of the elements from `at` on, one for each `lane`, where it is known which element of a line is the first.
fn note(vectors: &mut [[u32; LINE]], buffer: BufferId, at: &Poly<Reg>, lane: Option<Reg>, cost: u32) {
    let Some((slope, rest)) = lane.and_then(|lane| at.split_linear(lane)) else { return };
    let (rest, first) = rest.split_constant();
    if slope == Poly::constant(1) && rest.terms().all(|(_, c)| c % LINE as i64 == 0) {
        vectors[buffer.index()][first.rem_euclid(LINE as i64) as usize] += cost;
    }
}

/// Where ranges, of offset and length, come to be that are moved so that nothing lies between them but what fills lines of a
/// cache; and how many numbers they take then. Those that overlap keep how they lie to each other: they are used in turn.
/// All others begin with the element of a line that `first` says ([`first_in_line`]), or lie in one, so that few vectors lie in
/// two. `O(n log n)`.
#[must_use]
pub fn in_lines(ranges: &[(usize, usize)], first: impl Fn(usize) -> usize) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|i| ranges[*i].1 > 0).collect();
    order.sort_unstable_by_key(|i| (ranges[*i], *i));
    // From where to where ranges overlap, and where in a line they begin.
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
