//! Runtime calls: operators by their rows, user functions, copies.
//!
//! All have C's calling convention on this machine.

use chainrule_kernel::{External, ExternalFn};
use chainrule_ops::ROWS;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Context of calls of user functions.
#[derive(Default)]
pub(crate) struct Calls {
    functions: Vec<(usize, Option<ExternalFn>)>,
    /// Payload of a user function's panic.
    pub panic: Option<Box<dyn Any + Send>>,
}

impl Calls {
    pub(crate) fn new(externals: &[External]) -> Self {
        Self { functions: externals.iter().map(|e| (e.arity, e.call.clone())).collect(), panic: None }
    }
}

/// Evaluates an operator of one number, by the index of its row.
pub(crate) extern "C" fn call1(row: usize, a: f64) -> f64 {
    (ROWS[row].value)(&[a])
}

/// Evaluates an operator of two numbers, by the index of its row.
pub(crate) extern "C" fn call2(row: usize, a: f64, b: f64) -> f64 {
    (ROWS[row].value)(&[a, b])
}

/// Evaluates an operator of three numbers, by the index of its row.
pub(crate) extern "C" fn call3(row: usize, a: f64, b: f64, c: f64) -> f64 {
    (ROWS[row].value)(&[a, b, c])
}

/// Evaluates an integer operator by the index of its row and stores the value in `result`. Returns 0 if there is no
/// value.
///
/// # Safety
/// `arguments` points to `arity` integers, `result` to one that is not shared.
pub(crate) unsafe extern "C" fn call_int(row: usize, arity: usize, arguments: *const i64, result: *mut i64) -> u64 {
    // SAFETY: the caller's promise.
    let arguments = unsafe { std::slice::from_raw_parts(arguments, arity) };
    match ROWS[row].int.and_then(|value| value(arguments)) {
        Some(value) => {
            // SAFETY: the caller's promise.
            unsafe { *result = value };
            1
        }
        None => 0,
    }
}

/// Calls a user function; its result replaces its first argument. Returns 0 if it panicked.
///
/// # Safety
/// `calls` was made for the kernel of this function; `arguments` points to as many doubles as the function takes, at
/// least one; neither is shared.
pub(crate) unsafe extern "C" fn call_external(calls: *mut Calls, function: usize, arguments: *mut f64) -> u64 {
    // SAFETY: the caller's promise.
    let calls = unsafe { &mut *calls };
    let Some((arity, call)) = calls.functions.get(function) else { return 0 };
    let value = {
        // SAFETY: the caller's promise.
        let all = unsafe { std::slice::from_raw_parts(arguments, *arity) };
        catch_unwind(AssertUnwindSafe(|| call.as_ref().map_or(f64::NAN, |f| f(all))))
    };
    match value {
        Ok(value) => {
            // SAFETY: the caller's promise.
            unsafe { *arguments = value };
            1
        }
        Err(panic) => {
            calls.panic = Some(panic);
            0
        }
    }
}

/// Copies words; `at` holds destination, source and number. Returns 0 if they are not inside the buffers.
///
/// # Safety
/// `to` and `from` point to that many words, `at` to three; the written words are not shared.
pub(crate) unsafe extern "C" fn copy(
    to: *mut u64,
    from: *const u64,
    at: *const i64,
    to_len: usize,
    from_len: usize,
) -> u64 {
    // SAFETY: the caller's promise.
    let [to_at, from_at, len] = unsafe { *at.cast::<[i64; 3]>() };
    if len <= 0 {
        return 1;
    }
    let (Ok(to_at), Ok(from_at), Ok(len)) = (usize::try_from(to_at), usize::try_from(from_at), usize::try_from(len))
    else {
        return 0;
    };
    let fits = |start: usize, room: usize| start.checked_add(len).is_some_and(|end| end <= room);
    if !fits(to_at, to_len) || !fits(from_at, from_len) {
        return 0;
    }
    // SAFETY: both ranges are inside, as checked above; `copy` allows them to overlap.
    unsafe { std::ptr::copy(from.add(from_at), to.add(to_at), len) };
    1
}

/// Rounds down, on processors without such an instruction.
pub(crate) extern "C" fn floor(x: f64) -> f64 {
    x.floor()
}

/// Rounds up, on processors without such an instruction.
pub(crate) extern "C" fn ceil(x: f64) -> f64 {
    x.ceil()
}

/// Fused multiply-add, on processors without such an instruction.
pub(crate) extern "C" fn fma(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}
