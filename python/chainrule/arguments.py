"""Arguments of calls: from Python objects to arrays that running code takes, and the key of the compiled function.

The key has ranks, dtypes and short extents, never other sizes: see :mod:`chainrule.fit`.
"""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

from ._core import LONG, SHORT
from .errors import TypeError_
from .trees import name_of_part, parts_of, put_together

#: The folder of the package.
PACKAGE = os.path.dirname(__file__) + os.sep
#: How deep tuples of arguments may nest.
MAX_DEPTH = 20
#: More threads are not started.
MAX_THREADS = 1024


class ConversionWarning(UserWarning):
    """An argument was copied, because it is not an array of float64, int64 or bool in C order."""


class InterpreterWarning(UserWarning):
    """There is no native code for a function, on a machine that runs native code."""


class Static:
    """A known argument in a key: told apart by type, too."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Static) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self):
        return hash((type(self.value), self.value))


def kind_of_array(array, name):
    """The kind of an array, or an error where its dtype is not supported."""
    if type(array) is not np.ndarray and not isinstance(array, np.generic):
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError_(f"`{name}` is a masked array", remedy="fill it first: `a.filled(0.0)`")
        if isinstance(array, np.matrix):
            raise TypeError_(f"`{name}` is a np.matrix, whose `*` is another one", remedy="make it an array: `np.asarray(a)`")
    kind = array.dtype.kind
    if kind == "f" and array.dtype.itemsize <= 8:
        return "f"
    if kind in "iu" and not (kind == "u" and array.dtype.itemsize == 8):
        return "i"
    if kind == "b":
        return "b"
    raise TypeError_(
        f"`{name}` has the dtype {array.dtype}", remedy="pass arrays of float64, int64 or bool: `a.astype(np.float64)`"
    )


def levels_to_caller():
    """How many frames lie between a warning and the code that uses the package."""
    frame, n = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, n = frame.f_back, n + 1
    return n


def ready(array, kind, name):
    """The array as running code takes it: itself where it is float64 or int64 in C order."""
    dtype = np.float64 if kind == "f" else np.int64
    if array.dtype == dtype and array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned:
        # A dtype with an explicit byte order exports a buffer whose format names that order.
        return array if array.dtype is np.dtype(dtype) else array.view(np.dtype(dtype))
    if array.ndim and array.size > 1000 and not (kind == "b" and array.flags.c_contiguous):
        layout = "" if array.flags.c_contiguous else ", not in C order"
        wanted = "bool" if kind == "b" else np.dtype(dtype)
        warnings.warn(
            f"`{name}` is copied at each call: it is {array.dtype}{layout}; pass a C-contiguous array of {wanted}",
            ConversionWarning, stacklevel=levels_to_caller(),
        )
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"]).reshape(array.shape)


def spec_of(value, name, leaves, depth=0):
    """What the key says of an argument; its arrays are added to `leaves`."""
    kind = type(value)
    if kind is float:
        leaves.append(np.array(value))
        return ("num", "f", ())
    if kind is int:
        if not -(2**63) <= value < 2**63:
            raise TypeError_(f"`{name}` is {value}, which does not fit into 64 bits", remedy="pass it as a float")
        leaves.append(np.array(value, dtype=np.int64))
        return ("num", "i", ())
    if isinstance(value, (float, int)) and kind is not bool and not isinstance(value, np.generic):
        return spec_of(float(value) if isinstance(value, float) else int(value), name, leaves, depth)
    found = parts_of(value)
    if found is not None:
        if depth > MAX_DEPTH:
            raise TypeError_(f"`{name}` nests more than {MAX_DEPTH} tuples")
        parts, form = found
        return ("row", tuple([spec_of(part, name_of_part(name, form, k), leaves, depth + 1) for k, part in enumerate(parts)]), form)
    if kind is bool or value is None or kind is str or callable(value):
        return ("known", Static(value))
    if isinstance(value, (np.ndarray, np.generic)):
        found = kind_of_array(value, name)
        array = np.asarray(value)
        leaves.append(ready(array, found, name))
        return ("num", found, extents_of(array))
    if is_object(value):
        return ("known", Static(value))
    array = like_array(value, name)
    if array is not None:
        return spec_of(array if array.size or array.dtype.kind != "O" else array.astype(float), name, leaves, depth)
    raise TypeError_(f"`{name}` is a {kind.__name__}", remedy="pass numbers, arrays, or tuples, lists, dicts and dataclasses of them")


def extents_of(array):
    """The extents in a key."""
    return tuple([n if n <= SHORT else LONG for n in array.shape])


def with_extents(spec, most):
    """The key of code for the extents up to `most`, in which others are `None`: any of at least 2."""
    if spec[0] == "num":
        return ("num", spec[1], tuple([n if n is not None and LONG < n <= most else None for n in spec[2]]))
    if spec[0] == "row":
        return ("row", tuple([with_extents(part, most) for part in spec[1]]), *spec[2:])
    return spec


def for_all_sizes(specs):
    """The keys of code for all sizes."""
    return tuple([with_extents(spec, 1) for spec in specs])


def like_array(value, name):
    """An object that is like an array, as an array: lists, ranges, objects with `__array__`, buffers, DLPack; `None` for other objects."""
    if isinstance(value, (list, range)) or hasattr(value, "__array__"):
        return array_of(value, name)
    if isinstance(value, (bytes, bytearray)):
        return None
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise TypeError_(f"`{name}` is a {type(value).__name__} that NumPy cannot read: {error}", remedy="copy it to the processor") from None
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, NotImplementedError):
        return None


def array_of(value, name):
    """A list, or another object that is like an array, as an array."""
    try:
        return np.asarray(value)
    except ValueError:
        raise TypeError_(f"`{name}` is a ragged list", remedy="give all rows one length") from None


def is_object(value):
    """Whether an argument is known by what it is, as `self` of a method: captured code reads its attributes."""
    return hasattr(value, "__dict__") and type(value).__hash__ is object.__hash__ and not hasattr(value, "__array__") \
        and not hasattr(value, "__dlpack__")


def count_leaves(value):
    """How many numbers and arrays an argument has."""
    found = parts_of(value)
    if found is not None:
        return sum(map(count_leaves, found[0]))
    return 0 if isinstance(value, (bool, str)) or value is None or callable(value) or is_object(value) else 1


def n_threads(threads):
    """A number of threads; 0 stands for all of the machine."""
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 0:
        raise TypeError_(f"threads={threads!r} is not a number of threads", remedy="0 stands for all of the machine")
    return min(threads, MAX_THREADS)


def to_floats(value):
    """The argument with floats for ints: what is differentiated by."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return float(value)
    found = parts_of(value)
    if found is not None:
        return put_together(found[1], map(to_floats, found[0]))
    if not isinstance(value, (float, np.ndarray, np.generic)) and not callable(value) and not is_object(value):
        array = like_array(value, "an argument")
        value = value if array is None else array
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "iu":
        return np.asarray(value).astype(np.float64)
    return value
