//! Progress indicator of long work, on terminals.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Runs `work`; after a moment, a line with the elapsed time appears on standard error, if that is a terminal.
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
