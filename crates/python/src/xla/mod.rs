//! Handler of XLA's foreign function interface: compiled functions as operations of JAX programs on the processor.
//!
//! In: buffers of XLA, with the number of a registered function as the attribute `program`. Out: its results in XLA's
//! buffers. No Python code runs and the interpreter's lock is not needed. Axes before those of an argument count
//! points; an argument with extents of 1 there is the same for all points.

// Structures of C, and slices of memory that XLA owns.
#![allow(unsafe_code)]

mod abi;
mod evaluate;

use crate::function::Compiled;
use abi::{Frame, XlaError, dtype};
use evaluate::Program;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::BTreeMap;
use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Registered functions by number. Programs of JAX contain numbers only, so a function lives as long as the process.
static PROGRAMS: Mutex<BTreeMap<i64, Arc<Program>>> = Mutex::new(BTreeMap::new());

/// Minor version of the interface that the handler reports.
static MINOR: AtomicI32 = AtomicI32::new(0);

/// Returns the handler as a capsule. `minor` is the minor version of the interface in the installed XLA.
#[pyfunction]
pub(crate) fn xla_handler(py: Python<'_>, minor: i32) -> PyResult<Bound<'_, PyCapsule>> {
    MINOR.store(minor, Ordering::Relaxed);
    let address = handle as *mut c_void;
    let address =
        std::ptr::NonNull::new(address).ok_or_else(|| pyo3::exceptions::PyValueError::new_err("no handler"))?;
    // SAFETY: the address is that of a function, which lives as long as the process.
    unsafe { PyCapsule::new_with_pointer(py, address, c"xla._CUSTOM_CALL_TARGET") }
}

/// Registers a function under a number.
#[pyfunction]
pub(crate) fn xla_register(number: i64, compiled: &Compiled) {
    let program = Arc::new(Program::new(compiled.shared()));
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner).entry(number).or_insert(program);
}

/// Handler that XLA calls.
extern "C" fn handle(frame: *mut Frame) -> *mut XlaError {
    // SAFETY: XLA passes a call frame that is valid during the call.
    let frame = unsafe { &*frame };
    if report_version(frame) {
        return std::ptr::null_mut();
    }
    let done = catch_unwind(AssertUnwindSafe(|| execute(frame)));
    match done.unwrap_or_else(|_| Err("a bug in Chainrule: a panic".into())) {
        Ok(()) => std::ptr::null_mut(),
        Err(message) => error(frame, &message),
    }
}

/// Answers a request for the version; returns whether the call is one.
fn report_version(frame: &Frame) -> bool {
    let mut extension = frame.extension;
    while !extension.is_null() {
        // SAFETY: extensions are a list of valid structures; one of this type has metadata.
        unsafe {
            if (*extension).kind == abi::METADATA {
                let metadata = (*extension.cast::<abi::MetadataExtension>()).metadata;
                (*metadata).version.major = abi::MAJOR;
                (*metadata).version.minor = MINOR.load(Ordering::Relaxed);
                (*metadata).traits = 0;
                return true;
            }
            extension = (*extension).next;
        }
    }
    false
}

fn error(frame: &Frame, message: &str) -> *mut XlaError {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let mut args = abi::ErrorArgs {
        struct_size: size_of::<abi::ErrorArgs>(),
        extension: std::ptr::null_mut(),
        message: message.as_ptr(),
        code: abi::INVALID_ARGUMENT,
    };
    // SAFETY: XLA's table of functions is valid during the call.
    unsafe { ((*frame.api).create_error)(&raw mut args) }
}

fn execute(frame: &Frame) -> Result<(), String> {
    if frame.stage != abi::EXECUTE {
        return Ok(());
    }
    if !frame.is_complete() {
        return Err("this version of XLA passes other structures than Chainrule expects: update the package".into());
    }
    let number = program_number(&frame.attributes).ok_or("a call of Chainrule without a program")?;
    let program = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
    let program = program.ok_or("the program was compiled in another process: trace the function again")?;
    program.run(&buffers(&frame.args)?, &buffers(&frame.results)?)
}

fn program_number(attributes: &abi::Attributes) -> Option<i64> {
    let n = usize::try_from(attributes.size).ok()?;
    (0..n).find_map(|k| {
        // SAFETY: `size` attributes are there, each with a type, a name and a value of that type.
        unsafe {
            let name = &**attributes.names.add(k);
            let is_program = std::slice::from_raw_parts(name.start, name.len) == b"program";
            if !is_program || *attributes.types.add(k) != abi::SCALAR {
                return None;
            }
            let scalar = &*(*attributes.values.add(k)).cast::<abi::Scalar>();
            (scalar.dtype == dtype::S64).then(|| scalar.value.cast::<i64>().read_unaligned())
        }
    })
}

/// An array of XLA, in row-major order.
struct Array<'a> {
    dtype: c_int,
    data: *mut c_void,
    extents: &'a [i64],
}

impl Array<'_> {
    /// Returns the number of elements.
    fn len(&self) -> usize {
        self.extents.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).product()
    }
}

fn buffers(arguments: &abi::Buffers) -> Result<Vec<Array<'_>>, String> {
    let n = usize::try_from(arguments.size).unwrap_or(0);
    let array = |k| {
        // SAFETY: `size` arguments are there, each with its type; the only type is that of buffers (1).
        unsafe {
            if *arguments.types.add(k) != 1 {
                return Err(format!("argument {k} is not a buffer"));
            }
            let buffer = &**arguments.buffers.add(k);
            let rank = usize::try_from(buffer.rank).unwrap_or(0);
            let extents = if rank == 0 { &[] } else { std::slice::from_raw_parts(buffer.dims, rank) };
            Ok(Array { dtype: buffer.dtype, data: buffer.data, extents })
        }
    };
    (0..n).map(array).collect()
}
