//! Whether this process can have more than one thread.

use std::sync::atomic::{AtomicU32, Ordering};

/// Process that has started threads; 0 if none has.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Returns whether this process can have more threads. A forked child has none of its parent's, and cannot start new
/// ones: it runs everything on the calling thread, with the same results.
#[must_use]
pub fn are_available() -> bool {
    let own = std::process::id();
    FIRST.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|first| first == own, |_| true)
}
