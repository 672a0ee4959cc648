//! Conversion of panics to errors of kind bug, and threads with large stacks.
//!
//! In: work that may panic on a bug in Chainrule. Out: its result, or [`Error::Bug`] with the message and the location
//! of the panic, and nothing on standard error.

use crate::{Error, Result};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

/// Stack for the front end, in bytes: several times the need of programs at the parser's nesting limit, without
/// optimisation. Only the used part takes memory.
const STACK_BYTES: usize = 64 << 20;

/// Prefix of the names of Chainrule's own threads, whose panics are propagated to the waiting thread.
const THREAD: &str = "chainrule";

thread_local! {
    /// Number of [`guard`]s around the current code of this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Message and location of this thread's last panic inside a guard.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The same of the last panic of any of Chainrule's threads.
static ELSEWHERE: Mutex<Option<String>> = Mutex::new(None);

/// Runs `work`; a panic in it becomes [`Error::Bug`] and is not printed.
///
/// The first call wraps the panic hook of the process. Panics outside `work` reach the previous hook.
///
/// # Errors
/// Those of `work`, or [`Error::Bug`].
///
/// ```
/// let error = chainrule::guard::guard(|| -> chainrule::Result<()> { panic!("no such node") }).unwrap_err();
/// assert!(error.to_string().starts_with("a bug in Chainrule"));
/// assert!(error.to_string().contains("no such node"));
/// ```
pub fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    static INSTALLED: Once = Once::new();
    // A hook cannot be set during a panic, as by a destructor.
    if !std::thread::panicking() {
        INSTALLED.call_once(wrap_hook);
    }
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    result.unwrap_or_else(|payload| Err(Error::Bug(message(&*payload))))
}

/// Runs `work` under a [`guard`] on a thread with a stack for the deepest programs; on this thread, if no other can be
/// started.
///
/// # Errors
/// The errors of [`guard`].
pub fn guard_on_own_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let mut work = Some(work);
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).stack_size(STACK_BYTES);
        let spawned = thread.spawn_scoped(scope, || work.take().map(guard));
        spawned.ok().map(|thread| thread.join().unwrap_or_else(|payload| Some(Err(Error::Bug(message(&*payload))))))
    });
    match (done.flatten(), work) {
        (Some(result), _) => result,
        (None, Some(work)) => guard(work),
        (None, None) => Err(Error::Bug("a thread ended without a result".to_owned())),
    }
}

/// Keeps the messages of guarded panics from the hook that prints them.
fn wrap_hook() {
    let outer = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let ours = std::thread::current().name().is_some_and(|name| name.starts_with(THREAD));
        if DEPTH.get() == 0 && !ours {
            return outer(info);
        }
        let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
        let text = format!("{}{place}", text(info.payload()));
        *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.clone());
        LAST.set(Some(text));
    }));
}

/// Returns message and location of the panic of `payload`.
fn message(payload: &(dyn Any + Send)) -> String {
    let elsewhere = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).take();
    LAST.take().or(elsewhere).unwrap_or_else(|| text(payload).to_owned())
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_bug_with_its_message_and_place() {
        for wrong in [
            || -> Result<i32> { panic!("lost {}", 3) },
            || -> Result<i32> { panic!("lost 3") },
            || -> Result<i32> { std::panic::resume_unwind(Box::new("lost 3")) },
        ] {
            for error in [guard(wrong).unwrap_err(), guard_on_own_stack(wrong).unwrap_err()] {
                let text = error.to_string();
                assert!(matches!(error, Error::Bug(_)), "{text}");
                assert!(text.contains("lost 3") && text.contains(env!("CARGO_PKG_VERSION")), "{text}");
                assert!(text.contains("help: please report it"), "{text}");
            }
        }
        let error = guard(|| -> Result<()> { panic!("x") }).unwrap_err();
        assert!(error.to_string().contains(&format!("{}:", file!())), "{error}");
    }

    #[test]
    fn results_and_errors_pass() {
        assert_eq!(guard(|| Ok(1)).unwrap(), 1);
        assert_eq!(guard_on_own_stack(|| Ok(1)).unwrap(), 1);
        let refused = || -> Result<()> { Err(Error::request("no", "yes")) };
        assert!(matches!(guard(refused), Err(Error::Request { .. })));
        // Guards nest, and a panic does not affect the next guard.
        let nested = guard(|| guard(|| -> Result<i32> { panic!("inner") }).or(Ok(7)));
        assert_eq!(nested.unwrap(), 7);
        assert!(!guard(|| -> Result<()> { panic!("outer") }).unwrap_err().to_string().contains("inner"));
    }
}
