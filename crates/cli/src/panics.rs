//! Panics, which are bugs of Chainrule: reported as such, with what to send, and never as they come.

use crate::Outcome;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Mutex;

/// Message and source line of the last panic of any thread.
static LAST: Mutex<Option<(String, String)>> = Mutex::new(None);

/// Runs `command`. A panic in it becomes a message, and a message about a panic that the library has caught is given the line
/// of Chainrule's source.
pub fn caught(command: impl FnOnce() -> Outcome) -> Outcome {
    set_hook(Box::new(|info| {
        let payload = info.payload();
        let words = payload.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned();
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        if let Ok(mut last) = LAST.lock() {
            *last = Some((words, place));
        }
    }));
    let outcome = catch_unwind(AssertUnwindSafe(command));
    let last = LAST.lock().ok().and_then(|mut last| last.take());
    match (outcome, last) {
        (Err(_), last) => {
            let (words, place) = last.unwrap_or_else(|| ("a panic".to_owned(), String::new()));
            Err(format!(
                "error: a bug in Chainrule: {words}\n  help: report it with the program and the request that show it\n  \
                 line: {place}"
            ))
        }
        (Ok(Err(message)), Some((words, place))) if message.contains(&words) => {
            Err(format!("{message}\n  line: {place}"))
        }
        (Ok(outcome), _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_as_a_bug_with_its_line() {
        let bug = caught(|| {
            let elements = [1, 2];
            let at = std::hint::black_box(2);
            Err(format!("{}", elements[at]))
        });
        let message = bug.unwrap_err();
        assert!(message.starts_with("error: a bug in Chainrule: index out of bounds"), "{message}");
        assert!(message.contains("help: report it") && message.contains("panics.rs:"), "{message}");
        assert_eq!(caught(|| Ok(())), Ok(()));
        assert_eq!(caught(|| Err("no such file".to_owned())), Err("no such file".to_owned()));
    }
}
