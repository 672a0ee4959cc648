//! Says that long work goes on, where a person is looking.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Runs `work`; while it takes longer than a moment, a line with the time passed stands on standard
/// error. Nothing is shown when that is not a terminal.
pub fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_string());
    bar.enable_steady_tick(Duration::from_millis(300));
    let result = work();
    bar.finish_and_clear();
    result
}
