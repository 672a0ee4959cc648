//! Runtime calls: operators by their rows, user functions, copies.
//!
//! All have the System V calling convention. Arguments in lanes are an array, the first argument's lanes first; the
//! result replaces the first argument.

use chainrule_kernel::External;
use chainrule_ops::ROWS;
use chainrule_runtime::Layout;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Context of calls of user functions.
pub(crate) struct Calls {
    /// Layout of the program whose code may get this context: arguments are as many as its functions take.
    pub layout: Arc<Layout>,
    arguments: Vec<f64>,
    /// Payload of a user function's panic.
    pub panic: Option<Box<dyn Any + Send>>,
}

impl Calls {
    pub(crate) fn new(layout: &Arc<Layout>) -> Self {
        let arguments = layout.kernel().externals.iter().map(|e| e.arity).max().unwrap_or(0);
        Self { layout: Arc::clone(layout), arguments: vec![0.0; arguments], panic: None }
    }
}

/// Evaluates an operator of one argument, by the index of its row.
pub(crate) extern "sysv64" fn call1(row: usize, a: f64) -> f64 {
    (ROWS[row].value)(&[a])
}

/// Evaluates an operator of two arguments, by the index of its row.
pub(crate) extern "sysv64" fn call2(row: usize, a: f64, b: f64) -> f64 {
    (ROWS[row].value)(&[a, b])
}

/// Evaluates an operator of up to three arguments in lanes, by the index of its row.
///
/// # Safety
/// `arguments` points to `arity * lanes` doubles, at least `lanes`, that are not shared.
pub(crate) unsafe extern "sysv64" fn call_row(row: usize, arity: usize, lanes: usize, arguments: *mut f64) {
    // SAFETY: the caller's promise.
    let all = unsafe { std::slice::from_raw_parts_mut(arguments, arity.max(1) * lanes) };
    for lane in 0..lanes {
        let mut one = [0.0; 3];
        for (i, to) in one.iter_mut().take(arity).enumerate() {
            *to = all[i * lanes + lane];
        }
        all[lane] = (ROWS[row].value)(&one[..arity.min(3)]);
    }
}

/// Calls a user function in lanes. Returns 0 if it panicked.
///
/// # Safety
/// `calls` was made for the layout of the kernel of this function; `arguments` points to `arity * lanes` doubles, at
/// least `lanes`; neither is shared.
pub(crate) unsafe extern "sysv64" fn call_external(
    calls: *mut Calls,
    function: usize,
    lanes: usize,
    arguments: *mut f64,
) -> u64 {
    // SAFETY: the caller's promise.
    let calls = unsafe { &mut *calls };
    let Some(External { arity, call, .. }) = calls.layout.kernel().externals.get(function) else { return 0 };
    // SAFETY: the caller's promise.
    let all = unsafe { std::slice::from_raw_parts_mut(arguments, (*arity).max(1) * lanes) };
    for lane in 0..lanes {
        for (i, to) in calls.arguments.iter_mut().take(*arity).enumerate() {
            *to = all[i * lanes + lane];
        }
        let one = &calls.arguments[..*arity];
        let value = catch_unwind(AssertUnwindSafe(|| call.as_ref().map_or(f64::NAN, |f| f(one))));
        match value {
            Ok(value) => all[lane] = value,
            Err(panic) => {
                calls.panic = Some(panic);
                return 0;
            }
        }
    }
    1
}

/// A value, if there is one.
#[repr(C)]
pub(crate) struct Maybe {
    there: u64,
    value: i64,
}

/// Evaluates an integer operator by the index of its row.
///
/// # Safety
/// `arguments` points to `arity` integers.
pub(crate) unsafe extern "sysv64" fn call_int(row: usize, arity: usize, arguments: *const i64) -> Maybe {
    // SAFETY: the caller's promise.
    let arguments = unsafe { std::slice::from_raw_parts(arguments, arity) };
    ROWS[row]
        .int
        .and_then(|value| value(arguments))
        .map_or(Maybe { there: 0, value: 0 }, |value| Maybe { there: 1, value })
}

/// Copies elements of `lanes` words each; `at` holds destination, source and number. Returns 0 if they are not inside
/// the buffers, whose lengths are in words.
///
/// # Safety
/// `to` and `from` point to that many words, `at` to three; the written words are not shared.
pub(crate) unsafe extern "sysv64" fn copy(
    to: *mut u64,
    from: *const u64,
    at: *const i64,
    to_len: usize,
    from_len: usize,
    lanes: usize,
) -> u64 {
    // SAFETY: the caller's promise.
    let at = unsafe { std::slice::from_raw_parts(at, 3) };
    let words = |n: i64| usize::try_from(n).ok().and_then(|n| n.checked_mul(lanes));
    if at[2] <= 0 {
        return 1;
    }
    let (Some(to_at), Some(from_at), Some(len)) = (words(at[0]), words(at[1]), words(at[2])) else { return 0 };
    let fits = |start: usize, room: usize| start.checked_add(len).is_some_and(|end| end <= room);
    if !fits(to_at, to_len) || !fits(from_at, from_len) {
        return 0;
    }
    // SAFETY: both ranges are inside, as checked above; `copy` allows them to overlap.
    unsafe { std::ptr::copy(from.add(from_at), to.add(to_at), len) };
    1
}
