//! Time of the passes of a compilation.

use super::passes;
use chainrule_base::timing::{self, PassTime};
use std::fmt;
use std::time::Duration;

/// Name of the phase that parses programs and checks them.
pub(crate) const CHECK: &str = "check";

/// Name of the phase that makes array programs of checked functions.
pub(crate) const ELABORATE: &str = "elaborate";

/// Name of the phase that makes machine code, bytecode or text from kernels.
pub(crate) const BACKEND: &str = "backend";

/// Name of the phase that runs a compiled function.
const RUN: &str = "run";

/// Times of the passes and phases that ran inside of [`time_passes`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassTimes {
    /// Phases and passes that ran: `check`, `elaborate`, the passes in the order of [`passes()`], `backend`, `run`.
    pub passes: Vec<PassTime>,
    /// Time of the calling thread outside of these, as for choosing between loops and straight-line code.
    pub other: Duration,
}

impl PassTimes {
    /// Returns the sum of all times. Passes on several threads at once count with the time of each thread.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.other + self.passes.iter().map(|pass| pass.time).sum::<Duration>()
    }
}

/// Prints a line for each pass: name, time, share of the total, number of runs.
impl fmt::Display for PassTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total().as_secs_f64();
        let width = self.passes.iter().map(|pass| pass.name.len()).max().unwrap_or(0).max("other".len());
        writeln!(f, "{:<width$} {:>15} {:>8} {:>6}", "pass", "time", "share", "runs")?;
        let mut line = |name: &str, time: Duration, runs: Option<usize>| {
            let seconds = time.as_secs_f64();
            let share = if total > 0.0 { 100.0 * seconds / total } else { 0.0 };
            let runs = runs.map_or_else(String::new, |runs| format!(" {runs:>6}"));
            writeln!(f, "{name:<width$} {:>12.3} ms {share:>6.1} %{runs}", seconds * 1e3)
        };
        for pass in &self.passes {
            line(pass.name, pass.time, Some(pass.runs))?;
        }
        line("other", self.other, None)?;
        line("total", self.total(), None)
    }
}

/// Runs `work`; returns its result, and the times of the passes that ran in it on behalf of this thread.
///
/// Decisions between loops and straight-line code, and between accumulation programs, compile candidates; their passes
/// count too.
///
/// ```
/// use chainrule::{Module, time_passes};
/// let text = "let f = fun (x : [n]Double) -> vectorSum (build n (fun i -> x[i] * x[i]))";
/// let f = Module::from_text("f.ft", text)?.function("f")?;
/// let (gradient, times) = time_passes(|| f.gradient().compile());
/// assert_eq!(gradient?.call(&[vec![1.0, 2.0].into()])?, [vec![2.0, 4.0].into()]);
/// assert!(times.passes.iter().any(|pass| pass.name == "vectorise" && pass.runs == 1));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn time_passes<T>(work: impl FnOnce() -> T) -> (T, PassTimes) {
    let (result, mut times, other) = timing::record(work);
    let passes = passes();
    let names = passes.iter().map(|pass| pass.name);
    let order: Vec<&str> = [CHECK, ELABORATE].into_iter().chain(names).chain([BACKEND, RUN]).collect();
    times.sort_by_key(|time| order.iter().position(|name| *name == time.name));
    (result, PassTimes { passes: times, other })
}

/// Runs `work`, which runs compiled functions: a recording of [`time_passes`] has its time as the phase `run`.
pub fn time_run<T>(work: impl FnOnce() -> T) -> T {
    timing::time(RUN, work)
}
