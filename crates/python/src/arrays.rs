//! Arguments and results through the buffer protocol, without copies.
//!
//! Invariant: values of this module are in C order, and hold doubles or integers of 64 bits; the package's Python code
//! has converted everything else. A buffer is exported as long as the value lives, so that its memory stays valid.

// Only this module makes slices of memory that Python owns.
#![allow(unsafe_code)]

use chainrule::{Slice, SliceMut};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ptr::NonNull;

/// An exported buffer with its memory.
struct Exported<T: pyo3::buffer::Element> {
    buffer: PyBuffer<T>,
    memory: NonNull<[T]>,
}

impl<T: pyo3::buffer::Element> Exported<T> {
    fn new(object: &Bound<'_, PyAny>) -> Option<Self> {
        let buffer = PyBuffer::<T>::get(object).ok()?;
        let memory = buffer.as_slice_ptr()?;
        Some(Self { buffer, memory })
    }

    fn slice(&self) -> &[T] {
        // SAFETY: the buffer is exported and contiguous. As for every extension that takes arrays, a thread that writes
        // to an argument while a function runs makes its numbers undefined.
        unsafe { self.memory.as_ref() }
    }
}

// SAFETY: the pointer is that of an exported buffer, which is released with the interpreter's lock held.
unsafe impl<T: pyo3::buffer::Element> Send for Exported<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: pyo3::buffer::Element> Sync for Exported<T> {}

enum Memory {
    Real(Exported<f64>),
    Int(Exported<i64>),
}

impl Memory {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let real = || Exported::new(object).map(Self::Real);
        let int = || Exported::new(object).map(Self::Int);
        real().or_else(int).ok_or_else(|| PyTypeError::new_err("an array in C order of float64 or int64 is expected"))
    }

    fn extents(&self) -> &[usize] {
        match self {
            Self::Real(exported) => exported.buffer.shape(),
            Self::Int(exported) => exported.buffer.shape(),
        }
    }
}

/// An argument.
pub(crate) struct Input(Memory);

impl Input {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Memory::new(object).map(Self)
    }

    /// An argument that is written to as well: an array of this module alone.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Output::new(object).map(|output| Self(output.0))
    }

    /// Returns the doubles for writing; the array is one of [`Self::writable`].
    pub(crate) fn reals_mut(&mut self) -> Option<&mut [f64]> {
        match &mut self.0 {
            // SAFETY: the buffer is exported and contiguous, and writable by the condition above.
            Memory::Real(exported) if !exported.buffer.readonly() => Some(unsafe { exported.memory.as_mut() }),
            _ => None,
        }
    }

    pub(crate) fn extents(&self) -> &[usize] {
        self.0.extents()
    }

    pub(crate) fn slice(&self) -> Slice<'_> {
        match &self.0 {
            Memory::Real(exported) => Slice::Real(exported.slice()),
            Memory::Int(exported) => Slice::Int(exported.slice()),
        }
    }
}

/// A result.
pub(crate) struct Output(Memory);

impl Output {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let memory = Memory::new(object)?;
        let is_readonly = match &memory {
            Memory::Real(exported) => exported.buffer.readonly(),
            Memory::Int(exported) => exported.buffer.readonly(),
        };
        if is_readonly {
            return Err(PyValueError::new_err("a result is written to an array that is read-only"));
        }
        Ok(Self(memory))
    }

    pub(crate) fn slice(&mut self) -> SliceMut<'_> {
        // SAFETY: the buffer is exported, contiguous and writable; the package's Python code refuses results that share
        // memory with each other or with arguments.
        match &mut self.0 {
            Memory::Real(exported) => SliceMut::Real(unsafe { exported.memory.as_mut() }),
            Memory::Int(exported) => SliceMut::Int(unsafe { exported.memory.as_mut() }),
        }
    }
}
