//! NumPy arrays read in place, without the buffer protocol, which costs a fraction of a microsecond per array.
//!
//! Invariant: an [`Array`] is an exact `numpy.ndarray` of float64, int64 or bool in C order, aligned, of native byte
//! order; other objects take the general path. The head of an array is part of NumPy's stable binary interface, as
//! compiled extensions use it; [`Numpy::get`] compares it with Python's view of an array, and there is no fast path if
//! they differ.

// Reads NumPy's structures and makes slices of memory that NumPy owns.
#![allow(unsafe_code)]

use chainrule::{Slice, SliceMut};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::ffi::{c_char, c_int};

const C_CONTIGUOUS: c_int = 0x0001;
const ALIGNED: c_int = 0x0100;
const WRITEABLE: c_int = 0x0400;

/// The head of `PyArrayObject`.
#[repr(C)]
struct Head {
    object: ffi::PyObject,
    data: *mut c_char,
    n_dimensions: c_int,
    dimensions: *mut isize,
    strides: *mut isize,
    base: *mut ffi::PyObject,
    descr: *mut ffi::PyObject,
    flags: c_int,
}

/// Kind of numbers: that of the results and the arguments of compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Real,
    Int,
    /// Truth values: bytes in an array, integers for compiled code.
    Bool,
}

/// An array; valid as long as its object.
#[derive(Clone, Copy)]
pub(crate) struct Array<'a> {
    pub(crate) class: Class,
    pub(crate) extents: &'a [isize],
    data: *mut c_char,
    len: usize,
    is_writeable: bool,
}

// SAFETY: an address and numbers; whoever makes slices of them answers for it.
unsafe impl Send for Array<'_> {}

impl<'a> Array<'a> {
    pub(crate) fn is_writeable(&self) -> bool {
        self.is_writeable
    }

    /// Returns whether both have memory in common.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let width = |array: &Self| if array.class == Class::Bool { 1 } else { 8 };
        let range = |array: &Self| (array.data as usize, array.data as usize + width(array) * array.len);
        let ((a, a_end), (b, b_end)) = (range(self), range(other));
        a < b_end && b < a_end
    }

    /// Returns the elements; `None` for truth values, which compiled code does not read in place. As with NumPy's own
    /// functions, a thread that writes to them at the same time makes numbers undefined.
    pub(crate) fn slice(&self) -> Option<Slice<'a>> {
        let at = if self.len == 0 { std::ptr::dangling() } else { self.data.cast_const().cast::<u64>() };
        // SAFETY: contiguous, aligned, of this class and length while the object lives.
        unsafe {
            match self.class {
                Class::Real => Some(Slice::Real(std::slice::from_raw_parts(at.cast(), self.len))),
                Class::Int => Some(Slice::Int(std::slice::from_raw_parts(at.cast(), self.len))),
                Class::Bool => None,
            }
        }
    }

    /// Puts the truth values of an array of these, as integers, in place of `copy`.
    pub(crate) fn copy_truths(&self, copy: &mut Vec<i64>) {
        debug_assert_eq!(self.class, Class::Bool);
        copy.resize(self.len, 0);
        if self.len > 0 {
            // SAFETY: contiguous, of this length while the object lives; all bits are a value of a byte.
            let bytes = unsafe { std::slice::from_raw_parts(self.data.cast_const().cast::<u8>(), self.len) };
            widen(bytes, copy);
        }
    }

    /// Returns the elements for writing, as for [`Self::slice`]; the caller has checked that the array is writeable and
    /// shares no memory with arguments and other results.
    pub(crate) fn unshared(&mut self) -> Option<SliceMut<'a>> {
        let at = if self.len == 0 { std::ptr::dangling_mut() } else { self.data.cast::<u64>() };
        // SAFETY: as in `slice`; the caller has checked that the array is writeable and not shared.
        unsafe {
            match self.class {
                Class::Real => Some(SliceMut::Real(std::slice::from_raw_parts_mut(at.cast(), self.len))),
                Class::Int => Some(SliceMut::Int(std::slice::from_raw_parts_mut(at.cast(), self.len))),
                Class::Bool => None,
            }
        }
    }
}

/// Writes truth values as integers, four in one instruction where the processor widens bytes.
fn widen(truths: &[u8], integers: &mut [i64]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions.
        return unsafe { widen_in_fours(truths, integers) };
    }
    widen_each(truths, integers);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn widen_in_fours(truths: &[u8], integers: &mut [i64]) {
    widen_each(truths, integers);
}

#[inline(always)]
fn widen_each(truths: &[u8], integers: &mut [i64]) {
    integers.iter_mut().zip(truths).for_each(|(to, truth)| *to = i64::from(*truth != 0));
}

/// Returns item `k` of an exact tuple.
pub(crate) fn item<'a, 'py>(tuple: Borrowed<'a, 'py, PyAny>, k: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
    let item = tuple.cast_exact::<PyTuple>().ok()?.get_borrowed_item(k).ok()?.as_ptr();
    // SAFETY: a tuple holds its items as long as it lives.
    Some(unsafe { Borrowed::from_ptr(tuple.py(), item) })
}

/// Reinterprets eight bytes as a double.
pub(crate) fn reals(bits: &mut [u64]) -> &mut [f64] {
    // SAFETY: both have the same size and alignment, and all bits are a value of both.
    unsafe { std::slice::from_raw_parts_mut(bits.as_mut_ptr().cast(), bits.len()) }
}

