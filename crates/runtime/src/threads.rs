//! Whether this process has the threads of the pool.

use std::sync::atomic::{AtomicU32, Ordering};

/// Process that has started the pool; 0 if none has.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Returns whether work can go to the threads of the pool. A forked child has none of its parent's, and the pool is not
/// started again: it runs everything on the calling thread, with the same results.
#[must_use]
pub fn are_available() -> bool {
    let own = std::process::id();
    FIRST.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|first| first == own, |_| true)
}
