//! Chunks of long straight-line code, written by threads in parallel.
//!
//! In: straight-line code, which is one block of numbers. Out: its [`Piece`]s, each emitted independently; their code
//! is concatenated and runs from the first to the last.
//!
//! Invariant: all values are in memory between two chunks. A value that one chunk defines and a later one reads, a
//! [`Crossing`], is stored to a slot of its own as soon as it is computed, unless it can be rematerialised. So a chunk
//! starts with empty registers, and does not depend on the state at the end of the previous one.
//!
//! The chunks only depend on the length of the code, so the code is the same on any number of processors.

use super::plan::Stretch;
use super::registers::Copy;
use super::{Origin, Result, Writer, bug};
use chainrule_kernel::{Instr, Reg};
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Minimum number of instructions of a chunk: emitting them takes five times as long as starting a thread.
const LONG: usize = 1 << 14;

/// Maximum number of chunks: each has registers for all values, and its code is copied.
const MOST: usize = 2;

/// First slot of a crossing value. The slots before, which have shorter encodings, are for short-lived values.
pub(super) const FIRST_SLOT: u32 = 32;

/// A chunk of straight-line code.
pub(super) struct Piece<'k> {
    /// Number of its first event.
    pub first: u32,
    pub instrs: &'k [Instr],
    /// Number of entries of [`Plan::next`](super::plan::Plan::next) of this chunk and the following ones.
    pub left: usize,
}

/// A value that a chunk defines and a later one reads.
#[derive(Clone, Copy)]
pub(super) struct Crossing {
    /// Event that defines it.
    pub at: u32,
    pub value: Reg,
    /// Slot, unless it can be rematerialised: a constant, or an element in memory.
    pub slot: Option<u32>,
}

/// Returns the number of chunks of so many instructions, of at most `piece_len` each if given.
pub(super) fn n_pieces(n_instrs: usize, piece_len: Option<usize>) -> usize {
    match piece_len {
        Some(len) => n_instrs.div_ceil(len.max(1)).max(1),
        None => (n_instrs / LONG).clamp(1, MOST),
    }
}

/// Returns the results of `write` for each of `n` chunks, in order, by at most `n_threads` threads; default: the number
/// of processors.
pub(super) fn write_all<T: Send>(n: usize, n_threads: Option<usize>, write: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let n_threads = n_threads.unwrap_or_else(n_processors);
    let next = AtomicUsize::new(0);
    let work = || -> Vec<(usize, T)> {
        let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|i| *i < n);
        mine.map(|i| (i, write(i))).collect()
    };
    let mut all = thread::scope(|scope| {
        // If the system gives no thread, the others take over its work.
        let helper = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..n.min(n_threads)).filter_map(helper).collect();
        let mut all = work();
        for helper in helpers {
            all.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, written)| written).collect()
}

/// Returns the number of processors for this process. The system call takes as long as writing a thousand instructions.
fn n_processors() -> usize {
    static N: OnceLock<usize> = OnceLock::new();
    *N.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

impl Writer<'_> {
    /// Starts a chunk that follows others.
    pub(super) fn resume(&mut self, piece: usize) -> Result<()> {
        let plan = self.plan;
        self.know_all_pointers();
        let ([Stretch::Block(begin, line)], Some(piece)) = (plan.stretches.as_slice(), plan.pieces.get(piece)) else {
            return Err(bug("a piece of what is no line"));
        };
        for Crossing { at, value, slot } in plan.crossings_of(*begin, piece.first - 1) {
            let copy = match (slot, &line[(at - begin) as usize]) {
                (Some(slot), _) => Copy::Slot(*slot),
                (None, Instr::Const { value, .. }) => self.literal(*value),
                (None, Instr::Load { buffer, at, .. }) => {
                    let origin = match self.element(*buffer, at)? {
                        Some(disp) => Origin::Element(*buffer, disp),
                        None => Origin::Load(*buffer, at),
                    };
                    self.origin(origin)
                }
                (None, _) => return Err(bug("a value has no place between two pieces")),
            };
            self.registers.set_copy(*value, copy);
        }
        Ok(())
    }

    /// Stores a new value for later chunks.
    pub(super) fn cross(&mut self, value: Reg, slot: u32) -> Result<()> {
        let Some(x) = self.registers.register(value) else {
            return Err(bug("a value is gone before the next piece"));
        };
        self.write_spill(Some((x, slot)));
        self.registers.set_copy(value, Copy::Slot(slot));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{LONG, MOST, n_pieces, write_all};

    #[test]
    fn short_lines_are_not_cut() {
        for (n, expected) in [(0, 1), (1, 1), (2 * LONG - 1, 1), (2 * LONG, 2), (100 * LONG, MOST)] {
            assert_eq!(n_pieces(n, None), expected);
        }
        for (n, len, expected) in [(0, 1, 1), (7, 1, 7), (7, 3, 3), (7, 0, 7), (7, 8, 1)] {
            assert_eq!(n_pieces(n, Some(len)), expected);
        }
    }

    #[test]
    fn pieces_come_in_order() {
        for (n, n_threads) in [0, 1, 2, 7, 1000]
            .into_iter()
            .flat_map(|n| [None, Some(0), Some(1), Some(2), Some(5)].map(|n_threads| (n, n_threads)))
        {
            assert_eq!(write_all(n, n_threads, |i| 3 * i), (0..n).map(|i| 3 * i).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "piece 5")]
    fn a_panic_is_not_lost() {
        write_all(7, Some(2), |i| assert_ne!(i, 5, "piece {i}"));
    }
}
