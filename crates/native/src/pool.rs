//! Cache of code memory, reused for later code.
//!
//! In: memory that held code. Out: the same memory, writable, for a [`Room`](crate::room::Room). Mapping memory,
//! faulting in its pages and unmapping it takes as long as compiling a hundred operations. Making the same memory
//! writable again takes a fraction of that, and is done when code is dropped, so that new code does not wait for it.
//!
//! Invariants: memory is either in the cache or has one owner; in the cache it is writable and not executable, so
//! dropped code cannot run; the cache holds at most [`MOST_BYTES`]. Other memory goes back to the system.

use memmap2::{Mmap, MmapMut, UncheckedAdvice};
use std::sync::{Mutex, PoisonError};

/// Maximum size of cached memory, in bytes: relative to the time of writing more code, a new mapping costs little.
pub(crate) const LARGEST: usize = 2 << 20;

/// Maximum total size of the cache, in bytes.
const MOST_BYTES: usize = 4 << 20;

/// Maximum number of cached pieces, so that a search takes no time.
const MOST_PIECES: usize = 32;

/// Maximum ratio of a piece to the requested size: larger pieces would waste memory.
const TOO_LARGE: usize = 4;
const SMALL: usize = 16 << 10;

/// Cache of this process.
static POOL: Mutex<Pool> = Mutex::new(Pool { pieces: Vec::new() });

/// Memory, and the number of its leading bytes that are resident; the others are faulted in by their first write.
#[derive(Debug)]
struct Piece {
    map: MmapMut,
    ready: usize,
}

/// Pieces in order of arrival.
#[derive(Debug, Default)]
struct Pool {
    pieces: Vec<Piece>,
}

impl Pool {
    /// Takes the smallest piece of at least `bytes` bytes.
    fn take(&mut self, bytes: usize) -> Option<Piece> {
        let fits = |len: usize| bytes <= len && len <= (TOO_LARGE * bytes).max(SMALL);
        let sizes = self.pieces.iter().enumerate().map(|(i, piece)| (piece.map.len(), i));
        let (_, i) = sizes.filter(|(len, _)| fits(*len)).min()?;
        Some(self.pieces.remove(i))
    }

    /// Adds a piece; returns those that exceed the limits.
    fn put(&mut self, piece: Piece) -> Vec<Piece> {
        self.pieces.push(piece);
        let mut bytes: usize = self.pieces.iter().map(|piece| piece.map.len()).sum();
        let mut n_gone = self.pieces.len().saturating_sub(MOST_PIECES);
        bytes -= self.pieces[..n_gone].iter().map(|piece| piece.map.len()).sum::<usize>();
        while bytes > MOST_BYTES {
            bytes -= self.pieces[n_gone].map.len();
            n_gone += 1;
        }
        if n_gone == 0 { Vec::new() } else { self.pieces.drain(..n_gone).collect() }
    }
}

/// Returns writable memory of at least `bytes` bytes, and the number of resident bytes. Its content is unspecified.
pub(crate) fn take(bytes: usize) -> Option<(MmapMut, usize)> {
    if bytes > LARGEST {
        return None;
    }
    let Piece { map, ready } = POOL.lock().unwrap_or_else(PoisonError::into_inner).take(bytes)?;
    Some((map, ready))
}

/// Caches memory in which no code runs any more, of which `ready` bytes are resident, or unmaps it.
pub(crate) fn give(map: Mmap, ready: usize) {
    if map.len() <= LARGEST
        && let Ok(map) = map.make_mut()
    {
        let gone = POOL.lock().unwrap_or_else(PoisonError::into_inner).put(Piece { map, ready });
        // Unmapped after the lock is released.
        drop(gone);
    }
}

/// Releases memory in which no code runs any more, but reserves its addresses for ever.
pub(crate) fn retire(map: Mmap) {
    // SAFETY: the memory is not accessed any more. An advice that the system ignores is no error.
    let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
    std::mem::forget(map);
}

#[cfg(test)]
mod tests {
    use super::{LARGEST, MOST_BYTES, MOST_PIECES, Piece, Pool};
    use memmap2::MmapOptions;

    fn piece(bytes: usize) -> Piece {
        Piece { map: MmapOptions::new().len(bytes).map_anon().unwrap(), ready: bytes }
    }

    #[test]
    fn the_smallest_that_fits_is_taken_and_nothing_twice() {
        let mut pool = Pool::default();
        for bytes in [64 << 10, 8 << 10, 16 << 10, 8 << 10] {
            assert!(pool.put(piece(bytes)).is_empty());
        }
        let mut taken = Vec::new();
        for (asked, found) in [(8000, 8 << 10), (8000, 8 << 10), (8000, 16 << 10)] {
            let piece = pool.take(asked).unwrap();
            assert_eq!(piece.map.len(), found);
            taken.push(piece.map.as_ptr());
            std::mem::forget(piece);
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 3);
        assert!(pool.take(8000).is_none(), "what is left is far too large for that");
        assert!(pool.take(65 << 10).is_none(), "and too small for this");
        assert_eq!(pool.take(40 << 10).unwrap().map.len(), 64 << 10);
        assert!(pool.take(1).is_none());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut pool = Pool::default();
        for i in 0..3 * MOST_PIECES {
            let gone = pool.put(piece(4096));
            assert_eq!(gone.len(), usize::from(i >= MOST_PIECES));
            assert!(pool.pieces.len() <= MOST_PIECES);
        }
        for _ in 0..10 {
            drop(pool.put(piece(LARGEST)));
            assert!(pool.pieces.iter().map(|p| p.map.len()).sum::<usize>() <= MOST_BYTES);
        }
        assert_eq!(pool.pieces.len(), MOST_BYTES / LARGEST);
    }

    #[test]
    fn what_is_taken_can_be_written() {
        super::give(piece(4096).map.make_exec().unwrap(), 4096);
        // Another test may have taken it.
        if let Some((mut map, ready)) = super::take(4096) {
            assert!(ready <= map.len());
            map[..4096].fill(7);
            assert!(map[..4096].iter().all(|byte| *byte == 7));
        }
        assert!(super::take(LARGEST + 1).is_none());
    }
}
