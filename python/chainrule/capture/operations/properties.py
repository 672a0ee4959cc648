"""Shapes, sizes and dtypes of arrays."""

from __future__ import annotations

import math

import numpy as np

from ...errors import Limitation
from . import reductions
from .operators import binary
from ..values import Known, Row


def size_value(w, dim):
    return Known(dim.known) if dim.known is not None else w.size(dim)


def shape(w, a):
    return Row([size_value(w, dim) for dim in w.num(a).dims])


def size(w, a):
    total = Known(1)
    for dim in w.num(a).dims:
        total = binary(w, "*", total, size_value(w, dim))
    return total


def ndim(w, a):
    return Known(w.num(a).rank)


def dtype(w, a):
    return Known(np.dtype({"f": np.float64, "i": np.int64, "b": np.bool_}[w.num(a).kind]))


def size_of_masked(w, a):
    total = reductions.sum_(w, a.mask)
    for dim in a.array.dims[a.mask.rank:]:
        total = binary(w, "*", total, size_value(w, dim))
    return total


def item(w, a):
    """`.item()` of a number, or of an array of one element."""
    a = w.num(a)
    if any(dim.known != 1 for dim in a.dims):
        return w.scalar(a)
    return w.element(a, [w.constant(0)] * a.rank)


#: Maximum number of elements that become the items of a list.
MAX_ITEMS = 256


def tolist(w, a):
    a = w.num(a)
    if not a.rank:
        return a
    counts = [dim.known for dim in a.dims]
    if None in counts:
        w.fail("a list of the elements of an array of unknown size is made", "use the array itself", error=Limitation)
    if math.prod(counts) > MAX_ITEMS:
        w.fail(f"a list of more than {MAX_ITEMS} elements of an array is made", "use the array itself")
    return Row([tolist(w, w.element(a, [w.constant(k)])) for k in range(counts[0])], is_list=True)
