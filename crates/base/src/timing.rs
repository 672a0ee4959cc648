//! Time of compiler passes.
//!
//! Each pass runs inside [`time`]. Within [`record`], the time of each pass, without the passes that run inside it, is
//! added to a recording of the thread; otherwise nothing is measured. A thread that runs passes for another one joins
//! its recording ([`join`]).

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time of all runs of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassTime {
    /// Name of the pass.
    pub name: &'static str,
    /// Time, without other passes inside it.
    pub time: Duration,
    /// Number of runs.
    pub runs: usize,
}

/// Times of passes, shared by the threads that add to them.
#[derive(Clone, Default)]
pub struct Recording(Arc<Mutex<Vec<PassTime>>>);

thread_local! {
    static CURRENT: RefCell<Option<Recording>> = const { RefCell::new(None) };
    /// Time of the passes that have ended inside the current pass or recording of this thread.
    static INSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

impl Recording {
    fn add(&self, pass: PassTime) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter_mut().find(|known| known.name == pass.name) {
            Some(known) => {
                known.time += pass.time;
                known.runs += pass.runs;
            }
            None => all.push(pass),
        }
    }
}

/// Restores the recording of this thread, also after a panic.
struct Restore(Option<Recording>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Runs `work`, a run of the pass `name`.
pub fn time<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let Some(recording) = current() else { return work() };
    let before = INSIDE.replace(Duration::ZERO);
    let start = Instant::now();
    let result = work();
    let elapsed = start.elapsed();
    recording.add(PassTime { name, time: elapsed.saturating_sub(INSIDE.get()), runs: 1 });
    INSIDE.set(before + elapsed);
    result
}

/// Runs `work`; returns its result, the times of the passes in it, in the order in which they first ended, and the time
/// of this thread outside of passes. An enclosing recording gets the passes too.
pub fn record<T>(work: impl FnOnce() -> T) -> (T, Vec<PassTime>, Duration) {
    let recording = Recording::default();
    let before = INSIDE.replace(Duration::ZERO);
    let start = Instant::now();
    let result = join(Some(recording.clone()), work);
    let inside = INSIDE.replace(Duration::ZERO);
    let outside = start.elapsed().saturating_sub(inside);
    INSIDE.set(before + inside);
    let passes = recording.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(around) = current() {
        passes.iter().for_each(|pass| around.add(*pass));
    }
    (result, passes, outside)
}

/// Returns the recording of this thread, if any.
#[must_use]
pub fn current() -> Option<Recording> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work`, whose passes are added to `recording`.
pub fn join<T>(recording: Option<Recording>, work: impl FnOnce() -> T) -> T {
    let _restore = Restore(CURRENT.replace(recording));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep(ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }

    fn row(passes: &[PassTime], name: &str) -> (u128, usize) {
        passes.iter().find(|pass| pass.name == name).map_or((0, 0), |pass| (pass.time.as_millis(), pass.runs))
    }

    #[test]
    fn a_pass_is_charged_without_the_passes_inside_it() {
        let ((), passes, outside) = record(|| {
            sleep(4);
            time("outer", || {
                sleep(2);
                time("inner", || sleep(40));
                time("inner", || sleep(40));
            });
        });
        assert_eq!(passes.iter().map(|pass| (pass.name, pass.runs)).collect::<Vec<_>>(), [("inner", 2), ("outer", 1)]);
        let (inner, outer) = (row(&passes, "inner").0, row(&passes, "outer").0);
        assert!(inner >= 80 && (2..inner).contains(&outer), "{passes:?}");
        assert!((4..inner).contains(&outside.as_millis()), "{outside:?}");
    }

    #[test]
    fn threads_join_a_recording_and_recordings_nest() {
        let ((inner, _, _), outer, _) = record(|| {
            time("before", || {});
            let recording = current();
            std::thread::scope(|scope| {
                scope.spawn(|| join(recording, || time("elsewhere", || sleep(3))));
            });
            record(|| time("nested", || 7))
        });
        assert_eq!(inner, 7);
        for name in ["before", "elsewhere", "nested"] {
            assert_eq!(row(&outer, name).1, 1, "{name}: {outer:?}");
        }
        assert!(row(&outer, "elsewhere").0 >= 3);
    }

    #[test]
    fn nothing_is_recorded_outside_and_after_a_panic() {
        time("alone", || {});
        let panicked = std::panic::catch_unwind(|| record(|| time("broken", || panic!("no"))));
        assert!(panicked.is_err() && current().is_none());
        assert!(record(|| time("next", || {})).1.iter().all(|pass| pass.name == "next"));
    }
}