/// Reinterprets eight bytes as an integer.
pub(crate) fn ints(bits: &mut [u64]) -> &mut [i64] {
    // SAFETY: as in `reals`.
    unsafe { std::slice::from_raw_parts_mut(bits.as_mut_ptr().cast(), bits.len()) }
}

/// Types and functions of NumPy.
pub(crate) struct Numpy {
    array: Py<PyType>,
    real_descr: Py<PyAny>,
    int_descr: Py<PyAny>,
    bool_descr: Py<PyAny>,
    pub(crate) float64: Py<PyType>,
    pub(crate) int64: Py<PyType>,
    pub(crate) bool_: Py<PyType>,
    empty: Py<PyAny>,
    /// Whether arrays have the layout that this module reads.
    is_known: bool,
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

impl Numpy {
    /// Returns NumPy, imported at the first call.
    pub(crate) fn get(py: Python<'_>) -> PyResult<&Self> {
        NUMPY.get_or_try_init(py, || {
            let numpy = py.import("numpy")?;
            let ty = |name: &str| -> PyResult<Py<PyType>> { Ok(numpy.getattr(name)?.cast_into::<PyType>()?.unbind()) };
            let descr = |name: &str| -> PyResult<Py<PyAny>> { Ok(numpy.getattr("dtype")?.call1((name,))?.unbind()) };
            let empty = numpy.getattr("empty")?;
            let mut made = Self {
                array: ty("ndarray")?,
                real_descr: descr("float64")?,
                int_descr: descr("int64")?,
                bool_descr: descr("bool")?,
                float64: ty("float64")?,
                int64: ty("int64")?,
                bool_: ty("bool_")?,
                empty: empty.clone().unbind(),
                is_known: true,
            };
            made.is_known = made.agrees(&empty.call1(((2, 3),))?)?;
            Ok(made)
        })
    }

    /// Returns whether an array of 2 x 3 doubles is read as Python reports it.
    fn agrees(&self, example: &Bound<'_, PyAny>) -> PyResult<bool> {
        let address: usize = example.getattr("ctypes")?.getattr("data")?.extract()?;
        Ok(self.view(example.as_borrowed()).is_some_and(|array| {
            array.class == Class::Real
                && array.extents == [2, 3]
                && array.data as usize == address
                && array.is_writeable
        }))
    }

    /// Returns this object as an array; `None` for objects that the general path takes.
    #[inline]
    pub(crate) fn view<'a>(&self, object: Borrowed<'a, '_, PyAny>) -> Option<Array<'a>> {
        if !self.is_known {
            return None;
        }
        // SAFETY: the type of a living object; a subclass may have another layout behind the head, and is not taken.
        let head = unsafe {
            if ffi::Py_TYPE(object.as_ptr()).cast() != self.array.as_ptr() {
                return None;
            }
            &*object.as_ptr().cast::<Head>()
        };
        let class = if head.descr == self.real_descr.as_ptr() {
            Class::Real
        } else if head.descr == self.int_descr.as_ptr() {
            Class::Int
        } else if head.descr == self.bool_descr.as_ptr() {
            Class::Bool
        } else {
            return None;
        };
        if head.flags & (C_CONTIGUOUS | ALIGNED) != C_CONTIGUOUS | ALIGNED {
            return None;
        }
        let rank = usize::try_from(head.n_dimensions).ok()?;
        // SAFETY: NumPy keeps as many extents as there are dimensions; with none the pointer may be null.
        let extents = if rank == 0 { &[] } else { unsafe { std::slice::from_raw_parts(head.dimensions, rank) } };
        let len = extents.iter().product::<isize>();
        let is_writeable = head.flags & WRITEABLE != 0;
        Some(Array { class, extents, data: head.data, len: usize::try_from(len).ok()?, is_writeable })
    }

    /// Returns a new array that compiled code writes to, whose elements are undefined.
    pub(crate) fn empty<'py>(&self, shape: &Bound<'py, PyTuple>, class: Class) -> PyResult<Bound<'py, PyAny>> {
        let empty = self.empty.bind(shape.py());
        match class {
            Class::Real => empty.call1((shape,)),
            Class::Int | Class::Bool => empty.call1((shape, &self.int_descr)),
        }
    }

    /// Returns whether this object is a Python float or a `numpy.float64`.
    #[inline]
    pub(crate) fn real(&self, object: Borrowed<'_, '_, PyAny>) -> Option<f64> {
        // SAFETY: the type of a living object; both are `float`s, for which the function cannot fail.
        unsafe {
            let ty = ffi::Py_TYPE(object.as_ptr());
            let is_float = ty == &raw mut ffi::PyFloat_Type || ty.cast() == self.float64.as_ptr();
            is_float.then(|| ffi::PyFloat_AsDouble(object.as_ptr()))
        }
    }

    /// Returns the value of a Python int of at most 64 bits; `None` for truth values.
    #[inline]
    pub(crate) fn int(object: Borrowed<'_, '_, PyAny>) -> Option<i64> {
        // SAFETY: the type of a living object.
        let is_int = unsafe { ffi::Py_TYPE(object.as_ptr()) == &raw mut ffi::PyLong_Type };
        if is_int { object.extract().ok() } else { None }
    }
}
