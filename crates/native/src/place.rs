//! Frame placement: the position within pages of the memory of repeatedly called code.
//!
//! Processors first compare the low twelve bits of addresses: a load waits for a preceding store at the same offset in
//! another page, for about ten operations (4K aliasing). A call of small code stores its return address on the stack,
//! loads its frame, arguments and constants, and stores results, which the loads of the next call directly follow.
//! Loaded and stored memory are therefore placed at different offsets within pages, if everything fits into one page.
//!
//! In: the stretches of the memory in order, and the offsets of the others. Out: the start of the memory. Only time
//! depends on it.

use chainrule_runtime::lines::{PAGE_BYTES, behind};
use std::ops::Range;

/// Size of a cache line; memory starts at a multiple of it.
const LINE: usize = 64;

/// A stretch of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub bytes: usize,
    pub what: What,
}

/// Use of a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Loaded before all others.
    First,
    /// Loaded.
    Loaded,
    /// Stored, and possibly loaded.
    Stored,
}

/// Offsets of the caller's stack from its address at construction, in bytes. The depth of later calls is unknown but
/// usually similar. Calls store close to the address, callers further away.
const NEAR: Range<isize> = -256..1536;
const FAR: Range<isize> = -768..2560;

/// Returns the offset within a page for a frame of two adjacent stretches. `others` follow it, each starting at a cache
/// line, and none crosses a page. Stored stretches do not overlap `constants`; the stretch loaded first, or if possible
/// all loaded ones, do not overlap the stack, which was at the address `stack`. `None` if they are longer than a page.
/// Examines each stretch at 64 offsets.
pub(crate) fn place(frame: [Stretch; 2], others: &[Stretch], constants: &Range<usize>, stack: usize) -> Option<usize> {
    let all = || frame.iter().chain(others);
    let lines =
        |stretches: &[Stretch]| stretches.iter().map(|stretch| stretch.bytes.next_multiple_of(LINE)).sum::<usize>();
    let last = PAGE_BYTES.checked_sub(lines(&frame)).filter(|last| *last >= lines(others))?;
    let constants = Arc { begin: constants.start, bytes: constants.len().min(PAGE_BYTES) };
    let [near, far] = [NEAR, FAR].map(|around| Arc {
        begin: stack.wrapping_add_signed(around.start),
        bytes: (around.end - around.start).unsigned_abs(),
    });
    let cost = |begin: usize| {
        let mut at = begin;
        let mut cost = 0;
        for Stretch { bytes, what } in all() {
            at = behind(at, *bytes);
            let here = Arc { begin: at, bytes: *bytes };
            cost += match what {
                What::First => 64 * here.meets(near) + 8 * here.meets(far),
                What::Loaded => here.meets(near),
                What::Stored => 64 * here.meets(constants),
            };
            at += bytes;
        }
        cost
    };
    (0..=last).step_by(LINE).min_by_key(|begin| cost(*begin))
}

/// An interval of offsets in a page, with wrap-around.
#[derive(Clone, Copy)]
struct Arc {
    begin: usize,
    bytes: usize,
}

impl Arc {
    /// Returns the size of the intersection of two intervals, each of at most a page.
    fn meets(self, other: Self) -> usize {
        let ahead = other.begin.wrapping_sub(self.begin) % PAGE_BYTES;
        let first = (self.bytes.saturating_sub(ahead)).min(other.bytes);
        // The end of the other interval, if it wraps around to the start of this one.
        let round = (ahead + other.bytes).saturating_sub(PAGE_BYTES).min(self.bytes);
        first + round
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, NEAR, PAGE_BYTES, Stretch, What, behind, place};

    #[test]
    fn the_overlap_of_two_arcs_is_counted_byte_by_byte() {
        let bytes = |arc: Arc| {
            (0..arc.bytes).map(|i| arc.begin.wrapping_add(i) % PAGE_BYTES).collect::<std::collections::BTreeSet<_>>()
        };
        for (begin, n) in [(0, 0), (0, 1), (100, 50), (4000, 200), (4095, 4096), (8192 + 7, 4000)] {
            for (other, m) in [(0, 1), (0, 4096), (120, 7), (149, 3), (150, 3), (4090, 20), (3999, 1), (4100, 300)] {
                let (a, b) = (Arc { begin, bytes: n }, Arc { begin: other, bytes: m });
                let common = bytes(a).intersection(&bytes(b)).count();
                assert_eq!((a.meets(b), b.meets(a)), (common, common), "{begin} {n}, {other} {m}");
            }
        }
    }

    fn stretches(frame: usize, slots: usize, arguments: usize, results: usize) -> [Stretch; 4] {
        let all = [(frame, What::First), (slots, What::Stored), (arguments, What::Loaded), (results, What::Stored)];
        all.map(|(bytes, what)| Stretch { bytes, what })
    }

    #[test]
    fn what_is_stored_meets_no_constant_and_the_frame_no_stack() {
        for stack in (0x7fff_0000..0x7fff_1000).step_by(16) {
            for (constants, parts) in [
                (768..1072, stretches(128, 0, 256, 168)),
                (3900..4500, stretches(192, 64, 24, 864)),
                (0..0, stretches(64, 0, 1000, 900)),
                (64..64, stretches(64, 0, 8, 8)),
            ] {
                let [frame, slots, others @ ..] = parts;
                let begin = place([frame, slots], &others, &constants, stack).unwrap();
                assert_eq!(begin % 64, 0);
                let mut at = begin;
                for Stretch { bytes, what } in parts {
                    at = behind(at, bytes);
                    assert!(at.is_multiple_of(64) && at % PAGE_BYTES + bytes <= PAGE_BYTES);
                    let here = Arc { begin: at, bytes };
                    let meets = |begin: usize, bytes: usize| here.meets(Arc { begin, bytes });
                    match what {
                        What::First => {
                            let near = (NEAR.end - NEAR.start).unsigned_abs();
                            assert_eq!(meets(stack.wrapping_add_signed(NEAR.start), near), 0, "{begin}, {stack:x}");
                        }
                        What::Stored => assert_eq!(meets(constants.start, constants.len()), 0, "{begin}, {stack:x}"),
                        What::Loaded => {}
                    }
                    at += bytes;
                }
            }
        }
    }

    #[test]
    fn more_than_a_page_lies_anywhere() {
        for (frame, slots, arguments) in [(64, 0, 4000), (64, 4096, 0), (5000, 0, 0)] {
            let [frame, slots, others @ ..] = stretches(frame, slots, arguments, 64);
            assert_eq!(place([frame, slots], &others, &(0..0), 0), None);
        }
        let [frame, slots, ..] = stretches(2048, 2048, 0, 0);
        assert_eq!(place([frame, slots], &[], &(0..1 << 20), 7), Some(0));
    }
}
