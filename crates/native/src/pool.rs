//! Memory of code that is gone, kept for code to come.
//!
//! In: memory that held code. Out: the same memory, writable, for a [`Room`](crate::room::Room). To ask the system for memory, to have
//! its pages come and to give it back takes as long as compiling a hundred operations; to make the same memory writable again
//! takes a fraction of that, and is done when code goes, so that new code need not wait for it.
//!
//! Invariants: memory is here or with one owner, never both; it is writable and not executable while it is here, so code that is
//! gone cannot run; there is no more than [`MOST_BYTES`] of it in all. What is not kept goes back to the system.

use memmap2::{Mmap, MmapMut, UncheckedAdvice};
use std::sync::{Mutex, PoisonError};

/// More bytes in one piece are not kept: next to what it takes to write them, having them costs little.
pub(crate) const LARGEST: usize = 2 << 20;

/// So many bytes are kept.
const MOST_BYTES: usize = 4 << 20;

/// In so many pieces, so that finding one takes no time.
const MOST_PIECES: usize = 32;

/// A piece at most so many times as large as what is asked for is given, or of so many bytes: the rest would lie idle.
const TOO_LARGE: usize = 4;
const SMALL: usize = 16 << 10;

/// All pieces of this process.
static POOL: Mutex<Pool> = Mutex::new(Pool { pieces: Vec::new() });

/// Memory, and how many of its bytes are there already, from the begin; the others come when they are first written.
#[derive(Debug)]
struct Piece {
    map: MmapMut,
    ready: usize,
}

/// Those that came first, first.
#[derive(Debug, Default)]
struct Pool {
    pieces: Vec<Piece>,
}

impl Pool {
    /// Takes the smallest piece that has so many bytes.
    fn take(&mut self, bytes: usize) -> Option<Piece> {
        let fits = |len: usize| bytes <= len && len <= (TOO_LARGE * bytes).max(SMALL);
        let sizes = self.pieces.iter().enumerate().map(|(i, piece)| (piece.map.len(), i));
        let (_, i) = sizes.filter(|(len, _)| fits(*len)).min()?;
        Some(self.pieces.remove(i))
    }

    /// Keeps a piece; those that are too much then.
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

/// Writable memory of so many bytes or more, and how many of them are there already. What is in it is of no account.
pub(crate) fn take(bytes: usize) -> Option<(MmapMut, usize)> {
    if bytes > LARGEST {
        return None;
    }
    let Piece { map, ready } = POOL.lock().unwrap_or_else(PoisonError::into_inner).take(bytes)?;
    Some((map, ready))
}

/// Keeps memory in which no code runs any more, of which so many bytes are there, or gives it back.
pub(crate) fn give(map: Mmap, ready: usize) {
    if map.len() <= LARGEST
        && let Ok(map) = map.make_mut()
    {
        let gone = POOL.lock().unwrap_or_else(PoisonError::into_inner).put(Piece { map, ready });
        // Now that nobody waits.
        drop(gone);
    }
}

/// Gives back memory in which no code runs any more, but keeps its addresses, at which nothing will lie again.
pub(crate) fn retire(map: Mmap) {
    // SAFETY: nobody looks at it any more. That the system keeps what is in it is no error.
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
